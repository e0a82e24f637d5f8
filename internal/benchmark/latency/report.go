package latency

import (
	"io"
	"strconv"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

// Report is all that was measured, and on what.
type Report struct {
	testbed.About
	Parameters Parameters `json:"parameters"`
	// Rates are in the order in which they were asked for.
	Rates []Measurement `json:"rates"`
	testbed.Findings
}

// Parameters are what was asked for.
type Parameters struct {
	Nodes           int     `json:"nodes"`
	Gang            int     `json:"gang"`
	Queues          int     `json:"queues"`
	Backlog         int     `json:"backlog"`
	DurationSeconds float64 `json:"durationSeconds"`
	PodsRun         bool    `json:"podsRun"`
}

// Measurement is what happened at one rate.
type Measurement struct {
	// PodsPerSecond is the rate that was asked for, CreatedPerSecond what the API server took.
	PodsPerSecond    int     `json:"podsPerSecond"`
	CreatedPerSecond float64 `json:"createdPerSecond"`
	Pods             int     `json:"pods"`
	WaitMillis       Waits   `json:"waitMillis"`
	// ProcessCPUMillisPerPod is the scheduler's CPU time from the first pod to the last binding.
	ProcessCPUMillisPerPod float64 `json:"processCPUMillisPerPod"`
	PeakMemoryBytes        uint64  `json:"peakMemoryBytes"`
	// ControlPlaneCPUs is how many CPUs the cluster's processes used in that time, OtherCPUs everything else on the
	// machine.
	ControlPlaneCPUs float64 `json:"controlPlaneCPUs"`
	OtherCPUs        float64 `json:"otherCPUs"`
	// BusyPercent is the part of the machine's CPUs that all of that, the scheduler and the benchmark itself used in
	// that time.
	BusyPercent float64 `json:"busyPercent"`
	// APIWrites are the requests of all clients, those that create the pods included.
	APIWrites testbed.Writes `json:"apiWrites"`
}

// Waits are how long pods were there before they had a node.
type Waits struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	Most float64 `json:"most"`
}

func newReport(o *Options, about testbed.About) *Report {
	return &Report{About: about, Rates: []Measurement{}, Findings: testbed.NoFindings(), Parameters: Parameters{
		Nodes: o.Nodes, Gang: o.Gang, Queues: o.Queues, Backlog: o.Backlog, DurationSeconds: o.Duration.Seconds(), PodsRun: o.PodsRun,
	}}
}

// WriteText writes the report for a person.
func (r *Report) WriteText(out io.Writer) error {
	t := testbed.NewText(out, &r.About)
	p := r.Parameters
	t.Line("Load\tgangs of %d, each rate for %.0f s, on %d nodes; queues: %d; pods that fit no node: %d", p.Gang, p.DurationSeconds, p.Nodes, p.Queues, p.Backlog)
	t.Line("Bound pods\t%s", map[bool]string{true: "become Running", false: "stay Pending"}[p.PodsRun])
	t.Line("")
	t.Line("pods/s\tcreated/s\tp50 ms\tp90 ms\tp99 ms\tmost ms\tCPU ms/pod\tpeak MiB\tcontrol plane CPUs\tothers' CPUs\tmachine busy")
	var columns []testbed.Column
	for i := range r.Rates {
		m := &r.Rates[i]
		t.Line("%d\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t%.2f\t%.0f\t%.2f\t%.2f\t%.0f %%", m.PodsPerSecond, m.CreatedPerSecond, m.WaitMillis.P50, m.WaitMillis.P90, m.WaitMillis.P99,
			m.WaitMillis.Most, m.ProcessCPUMillisPerPod, testbed.Mebibytes(float64(m.PeakMemoryBytes)), m.ControlPlaneCPUs, m.OtherCPUs, m.BusyPercent)
		columns = append(columns, testbed.Column{Name: strconv.Itoa(m.PodsPerSecond), Writes: m.APIWrites})
	}
	t.Requests("all writes at pods/s", columns...)
	return t.End(&r.Findings, testbed.PodsAreRight)
}
