package benchmark

import (
	"fmt"
	"io"
	"strings"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

// WriteText writes the report for a person.
func (r *Report) WriteText(out io.Writer) error {
	p, t := r.Parameters, testbed.NewText(out, &r.About)
	t.Line("Cluster\t%d nodes (%d CPU, %s, %d pods); each pod %d CPU, %s", p.Nodes, p.Node.CPU, p.Node.Memory, p.Node.Pods, p.Pod.CPU, p.Pod.Memory)
	t.Line("Load\tgangs x members; queues: %d; pods that fit no node: %d", p.Queues, p.Backlog)
	t.Line("Bound pods\t%s", map[bool]string{true: "become Running", false: "stay Pending"}[p.PodsRun])
	t.Line("Loop\t%d requests at once (%s); over connections like hekla-scheduler's, %d: %.0f/s", r.RequestsAtOnce, r.trials(),
		r.SchedulersWay.Requests, r.SchedulersWay.PodsPerSecond)
	t.Line("")
	t.Line("load\trun\t\tbound/s\tfrom start\trunning/s\tseconds\tCPU s\tafter idle\tCPU ms/pod\tpeak MiB\tcontrol plane CPU s\tothers' CPU s")
	for i := range r.Shapes {
		s := &r.Shapes[i]
		for j := range s.Runs {
			run := &s.Runs[j]
			t.InTurn(fmt.Sprintf("%s\t%d", s.Shape, j+1), run.LoopFirst, r.row("loop", &run.Loop), r.row("Hekla", &run.Hekla),
				fmt.Sprintf("ratio\t%.2f\t\t%s\t\t\t\t\t\t\t", run.Ratio, r.running("%.2f", run.RunningRatio)))
		}
	}
	t.Line("")
	t.Line("load, median\tloop bound/s\tHekla bound/s\tratio\trunning ratio\tCPU ms/pod\tafter idle\tpeak MiB")
	for i := range r.Shapes {
		s := &r.Shapes[i]
		m, pods := &s.Median, float64(s.Gangs*s.Members)
		t.Line("%s\t%.0f\t%.0f\t%.2f\t%s\t%.2f\t%.2f\t%.0f", s.Shape, m.LoopPodsPerSecond, m.HeklaPodsPerSecond, m.Ratio, r.running("%.2f", m.RunningRatio),
			1000*m.HeklaCPUSeconds/pods, 1000*m.HeklaCPUSecondsAfterIdle/pods, testbed.Mebibytes(m.HeklaPeakMemoryBytesAfterIdle))
	}
	var columns []testbed.Column
	for i := range r.Shapes {
		if s := &r.Shapes[i]; len(s.Runs) > 0 {
			last := &s.Runs[len(s.Runs)-1]
			columns = append(columns, testbed.Column{Name: s.Shape.String() + " loop", Writes: last.Loop.APIWrites}, testbed.Column{Name: "Hekla", Writes: last.Hekla.APIWrites})
		}
	}
	t.Requests("all writes in the last run", columns...)
	return t.End(&r.Findings, testbed.PodsAreRight)
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
		idle, memory := "", ""
		if use.PeakMemoryBytesAfterIdle > 0 {
			idle, memory = fmt.Sprintf("%.2f", use.CPUSecondsAfterIdle), fmt.Sprintf("%.0f", testbed.Mebibytes(float64(use.PeakMemoryBytesAfterIdle)))
		}
		process = fmt.Sprintf("%.2f\t%s\t%.2f\t%s", use.CPUSeconds, idle, 1000*testbed.Ratio(use.CPUSeconds, float64(m.PodsBound)), memory)
	}
	return fmt.Sprintf("%s\t%.0f\t%.0f\t%s\t%.2f\t%s\t%.1f\t%.1f", who, m.PodsPerSecond, m.PodsPerSecondFromStart,
		r.running("%.0f", m.PodsRunningPerSecond), m.FirstToLastSeconds, process, m.ControlPlaneCPUSeconds, m.OtherCPUSeconds)
}
