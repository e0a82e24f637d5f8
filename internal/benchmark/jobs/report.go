package jobs

import (
	"fmt"
	"io"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

// Report is all that was measured of the controllers, and on what.
type Report struct {
	testbed.About
	Parameters Parameters `json:"parameters"`
	// RequestsAtOnce is with how many requests at once the loop is fastest.
	RequestsAtOnce int    `json:"requestsAtOnce"`
	Runs           []Pair `json:"runs"`
	testbed.Findings
}

// Parameters are what was asked for: so many Jobs of so many pods each, so often.
type Parameters struct {
	Jobs int `json:"jobs"`
	Pods int `json:"pods"`
	Runs int `json:"runs"`
}

// Pair is one run: both contenders on the same cluster, one after the other.
type Pair struct {
	LoopFirst bool        `json:"loopFirst"`
	Loop      Measurement `json:"loop"`
	Hekla     Measurement `json:"hekla"`
	// Ratio is Hekla's pods per second, divided by the loop's.
	Ratio float64 `json:"ratio"`
}

// Measurement is what one contender did.
type Measurement struct {
	PodsMade int `json:"podsMade"`
	// PodsPerSecond is the rate from the first pod to the last, PodsPerSecondFromStart from when the process was
	// started, or the loop entered.
	PodsPerSecond          float64 `json:"podsPerSecond"`
	PodsPerSecondFromStart float64 `json:"podsPerSecondFromStart"`
	StartToFirstSeconds    float64 `json:"startToFirstSeconds"`
	StartToLastSeconds     float64 `json:"startToLastSeconds"`
	// ProcessCPUSeconds and PeakMemoryBytes are what the controllers have used when the last pod was made; 0 of the
	// loop, which runs in the benchmark's process.
	ProcessCPUSeconds float64 `json:"processCPUSeconds"`
	PeakMemoryBytes   uint64  `json:"peakMemoryBytes"`
	// Cost is that of the time from the start to the last pod.
	testbed.Cost
	// WritesPerSecond is the rate of all of them from the start to the last pod: what the API server took.
	WritesPerSecond float64 `json:"writesPerSecond"`
}

// WriteText writes the report for a person.
func (r *Report) WriteText(out io.Writer) error {
	t := testbed.NewText(out, &r.About)
	t.Line("Load\t%d Jobs of %d pods; the loop sends %d requests at once", r.Parameters.Jobs, r.Parameters.Pods, r.RequestsAtOnce)
	t.Line("")
	t.Line("run\t\tpods made/s\tfrom start\tall writes/s\tseconds\tCPU s\tpeak MiB\tcontrol plane CPU s\tothers' CPU s")
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
		t.InTurn(i+1, run.LoopFirst, row("loop", &run.Loop), row("Hekla", &run.Hekla),
			fmt.Sprintf("ratio\t%.2f\t\t%.2f\t\t\t\t\t", run.Ratio, testbed.Ratio(run.Hekla.WritesPerSecond, run.Loop.WritesPerSecond)))
	}
	if number := len(r.Runs); number > 0 {
		last := &r.Runs[number-1]
		t.Requests(fmt.Sprintf("all writes in run %d", number), testbed.Column{Name: "loop", Writes: last.Loop.APIWrites},
			testbed.Column{Name: "Hekla", Writes: last.Hekla.APIWrites})
	}
	return t.End(&r.Findings, "Every Job has its pods, and its status counts them.")
}
