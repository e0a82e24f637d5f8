package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// completions are the shells that the program writes completions for, with the names under which they look for them.
var completions = map[string]string{"bash": "hekla", "zsh": "_hekla", "fish": "hekla.fish", "powershell": "hekla.ps1"}

// writePages has the program hekla, built for this machine, write its man pages and completions into a directory. It
// returns the files by their path in an archive.
func (s *source) writePages(ctx context.Context, directory string) (map[string]string, error) {
	program, err := s.build(ctx, programs[1], v1.Platform{OS: runtime.GOOS, Architecture: runtime.GOARCH}, directory)
	if err != nil {
		return nil, err
	}
	call := func(arguments ...string) ([]byte, error) {
		command := exec.CommandContext(ctx, program, arguments...)
		command.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", s.time.Unix()))
		output, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("hekla %s: %w", arguments[0], err)
		}
		return output, nil
	}
	manual := filepath.Join(directory, "man")
	if err := os.MkdirAll(manual, 0o755); err != nil {
		return nil, err
	}
	if _, err := call("man", manual); err != nil {
		return nil, err
	}
	files := map[string]string{}
	err = walk(manual, func(name, file string) { files[path.Join("share/man/man1", name)] = file })
	if err != nil {
		return nil, err
	}
	for shell, name := range completions {
		text, err := call("completion", shell)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(directory, "completion."+shell)
		if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // all users may read it
			return nil, err
		}
		files[path.Join("share/completions", shell, name)] = file
	}
	return files, nil
}
