package allocate

import (
	"hekla.sh/hekla/internal/eviction/plans"
	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// takePlaces gives waiting pods of a job the places of the stand-ins for them. The nodes are held for them, so neither
// the order of jobs nor a lack of room elsewhere matters. It reports whether it placed any.
func takePlaces(s *framework.Session, j *cluster.Job) (isAny bool) {
	if j.Count(cluster.Awaited) == 0 {
		return false
	}
	for _, t := range s.Pending(j) {
		if t.IsStandIn {
			continue
		}
		x := s.Begin()
		if takePlace(s, x, t) && plans.KeepPromises(s, x.Tasks(), j.Plan) {
			x.Commit()
			isAny = true
		} else {
			x.Undo()
		}
	}
	return isAny
}

// takePlace puts a pod in the place of a stand-in. If it fits in none, it is placed where it fits, and one stand-in
// goes.
func takePlace(s *framework.Session, x framework.Transaction, t *cluster.Task) bool {
	var last *cluster.Task
	for _, standIn := range t.Job.StandIns(cluster.Awaited) {
		if standIn.Role != t.Role {
			continue
		}
		n, y := standIn.Node, s.Begin()
		x.DropStandIn(standIn)
		if s.MayAllocate(t) == nil && s.MayBind(t) == nil && s.Placer.Fits(t, n) && s.Placer.Veto(t, n) == "" {
			x.Place(t, n)
			return true
		}
		y.Undo()
		last = standIn
	}
	if last == nil {
		return false
	}
	x.DropStandIn(last)
	return gang.PlaceOne(s, x, t) == nil
}
