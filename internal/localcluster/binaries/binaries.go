package binaries

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/localcluster/cache"
)

// keptBuilds bounds the cache: the build in use and as many others, those used last. Two checkouts with different
// requirements then do not take turns rebuilding.
const keptBuilds = 2

// Binaries are the programs of a local cluster, all of one build, or those of Kubernetes of another.
type Binaries struct {
	// Dir is the folder they are in.
	Dir string
	// KubernetesDir is the folder of those of Kubernetes, if they are of another version than Hekla is built with.
	KubernetesDir string `json:",omitempty"`
	// KubernetesVersion is what the API server reports, for example v1.36.3.
	KubernetesVersion string
}

// Path returns the executable called name: etcd, kube-apiserver, kube-controller-manager, kubectl or kwok.
func (b *Binaries) Path(name string) string {
	isOfKubernetes := slices.ContainsFunc(ofKubernetes(), func(s source) bool { return s.name == name })
	if b.KubernetesDir != "" && isOfKubernetes {
		return filepath.Join(b.KubernetesDir, name)
	}
	return filepath.Join(b.Dir, name)
}

// Ensure returns the programs from the cache, which is in the user's cache folder. On first use it builds them
// there, which takes minutes, needs the go command, and tells progress how far it is. Two callers at once build once.
// When ctx ends the build is broken off and leaves nothing behind.
func Ensure(ctx context.Context, progress io.Writer) (*Binaries, error) {
	made, err := newRecipe(hekla.GoMod, hekla.GoSum)
	if err != nil {
		return nil, err
	}
	folder, err := cache.Dir("bin")
	if err != nil {
		return nil, err
	}
	return made.ensure(ctx, folder, progress)
}

// EnsureVersion is Ensure with the programs of Kubernetes of a version such as v1.35.1. They are built from what the Go
// module proxy has. etcd and kwok stay those of Ensure. "" is the version that Ensure has.
func EnsureVersion(ctx context.Context, version string, progress io.Writer) (*Binaries, error) {
	if version != "" {
		var err error
		if version, err = canonical(version); err != nil {
			return nil, err
		}
	}
	result, err := Ensure(ctx, progress)
	if err != nil || version == "" || version == result.KubernetesVersion {
		return result, err
	}
	folder, err := cache.Dir("bin")
	if err != nil {
		return nil, err
	}
	other, err := newVersionRecipe(version).ensure(ctx, folder, progress)
	if err != nil {
		return nil, err
	}
	return &Binaries{Dir: result.Dir, KubernetesDir: other.Dir, KubernetesVersion: version}, nil
}

// ensure is Ensure for any recipe and cache folder.
func (r *recipe) ensure(ctx context.Context, folder string, progress io.Writer) (*Binaries, error) {
	dir := filepath.Join(folder, r.key)
	result := &Binaries{Dir: dir, KubernetesVersion: r.kubernetes}
	if isBuilt(dir) {
		return result, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, fmt.Errorf("make the binary cache: %w", err)
	}
	unlock, err := cache.Lock(ctx, dir+".lock", func() {
		_, _ = fmt.Fprintln(progress, "Another process is building the programs of the local cluster; waiting for it.")
	})
	if err != nil {
		return nil, fmt.Errorf("lock the binary cache: %w", err)
	}
	defer unlock()
	if isBuilt(dir) {
		return result, nil
	}
	if err := r.build(ctx, dir, progress); err != nil {
		return nil, err
	}
	prune(folder, r.key)
	return result, nil
}

// isBuilt reports whether dir holds a build, and marks it as used. The rename that puts a build in place is what makes
// the folder's existence mean that it is complete.
func isBuilt(dir string) bool {
	now := time.Now()
	return os.Chtimes(dir, now, now) == nil
}

// build builds into a folder next to dir and renames it to dir when all is there.
func (r *recipe) build(ctx context.Context, dir string, progress io.Writer) error {
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("the local cluster is built from source on first use, and the go command was not found in PATH; install Go from https://go.dev/dl and try again")
	}
	work := dir + ".building"
	// An earlier build may have been killed here; the lock says that no other build is in it now.
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("clear an unfinished build: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := os.MkdirAll(work, 0o755); err != nil {
		return fmt.Errorf("make the folder of the build: %w", err)
	}
	meter := startMeter(progress, fmt.Sprintf("Building the programs of the local cluster (Kubernetes %s), once, into %s", r.kubernetes, dir))
	if err := r.compile(ctx, work, meter); err != nil {
		meter.finish("Broken off")
		if r.isLookedUp && ctx.Err() == nil {
			return fmt.Errorf("version %s of Kubernetes cannot be built from what the Go module proxy has (go env GOPROXY): %w", r.kubernetes, err)
		}
		return err
	}
	meter.finish("Built")
	for _, source := range r.sources {
		if source.builtAs == "" {
			continue
		}
		if err := os.Rename(filepath.Join(work, source.builtAs), filepath.Join(work, source.name)); err != nil {
			return fmt.Errorf("name the program %s: %w", source.name, err)
		}
	}
	if err := os.Rename(work, dir); err != nil {
		return fmt.Errorf("put the build in place: %w", err)
	}
	return nil
}

// toCompile is a template of go list: the packages that go build will compile, and name. What is in Go's build cache it
// does not name.
const toCompile = `{{if .Stale}}{{if ne .StaleReason "not installed but available in build cache"}}{{.ImportPath}}
{{end}}{{end}}`

// compile runs the go command in work and leaves the executables there.
func (r *recipe) compile(ctx context.Context, work string, meter *meter) error {
	if r.isLookedUp {
		if err := r.require(ctx, work, meter); err != nil {
			return err
		}
	}
	for name, content := range map[string][]byte{"go.mod": r.goMod, "go.sum": r.goSum} {
		if err := os.WriteFile(filepath.Join(work, name), content, 0o644); err != nil {
			return fmt.Errorf("write %s of the build: %w", name, err)
		}
	}
	arguments := append([]string{"list", r.modules, "-deps", "-f", toCompile}, r.importPaths()...)
	packages, err := runGo(ctx, work, meter, arguments...)
	if err != nil {
		return fmt.Errorf("find what to build: %w", err)
	}
	meter.expect(strings.Count(packages, "\n"))
	arguments = append([]string{"build", r.modules, "-buildvcs=false", "-v", "-ldflags", r.ldflags, "-o", work}, r.importPaths()...)
	if _, err := runGo(ctx, work, meter, arguments...); err != nil {
		return fmt.Errorf("build the programs of the local cluster: %w", err)
	}
	return nil
}

// runGo runs one go command, shows its standard error to meter, and returns its standard output.
//
// Whatever the caller's environment says about cgo, workspaces and the target must not reach it: the cgo setting
// decides whether Go's build cache is shared, and a cluster for another platform cannot run here.
func runGo(ctx context.Context, dir string, meter *meter, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = 10 * time.Second
	var output strings.Builder
	command.Stdout = &output
	command.Stderr = meter
	if err := command.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("go %s: %w\n%s", arguments[0], err, meter.tail())
	}
	return output.String(), nil
}

// prune removes builds beyond keptBuilds. It is best effort: a build that stays costs disk space and nothing else.
func prune(cache, current string) {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return
	}
	type aged struct {
		path string
		used time.Time
	}
	var others []aged
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !entry.IsDir() || entry.Name() == current || strings.HasSuffix(entry.Name(), ".building") {
			continue
		}
		others = append(others, aged{path: filepath.Join(cache, entry.Name()), used: info.ModTime()})
	}
	slices.SortFunc(others, func(a, b aged) int {
		return cmp.Or(b.used.Compare(a.used), cmp.Compare(a.path, b.path))
	})
	for _, old := range others[min(keptBuilds, len(others)):] {
		_ = os.RemoveAll(old.path)
	}
}
