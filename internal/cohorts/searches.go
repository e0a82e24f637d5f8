package cohorts

import (
	"maps"

	"hekla.sh/hekla/pkg/cluster/workload"
)

// searches are those for flavors that have some left to try.
type searches struct{ by map[*workload.Workload]search }

type search struct {
	tried *workload.Nomination // what was short at the flavors before
	// One of them would have done, but others took its room: booked is how many nominations were booked before that
	// round.
	wasSkipped bool
	booked     int
}

// begin keeps what was short at the flavors that a search has tried.
func (s *searches) begin(n *workload.Nomination, so search) {
	if s.by == nil {
		s.by = map[*workload.Workload]search{}
	}
	so.tried = n
	s.by[n.Workload] = so
}

// end ends a search, and adds what was short at the flavors before to what is at the last ones.
func (s *searches) end(n *workload.Nomination) (so search) {
	so = s.by[n.Workload]
	if so.tried != nil {
		n.Assignment.Join(so.tried.Assignment)
		n.Held = n.Held || so.tried.Held
		s.forget(n.Workload)
	}
	return so
}

// forget ends a search of a Workload that has been admitted.
func (s *searches) forget(w *workload.Workload) { delete(s.by, w) }

// settle ends the searches of Workloads that are not tried again.
func (s *searches) settle() {
	maps.DeleteFunc(s.by, func(w *workload.Workload, _ search) bool { return !w.IsWaiting() || w.IsRefused() })
}
