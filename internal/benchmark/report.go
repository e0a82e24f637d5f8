package benchmark

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	root "hekla.sh/hekla"
)

// Report is all that was measured, and on what.
type Report struct {
	Machine    Machine    `json:"machine"`
	Versions   Versions   `json:"versions"`
	Parameters Parameters `json:"parameters"`
	Runs       []Pair     `json:"runs"`
	Median     Median     `json:"median"`
	// Violations are what must not happen and did, a sentence each. With any, no number counts.
	Violations []string `json:"violations"`
}

// Machine is where it was measured.
type Machine struct {
	CPUs        int    `json:"cpus"`
	MemoryBytes uint64 `json:"memoryBytes"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
	Kernel      string `json:"kernel"`
}

// Versions are those of the programs that took part.
type Versions struct {
	Hekla      string `json:"hekla"`
	Go         string `json:"go"`
	Kubernetes string `json:"kubernetes"`
	Etcd       string `json:"etcd"`
	Kwok       string `json:"kwok"`
}

// Parameters are what was asked for.
type Parameters struct {
	Nodes int `json:"nodes"`
	Pods  int `json:"pods"`
	Gang  int `json:"gang"`
	Runs  int `json:"runs"`
	// PodsRun is whether bound pods became Running, which takes from the API server in both measurements.
	PodsRun bool `json:"podsRun"`
	// Node is what each node had, Pod what each pod asked for.
	Node Size `json:"node"`
	Pod  Size `json:"pod"`
	// Processes are those of the cluster, which ran in both measurements.
	Processes []string `json:"processes"`
}

// Size is that of a node or a pod.
type Size struct {
	CPU    int    `json:"cpu"`
	Memory string `json:"memory"`
	Pods   int    `json:"pods,omitempty"`
}

// Pair is one run: both contenders on the same cluster, one after the other.
type Pair struct {
	PlainLoopFirst bool        `json:"plainLoopFirst"`
	PlainLoop      Measurement `json:"plainLoop"`
	Hekla          Measurement `json:"hekla"`
	// Ratio is Hekla's pods per second, divided by the plain loop's.
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
	// PodsRunningAtLast is how many pods ran when the last one was bound: a contender that is fast leaves kwok behind, and
	// then the API server has work left over.
	PodsRunningAtLast int `json:"podsRunningAtLast"`
	// PodsRunningPerSecond counts from the start until the last pod runs, so that nothing is left over.
	PodsRunningPerSecond float64 `json:"podsRunningPerSecond"`
	// Process is what the contender's own process used. The plain loop has none: it runs in the benchmark's.
	Process *ProcessUse `json:"process,omitempty"`
	// ControlPlaneCPUSeconds is what the cluster's processes used from the start to the last binding.
	ControlPlaneCPUSeconds float64 `json:"controlPlaneCPUSeconds"`
	// OtherCPUSeconds is what everything else on the machine used in that time. It should be next to nothing.
	OtherCPUSeconds float64 `json:"otherCPUSeconds"`
	// APIWrites are the requests of all clients, kwok's and the control plane's included, until the contender has ended.
	APIWrites Writes `json:"apiWrites"`
}

// ProcessUse is what a process has used since it was started: when the last pod was bound, and after some idle seconds.
type ProcessUse struct {
	CPUSeconds               float64 `json:"cpuSeconds"`
	CPUSecondsAfterIdle      float64 `json:"cpuSecondsAfterIdle"`
	PeakMemoryBytes          uint64  `json:"peakMemoryBytes"`
	PeakMemoryBytesAfterIdle uint64  `json:"peakMemoryBytesAfterIdle"`
}

// Median is the median of each number over the runs.
type Median struct {
	PlainLoopPodsPerSecond      float64 `json:"plainLoopPodsPerSecond"`
	HeklaPodsPerSecond          float64 `json:"heklaPodsPerSecond"`
	HeklaPodsPerSecondFromStart float64 `json:"heklaPodsPerSecondFromStart"`
	// Ratio is the median of the runs' ratios, not the ratio of the medians; RunningRatio too.
	Ratio                         float64 `json:"ratio"`
	PlainLoopPodsRunningPerSecond float64 `json:"plainLoopPodsRunningPerSecond"`
	HeklaPodsRunningPerSecond     float64 `json:"heklaPodsRunningPerSecond"`
	RunningRatio                  float64 `json:"runningRatio,omitempty"`
	HeklaCPUSeconds               float64 `json:"heklaCPUSeconds"`
	HeklaCPUSecondsAfterIdle      float64 `json:"heklaCPUSecondsAfterIdle"`
	HeklaPeakMemoryBytes          float64 `json:"heklaPeakMemoryBytes"`
	HeklaPeakMemoryBytesAfterIdle float64 `json:"heklaPeakMemoryBytesAfterIdle"`
}

// Wrong returns the violations.
func (r *Report) Wrong() []string { return r.Violations }

// newReport returns a report without numbers.
func (b *bench) newReport() (*Report, error) {
	r := &Report{Runs: []Pair{}, Violations: []string{}, Parameters: Parameters{
		Nodes: b.Nodes, Pods: b.Pods, Gang: b.Gang, Runs: b.Runs, PodsRun: b.PodsRun,
		Node: Size{CPU: nodeCPUs, Memory: nodeMemory, Pods: nodePods}, Pod: Size{CPU: podCPUs, Memory: podMemory},
	}}
	for _, process := range b.controlPlane {
		r.Parameters.Processes = append(r.Parameters.Processes, process.Name)
	}
	memory, err := b.proc.Meminfo()
	if err != nil {
		return nil, fmt.Errorf("memory of the machine: %w", err)
	}
	kernel, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return nil, fmt.Errorf("version of the kernel: %w", err)
	}
	r.Machine = Machine{CPUs: runtime.NumCPU(), OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: strings.TrimSpace(string(kernel))}
	if memory.MemTotalBytes != nil {
		r.Machine.MemoryBytes = *memory.MemTotalBytes
	}
	server, err := b.clients.Core.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("version of the API server: %w", err)
	}
	r.Versions = Versions{Hekla: b.Version, Go: runtime.Version(), Kubernetes: server.GitVersion}
	requirements, err := modfile.Parse("go.mod", root.GoMod, nil)
	if err != nil {
		return nil, fmt.Errorf("the embedded go.mod: %w", err)
	}
	for _, require := range requirements.Require {
		switch require.Mod.Path {
		case "go.etcd.io/etcd/server/v3":
			r.Versions.Etcd = require.Mod.Version
		case "sigs.k8s.io/kwok":
			r.Versions.Kwok = require.Mod.Version
		}
	}
	return r, nil
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
		PlainLoopPodsPerSecond:        of(func(p *Pair) float64 { return p.PlainLoop.PodsPerSecond }),
		HeklaPodsPerSecond:            of(func(p *Pair) float64 { return p.Hekla.PodsPerSecond }),
		HeklaPodsPerSecondFromStart:   of(func(p *Pair) float64 { return p.Hekla.PodsPerSecondFromStart }),
		Ratio:                         of(func(p *Pair) float64 { return p.Ratio }),
		PlainLoopPodsRunningPerSecond: of(func(p *Pair) float64 { return p.PlainLoop.PodsRunningPerSecond }),
		HeklaPodsRunningPerSecond:     of(func(p *Pair) float64 { return p.Hekla.PodsRunningPerSecond }),
		RunningRatio:                  of(func(p *Pair) float64 { return p.RunningRatio }),
		HeklaCPUSeconds:               of(func(p *Pair) float64 { return p.Hekla.Process.CPUSeconds }),
		HeklaCPUSecondsAfterIdle:      of(func(p *Pair) float64 { return p.Hekla.Process.CPUSecondsAfterIdle }),
		HeklaPeakMemoryBytes:          of(func(p *Pair) float64 { return float64(p.Hekla.Process.PeakMemoryBytes) }),
		HeklaPeakMemoryBytesAfterIdle: of(func(p *Pair) float64 { return float64(p.Hekla.Process.PeakMemoryBytesAfterIdle) }),
	}
}
