package apitest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"hekla.sh/hekla/internal/localcluster/cache"
)

// Build puts programs, by the names of their folders in cmd, into the folder, named as make build names them:
// scheduler becomes hekla-scheduler.
func Build(ctx context.Context, folder string, programs ...string) error {
	for _, source := range programs {
		if err := BuildPackage(ctx, Path(folder, source), "hekla.sh/hekla/cmd/"+source); err != nil {
			return err
		}
	}
	return nil
}

// BuildPackage builds a program of any module that this one requires. The tests of several packages need the same
// programs: the first links one into a folder of the user's cache, where the go command links it again only after a
// change, and each gets its own copy.
func BuildPackage(ctx context.Context, path, importPath string) error {
	folder, err := cache.Dir("tested")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	linked := filepath.Join(folder, filepath.Base(path))
	unlock, err := cache.Lock(ctx, linked+".lock", func() {})
	if err != nil {
		return fmt.Errorf("lock %s: %w", linked, err)
	}
	defer unlock()
	// Without tables for debuggers, linking takes half the time.
	build := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", linked, importPath)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", importPath, err, output)
	}
	return copyProgram(linked, path)
}

// copyProgram copies an executable. What runs already is replaced, not written to.
func copyProgram(from, to string) (err error) {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if os.Link(from, to) == nil {
		return nil // the go command replaces what it links, so the content stays
	}
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(target, source); err != nil {
		_ = target.Close()
		return err
	}
	return target.Close()
}

// Path is where [Build] leaves a program.
func Path(folder, source string) string {
	if source != "hekla" {
		source = "hekla-" + source
	}
	return filepath.Join(folder, source)
}
