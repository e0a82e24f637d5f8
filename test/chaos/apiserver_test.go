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

// runChaos runs `hekla chaos` and returns its report. It must find nothing.
func runChaos(t *testing.T, arguments ...string) (report chaos.Report) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs an API server")
	}
	folder := t.TempDir()
	if err := apitest.Build(t.Context(), folder, "hekla", "scheduler", "controllers"); err != nil {
		t.Fatal(err)
	}
	arguments = append([]string{"chaos", "--dir", filepath.Join(folder, "run"), "-o", "json"}, arguments...)
	command := exec.CommandContext(t.Context(), apitest.Path(folder, "hekla"), arguments...)
	var output, log bytes.Buffer
	command.Stdout, command.Stderr = &output, &log
	err := command.Run()
	t.Logf("%s", &log)
	if err != nil {
		t.Fatalf("%v\n%s", err, &output)
	}
	if err := json.Unmarshal(output.Bytes(), &report); err != nil {
		t.Fatal(err)
	}
	if report.Bindings == 0 || report.AuditLines == 0 || len(report.Ended) == 0 {
		t.Errorf("nothing has happened: %s", &output)
	}
	return report
}

// Everything is broken for two minutes. Nothing must be wrong or left over, and all that is broken must have been.
func TestTwoMinutesOfChaos(t *testing.T) {
	const faultsFor = 2 * time.Minute
	report := runChaos(t, "--for", faultsFor.String())
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
	if len(report.Usage) > 0 {
		t.Errorf("what processes hold was asked while they were killed: %v", report.Usage)
	}
}

// Nothing is broken, and each process says what it holds. Whether that grows only a longer run shows.
func TestARunWithoutFaultsSaysWhatProcessesHold(t *testing.T) {
	report := runChaos(t, "--for", "20s", "--faults", chaos.NoFaults, "--jobs", "3")
	if len(report.Faults)+len(report.Restarts)+report.FailedMoves > 0 || report.UsedPart <= 0 || report.UsedPart >= 1 {
		t.Errorf("faults %v, restarts %v, failed moves %d, used part %f", report.Faults, report.Restarts, report.FailedMoves, report.UsedPart)
	}
	for _, name := range []string{"hekla-scheduler", "hekla-controllers"} {
		if all := report.Usage[name]; len(all) != 1 || all[0].HeapBytes < 1<<20 || all[0].Goroutines < 10 || all[0].Descriptors < 5 || all[0].Series < 50 {
			t.Errorf("%s held %+v", name, all)
		}
	}
}
