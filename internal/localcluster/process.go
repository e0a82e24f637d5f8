package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// processPoll is how often a process is asked whether it is ready, or gone.
	processPoll = 50 * time.Millisecond
	// stopPatience is how long a process may take to end after SIGTERM before it is killed: an API server ends its
	// watches within a few seconds.
	stopPatience = 15 * time.Second
	// killPatience bounds the wait for a killed process; only one stuck in the kernel outlives it.
	killPatience = 10 * time.Second
	// logTail is how much of its log is shown when a process ends early or does not become ready, in bytes.
	logTail = 2000
)

// Program says how to run a child process of the cluster.
type Program struct {
	// Name is unique in the cluster; the log file is called after it.
	Name string
	// Path is the executable.
	Path string
	// Args are its arguments, without the program's own name.
	Args []string
	// ReadyURL, when set, is polled until it answers 200; only then does the program count as started.
	ReadyURL string
}

// Process is a child process of a cluster. It is known by PID and start time, so that it can be stopped by another
// execution of the same program, and so that nothing else is ever stopped in its place.
type Process struct {
	// Name is the program's.
	Name string `json:"name"`
	// PID is the process id.
	PID int `json:"pid"`
	// StartTime tells this process from a later one with the same PID. What it looks like depends on the platform.
	StartTime string `json:"startTime"`
	// LogPath is the file that standard output and standard error go to.
	LogPath string `json:"logPath"`
}

// IsAlive reports whether the process still runs. A process that has ended but was not waited for does not run.
func (p *Process) IsAlive() bool {
	startTime, err := processStartTime(p.PID)
	return err == nil && startTime == p.StartTime
}

// Kill ends the process at once (SIGKILL), as a crash would, and returns when it is gone. A process that does not run
// any more is no error.
func (p *Process) Kill() error {
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !p.isGoneWithin(killPatience) {
		return fmt.Errorf("%s (pid %d) is still there %s after it was killed", p.Name, p.PID, killPatience)
	}
	return nil
}

// Stop asks the process to end (SIGTERM), kills it when it does not within some seconds, and returns when it is gone.
// A process that does not run any more is no error.
func (p *Process) Stop() error { return p.StopWithin(stopPatience) }

// StopWithin is Stop with another time after which the process is killed.
func (p *Process) StopWithin(patience time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	if p.isGoneWithin(patience) {
		return nil
	}
	return p.Kill()
}

// Pause stops the process from running (SIGSTOP) until it is resumed: it misses what happens meanwhile, as on a machine
// that hangs. Its connections stay open.
func (p *Process) Pause() error { return p.signal(syscall.SIGSTOP) }

// Resume lets a paused process run again (SIGCONT).
func (p *Process) Resume() error { return p.signal(syscall.SIGCONT) }

func (p *Process) isGoneWithin(patience time.Duration) bool {
	for deadline := time.Now().Add(patience); p.IsAlive(); time.Sleep(processPoll) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

// signal opens a handle of the process before it reads the start time. os.FindProcess keeps one if the kernel has them
// (pidfd). Then the PID cannot pass to another process between the check and the signal.
func (p *Process) signal(signal os.Signal) error {
	handle, err := os.FindProcess(p.PID)
	if err != nil {
		return nil // Some platforms say here already that there is none.
	}
	defer func() { _ = handle.Release() }()
	if !p.IsAlive() {
		return nil
	}
	if err := handle.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s (pid %d): %w", p.Name, p.PID, err)
	}
	return nil
}

// ownerVariable names, in the environment of each process of a cluster, the folder of the cluster.
const ownerVariable = "HEKLA_LOCAL_CLUSTER"

// start runs the program with its output appended to a log file in logDir. A detached process lives on when its parent
// ends; any other dies with its parent where the platform allows. Its environment names the folder of the cluster, so
// that it can be found if the caller ends before the process is written down.
func start(program Program, logDir string, isDetached bool, owner string) (*Process, error) {
	logPath := filepath.Join(logDir, program.Name+".log")
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", program.Name, err)
	}
	defer func() { _ = log.Close() }()
	command := exec.Command(program.Path, program.Args...)
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), ownerVariable+"="+owner)
	command.SysProcAttr = processAttributes(isDetached)
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", program.Name, err)
	}
	// Reap it whenever it ends, so that it does not stay behind as a zombie of this process.
	go func() { _ = command.Wait() }()
	process := &Process{Name: program.Name, PID: command.Process.Pid, LogPath: logPath}
	// Empty when the process has ended already: then it is not alive, and waiting for it says why.
	process.StartTime, _ = processStartTime(process.PID)
	return process, nil
}

// tail returns the end of the log, from the start of a line.
func (p *Process) tail() string {
	content, err := os.ReadFile(p.LogPath)
	if err != nil {
		return err.Error()
	}
	if len(content) > logTail {
		content = content[len(content)-logTail:]
		if _, rest, found := strings.Cut(string(content), "\n"); found {
			return rest
		}
	}
	return string(content)
}

// AnswersOK is an error unless a GET of url is answered with 200.
func AnswersOK(ctx context.Context, url string) error {
	return answersOK(http.DefaultClient, url)(ctx)
}

// answersOK returns a condition that holds when a GET of url is answered with 200.
func answersOK(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		body, _ := io.ReadAll(io.LimitReader(response.Body, logTail))
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("GET %s answered %s: %s", url, response.Status, failedChecks(string(body)))
		}
		return nil
	}
}

// failedChecks returns, of a health report that lists checks, those that failed; any other text is returned as it is.
func failedChecks(report string) string {
	var failed []string
	for line := range strings.Lines(report) {
		if check, isFailed := strings.CutPrefix(line, "[-]"); isFailed {
			failed = append(failed, strings.TrimSpace(check))
		}
	}
	if len(failed) == 0 {
		return strings.TrimSpace(report)
	}
	return strings.Join(failed, ", ")
}
