package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/queueing"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// importOf imports a Configuration from a text.
func importOf(t *testing.T, text string, flags ...string) (out, errOut string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "configuration.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	command := newImportKueueCommand()
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetOut(&stdout)
	command.SetErr(&stderr)
	command.SetArgs(append(flags, file))
	err = command.Execute()
	return stdout.String(), stderr.String(), err
}

func TestAConfigurationOfKueueIsImported(t *testing.T) {
	const text = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\nwaitForPodsReady: {enable: true, timeout: 5m}\n"
	out, errOut, err := importOf(t, text)
	if err != nil || !strings.Contains(errOut, "kept    line 3, waitForPodsReady.timeout = 5m: plugin cohorts, argument waitForPodsReady.timeout") {
		t.Fatalf("%v, %s", err, errOut)
	}
	printed := &corev1.ConfigMap{}
	if err := yaml.Unmarshal([]byte(out), printed); err != nil {
		t.Fatal(err)
	}
	// The controllers read what is printed.
	read, err := queueing.ReadPolicy([]byte(printed.Data["volcano-scheduler.conf"]))
	if err != nil || !read.IsOn || read.PodsReady == nil || read.PodsReady.Timeout.Minutes() != 5 {
		t.Errorf("the controllers read %+v, %v", read, err)
	}
}

func TestWhatIsLostOfAConfigurationHasToBeAccepted(t *testing.T) {
	const text = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nmultiKueue: {}\n"
	out, errOut, err := importOf(t, text)
	var coder interface{ ExitCode() int }
	if !errors.As(err, &coder) || coder.ExitCode() != 2 || out != "" || !strings.Contains(errOut, "lost    line 3, multiKueue: there are no several clusters") {
		t.Errorf("%v: %s%s", err, out, errOut)
	}
	if out, errOut, err := importOf(t, text, "--accept=multiKueue"); err != nil || out == "" || !strings.Contains(errOut, "(accepted)") {
		t.Errorf("accepted: %v, %s", err, errOut)
	}
	if _, _, err := importOf(t, "kind: Job"); err == nil || !strings.Contains(err.Error(), "it is no Configuration") {
		t.Errorf("no Configuration: %v", err)
	}
}
