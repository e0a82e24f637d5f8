package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// A log of two pods of 3 CPUs that are bound to a node of 4.
const overCommitted = `
{"stage":"ResponseComplete","verb":"create","user":{"username":"u"},"objectRef":{"resource":"nodes","name":"n1"},"responseStatus":{"code":201},"responseObject":{"kind":"Node","metadata":{"name":"n1","resourceVersion":"1","creationTimestamp":"2026-11-01T12:00:00Z"},"status":{"allocatable":{"cpu":"4","pods":"110"}}},"requestReceivedTimestamp":"2026-11-01T12:00:00.0Z","stageTimestamp":"2026-11-01T12:00:00.1Z"}
{"stage":"ResponseComplete","verb":"create","user":{"username":"u"},"objectRef":{"resource":"pods","namespace":"work","name":"a"},"responseStatus":{"code":201},"responseObject":{"kind":"Pod","metadata":{"name":"a","namespace":"work","uid":"1","resourceVersion":"2","creationTimestamp":"2026-11-01T12:00:01Z"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"3"}}}]}},"requestReceivedTimestamp":"2026-11-01T12:00:01.0Z","stageTimestamp":"2026-11-01T12:00:01.1Z"}
{"stage":"ResponseComplete","verb":"create","user":{"username":"u"},"objectRef":{"resource":"pods","namespace":"work","name":"b"},"responseStatus":{"code":201},"responseObject":{"kind":"Pod","metadata":{"name":"b","namespace":"work","uid":"2","resourceVersion":"3","creationTimestamp":"2026-11-01T12:00:02Z"},"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"3"}}}]}},"requestReceivedTimestamp":"2026-11-01T12:00:02.0Z","stageTimestamp":"2026-11-01T12:00:02.1Z"}
{"stage":"ResponseComplete","verb":"create","user":{"username":"s"},"objectRef":{"resource":"pods","subresource":"binding","namespace":"work","name":"a"},"responseStatus":{"code":201},"requestObject":{"kind":"Binding","target":{"name":"n1"}},"requestReceivedTimestamp":"2026-11-01T12:00:03.0Z","stageTimestamp":"2026-11-01T12:00:03.1Z"}
{"stage":"ResponseComplete","verb":"create","user":{"username":"s"},"objectRef":{"resource":"pods","subresource":"binding","namespace":"work","name":"b"},"responseStatus":{"code":201},"requestObject":{"kind":"Binding","target":{"name":"n1"}},"requestReceivedTimestamp":"2026-11-01T12:00:04.0Z","stageTimestamp":"2026-11-01T12:00:04.1Z"}
`

func TestAnAuditNamesViolations(t *testing.T) {
	code, stdout, stderr := runHekla(t, overCommitted, "audit", "-")
	want := "2026-11-01T12:00:04.000Z over-commit: Node n1, Pod work/b: with it pods hold 6 of 4 cpu, by s\n" +
		"5 lines from 2026-11-01T12:00:00Z to 2026-11-01T12:00:04Z: 5 changes, 2 bindings and 0 evictions by 1 schedulers, 1 violations\n"
	if code != 1 || stdout != want {
		t.Errorf("exit code %d, printed\n%s%s\nwant 1 and\n%s", code, stdout, stderr, want)
	}
	code, stdout, _ = runHekla(t, overCommitted, "audit", "-", "-o", "json")
	report := struct {
		Lines      int
		Violations []struct{ Rule, User string }
	}{}
	if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 1 || report.Lines != 5 || len(report.Violations) != 1 || report.Violations[0].Rule != "over-commit" {
		t.Errorf("exit code %d, error %v, printed\n%s", code, err, stdout)
	}
}

func TestAnAuditOfACleanLogEndsWithCode0(t *testing.T) {
	lines := strings.SplitAfter(overCommitted, "\n")
	if code, stdout, stderr := runHekla(t, strings.Join(lines[:len(lines)-2], ""), "audit", "-"); code != 0 {
		t.Errorf("exit code %d, printed\n%s%s", code, stdout, stderr)
	}
}

func TestWhatAnAuditCannotReadIsAnError(t *testing.T) {
	for want, arguments := range map[string][]string{
		"name a file":                 {"audit"},
		"no-such-file":                {"audit", "no-such-file"},
		"--output":                    {"audit", "-", "-o", "yaml"},
		"--overtakes must be above 0": {"audit", "-", "--overtakes", "0"},
		"there is no node":            {"audit", "-", "--objects", "-"},
		"--live reads no files":       {"audit", "-", "--live"},
		"--for takes --live":          {"audit", "-", "--for", "1m"},
		"--for must be above 0":       {"audit", "--live", "--for", "-1m"},
		"cannot be reached":           {"audit", "--live", "--kubeconfig", "", "--master", "https://127.0.0.1:1"},
		"check --kubeconfig":          {"audit", "--live", "--kubeconfig", "no-such-file"},
	} {
		if code, _, stderr := runHekla(t, "", arguments...); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, printed %q, want %q", arguments, code, stderr, want)
		}
	}
}

func TestTheAuditPolicyIsPrinted(t *testing.T) {
	if code, stdout, _ := runHekla(t, "", "audit", "--policy"); code != 0 || !strings.Contains(stdout, "kind: Policy") {
		t.Errorf("exit code %d, printed\n%s", code, stdout)
	}
}
