package localcluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
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

// clockTick is the unit of processor times in /proc: USER_HZ is 100 on every platform that Go knows.
const clockTick = 10 * time.Millisecond

// processorTime is how much processor time a process and its children have taken, 0 if there is none.
func processorTime(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const user, system = 11, 12 // proc_pid_stat(5) counts them as fields 14 and 15.
	var sum time.Duration
	for _, at := range []int{user, system} {
		if at < len(fields) {
			ticks, _ := strconv.ParseInt(string(fields[at]), 10, 64)
			sum += time.Duration(ticks) * clockTick
		}
	}
	// A kernel without these files counts no children.
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		for child := range strings.FieldsSeq(string(children)) {
			if number, err := strconv.Atoi(child); err == nil {
				sum += processorTime(number)
			}
		}
	}
	return sum
}

// leftovers are the processes of the cluster in a folder, found by their environment: also those that were started and
// not written down.
func leftovers(dir string) []*Process {
	environments, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []*Process
	for _, path := range environments {
		content, err := os.ReadFile(path)
		if err != nil || !slices.Contains(strings.Split(string(content), "\x00"), ownerVariable+"="+dir) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if startTime, err := processStartTime(pid); err == nil {
			found = append(found, &Process{Name: "process " + strconv.Itoa(pid), PID: pid, StartTime: startTime})
		}
	}
	return found
}

// processAttributes puts every child into a group of its own, so that Ctrl-C on the terminal reaches the parent only.
func processAttributes(isDetached bool) *syscall.SysProcAttr {
	if isDetached {
		return &syscall.SysProcAttr{Setsid: true}
	}
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
