package restart

import (
	"fmt"
	"io"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

// Report is all that was measured, and on what.
type Report struct {
	testbed.About
	Parameters Parameters `json:"parameters"`
	// Fill is the first start, for which all pods wait; nil if they were created with their nodes.
	Fill *Measurement `json:"fill,omitempty"`
	// Runs are the restarts, for each of which one gang waits.
	Runs []Measurement `json:"runs"`
	testbed.Findings
}

// Parameters are what was asked for.
type Parameters struct {
	Nodes int  `json:"nodes"`
	Pods  int  `json:"pods"`
	Gang  int  `json:"gang"`
	Runs  int  `json:"runs"`
	Bound bool `json:"bound"`
}

// Measurement is one start of the scheduler.
type Measurement struct {
	// Pods is how many pods wait for it.
	Pods int `json:"pods"`
	// ListsSeconds is how long it took to list what a scheduler must know, before the start.
	ListsSeconds float64 `json:"listsSeconds"`
	// FirstSeconds is the time from the start of the process to the first pod with a node, LastSeconds to the last.
	FirstSeconds float64 `json:"firstSeconds"`
	LastSeconds  float64 `json:"lastSeconds"`
	// CPUSeconds is what the process has used up to then. MemoryBytes is resident then, PeakMemoryBytes the most that
	// was.
	CPUSeconds      float64 `json:"cpuSeconds"`
	MemoryBytes     uint64  `json:"memoryBytes"`
	PeakMemoryBytes uint64  `json:"peakMemoryBytes"`
}

func newReport(o *Options, about testbed.About) *Report {
	return &Report{About: about, Runs: []Measurement{}, Findings: testbed.NoFindings(),
		Parameters: Parameters{Nodes: o.Nodes, Pods: o.Pods, Gang: o.Gang, Runs: o.Runs, Bound: o.Bound}}
}

// WriteText writes the report for a person.
func (r *Report) WriteText(out io.Writer) error {
	t := testbed.NewText(out, &r.About)
	p := r.Parameters
	t.Line("Load\t%d pods in gangs of %d on %d nodes; then one gang for each restart", p.Pods, p.Gang, p.Nodes)
	t.Line("")
	t.Line("start\twaiting pods\tlists s\tfirst bound s\tlast bound s\tCPU s\tMiB\tpeak MiB")
	row := func(name string, m *Measurement) {
		t.Line("%s\t%d\t%.2f\t%.2f\t%.2f\t%.2f\t%.0f\t%.0f", name, m.Pods, m.ListsSeconds, m.FirstSeconds, m.LastSeconds, m.CPUSeconds,
			testbed.Mebibytes(float64(m.MemoryBytes)), testbed.Mebibytes(float64(m.PeakMemoryBytes)))
	}
	if r.Fill != nil {
		row("fill", r.Fill)
	}
	for i := range r.Runs {
		row(fmt.Sprintf("restart %d", i+1), &r.Runs[i])
	}
	return t.End(&r.Findings, testbed.PodsAreRight)
}
