package workloads

import (
	"fmt"
	"io"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

// Report is all that was measured, and on what.
type Report struct {
	testbed.About
	Parameters Parameters `json:"parameters"`
	// RequestsAtOnce is with how many requests at once the loop is fastest.
	RequestsAtOnce int    `json:"requestsAtOnce"`
	Runs           []Pair `json:"runs"`
	testbed.Findings
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
	// AdmissionsPerSecond is Hekla's rate from the first Job that is started to the last, and that of all requests of
	// the loop.
	AdmissionsPerSecond float64 `json:"admissionsPerSecond"`
	StartToFirstSeconds float64 `json:"startToFirstSeconds"`
	StartToLastSeconds  float64 `json:"startToLastSeconds"`
	// SchedulerCPUSeconds is what the scheduler has used when the last Job is started; 0 of the loop.
	SchedulerCPUSeconds float64 `json:"schedulerCPUSeconds"`
	// Cost is that of the time until the last Job was started. The controllers count as others.
	testbed.Cost
}

// WriteText writes the report for a person.
func (r *Report) WriteText(out io.Writer) error {
	t := testbed.NewText(out, &r.About)
	t.Line("Load\t%d Jobs of one pod, %d nodes; the loop sends %d requests for each, %d at once", r.Parameters.Workloads, r.Parameters.Nodes,
		WritesEach, r.RequestsAtOnce)
	t.Line("")
	t.Line("run\t\tadmissions/s\twrites each\tto the first s\tto the last s\tscheduler CPU s\tcontrol plane CPU s\tothers' CPU s")
	row := func(who string, m *Measurement) string {
		return fmt.Sprintf("%s\t%.0f\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t%.1f", who, m.AdmissionsPerSecond,
			testbed.Ratio(float64(m.APIWrites.Total()), float64(m.Admissions)), m.StartToFirstSeconds, m.StartToLastSeconds, m.SchedulerCPUSeconds,
			m.ControlPlaneCPUSeconds, m.OtherCPUSeconds)
	}
	for i := range r.Runs {
		run := &r.Runs[i]
		t.InTurn(i+1, run.LoopFirst, row("loop", &run.Loop), row("Hekla", &run.Hekla),
			fmt.Sprintf("ratio\t%.2f\t\t\t\t\t\t", run.Ratio))
	}
	if number := len(r.Runs); number > 0 {
		last := &r.Runs[number-1]
		t.Requests(fmt.Sprintf("all writes in run %d", number), testbed.Column{Name: "loop", Writes: last.Loop.APIWrites},
			testbed.Column{Name: "Hekla", Writes: last.Hekla.APIWrites})
	}
	return t.End(&r.Findings, "Every Job was started.")
}
