package workloads

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

// Report is all that was measured, and on what.
type Report struct {
	testbed.About
	Parameters Parameters `json:"parameters"`
	// RequestsAtOnce is with how many requests at once the loop is fastest.
	RequestsAtOnce int    `json:"requestsAtOnce"`
	Runs           []Pair `json:"runs"`
	// Violations are what must not happen and did, a sentence each. With any, no number counts.
	Violations []string `json:"violations"`
}

// Parameters are what was asked for.
type Parameters struct {
	Nodes     int `json:"nodes"`
	Workloads int `json:"workloads"`
	Runs      int `json:"runs"`
}

// Pair is one run: both contenders on the same cluster, one after the other.
type Pair struct {
	LoopFirst bool        `json:"loopFirst"`
	Loop      Measurement `json:"loop"`
	Hekla     Measurement `json:"hekla"`
	// Ratio is Hekla's admissions per second, divided by the loop's.
	Ratio float64 `json:"ratio"`
}

// Measurement is what one contender did.
type Measurement struct {
	Admissions int `json:"admissions"`
	// AdmissionsPerSecond is Hekla's rate from the first Job that is started to the last, and that of all requests of the loop.
	AdmissionsPerSecond float64 `json:"admissionsPerSecond"`
	StartToFirstSeconds float64 `json:"startToFirstSeconds"`
	StartToLastSeconds  float64 `json:"startToLastSeconds"`
	// SchedulerCPUSeconds is what the scheduler has used when the last Job is started; 0 of the loop.
	SchedulerCPUSeconds float64 `json:"schedulerCPUSeconds"`
	// ControlPlaneCPUSeconds is what the cluster's processes used, OtherCPUSeconds everything else on the machine: with Hekla, the
	// controllers too.
	ControlPlaneCPUSeconds float64 `json:"controlPlaneCPUSeconds"`
	OtherCPUSeconds        float64 `json:"otherCPUSeconds"`
	// APIWrites are the requests of all clients until the last Job was started.
	APIWrites testbed.Writes `json:"apiWrites"`
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
	line("Load\t%d Jobs of one pod, %d nodes; the loop sends %d requests for each, %d at once", r.Parameters.Workloads, r.Parameters.Nodes,
		WritesEach, r.RequestsAtOnce)
	line("")
	line("run\t\tadmissions/s\twrites each\tto the first s\tto the last s\tscheduler CPU s\tcontrol plane CPU s\tothers' CPU s")
	row := func(who string, m *Measurement) string {
		return fmt.Sprintf("%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t%.1f", who, m.AdmissionsPerSecond,
			testbed.Ratio(float64(m.APIWrites.Total()), float64(m.Admissions)), m.StartToFirstSeconds, m.StartToLastSeconds, m.SchedulerCPUSeconds,
			m.ControlPlaneCPUSeconds, m.OtherCPUSeconds)
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		rows := []string{row("loop", &run.Loop), row("Hekla", &run.Hekla)}
		if !run.LoopFirst {
			slices.Reverse(rows)
		}
		for _, row := range append(rows, fmt.Sprintf("ratio\t%.2f\t\t\t\t\t\t", run.Ratio)) {
			line("%d\t%s", i+1, row)
		}
	}
	if number := len(r.Runs); number > 0 {
		r.writeRequests(line, number)
	}
	line("")
	for _, violation := range r.Violations {
		line("WRONG: %s", violation)
	}
	if len(r.Violations) == 0 {
		line("Every Job was started.")
	}
	return t.Flush()
}

// writeRequests writes the requests of a run.
func (r *Report) writeRequests(line func(string, ...any), number int) {
	of, hekla := r.Runs[number-1].Loop.APIWrites, r.Runs[number-1].Hekla.APIWrites
	requests := make(testbed.Writes)
	maps.Copy(requests, of)
	maps.Copy(requests, hekla)
	line("\nall writes in run %d\tloop\tHekla", number)
	for _, request := range slices.Sorted(maps.Keys(requests)) {
		line("%s\t%d\t%d", request, of[request], hekla[request])
	}
}
