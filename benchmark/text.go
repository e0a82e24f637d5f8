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
	line("run\twho\tpods/s\tpods/s from start\tfirst to last\tCPU\tCPU after idle\tpeak memory\tcontrol plane CPU\tCPU of others")
	for i := range r.Runs {
		run := &r.Runs[i]
		rows := []string{row(i+1, "plain loop", &run.PlainLoop), row(i+1, "Hekla", &run.Hekla)}
		if !run.PlainLoopFirst {
			slices.Reverse(rows)
		}
		for _, row := range rows {
			line("%s", row)
		}
		line("%d\tratio\t%.2f", i+1, run.Ratio)
	}
	line("")
	line("median\tplain loop\t%.0f", m.PlainLoopPodsPerSecond)
	line("median\tHekla\t%.0f\t%.0f\t\t%.2f s\t%.2f s\t%.0f MiB", m.HeklaPodsPerSecond, m.HeklaPodsPerSecondFromStart,
		m.HeklaCPUSeconds, m.HeklaCPUSecondsAfterIdle, mebibytes(m.HeklaPeakMemoryBytesAfterIdle))
	line("median\tratio\t%.2f", m.Ratio)
	if err := t.Flush(); err != nil {
		return err
	}
	return r.writeDetails(out)
}

// row is one measurement as a line of the table.
func row(number int, who string, m *Measurement) string {
	process := "\t\t"
	if use := m.Process; use != nil {
		process = fmt.Sprintf("%.2f s\t%.2f s\t%.0f MiB", use.CPUSeconds, use.CPUSecondsAfterIdle, mebibytes(float64(use.PeakMemoryBytesAfterIdle)))
	}
	return fmt.Sprintf("%d\t%s\t%.0f\t%.0f\t%.2f s\t%s\t%.1f s\t%.1f s", number, who, m.PodsPerSecond, m.PodsPerSecondFromStart,
		m.FirstToLastSeconds, process, m.ControlPlaneCPUSeconds, m.OtherCPUSeconds)
}

// writeDetails writes what else was requested of the API server, and what went wrong.
func (r *Report) writeDetails(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(format string, values ...any) { _, _ = fmt.Fprintf(t, format+"\n", values...) }
	last := &r.Runs[len(r.Runs)-1]
	requests := maps.Clone(last.PlainLoop.APIWrites)
	maps.Copy(requests, last.Hekla.APIWrites)
	line("\nwrites in run %d, of everybody\tplain loop\tHekla", len(r.Runs))
	for _, request := range slices.Sorted(maps.Keys(requests)) {
		line("%s\t%d\t%d", request, last.PlainLoop.APIWrites[request], last.Hekla.APIWrites[request])
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
