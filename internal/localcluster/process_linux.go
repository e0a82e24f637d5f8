package localcluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
)

// bootID distinguishes process start times, which count from the boot, across boots.
var bootID = sync.OnceValues(func() (string, error) {
	content, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(content)), err
})

// processStartTime identifies the running process with this PID; it fails when there is none.
func processStartTime(pid int) (string, error) {
	boot, err := bootID()
	if err != nil {
		return "", err
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The command name, in parentheses, may itself hold spaces and parentheses; the other fields cannot.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, startTime = 0, 19 // proc_pid_stat(5) counts them as fields 3 and 22.
	if len(fields) <= startTime {
		return "", fmt.Errorf("/proc/%d/stat: %d fields after the name, want more than %d", pid, len(fields), startTime)
	}
	if fields[state][0] == 'Z' || fields[state][0] == 'X' {
		return "", errors.New("the process has ended")
	}
	return boot + "/" + string(fields[startTime]), nil
}

// processAttributes puts every child into a group of its own, so that Ctrl-C on the terminal reaches the parent only.
func processAttributes(isDetached bool) *syscall.SysProcAttr {
	if isDetached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
