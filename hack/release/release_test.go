package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// made is the image of programs that are like those of Hekla, but small, and a release of them.
type made struct{ image, release string }

// helmStub takes helm's place: that packs the chart in a test of its own.
var helmStub = func() string {
	path, _ := filepath.Abs("testdata/helm.sh")
	return "sh " + path
}()

func write(ctx context.Context, command, out string) error {
	return run(ctx, []string{command, "--root=testdata/source", "--version=v1.2.3", "--out=" + out, "--name=registry.example.com/hekla:v1.2.3",
		"--links=vcctl kubectl-hekla", "--helm=" + helmStub, "--url=https://example.com/v1.2.3/"})
}

// make writes both once for all tests.
func makeOnce(t *testing.T) made {
	t.Helper()
	folder, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

var (
	scratch string
	first   *made
)

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "hekla-release-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	scratch = folder
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

func once() (made, error) {
	if first == nil {
		m := made{filepath.Join(scratch, "image"), filepath.Join(scratch, "release")}
		if err := errors.Join(os.MkdirAll(m.image, 0o755), write(context.Background(), "image", m.image), write(context.Background(), "all", m.release)); err != nil {
			return made{}, err
		}
		first = &m
	}
	return *first, nil
}

// indexOf reads the image from the layout in a directory.
func indexOf(t *testing.T, folder string) (v1.ImageIndex, *v1.IndexManifest) {
	t.Helper()
	path, err := layout.ImageIndexFromPath(folder)
	check(t, err)
	outer, err := path.IndexManifest()
	check(t, err)
	if len(outer.Manifests) != 1 {
		t.Fatalf("the layout holds %d images", len(outer.Manifests))
	}
	if got := outer.Manifests[0].Annotations["io.containerd.image.name"]; got != "registry.example.com/hekla:v1.2.3" {
		t.Errorf("containerd would call the image %q", got)
	}
	index, err := path.ImageIndex(outer.Manifests[0].Digest)
	check(t, err)
	check(t, validate.Index(index))
	manifest, err := index.IndexManifest()
	check(t, err)
	return index, manifest
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// unpack returns the files of a layer by name, and writes the executables into a directory.
func unpack(t *testing.T, image v1.Image, into string) map[string]*tar.Header {
	t.Helper()
	layers, err := image.Layers()
	check(t, err)
	if len(layers) != 1 {
		t.Fatalf("the image has %d layers", len(layers))
	}
	content, err := layers[0].Uncompressed()
	check(t, err)
	defer func() { _ = content.Close() }()
	return unpackTar(t, content, into)
}

func unpackTar(t *testing.T, content io.Reader, into string) map[string]*tar.Header {
	t.Helper()
	found := map[string]*tar.Header{}
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		check(t, err)
		found[header.Name] = header
		if header.Typeflag == tar.TypeReg {
			text, err := io.ReadAll(archive)
			check(t, err)
			check(t, os.WriteFile(filepath.Join(into, filepath.Base(header.Name)), text, header.FileInfo().Mode()))
		}
	}
}

func TestTheIndexNamesBothPlatforms(t *testing.T) {
	_, manifest := indexOf(t, filepath.Join(makeOnce(t).image, "image"))
	var named []string
	for _, m := range manifest.Manifests {
		named = append(named, m.Platform.String())
	}
	if !slices.Equal(named, []string{"linux/amd64", "linux/arm64"}) {
		t.Errorf("the index names %v", named)
	}
}

func TestTheSameSourceGivesTheSameImage(t *testing.T) {
	m := makeOnce(t)
	again := filepath.Join(t.TempDir(), "again")
	check(t, os.MkdirAll(again, 0o755))
	check(t, write(t.Context(), "image", again))
	for _, file := range []string{"image.tar", "image-linux-amd64.tar", "image-linux-arm64.tar"} {
		before, err := checksum(filepath.Join(m.image, file))
		check(t, err)
		after, err := checksum(filepath.Join(again, file))
		check(t, err)
		if before != after {
			t.Errorf("%s differs", file)
		}
	}
}

func TestTheProgramsOfTheImageRun(t *testing.T) {
	index, manifest := indexOf(t, filepath.Join(makeOnce(t).image, "image"))
	for _, m := range manifest.Manifests {
		image, err := index.Image(m.Digest)
		check(t, err)
		folder := t.TempDir()
		found := unpack(t, image, folder)
		for _, p := range programs {
			if h := found[p.name]; h == nil || h.Mode != 0o755 || h.Uid != 0 {
				t.Fatalf("%s: /%s is %+v", m.Platform, p.name, h)
			}
			if m.Platform.Architecture != runtime.GOARCH || runtime.GOOS != "linux" {
				continue
			}
			output, err := exec.CommandContext(t.Context(), filepath.Join(folder, p.name), "--version").CombinedOutput()
			if err != nil || string(output) != p.name+" v1.2.3\n" {
				t.Errorf("%s says %q: %v", p.name, output, err)
			}
		}
		if h := found["vcctl"]; h == nil || h.Linkname != "hekla" {
			t.Errorf("%s: /vcctl is %+v", m.Platform, h)
		}
		if h := found["etc/ssl/certs/ca-certificates.crt"]; h == nil || h.Size < 50_000 {
			t.Errorf("%s: the roots of trust are %+v", m.Platform, h)
		}
	}
}

func TestTheImageIsAsTheManifestsExpect(t *testing.T) {
	index, manifest := indexOf(t, filepath.Join(makeOnce(t).image, "image"))
	image, err := index.Image(manifest.Manifests[0].Digest)
	check(t, err)
	config, err := image.ConfigFile()
	check(t, err)
	found := unpack(t, image, t.TempDir())
	manifests, err := os.ReadFile("../../installer/hekla.yaml")
	check(t, err)
	commands := 0
	for line := range strings.Lines(string(manifests)) {
		if command, is := strings.CutPrefix(strings.TrimSpace(line), "command: [/"); is {
			commands++
			if command = strings.TrimSuffix(command, "]"); found[command] == nil {
				t.Errorf("installer/hekla.yaml runs /%s, which the image does not hold", command)
			}
		}
	}
	if commands != 3 {
		t.Errorf("%d commands found in installer/hekla.yaml", commands)
	}
	if got := config.Config.Entrypoint; !slices.Equal(got, []string{"/hekla"}) {
		t.Errorf("the entrypoint is %v", got)
	}
	// runAsNonRoot takes a user by number only.
	if config.Config.User != "65532:65532" {
		t.Errorf("the user is %q", config.Config.User)
	}
	dockerfile, err := os.ReadFile("../../Dockerfile")
	check(t, err)
	if !strings.Contains(string(dockerfile), `ENTRYPOINT ["/hekla"]`) {
		t.Error("the Dockerfile has another entrypoint")
	}
	if got := config.Config.Labels["org.opencontainers.image.version"]; got != "v1.2.3" {
		t.Errorf("the image says that it is of version %q", got)
	}
}

func TestDockerLoadsTheArchiveOfAPlatform(t *testing.T) {
	tag, err := name.NewTag("registry.example.com/hekla:v1.2.3")
	check(t, err)
	for _, platform := range platforms {
		image, err := tarball.ImageFromPath(filepath.Join(makeOnce(t).image, "image-linux-"+platform.Architecture+".tar"), &tag)
		check(t, err)
		check(t, validate.Image(image))
		config, err := image.ConfigFile()
		check(t, err)
		if config.Architecture != platform.Architecture {
			t.Errorf("the archive for %s is for %s", platform.Architecture, config.Architecture)
		}
	}
}

func TestWhatIsPushedIsWhatWasWritten(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	to := strings.TrimPrefix(server.URL, "http://") + "/team/hekla:v1.2.3"
	m := makeOnce(t)
	check(t, run(t.Context(), []string{"push", "--out=" + m.image, "--name=" + to}))
	reference, err := name.ParseReference(to)
	check(t, err)
	pulled, err := remote.Index(reference)
	check(t, err)
	index, _ := indexOf(t, filepath.Join(m.image, "image"))
	want, err := index.Digest()
	check(t, err)
	if got, err := pulled.Digest(); err != nil || got != want {
		t.Errorf("pulled is %s, %v, want %s", got, err, want)
	}
	if err := run(t.Context(), []string{"push", "--out=" + t.TempDir(), "--name=" + to}); err == nil || !strings.Contains(err.Error(), "make image") {
		t.Errorf("pushing nothing says %v", err)
	}
}

func TestAReleaseHoldsAllItsFilesWithTheirChecksums(t *testing.T) {
	folder := makeOnce(t).release
	var names []string
	check(t, walk(folder, func(name, _ string) { names = append(names, name) }))
	want := []string{"SHA256SUMS", "hekla-1.2.3.tgz", "hekla-v1.2.3-darwin-amd64.tar.gz", "hekla-v1.2.3-darwin-arm64.tar.gz", "hekla-v1.2.3-linux-amd64.tar.gz",
		"hekla-v1.2.3-linux-arm64.tar.gz", "hekla-v1.2.3.cdx.json", "hekla-v1.2.3.provenance.json", "image-linux-amd64.tar", "image-linux-arm64.tar", "image.payload.json", "image.tar", "index.yaml", "krew.yaml"}
	if !slices.Equal(names, want) {
		t.Errorf("the files are %v, want %v", names, want)
	}
	command := exec.CommandContext(t.Context(), "sha256sum", "-c", "SHA256SUMS")
	command.Dir = folder
	if output, err := command.CombinedOutput(); err != nil || strings.Count(string(output), ": OK") != len(want)-1 {
		t.Errorf("%v\n%s", err, output)
	}
	for platform, programs := range map[string][]string{"linux-arm64": {"hekla", "hekla-controllers", "hekla-scheduler"}, "darwin-arm64": {"hekla"}} {
		archive, err := os.Open(filepath.Join(folder, "hekla-v1.2.3-"+platform+".tar.gz"))
		check(t, err)
		content, err := gzip.NewReader(archive)
		check(t, err)
		into := t.TempDir()
		found := unpackTar(t, content, into)
		check(t, archive.Close())
		pages := []string{"share/man/man1/hekla.1", "share/completions/bash/hekla", "share/completions/zsh/_hekla", "share/completions/fish/hekla.fish", "share/completions/powershell/hekla.ps1"}
		for _, name := range slices.Concat(programs, pages, []string{"LICENSE", "vcctl"}) {
			if found["hekla-v1.2.3-"+platform+"/"+name] == nil {
				t.Errorf("the archive for %s lacks %s", platform, name)
			}
		}
		if len(found) != len(programs)+len(pages)+3 {
			t.Errorf("the archive for %s holds %d files", platform, len(found))
		}
		for name, want := range map[string]string{"hekla.1": "the page of v1.2.3", "_hekla": "completion for zsh"} {
			if text, err := os.ReadFile(filepath.Join(into, name)); err != nil || !strings.HasPrefix(string(text), want) {
				t.Errorf("in the archive for %s is %s: %q, %v", platform, name, text, err)
			}
		}
	}
}

// The second build begins with an empty cache, so that it compiles all that is linked.
func TestTwoFoldersGiveTheSameRelease(t *testing.T) {
	var sums []string
	for _, name := range []string{"one", "another/of a longer path"} {
		folder, out := filepath.Join(t.TempDir(), name), filepath.Join(t.TempDir(), "dist")
		check(t, os.CopyFS(folder, os.DirFS("testdata/source")))
		commit(t, folder)
		if len(sums) > 0 {
			t.Setenv("GOCACHE", filepath.Join(t.TempDir(), "cache"))
		}
		check(t, run(t.Context(), []string{"all", "--root=" + folder, "--version=v1.2.3", "--out=" + out, "--name=hekla:v1.2.3", "--helm=" + helmStub}))
		text, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
		check(t, err)
		sums = append(sums, string(text))
		provenance, err := os.ReadFile(filepath.Join(out, "hekla-v1.2.3.provenance.json"))
		check(t, err)
		isProven(t, provenance, string(text), revisionOf(t, folder))
	}
	if sums[0] != sums[1] || sums[0] == "" {
		t.Errorf("one folder gives\n%sand another\n%s", sums[0], sums[1])
	}
}

func git(t *testing.T, folder string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", arguments...)
	command.Dir = folder
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", arguments, err, output)
	}
	return strings.TrimSpace(string(output))
}

// commit makes a repository of a folder, whose commit is the same each time.
func commit(t *testing.T, folder string) {
	t.Helper()
	git(t, folder, "init", "--quiet")
	git(t, folder, "add", ".")
	git(t, folder, "commit", "--quiet", "--message=source")
}

func revisionOf(t *testing.T, folder string) string {
	t.Helper()
	return git(t, folder, "rev-parse", "HEAD")
}

// isProven checks that a provenance names the files of a release with their checksums, and the commit.
func isProven(t *testing.T, text []byte, sums, revision string) {
	t.Helper()
	var s statement
	check(t, json.Unmarshal(text, &s))
	build := s.Predicate.BuildDefinition
	if len(build.ResolvedDependencies) != 1 || build.ResolvedDependencies[0].Digest["gitCommit"] != revision {
		t.Errorf("the sources are %+v, want those of commit %s", build.ResolvedDependencies, revision)
	}
	if build.InternalParameters["go"] != runtime.Version() {
		t.Errorf("the parameters are %v", build.InternalParameters)
	}
	var of []string
	for _, file := range s.Subject {
		of = append(of, file.Digest["sha256"]+"  "+file.Name)
	}
	rest := slices.DeleteFunc(strings.Split(strings.TrimSpace(sums), "\n"), func(line string) bool { return strings.HasSuffix(line, ".provenance.json") })
	if !slices.Equal(of, rest) {
		t.Errorf("the provenance is of\n%s\nand the release has\n%s", strings.Join(of, "\n"), strings.Join(rest, "\n"))
	}
}

func TestSourcesThatAreNoCommitAreSaidToBeNone(t *testing.T) {
	folder, out := filepath.Join(t.TempDir(), "source"), filepath.Join(t.TempDir(), "dist")
	check(t, os.CopyFS(folder, os.DirFS("testdata/source")))
	commit(t, folder)
	check(t, os.WriteFile(filepath.Join(folder, "LICENSE"), []byte("another"), 0o600))
	check(t, run(t.Context(), []string{"all", "--root=" + folder, "--version=v1.2.3", "--out=" + out, "--name=hekla:v1.2.3", "--helm=" + helmStub}))
	text, err := os.ReadFile(filepath.Join(out, "hekla-v1.2.3.provenance.json"))
	check(t, err)
	var s statement
	check(t, json.Unmarshal(text, &s))
	if b := s.Predicate.BuildDefinition; len(b.ResolvedDependencies) > 0 || b.InternalParameters["modified"] != true {
		t.Errorf("the build is said to be of %+v", b)
	}
}

func TestADirectoryOfOtherFilesIsLeftAlone(t *testing.T) {
	folder := t.TempDir()
	other := filepath.Join(folder, "thesis.tex")
	check(t, os.WriteFile(other, nil, 0o600))
	if err := emptied(folder); err == nil || !strings.Contains(err.Error(), "holds no release") {
		t.Errorf("said is %v", err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
	check(t, os.WriteFile(filepath.Join(folder, "SHA256SUMS"), nil, 0o600))
	check(t, emptied(folder))
	if left, err := os.ReadDir(folder); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

func TestTheChartIsPackedWithTheVersion(t *testing.T) {
	o := options{source: source{root: "../..", version: "v1.2.3"}, out: t.TempDir(), chart: "installer/helm/hekla",
		helm: "go tool -modfile=hack/helm.mod helm"}
	check(t, o.packChart(t.Context(), "1.2.3"))
	archive, err := os.Open(filepath.Join(o.out, "hekla-1.2.3.tgz"))
	check(t, err)
	defer func() { _ = archive.Close() }()
	content, err := gzip.NewReader(archive)
	check(t, err)
	folder := t.TempDir()
	found := unpackTar(t, content, folder)
	for _, name := range []string{"hekla/values.yaml", "hekla/templates/scheduler.yaml", "hekla/files/crds/batch.volcano.sh_jobs.yaml", "hekla/files/monitoring/alerts.yaml"} {
		if found[name] == nil {
			t.Errorf("the chart lacks %s", name)
		}
	}
	text, err := os.ReadFile(filepath.Join(folder, "Chart.yaml"))
	check(t, err)
	for _, want := range []string{"version: 1.2.3\n", "appVersion: v1.2.3\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("its Chart.yaml has no %q:\n%s", want, text)
		}
	}
}

func TestTheBillNamesTheModulesOfAProgram(t *testing.T) {
	self, err := os.Executable()
	check(t, err)
	bill, err := (&source{version: "v1.2.3"}).bill(map[string]string{"release.test": self})
	check(t, err)
	text := &bytes.Buffer{}
	check(t, cyclonedx.NewBOMEncoder(text, cyclonedx.BOMFileFormatJSON).Encode(bill))
	read := &cyclonedx.BOM{}
	check(t, cyclonedx.NewBOMDecoder(text, cyclonedx.BOMFileFormatJSON).Decode(read))
	if read.Metadata.Component.PackageURL != "pkg:golang/hekla.sh/hekla/hack/release@v1.2.3" {
		t.Errorf("the subject is %+v", read.Metadata.Component)
	}
	isNamed := func(name, version string) bool {
		return slices.ContainsFunc(*read.Components, func(c cyclonedx.Component) bool {
			return c.Name == name && (version == "" || c.Version == version) && c.PackageURL == "pkg:golang/"+name+"@"+c.Version
		})
	}
	if !isNamed("stdlib", runtime.Version()) || !isNamed("github.com/google/go-containerregistry", "") {
		t.Errorf("the components are %+v", *read.Components)
	}
}

func TestWhatCannotBeMeantIsRefused(t *testing.T) {
	for want, arguments := range map[string][]string{
		"which of image":       nil,
		"there are image":      {"images", "--version=v1.0.0"},
		"--version: must not":  {"image"},
		"a semantic version":   {"all", "--version=one", "--out=" + t.TempDir()},
		"no arguments but":     {"image", "--version=v1.0.0", "more"},
		"--name=a b: ":         {"push", "--name=a b"},
		"flag provided but no": {"image", "--unknown"},
	} {
		if err := run(t.Context(), arguments); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v says %v, want %q", arguments, err, want)
		}
	}
}
