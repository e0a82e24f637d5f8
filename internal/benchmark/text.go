package benchmark

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"text/tabwriter"
)

// WriteText writes the report for a person.
func (r *Report) WriteText(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(format string, values ...any) { _, _ = fmt.Fprintf(t, format+"\n", values...) }
	p, m := r.Parameters, r.Median
	line("Machine\t%d cores, %.0f GiB", r.Machine.CPUs, math.Round(gibibytes(r.Machine.MemoryBytes)))
	line("Versions\tHekla %s, Kubernetes %s, etcd %s, kwok %s, %s", r.Versions.Hekla, r.Versions.Kubernetes, r.Versions.Etcd, r.Versions.Kwok, r.Versions.Go)
	line("Load\t%d pods (%d CPU, %s) in gangs of %d on %d nodes (%d CPU, %s, %d pods)",
		p.Pods, p.Pod.CPU, p.Pod.Memory, p.Gang, p.Nodes, p.Node.CPU, p.Node.Memory, p.Node.Pods)
	line("Bound pods\t%s", map[bool]string{true: "become Running", false: "stay Pending"}[p.PodsRun])
	line("")
	line("run\t\tbound/s\tfrom start\trunning/s\tseconds\tCPU s\tafter idle\tpeak MiB\tcontrol plane CPU s\tothers' CPU s")
	for i := range r.Runs {
		run := &r.Runs[i]
		rows := []string{r.row("plain loop", &run.PlainLoop), r.row("Hekla", &run.Hekla)}
		if !run.PlainLoopFirst {
			slices.Reverse(rows)
		}
		for _, row := range append(rows, fmt.Sprintf("ratio\t%.2f\t\t%s\t\t\t\t\t\t", run.Ratio, r.running("%.2f", run.RunningRatio))) {
			line("%d\t%s", i+1, row)
		}
	}
	line("median\tplain loop\t%.0f\t\t%s\t\t\t\t\t\t", m.PlainLoopPodsPerSecond, r.running("%.0f", m.PlainLoopPodsRunningPerSecond))
	line("median\tHekla\t%.0f\t%.0f\t%s\t\t%.2f\t%.2f\t%.0f\t\t", m.HeklaPodsPerSecond, m.HeklaPodsPerSecondFromStart,
		r.running("%.0f", m.HeklaPodsRunningPerSecond), m.HeklaCPUSeconds, m.HeklaCPUSecondsAfterIdle, mebibytes(m.HeklaPeakMemoryBytesAfterIdle))
	line("median\tratio\t%.2f\t\t%s\t\t\t\t\t\t", m.Ratio, r.running("%.2f", m.RunningRatio))
	if err := t.Flush(); err != nil {
		return err
	}
	return r.writeDetails(out)
}

// running formats a number about pods that run, which there is only if pods should.
func (r *Report) running(format string, number float64) string {
	if !r.Parameters.PodsRun {
		return ""
	}
	return fmt.Sprintf(format, number)
}

// row is one measurement as a line of the table.
func (r *Report) row(who string, m *Measurement) string {
	process := "\t\t"
	if use := m.Process; use != nil {
		process = fmt.Sprintf("%.2f\t%.2f\t%.0f", use.CPUSeconds, use.CPUSecondsAfterIdle, mebibytes(float64(use.PeakMemoryBytesAfterIdle)))
	}
	return fmt.Sprintf("%s\t%.0f\t%.0f\t%s\t%.2f\t%s\t%.1f\t%.1f", who, m.PodsPerSecond, m.PodsPerSecondFromStart,
		r.running("%.0f", m.PodsRunningPerSecond), m.FirstToLastSeconds, process, m.ControlPlaneCPUSeconds, m.OtherCPUSeconds)
}

// writeDetails writes what else was requested of the API server, and what went wrong.
func (r *Report) writeDetails(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(format string, values ...any) { _, _ = fmt.Fprintf(t, format+"\n", values...) }
	if number := len(r.Runs); number > 0 {
		plainLoop, hekla := r.Runs[number-1].PlainLoop.APIWrites, r.Runs[number-1].Hekla.APIWrites
		requests := make(Writes)
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
		line("Every pod was bound once, every gang is whole, no node is over-committed.")
	}
	return t.Flush()
}

func mebibytes(bytes float64) float64 { return bytes / (1 << 20) }

func gibibytes(bytes uint64) float64 { return float64(bytes) / (1 << 30) }
