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

	"hekla.sh/hekla/test/apitest"

	"hekla.sh/hekla/internal/benchmark"
	"hekla.sh/hekla/internal/benchmark/jobs"
	"hekla.sh/hekla/internal/benchmark/latency"
	"hekla.sh/hekla/internal/benchmark/restart"
)

// patience bounds the benchmark of the test: long enough for two busy cores, and only ever reached by a failure.
const patience = 3 * time.Minute

// runBench builds a component and hekla, and returns what hekla bench prints.
func runBench(t *testing.T, component string, arguments ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	bin := t.TempDir()
	if err := apitest.Build(ctx, bin, "hekla", component); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(ctx, filepath.Join(bin, "hekla"), append([]string{"bench"}, arguments...)...)
	// The cluster is stopped by the command itself; a kill would leave it running.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	var progress strings.Builder
	command.Stderr = &progress
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, progress.String(), output)
	}
	return output
}

func TestTheCommandMeasuresBothContenders(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds two executables and starts a cluster")
	}
	output := runBench(t, "scheduler", "--nodes=20", "--shapes=10x20", "--runs=1", "--queues=2", "--backlog=5", "--kwok-pods")
	var report benchmark.Report
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatalf("%v in\n%s", err, output)
	}
	if report.Violations == nil || len(report.Violations) > 0 {
		t.Errorf("violations are %q, want an empty list", report.Violations)
	}
	if report.RequestsAtOnce < 1 || len(report.Trials) < 2 {
		t.Errorf("the loop sends %d requests at once, of the trials %v", report.RequestsAtOnce, report.Trials)
	}
	if way := report.SchedulersWay; way.Requests < 1 || way.PodsPerSecond <= 0 {
		t.Errorf("over connections like the scheduler's the loop does %v", way)
	}
	if len(report.Shapes) != 1 || len(report.Shapes[0].Runs) != 1 {
		t.Fatalf("shapes are %+v, want one with one run", report.Shapes)
	}
	run := report.Shapes[0].Runs[0]
	for name, m := range map[string]benchmark.Measurement{"loop": run.Loop, "Hekla": run.Hekla} {
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
	if want := run.Hekla.PodsPerSecond / run.Loop.PodsPerSecond; report.Shapes[0].Median.Ratio != want {
		t.Errorf("the ratio is %v, want %v", report.Shapes[0].Median.Ratio, want)
	}
	if v := report.Versions; v.Kubernetes == "" || v.Etcd == "" || v.Kwok == "" || v.Go == "" || v.Hekla == "" {
		t.Errorf("versions are missing in %+v", v)
	}
	if m := report.Machine; m.CPUs < 1 || m.MemoryBytes == 0 || m.Kernel == "" {
		t.Errorf("the machine is %+v", m)
	}
}

func TestTheCommandMeasuresTheControllers(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds two executables and starts a cluster")
	}
	output := runBench(t, "controllers", "jobs", "--jobs=10", "--pods=5", "--runs=1")
	var report jobs.Report
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatalf("%v in\n%s", err, output)
	}
	if report.Violations == nil || len(report.Violations) > 0 {
		t.Errorf("violations are %q, want an empty list", report.Violations)
	}
	if len(report.Runs) != 1 || !report.Runs[0].LoopFirst {
		t.Fatalf("runs are %+v, want one, which the loop begins", report.Runs)
	}
	run := report.Runs[0]
	for name, m := range map[string]jobs.Measurement{"loop": run.Loop, "Hekla": run.Hekla} {
		if m.WritesPerSecond <= m.PodsPerSecondFromStart {
			t.Errorf("%s: %.0f writes a second, of which %.0f are pods, leave none for PodGroups", name, m.WritesPerSecond, m.PodsPerSecondFromStart)
		}
		if m.PodsMade != 50 || m.APIWrites["POST pods 201"] != 50 || m.APIWrites["POST podgroups 201"] != 10 {
			t.Errorf("%s: %d pods are made by %v, want 50 by 50 requests, and 10 PodGroups", name, m.PodsMade, m.APIWrites)
		}
		if m.PodsPerSecond <= 0 || m.PodsPerSecondFromStart <= 0 || m.ControlPlaneCPUSeconds <= 0 {
			t.Errorf("%s: numbers are missing in %+v", name, m)
		}
	}
	if run.Hekla.ProcessCPUSeconds <= 0 || run.Hekla.PeakMemoryBytes == 0 || run.Ratio != run.Hekla.PodsPerSecond/run.Loop.PodsPerSecond {
		t.Errorf("what the controllers used is missing in %+v", run)
	}
	if report.Parameters != (jobs.Parameters{Jobs: 10, Pods: 5, Runs: 1}) || report.Versions.Hekla == "" || report.Machine.CPUs < 1 {
		t.Errorf("measured is %+v on %+v with %+v", report.Parameters, report.Machine, report.Versions)
	}
}

func TestTheCommandMeasuresHowLongPodsWait(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds two executables and starts a cluster")
	}
	output := runBench(t, "scheduler", "latency", "--nodes=20", "--rates=20,40", "--gang=2", "--duration=2s", "--backlog=3")
	var report latency.Report
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatalf("%v in\n%s", err, output)
	}
	if report.Violations == nil || len(report.Violations) > 0 {
		t.Errorf("violations are %q, want an empty list", report.Violations)
	}
	if len(report.Rates) != 2 || report.Rates[0].Pods != 40 || report.Rates[1].Pods != 80 {
		t.Fatalf("rates are %+v, want two, of 40 and 80 pods", report.Rates)
	}
	for _, m := range report.Rates {
		if m.WaitMillis.P50 <= 0 || m.WaitMillis.P99 < m.WaitMillis.P50 || m.WaitMillis.Most < m.WaitMillis.P99 {
			t.Errorf("at %d pods/s the waits are %+v", m.PodsPerSecond, m.WaitMillis)
		}
		if m.ProcessCPUMillisPerPod <= 0 || m.ControlPlaneCPUs <= 0 || m.APIWrites["POST pods/binding 201"] != m.Pods {
			t.Errorf("numbers are missing in %+v", m)
		}
	}
}

func TestTheCommandMeasuresRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds two executables and starts a cluster")
	}
	output := runBench(t, "scheduler", "restart", "--nodes=20", "--pods=40", "--gang=10", "--runs=2")
	var report restart.Report
	if err := json.Unmarshal(output, &report); err != nil {
		t.Fatalf("%v in\n%s", err, output)
	}
	if report.Violations == nil || len(report.Violations) > 0 {
		t.Errorf("violations are %q, want an empty list", report.Violations)
	}
	if len(report.Runs) != 2 || report.Fill == nil || report.Fill.Pods != 40 {
		t.Fatalf("the fill is %+v and the restarts %+v, want 40 pods and two", report.Fill, report.Runs)
	}
	for _, m := range report.Runs {
		if m.Pods != 10 || m.ListsSeconds <= 0 || m.FirstSeconds <= 0 || m.LastSeconds < m.FirstSeconds || m.CPUSeconds <= 0 || m.PeakMemoryBytes == 0 {
			t.Errorf("numbers are missing in %+v", m)
		}
	}
}
