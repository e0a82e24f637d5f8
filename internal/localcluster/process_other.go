//go:build unix && !linux

package localcluster

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processStartTime identifies the running process with this PID; it fails when there is none.
func processStartTime(pid int) (string, error) {
	output, err := exec.Command("ps", "-o", "state=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", err
	}
	state, startTime, _ := strings.Cut(strings.TrimSpace(string(output)), " ")
	if state == "" || strings.HasPrefix(state, "Z") {
		return "", errors.New("the process has ended")
	}
	return strings.TrimSpace(startTime), nil
}

// processorTime is not known here: only a change of the reason for a wait is progress.
func processorTime(int) time.Duration { return 0 }

// leftovers are not found here: the environment of other processes cannot be read everywhere.
func leftovers(string) []*Process { return nil }

// processAttributes puts every child into a group of its own, so that Ctrl-C on the terminal reaches the parent only.
// There is no way here to have a child die with its parent.
func processAttributes(isDetached bool) *syscall.SysProcAttr {
	if isDetached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true}
}
