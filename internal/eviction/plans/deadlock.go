package plans

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// Pods of two plans may attract each other, and the pod that attracted one of them before may leave for the other. Then all fit
// once all are there, and none can be the first: the evictions would be in vain (rule S1). So there must be an order in which the
// plans can come true, one after the other. A gang starts whole.

// deadlocked returns which of some sequences of promised pods fit in no order of the sequences, each after those that fit before it.
func deadlocked(s *framework.Session, sequences [][]*cluster.Task) (left []int) {
	x := s.Begin()
	defer x.Undo()
	promises := make([][]Promise, len(sequences))
	for i, pods := range sequences {
		promises[i] = Withdraw(x, pods)
		left = append(left, i)
	}
	for before := len(left) + 1; len(left) > 0 && len(left) < before; {
		before = len(left)
		left = slices.DeleteFunc(left, func(i int) bool {
			_, ok := inOrder(s, x, promises[i])
			return ok
		})
	}
	return left
}

// wouldDeadlock reports whether pods that are promised nodes in an open transaction would wait for what plans in force promise, and
// these for them.
func wouldDeadlock(s *framework.Session, made []*cluster.Task, plans []*cluster.Plan) bool {
	if !slices.ContainsFunc(made, func(t *cluster.Task) bool { return t.Class.HasTerms }) {
		return false // they wait for no pod
	}
	return len(deadlocked(s, append(sequencesOf(plans), made))) > 0
}

func sequencesOf(plans []*cluster.Plan) [][]*cluster.Task {
	sequences := make([][]*cluster.Task, len(plans))
	for i, p := range plans {
		sequences[i] = p.InSequence()
	}
	return sequences
}

// lastDeadlocked returns the latest of the plans in force that wait for each other, nil if none do. Plans that could come true if the
// later ones gave way do not count.
func lastDeadlocked(s *framework.Session) *cluster.Plan {
	plans := s.Cluster.Plans().WithTerms()
	if len(plans) < 2 {
		return nil
	}
	left := deadlocked(s, sequencesOf(plans))
	if !slices.ContainsFunc(left, func(i int) bool { return !fitsWithoutLater(s, plans[i]) }) {
		return nil
	}
	return plans[left[len(left)-1]]
}

// fitsWithoutLater reports whether what a plan promises fits beside the plans before it.
func fitsWithoutLater(s *framework.Session, p *cluster.Plan) bool {
	x := s.Begin()
	defer x.Undo()
	suspendLater(s, x, p)
	_, ok := inOrder(s, x, Withdraw(x, p.InSequence()))
	return ok
}
