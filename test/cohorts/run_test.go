package cohorts

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster/workload"
)

func (m *model) step(now time.Time) (decided bool) { return m.stepOn(nil, now) }

// stepOn runs one cycle. Afterwards the victims have left and wait again, and who was promised their room runs. It
// reports whether anything was decided. g may be nil.
func (m *model) stepOn(g *grid, now time.Time) (decided bool) {
	var victims, planned []*workload.Workload
	m.cycle.Now = now
	m.cycle.Decided = func(n *workload.Nomination) {
		if m.note != nil {
			m.note(n)
		}
		switch n.Outcome {
		case workload.Admitted:
			decided = true
		case workload.Preempting, workload.Deferred:
			decided = true
			planned = append(planned, n.Workload)
			for _, v := range n.Victims {
				if !slices.Contains(victims, v.Workload) {
					victims = append(victims, v.Workload)
				}
			}
		}
	}
	m.cycle.Run()
	if m.check != nil {
		m.check()
	}
	for _, v := range victims {
		m.evictions++
		m.queues.Release(v)
		if g != nil {
			g.drop(v)
		}
		v.Phase = workload.PhaseWaiting
		m.queues.Add(v)
	}
	if g != nil && len(victims) > 0 {
		m.queues.NodesChanged()
	}
	for _, w := range planned {
		w.Phase = workload.PhaseAdmitted
	}
	return decided
}
