package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEachCommandHasAManPage(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	if _, out, err := start(t, "/usr/local/bin/hekla", "man", folder); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for name, parts := range map[string][]string{
		"hekla.1":              {`.TH "HEKLA" "1" "Nov 2023" "Hekla `, "hekla-why(1)"},
		"hekla-why.1":          {"Explains the state of a job, pod, queue, workload or node", "hekla why job/train", "\\fB-n\\fP"},
		"hekla-queue-list.1":   {"hekla queue list"},
		"hekla-import-kueue.1": {"hekla import kueue"},
	} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(string(text), "/usr/local") {
			t.Errorf("%s has the path by which the program was started:\n%s", name, text)
		}
		for _, part := range parts {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s has no %q:\n%s", name, part, text)
			}
		}
	}
	for _, hidden := range []string{"hekla-man.1", "hekla-supervise.1"} {
		if _, err := os.Stat(filepath.Join(folder, hidden)); err == nil {
			t.Errorf("there is a page of %s, which is hidden", hidden)
		}
	}
}
