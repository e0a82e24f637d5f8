package benchmark

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

// WriteText writes the report for a person.
func (r *Report) WriteText(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(format string, values ...any) { _, _ = fmt.Fprintf(t, format+"\n", values...) }
	p := r.Parameters
	for _, text := range r.Lines() {
		line("%s", text)
	}
	line("Cluster\t%d nodes (%d CPU, %s, %d pods); each pod %d CPU, %s", p.Nodes, p.Node.CPU, p.Node.Memory, p.Node.Pods, p.Pod.CPU, p.Pod.Memory)
	line("Load\tgangs x members; queues: %d; pods that fit no node: %d", p.Queues, p.Backlog)
	line("Bound pods\t%s", map[bool]string{true: "become Running", false: "stay Pending"}[p.PodsRun])
	line("Loop\t%d requests at once (%s)", r.RequestsAtOnce, r.trials())
	line("")
	line("load\trun\t\tbound/s\tfrom start\trunning/s\tseconds\tCPU s\tafter idle\tCPU ms/pod\tpeak MiB\tcontrol plane CPU s\tothers' CPU s")
	for i := range r.Shapes {
		s := &r.Shapes[i]
		for j := range s.Runs {
			run := &s.Runs[j]
			rows := []string{r.row("loop", &run.Loop), r.row("Hekla", &run.Hekla)}
			if !run.LoopFirst {
				slices.Reverse(rows)
			}
			for _, row := range append(rows, fmt.Sprintf("ratio\t%.2f\t\t%s\t\t\t\t\t\t\t", run.Ratio, r.running("%.2f", run.RunningRatio))) {
				line("%s\t%d\t%s", s.Shape, j+1, row)
			}
		}
	}
	line("")
	line("load, median\tloop bound/s\tHekla bound/s\tratio\trunning ratio\tCPU ms/pod\tafter idle\tpeak MiB")
	for i := range r.Shapes {
		s := &r.Shapes[i]
		m, pods := &s.Median, float64(s.Gangs*s.Members)
		line("%s\t%.0f\t%.0f\t%.2f\t%s\t%.2f\t%.2f\t%.0f", s.Shape, m.LoopPodsPerSecond, m.HeklaPodsPerSecond, m.Ratio, r.running("%.2f", m.RunningRatio),
			1000*m.HeklaCPUSeconds/pods, 1000*m.HeklaCPUSecondsAfterIdle/pods, testbed.Mebibytes(m.HeklaPeakMemoryBytesAfterIdle))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return r.writeDetails(out)
}

func (r *Report) trials() string {
	var said []string
	for _, t := range r.Trials {
		said = append(said, fmt.Sprintf("%d: %.0f/s", t.Requests, t.PodsPerSecond))
	}
	return strings.Join(said, ", ")
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
	process := "\t\t\t"
	if use := m.Process; use != nil {
		process = fmt.Sprintf("%.2f\t%.2f\t%.2f\t%.0f", use.CPUSeconds, use.CPUSecondsAfterIdle, 1000*testbed.Ratio(use.CPUSeconds, float64(m.PodsBound)),
			testbed.Mebibytes(float64(use.PeakMemoryBytesAfterIdle)))
	}
	return fmt.Sprintf("%s\t%.0f\t%.0f\t%s\t%.2f\t%s\t%.1f\t%.1f", who, m.PodsPerSecond, m.PodsPerSecondFromStart,
		r.running("%.0f", m.PodsRunningPerSecond), m.FirstToLastSeconds, process, m.ControlPlaneCPUSeconds, m.OtherCPUSeconds)
}

// writeDetails writes what else was requested of the API server, and what went wrong.
func (r *Report) writeDetails(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(format string, values ...any) { _, _ = fmt.Fprintf(t, format+"\n", values...) }
	header, requests := "\nall writes in the last run", testbed.Writes{}
	var columns []testbed.Writes
	for i := range r.Shapes {
		s := &r.Shapes[i]
		if len(s.Runs) == 0 {
			continue
		}
		last := &s.Runs[len(s.Runs)-1]
		header += fmt.Sprintf("\t%s loop\tHekla", s.Shape)
		for _, writes := range []testbed.Writes{last.Loop.APIWrites, last.Hekla.APIWrites} {
			columns = append(columns, writes)
			maps.Copy(requests, writes)
		}
	}
	line("%s", header)
	for _, request := range slices.Sorted(maps.Keys(requests)) {
		row := request
		for _, writes := range columns {
			row += fmt.Sprintf("\t%d", writes[request])
		}
		line("%s", row)
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
