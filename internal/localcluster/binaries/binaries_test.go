package binaries

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla"
)

const smallGoMod = `module example.org/x

go 1.26.0

require (
	k8s.io/kubernetes v1.36.3
	example.org/y v1.0.0 // indirect
)

replace k8s.io/api => k8s.io/api v0.36.3
`

func mustRecipe(t *testing.T, goMod string) *recipe {
	t.Helper()
	made, err := newRecipe([]byte(goMod), nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestARecipeIsKnownByItsVersionsAlone(t *testing.T) {
	made := mustRecipe(t, smallGoMod)
	if made.kubernetes != "v1.36.3" || !strings.Contains(made.ldflags, "gitVersion=v1.36.3 ") || !strings.HasSuffix(made.ldflags, "gitMinor=36") {
		t.Errorf("version %q, linker flags %q", made.kubernetes, made.ldflags)
	}
	if !strings.Contains(string(made.goMod), "example.org/y v1.0.0") || strings.Contains(string(made.goMod), "example.org/x") {
		t.Errorf("the go.mod of the build is\n%s", made.goMod)
	}
	if other := mustRecipe(t, strings.Replace(smallGoMod, " // indirect", "", 1)); other.key != made.key {
		t.Error("a comment changes the key")
	}
	for _, change := range []string{"y v1.0.0|y v1.0.1", "kubernetes v1.36.3|kubernetes v1.36.4", "=> k8s.io/api v0.36.3|=> k8s.io/api v0.36.4"} {
		before, after, _ := strings.Cut(change, "|")
		if other := mustRecipe(t, strings.Replace(smallGoMod, before, after, 1)); other.key == made.key {
			t.Errorf("%s to %s does not change the key", before, after)
		}
	}
	if _, err := newRecipe([]byte("module x\n"), nil); err == nil {
		t.Error("a go.mod without Kubernetes is accepted")
	}
}

const goModOfKubernetes = `module k8s.io/kubernetes

go 1.25.0

godebug default=go1.25

require (
	github.com/blang/semver/v4 v4.0.0
	k8s.io/api v0.0.0
)

replace (
	example.org/kept => example.org/other v1.0.0
	k8s.io/api => ./staging/src/k8s.io/api
)
`

func TestAnotherVersionRequiresWhatWasPublishedWithIt(t *testing.T) {
	got, err := requirements([]byte(goModOfKubernetes), "v1.35.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"go 1.25.0\n", "godebug default=go1.25\n", "require k8s.io/kubernetes v1.35.1\n", "replace k8s.io/api => k8s.io/api v0.35.1\n"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
}

func TestVersionsOfKubernetesAreRecognised(t *testing.T) {
	for given, want := range map[string]string{"v1.35.1": "v1.35.1", "1.35.1": "v1.35.1", "v1.37.0-rc.1": "v1.37.0-rc.1", "v1.35": "", "1": "", "v2.0.0": "", "latest": "", "": ""} {
		got, err := canonical(given)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", given, got, err)
		}
	}
	if _, err := EnsureVersion(t.Context(), "newest", io.Discard); err == nil || !strings.Contains(err.Error(), "v1.35.1") {
		t.Errorf("got %v, want what a version looks like", err)
	}
}

// The folder that stands for a proxy is empty, so that nothing is asked of any other.
func TestAVersionThatTheProxyDoesNotHaveIsNamed(t *testing.T) {
	t.Setenv("GOPROXY", "file://"+t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")
	t.Setenv("GOMODCACHE", t.TempDir())
	_, err := newVersionRecipe("v1.99.0").ensure(t.Context(), t.TempDir(), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "version v1.99.0 of Kubernetes cannot be built") || !strings.Contains(err.Error(), "GOPROXY") {
		t.Errorf("got %v", err)
	}
}

func TestProgramsOfAnotherVersionAreInTheirOwnFolder(t *testing.T) {
	b := Binaries{Dir: "own", KubernetesDir: "other", KubernetesVersion: "v1.35.1"}
	for name, want := range map[string]string{"etcd": "own/etcd", "kwok": "own/kwok", "kubectl": "other/kubectl", "kube-apiserver": "other/kube-apiserver"} {
		if got := b.Path(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func TestABuildThatIsBrokenOffLeavesNothing(t *testing.T) {
	made, err := newRecipe(hekla.GoMod, hekla.GoSum)
	if err != nil {
		t.Fatal(err)
	}
	cache := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	// What the first line says appears when the build has begun.
	began := writerFunc(func([]byte) { cancel() })
	if _, err := made.ensure(ctx, cache, began); err == nil {
		t.Fatal("the build was not broken off")
	}
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.IsDir() {
			t.Errorf("%s was left behind", entry.Name())
		}
	}
}

type writerFunc func([]byte)

func (w writerFunc) Write(text []byte) (int, error) {
	w(text)
	return len(text), nil
}

func TestABuildThatFailsSaysWhatGoSaid(t *testing.T) {
	made := mustRecipe(t, smallGoMod) // Without a go.sum nothing may be used.
	_, err := made.ensure(t.Context(), t.TempDir(), io.Discard)
	if err == nil || !strings.Contains(err.Error(), "missing go.sum entry") {
		t.Errorf("got %v, want what the go command said", err)
	}
}

func TestOnlyTheBuildsUsedLastAreKept(t *testing.T) {
	cache := t.TempDir()
	now := time.Now()
	for i, name := range []string{"current", "newer", "new", "old", "older"} {
		dir := filepath.Join(cache, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		used := now.Add(-time.Duration(i) * time.Hour)
		if err := os.Chtimes(dir, used, used); err != nil {
			t.Fatal(err)
		}
	}
	if !isBuilt(filepath.Join(cache, "old")) { // Finding it is using it.
		t.Fatal("old is not there")
	}
	prune(cache, "current")
	entries, err := os.ReadDir(cache)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if difference := cmp.Diff([]string{"current", "newer", "old"}, left); difference != "" {
		t.Errorf("kept (-want +got):\n%s", difference)
	}
}

// go build compiles what go list has said it would, then links without a word.
func TestTheMeterReachesItsEnd(t *testing.T) {
	var out bytes.Buffer
	m := startMeter(&out, "Building")
	m.show()
	m.expect(2)
	for _, text := range []string{"example.org/a\n", "example.org/b\n"} {
		m.show()
		if _, err := m.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	m.show()
	m.finish("Built")
	want := []string{"Building", "fetching modules", "0 of 2 packages compiled (0 %)", "1 of 2 packages compiled (50 %)", "all 2 packages compiled, linking", "Built after 0s."}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if i >= len(want) || !strings.Contains(line, want[i]) {
			t.Errorf("line %d is %q", i, line)
		}
	}
}

func TestTheMeterCountsPackagesAndKeepsMessages(t *testing.T) {
	var out bytes.Buffer
	m := startMeter(&out, "Building")
	m.expect(10)
	for _, text := range []string{"go: downloading x v1\nexample.org/a\nexample", ".org/b\n", "# example.org/c\nc.go:1: broken"} {
		if _, err := m.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	m.show()
	m.finish("Broken off")
	if !strings.Contains(out.String(), "2 of 10 packages compiled (20 %)") {
		t.Errorf("shows %q", out.String())
	}
	if !strings.HasSuffix(m.tail(), "# example.org/c\nc.go:1: broken") {
		t.Errorf("keeps %q", m.tail())
	}
}
