package benchmark

import (
	"slices"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

// Report is all that was measured, and on what.
type Report struct {
	testbed.About
	Parameters Parameters `json:"parameters"`
	// RequestsAtOnce is how many Binding requests the loop sends at once; Trials are what was tried to find it.
	RequestsAtOnce int     `json:"requestsAtOnce"`
	Trials         []Trial `json:"trials"`
	// SchedulersWay is a trial of the loop over connections like those over which the scheduler binds, with as many
	// requests at once.
	SchedulersWay Trial `json:"schedulersWay"`
	// Shapes are in the order in which they were asked for.
	Shapes []ShapeReport `json:"shapes"`
	testbed.Findings
}

// Parameters are what was asked for.
type Parameters struct {
	Nodes   int `json:"nodes"`
	Runs    int `json:"runs"`
	Queues  int `json:"queues"`
	Backlog int `json:"backlog"`
	// PodsRun is whether bound pods became Running, which takes from the API server in both measurements.
	PodsRun bool `json:"podsRun"`
	// Node is what each node had, Pod what each pod asked for.
	Node Size `json:"node"`
	Pod  Size `json:"pod"`
}

// Size is that of a node or a pod.
type Size struct {
	CPU    int    `json:"cpu"`
	Memory string `json:"memory"`
	Pods   int    `json:"pods,omitempty"`
}

// ShapeReport is what was measured with one shape.
type ShapeReport struct {
	Shape
	Runs   []Pair `json:"runs"`
	Median Median `json:"median"`
}

// Pair is one run: both contenders on the same cluster, one after the other.
type Pair struct {
	LoopFirst bool        `json:"loopFirst"`
	Loop      Measurement `json:"loop"`
	Hekla     Measurement `json:"hekla"`
	// Ratio is Hekla's pods per second, divided by the loop's.
	Ratio float64 `json:"ratio"`
	// RunningRatio is the same of the pods that came to run per second; 0 if none should.
	RunningRatio float64 `json:"runningRatio,omitempty"`
}

// Measurement is what one contender did.
type Measurement struct {
	PodsBound int `json:"podsBound"`
	// PodsPerSecond is the rate from the first binding to the last.
	PodsPerSecond float64 `json:"podsPerSecond"`
	// PodsPerSecondFromStart counts from when the process was started, or the loop entered.
	PodsPerSecondFromStart float64 `json:"podsPerSecondFromStart"`
	StartToFirstSeconds    float64 `json:"startToFirstSeconds"`
	StartToLastSeconds     float64 `json:"startToLastSeconds"`
	FirstToLastSeconds     float64 `json:"firstToLastSeconds"`
	// PodsRunningAtLast is how many pods ran when the last one was bound: a contender that is fast leaves kwok behind,
	// and then the API server has work left over.
	PodsRunningAtLast int `json:"podsRunningAtLast"`
	// PodsRunningPerSecond counts from the start until the last pod runs, so that nothing is left over.
	PodsRunningPerSecond float64 `json:"podsRunningPerSecond"`
	// Process is what the contender's process used. The loop runs in that of the benchmark, which watches the pods
	// besides.
	Process *ProcessUse `json:"process,omitempty"`
	// Cost is that of the time from the start to the last binding; the requests are counted until the contender has
	// ended.
	testbed.Cost
}

// ProcessUse is what a process has used since it was started: when the last pod was bound, and after some idle seconds.
// Of the loop it is the CPU time from its first request to the last binding.
type ProcessUse struct {
	CPUSeconds               float64 `json:"cpuSeconds"`
	CPUSecondsAfterIdle      float64 `json:"cpuSecondsAfterIdle"`
	PeakMemoryBytes          uint64  `json:"peakMemoryBytes"`
	PeakMemoryBytesAfterIdle uint64  `json:"peakMemoryBytesAfterIdle"`
}

// Median is the median of each number over the runs.
type Median struct {
	LoopPodsPerSecond           float64 `json:"loopPodsPerSecond"`
	HeklaPodsPerSecond          float64 `json:"heklaPodsPerSecond"`
	HeklaPodsPerSecondFromStart float64 `json:"heklaPodsPerSecondFromStart"`
	// Ratio is the median of the runs' ratios, not the ratio of the medians; RunningRatio too.
	Ratio                         float64 `json:"ratio"`
	LoopPodsRunningPerSecond      float64 `json:"loopPodsRunningPerSecond"`
	HeklaPodsRunningPerSecond     float64 `json:"heklaPodsRunningPerSecond"`
	RunningRatio                  float64 `json:"runningRatio,omitempty"`
	HeklaCPUSeconds               float64 `json:"heklaCPUSeconds"`
	HeklaCPUSecondsAfterIdle      float64 `json:"heklaCPUSecondsAfterIdle"`
	HeklaPeakMemoryBytesAfterIdle float64 `json:"heklaPeakMemoryBytesAfterIdle"`
}

// newReport returns a report without numbers.
func newReport(o *Options, about testbed.About) *Report {
	r := &Report{About: about, Findings: testbed.NoFindings(), Parameters: Parameters{
		Nodes: o.Nodes, Runs: o.Runs, Queues: o.Queues, Backlog: o.Backlog, PodsRun: o.PodsRun,
		Node: Size{CPU: testbed.NodeCPUs, Memory: testbed.NodeMemory, Pods: testbed.NodePods},
		Pod:  Size{CPU: testbed.PodCPUs, Memory: testbed.PodMemory},
	}}
	for _, s := range o.Shapes {
		r.Shapes = append(r.Shapes, ShapeReport{Shape: s, Runs: []Pair{}})
	}
	return r
}

// medianOf returns the median of each number; of an even count the mean of the two in the middle.
func medianOf(runs []Pair) Median {
	of := func(number func(*Pair) float64) float64 {
		numbers := make([]float64, len(runs))
		for i := range runs {
			numbers[i] = number(&runs[i])
		}
		slices.Sort(numbers)
		middle := len(numbers) / 2
		if len(numbers)%2 == 1 {
			return numbers[middle]
		}
		return (numbers[middle-1] + numbers[middle]) / 2
	}
	return Median{
		LoopPodsPerSecond:             of(func(p *Pair) float64 { return p.Loop.PodsPerSecond }),
		HeklaPodsPerSecond:            of(func(p *Pair) float64 { return p.Hekla.PodsPerSecond }),
		HeklaPodsPerSecondFromStart:   of(func(p *Pair) float64 { return p.Hekla.PodsPerSecondFromStart }),
		Ratio:                         of(func(p *Pair) float64 { return p.Ratio }),
		LoopPodsRunningPerSecond:      of(func(p *Pair) float64 { return p.Loop.PodsRunningPerSecond }),
		HeklaPodsRunningPerSecond:     of(func(p *Pair) float64 { return p.Hekla.PodsRunningPerSecond }),
		RunningRatio:                  of(func(p *Pair) float64 { return p.RunningRatio }),
		HeklaCPUSeconds:               of(func(p *Pair) float64 { return p.Hekla.Process.CPUSeconds }),
		HeklaCPUSecondsAfterIdle:      of(func(p *Pair) float64 { return p.Hekla.Process.CPUSecondsAfterIdle }),
		HeklaPeakMemoryBytesAfterIdle: of(func(p *Pair) float64 { return float64(p.Hekla.Process.PeakMemoryBytesAfterIdle) }),
	}
}
