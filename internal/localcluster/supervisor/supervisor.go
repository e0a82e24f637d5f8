package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"hekla.sh/hekla/pkg/apis/bounds"
)

const (
	// firstPause is the pause before the first start again; each further one is twice as long, up to longestPause.
	firstPause, longestPause = time.Second, time.Minute
	// goodLife is how long a program runs until its next end counts as the first.
	goodLife = 5 * time.Minute
	// lastLine bounds what is kept of the last line that the program has written, in bytes.
	lastLine = 500
	// suffix ends the names of files with a status.
	suffix = ".supervised.json"
)

// FolderVariable names, in the environment of the program, the folder with the statuses.
const FolderVariable = "HEKLA_SUPERVISED"

// Status is what has happened to a program.
type Status struct {
	Name string `json:"name"`
	// PID is that of the program, 0 while it does not run.
	PID int `json:"pid"`
	// Started is when it was started last.
	Started time.Time `json:"started"`
	// Ends is how often it has ended since its supervisor was started.
	Ends int `json:"ends"`
	// Ended is when it ended last, and Reason why: its exit code or signal, and, if it ended by itself with an error,
	// the last line that it wrote.
	Ended  *time.Time `json:"ended,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// Again is when it is started again, nil while it runs.
	Again *time.Time `json:"again,omitempty"`
}

// String is the status as a part of a sentence, "" if the program has not ended.
func (s *Status) String() string {
	if s.Ends == 0 || s.Ended == nil {
		return ""
	}
	if s.Ends == 1 {
		return fmt.Sprintf("%s has ended once, at %s: %s", s.Name, s.Ended.Local().Format(time.TimeOnly), s.Reason)
	}
	return fmt.Sprintf("%s has ended %d times, the last time at %s: %s", s.Name, s.Ends, s.Ended.Local().Format(time.TimeOnly), s.Reason)
}

// Options say what is kept running.
type Options struct {
	// Name is unique in the folder.
	Name string
	// Folder receives the status, in a file that is called after the name.
	Folder string
	// Path and Arguments are of the program.
	Path      string
	Arguments []string
	// Log receives the output of the program and what the supervisor says.
	Log io.Writer
}

// Run keeps a program running until the context ends. Then it asks the program to end, and returns when it has.
func Run(ctx context.Context, options Options) error {
	// The kernel ends the program with the thread that has started it, so that thread must last.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	status := Status{Name: options.Name}
	for early := 0; ; {
		status.Started, status.Again = time.Now(), nil
		reason, err := options.once(ctx, &status)
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, options.forget())
		}
		now := time.Now()
		if now.Sub(status.Started) > goodLife {
			early = 0
		}
		again := now.Add(pause(early))
		early++
		status.PID, status.Ends, status.Ended, status.Reason, status.Again = 0, status.Ends+1, &now, reason, &again
		if err := status.write(options.Folder); err != nil {
			return err
		}
		_, _ = fmt.Fprintf(options.Log, "%s %s ended after %s: %s; it is started again in %s\n", now.Format(time.RFC3339), options.Name,
			now.Sub(status.Started).Round(time.Second), reason, again.Sub(now))
		select {
		case <-ctx.Done():
			return options.forget()
		case <-time.After(time.Until(again)):
		}
	}
}

// forget removes the status: what is not supervised has none.
func (o *Options) forget() error {
	if err := os.Remove(path(o.Folder, o.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// pause is how long a program that has ended early so many times in a row is left.
func pause(early int) time.Duration {
	p := firstPause
	for range early {
		if p *= 2; p >= longestPause {
			return longestPause
		}
	}
	return p
}

// once runs the program to its end, and returns why it ended. An error says that it could not be run at all.
func (o *Options) once(ctx context.Context, status *Status) (reason string, err error) {
	last := &tail{out: o.Log}
	command := exec.Command(o.Path, o.Arguments...)
	command.Stdout, command.Stderr = last, last
	command.Env = append(os.Environ(), FolderVariable+"="+o.Folder)
	command.SysProcAttr = diesWithParent()
	if err := command.Start(); err != nil {
		return "", fmt.Errorf("start %s: %w", o.Name, err)
	}
	status.PID = command.Process.Pid
	if err := status.write(o.Folder); err != nil {
		return "", errors.Join(err, command.Process.Kill(), command.Wait())
	}
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Signal(syscall.SIGTERM) })
	defer stop()
	problem := command.Wait()
	if problem == nil {
		return "exit status 0", nil
	}
	reason = problem.Error()
	// What was killed has not said why.
	if line := last.line(); line != "" && command.ProcessState.Exited() {
		reason += ": " + line
	}
	return reason, nil
}

// tail passes on what is written and remembers its last line.
type tail struct {
	out           io.Writer
	complete, own []byte // the last whole line, and what follows it
}

func (t *tail) Write(text []byte) (int, error) {
	t.own = append(t.own, text...)
	if end := strings.LastIndexByte(string(t.own), '\n'); end >= 0 {
		whole := strings.TrimSpace(string(t.own[:end]))
		if start := strings.LastIndexByte(whole, '\n'); start >= 0 {
			whole = whole[start+1:]
		}
		if whole != "" {
			t.complete = []byte(whole)
		}
		t.own = append([]byte(nil), t.own[end+1:]...)
	}
	if len(t.own) > lastLine {
		t.own = t.own[:lastLine]
	}
	return t.out.Write(text)
}

// line is the last line, without a line feed.
func (t *tail) line() string {
	line := strings.TrimSpace(string(t.own))
	if line == "" {
		line = string(t.complete)
	}
	return line[:min(len(line), lastLine)]
}

func path(folder, name string) string { return filepath.Join(folder, name+suffix) }

// write replaces the file of the status in one step.
func (s *Status) write(folder string) error {
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	work := path(folder, s.Name) + ".new"
	if err := os.WriteFile(work, content, 0o600); err != nil {
		return fmt.Errorf("write the status of %s: %w", s.Name, err)
	}
	return os.Rename(work, path(folder, s.Name))
}

// Read returns the statuses in a folder, by name. A folder that is not there has none.
func Read(folder string) ([]Status, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []Status
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), suffix) {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // its supervisor has just ended
		}
		if err != nil {
			return nil, err
		}
		var status Status
		if err := bounds.UnmarshalJSON(content, &status); err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		all = append(all, status)
	}
	slices.SortFunc(all, func(a, b Status) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
