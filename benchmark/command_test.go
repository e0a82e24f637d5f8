package benchmark_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/benchmark"
)

// patience bounds the benchmark of the test: long enough for two busy cores, and only ever reached by a failure.
const patience = 3 * time.Minute

func TestTheCommandMeasuresBothContenders(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds two executables and starts a cluster")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	bin := t.TempDir()
	for name, source := range map[string]string{"hekla": "hekla", "hekla-scheduler": "scheduler"} {
		build := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(bin, name), "hekla.sh/hekla/cmd/"+source)
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", name, err, output)
		}
	}
	command := exec.CommandContext(ctx, filepath.Join(bin, "hekla"), "bench", "--nodes=20", "--pods=200", "--gang=20", "--runs=1")
	// The cluster is stopped by the command itself; a kill would leave it running.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	var progress strings.Builder
	command.Stderr = &progress
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, progress.String(), output)
	}
	var report benchmark.Report
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatalf("%v in\n%s", err, output)
	}
	if report.Violations == nil || len(report.Violations) > 0 {
		t.Errorf("violations are %q, want an empty list", report.Violations)
	}
	if len(report.Runs) != 1 || !report.Runs[0].PlainLoopFirst {
		t.Fatalf("runs are %+v, want one, which the plain loop begins", report.Runs)
	}
	run := report.Runs[0]
	for name, m := range map[string]benchmark.Measurement{"plain loop": run.PlainLoop, "Hekla": run.Hekla} {
		if m.PodsBound != 200 || m.APIWrites["POST pods/binding 201"] != 200 {
			t.Errorf("%s: %d pods bound by %d bindings, want 200 by 200", name, m.PodsBound, m.APIWrites["POST pods/binding 201"])
		}
		if m.PodsPerSecond <= 0 || m.PodsPerSecondFromStart <= 0 || m.PodsRunningPerSecond <= 0 || m.ControlPlaneCPUSeconds <= 0 {
			t.Errorf("%s: numbers are missing in %+v", name, m)
		}
	}
	use := run.Hekla.Process
	if use == nil || use.CPUSeconds <= 0 || use.CPUSecondsAfterIdle < use.CPUSeconds || use.PeakMemoryBytes == 0 {
		t.Errorf("what the scheduler used is %+v", use)
	}
	if want := run.Hekla.PodsPerSecond / run.PlainLoop.PodsPerSecond; report.Median.Ratio != want {
		t.Errorf("the ratio is %v, want %v", report.Median.Ratio, want)
	}
	if v := report.Versions; v.Kubernetes == "" || v.Etcd == "" || v.Kwok == "" || v.Go == "" || v.Hekla == "" {
		t.Errorf("versions are missing in %+v", v)
	}
	if m := report.Machine; m.CPUs < 1 || m.MemoryBytes == 0 || m.Kernel == "" {
		t.Errorf("the machine is %+v", m)
	}
}
