package supervisor

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

const patience = time.Minute

// buffer is a log that is read while it is written.
type buffer struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (b *buffer) Write(text []byte) (int, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.Write(text)
}

func (b *buffer) String() string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.text.String()
}

// supervise keeps a script running until the test, or stop, ends it.
func supervise(t *testing.T, folder string, log *buffer, script string) (stop func() error) {
	t.Helper()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		result <- Run(ctx, Options{Name: "script", Folder: folder, Path: shell, Arguments: []string{"-c", script}, Log: log})
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-result
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// eventually waits until a condition about the status of the script holds.
func eventually(t *testing.T, folder string, holds func(*Status) bool) *Status {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		all, err := Read(folder)
		if err != nil {
			t.Fatal(err)
		}
		if len(all) == 1 && holds(&all[0]) {
			return &all[0]
		}
		if time.Now().After(deadline) {
			t.Fatalf("the statuses are %+v", all)
		}
	}
}

func TestWhatEndsIsStartedAgainAndSaysWhy(t *testing.T) {
	folder, log := t.TempDir(), new(buffer)
	stop := supervise(t, folder, log, `echo begun; echo "no lease" >&2; exit 3`)
	again := eventually(t, folder, func(s *Status) bool { return s.Ends == 2 })
	if again.Reason != "exit status 3: no lease" || again.Again == nil || again.Again.Sub(*again.Ended) != 2*firstPause {
		t.Errorf("after its second end the status is %+v", again)
	}
	if said := again.String(); !strings.HasPrefix(said, "script has ended 2 times, the last time at ") || !strings.HasSuffix(said, ": exit status 3: no lease") {
		t.Errorf("it says %q", said)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Count(text, "begun\n") != 2 || !strings.Contains(text, "script ended after 0s: exit status 3: no lease; it is started again in 1s\n") {
		t.Errorf("the log is\n%s", text)
	}
	if all, err := Read(folder); err != nil || len(all) > 0 {
		t.Errorf("after its end there are the statuses %v, %v", all, err)
	}
}

func TestWhatIsKilledHasNotSaidWhy(t *testing.T) {
	folder := t.TempDir()
	supervise(t, folder, new(buffer), `echo "all is well"; kill -9 $$`)
	if killed := eventually(t, folder, func(s *Status) bool { return s.Ends == 1 }); killed.Reason != "signal: killed" {
		t.Errorf("the reason is %q", killed.Reason)
	}
}

func TestTheProgramEndsInGoodOrderWithItsSupervisor(t *testing.T) {
	folder, log := t.TempDir(), new(buffer)
	stop := supervise(t, folder, log, `trap 'echo asked; exit 0' TERM; echo runs; while :; do sleep 0.05; done`)
	for deadline := time.Now().Add(patience); !strings.Contains(log.String(), "runs"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not run")
		}
	}
	running := eventually(t, folder, func(s *Status) bool { return s.PID > 0 })
	if running.String() != "" {
		t.Errorf("of one that has not ended it says %q", running)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if text := log.String(); text != "runs\nasked\n" {
		t.Errorf("the log is %q", text)
	}
}

func TestWhatCannotBeRunIsAnError(t *testing.T) {
	err := Run(t.Context(), Options{Name: "nothing", Folder: t.TempDir(), Path: "/nowhere/nothing", Log: new(buffer)})
	if err == nil || !strings.Contains(err.Error(), "start nothing") {
		t.Errorf("got %v", err)
	}
}

func TestPausesGrowUpToABound(t *testing.T) {
	for early, want := range map[int]time.Duration{0: firstPause, 1: 2 * firstPause, 3: 8 * firstPause, 6: longestPause, 1000: longestPause} {
		if got := pause(early); got != want {
			t.Errorf("after %d early ends the pause is %s, want %s", early, got, want)
		}
	}
}

func TestTheLastLineIsKeptWhateverIsWritten(t *testing.T) {
	for want, written := range map[string][]string{
		"":            {""},
		"one":         {"one\n"},
		"two":         {"one\nt", "wo"},
		"three":       {"one\n", "three\n", "\n"},
		"last of all": {"a\nb\nlast of", " all\n"},
	} {
		kept := &tail{out: new(buffer)}
		for _, text := range written {
			if _, err := kept.Write([]byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		if got := kept.line(); got != want {
			t.Errorf("of %q the last line is %q, want %q", written, got, want)
		}
	}
}
