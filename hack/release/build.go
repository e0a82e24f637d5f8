package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// source is what is built.
type source struct {
	root, version string
	// revision and time are the commit and when it was made.
	revision string
	time     time.Time
	// isModified says that the sources are not those of the commit.
	isModified bool
}

// program is one executable: its package below the root, and what it is called.
type program struct{ path, name string }

// programs are those of the image, by the names that the manifests call.
var programs = []program{
	{"./cmd/controllers", "hekla-controllers"},
	{"./cmd/hekla", "hekla"},
	{"./cmd/scheduler", "hekla-scheduler"},
}

// readCommit reads which commit is built. Outside of a clone the time is the beginning of 1970, as it is for a commit
// that is not known.
func (s *source) readCommit(ctx context.Context) error {
	s.time = time.Unix(0, 0).UTC()
	command := exec.CommandContext(ctx, "git", "log", "-1", "--format=%H %ct")
	command.Dir = s.root
	text, err := command.Output()
	if err != nil {
		return nil //nolint:nilerr // an archive of the sources has no commits
	}
	revision, seconds, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("the time of commit %s: %w", revision, err)
	}
	s.revision, s.time = revision, time.Unix(at, 0).UTC()
	status := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ".")
	status.Dir = s.root
	changes, err := status.Output()
	if err != nil {
		return fmt.Errorf("whether the sources are those of commit %s: %w", revision, err)
	}
	s.isModified = len(changes) > 0
	return nil
}

// buildArguments are what go is called with, but for the program and where it is written. They keep paths of the machine
// out of it.
func buildArguments(version string) []string {
	return []string{"build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -buildid= -X hekla.sh/hekla/internal/version.Version=" + version}
}

// build compiles a program for a platform into a directory, and returns the path of the executable.
func (s *source) build(ctx context.Context, p program, platform v1.Platform, directory string) (string, error) {
	out, err := filepath.Abs(filepath.Join(directory, p.name))
	if err != nil {
		return "", err
	}
	fmt.Printf("  %s for %s/%s ...\n", p.name, platform.OS, platform.Architecture)
	command := exec.CommandContext(ctx, "go", append(buildArguments(s.version), "-o", out, p.path)...)
	command.Dir = s.root
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture, "GOFLAGS=-mod=readonly", "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s for %s/%s: %w\n%s", p.path, platform.OS, platform.Architecture, err, output)
	}
	return out, nil
}

// buildAll compiles programs for a platform, and returns the paths of the executables by name.
func (s *source) buildAll(ctx context.Context, all []program, platform v1.Platform, directory string) (map[string]string, error) {
	built := map[string]string{}
	for _, p := range all {
		path, err := s.build(ctx, p, platform, directory)
		if err != nil {
			return nil, err
		}
		built[p.name] = path
	}
	return built, nil
}
