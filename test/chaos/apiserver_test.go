package chaos

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"hekla.sh/hekla/internal/chaos"
	"hekla.sh/hekla/test/apitest"
)

// Everything is broken for two minutes. Nothing must be wrong or left over, and all that is broken must have been.
func TestTwoMinutesOfChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	folder := t.TempDir()
	if err := apitest.Build(t.Context(), folder, "hekla", "scheduler", "controllers"); err != nil {
		t.Fatal(err)
	}
	const faultsFor = 2 * time.Minute
	command := exec.CommandContext(t.Context(), apitest.Path(folder, "hekla"), "chaos", "--for", faultsFor.String(), "--dir", filepath.Join(folder, "run"), "-o", "json")
	var output, log bytes.Buffer
	command.Stdout, command.Stderr = &output, &log
	err := command.Run()
	t.Logf("%s", &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, &output)
	}
	var report chaos.Report
	if err := json.Unmarshal(output.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	for _, name := range chaos.FaultNames() {
		if report.Faults[name] == 0 {
			t.Errorf("%s did not happen", name)
		}
	}
	for _, kind := range chaos.KindNames() {
		if report.Created[kind] == 0 {
			t.Errorf("no job of the kind %s was created", kind)
		}
	}
	if report.Bindings == 0 || report.AuditLines == 0 || len(report.Ended) == 0 {
		t.Errorf("nothing has happened: %s", &output)
	}
}
