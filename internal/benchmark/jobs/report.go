package jobs

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

// Report is all that was measured of the controllers, and on what.
type Report struct {
	testbed.About
	Parameters Parameters `json:"parameters"`
	Runs       []Pair     `json:"runs"`
	// Violations are what must not happen and did, a sentence each. With any, no number counts.
	Violations []string `json:"violations"`
}

// Parameters are what was asked for: so many Jobs of so many pods each, so often.
type Parameters struct {
	Jobs int `json:"jobs"`
	Pods int `json:"pods"`
	Runs int `json:"runs"`
}

// Pair is one run: both contenders on the same cluster, one after the other.
type Pair struct {
	PlainLoopFirst bool        `json:"plainLoopFirst"`
	PlainLoop      Measurement `json:"plainLoop"`
	Hekla          Measurement `json:"hekla"`
	// Ratio is Hekla's pods per second, divided by the plain loop's.
	Ratio float64 `json:"ratio"`
}

// Measurement is what one contender did.
type Measurement struct {
	PodsMade int `json:"podsMade"`
	// PodsPerSecond is the rate from the first pod to the last, PodsPerSecondFromStart from when the process was started, or the
	// loop entered.
	PodsPerSecond          float64 `json:"podsPerSecond"`
	PodsPerSecondFromStart float64 `json:"podsPerSecondFromStart"`
	StartToFirstSeconds    float64 `json:"startToFirstSeconds"`
	StartToLastSeconds     float64 `json:"startToLastSeconds"`
	// ProcessCPUSeconds and PeakMemoryBytes are what the controllers have used when the last pod was made; 0 of the plain loop,
	// which runs in the benchmark's process.
	ProcessCPUSeconds float64 `json:"processCPUSeconds"`
	PeakMemoryBytes   uint64  `json:"peakMemoryBytes"`
	// ControlPlaneCPUSeconds is what the cluster's processes used, OtherCPUSeconds everything else on the machine.
	ControlPlaneCPUSeconds float64 `json:"controlPlaneCPUSeconds"`
	OtherCPUSeconds        float64 `json:"otherCPUSeconds"`
	// APIWrites are the requests of all clients until the last pod was made.
	APIWrites testbed.Writes `json:"apiWrites"`
	// WritesPerSecond is the rate of all of them from the start to the last pod: what the API server took.
	WritesPerSecond float64 `json:"writesPerSecond"`
}

// Wrong returns the violations.
func (r *Report) Wrong() []string { return r.Violations }

// WriteText writes the report for a person.
func (r *Report) WriteText(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(format string, values ...any) { _, _ = fmt.Fprintf(t, format+"\n", values...) }
	for _, text := range r.Lines() {
		line("%s", text)
	}
	line("Load\t%d Jobs of %d pods", r.Parameters.Jobs, r.Parameters.Pods)
	line("")
	line("run\t\tpods made/s\tfrom start\tall writes/s\tseconds\tCPU s\tpeak MiB\tcontrol plane CPU s\tothers' CPU s")
	row := func(who string, m *Measurement) string {
		process := "\t"
		if m.ProcessCPUSeconds > 0 {
			process = fmt.Sprintf("%.2f\t%.0f", m.ProcessCPUSeconds, testbed.Mebibytes(float64(m.PeakMemoryBytes)))
		}
		return fmt.Sprintf("%s\t%.0f\t%.0f\t%.0f\t%.2f\t%s\t%.1f\t%.1f", who, m.PodsPerSecond, m.PodsPerSecondFromStart, m.WritesPerSecond,
			m.StartToLastSeconds-m.StartToFirstSeconds, process, m.ControlPlaneCPUSeconds, m.OtherCPUSeconds)
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		rows := []string{row("plain loop", &run.PlainLoop), row("Hekla", &run.Hekla)}
		if !run.PlainLoopFirst {
			slices.Reverse(rows)
		}
		for _, row := range append(rows, fmt.Sprintf("ratio\t%.2f\t\t%.2f\t\t\t\t\t", run.Ratio, testbed.Ratio(run.Hekla.WritesPerSecond, run.PlainLoop.WritesPerSecond))) {
			line("%d\t%s", i+1, row)
		}
	}
	if number := len(r.Runs); number > 0 {
		plainLoop, hekla := r.Runs[number-1].PlainLoop.APIWrites, r.Runs[number-1].Hekla.APIWrites
		requests := make(testbed.Writes)
		maps.Copy(requests, plainLoop)
		maps.Copy(requests, hekla)
		line("\nall writes in run %d\tplain loop\tHekla", number)
		for _, request := range slices.Sorted(maps.Keys(requests)) {
			line("%s\t%d\t%d", request, plainLoop[request], hekla[request])
		}
	}
	line("")
	for _, violation := range r.Violations {
		line("WRONG: %s", violation)
	}
	if len(r.Violations) == 0 {
		line("Every Job has its pods, and its status counts them.")
	}
	return t.Flush()
}
