package localcluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// pathOf is where a program of the machine is.
func pathOf(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// emptyCluster is a cluster without processes.
func emptyCluster(t *testing.T) *Cluster {
	t.Helper()
	c := &Cluster{dir: t.TempDir(), state: new(state)}
	if err := os.Mkdir(c.LogDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	return c
}

func startSleep(t *testing.T) *Process {
	t.Helper()
	process, err := start(Program{Name: "sleep", Path: pathOf(t, "sleep"), Args: []string{"600"}}, t.TempDir(), false, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Kill() })
	return process
}

func TestAProcessWithAnotherStartTimeIsNeverSignalled(t *testing.T) {
	process := startSleep(t)
	foreign := *process
	foreign.StartTime = "another"
	for name, end := range map[string]func() error{"stop": foreign.Stop, "kill": foreign.Kill} {
		if err := end(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !process.IsAlive() {
			t.Fatalf("%s ended a process that is not the one that was started", name)
		}
	}
	if err := process.Stop(); err != nil {
		t.Fatal(err)
	}
	if process.IsAlive() {
		t.Error("it outlived its stop")
	}
	if err := process.Stop(); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}

func TestAProgramThatEndsAtOnceIsReportedWithItsLog(t *testing.T) {
	c := emptyCluster(t)
	_, err := c.Run(testContext(t), Program{Name: "short", Path: pathOf(t, "sh"), Args: []string{"-c", "echo out of luck; exit 3"}, ReadyURL: "http://" + loopback + ":1"})
	if err == nil || !strings.Contains(err.Error(), "out of luck") {
		t.Errorf("got %v, want the end of the log", err)
	}
}

func TestAProgramThatHasEndedIsLaunchedAgain(t *testing.T) {
	c := emptyCluster(t)
	if err := c.Relaunch("sleep"); err == nil {
		t.Error("a program that was never started is launched again")
	}
	first, err := c.Run(testContext(t), Program{Name: "sleep", Path: pathOf(t, "sleep"), Args: []string{"600"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Stop() })
	if err := c.Relaunch("sleep"); err == nil {
		t.Error("a program that runs is launched again")
	}
	if err := first.Pause(); err != nil || !first.IsAlive() {
		t.Errorf("paused: %v, is alive: %t", err, first.IsAlive())
	}
	if err := first.Kill(); err != nil { // also when it is paused
		t.Fatal(err)
	}
	if err := c.Relaunch("sleep"); err != nil {
		t.Fatal(err)
	}
	all := c.Processes()
	if len(all) != 1 || all[0].PID == first.PID || !all[0].IsAlive() {
		t.Errorf("processes are %+v, and the first was %+v", all, first)
	}
	if err := first.Resume(); err != nil {
		t.Errorf("to resume what has ended is an error: %v", err)
	}
}

func TestALockIsWaitedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	unlock, err := Lock(t.Context(), dir, func() { t.Error("waits for nobody") })
	if err != nil {
		t.Fatal(err)
	}
	const pause = 200 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), pause)
	defer cancel()
	isWaiting := false
	if _, err := Lock(ctx, dir, func() { isWaiting = true }); err == nil || !isWaiting {
		t.Errorf("a second lock: %v, told to wait: %t", err, isWaiting)
	}
	time.AfterFunc(pause, unlock)
	again, err := Lock(testContext(t), dir, func() {})
	if err != nil {
		t.Fatal(err)
	}
	again()
}
