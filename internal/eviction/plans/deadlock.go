package plans

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// Tasks of two plans may attract each other, and a plan may evict the pod that attracted a task of the other. Then all
// tasks would fit together, but none can be placed first, and the evictions would be in vain (rule S1). So there must
// be an order in which the plans can be fulfilled one after the other. A gang is placed as a whole.

// deadlocked returns the indexes of those sequences of promised tasks that fit in no order of the sequences.
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

// wouldDeadlock reports whether tasks that are pipelined in an open transaction, and those of plans in force, would
// wait for each other.
func wouldDeadlock(s *framework.Session, made []*cluster.Task, plans []*cluster.Plan) bool {
	if !slices.ContainsFunc(made, func(t *cluster.Task) bool { return t.Class.HasTerms }) {
		return false // none of them depends on other pods
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

// lastDeadlocked returns the latest of the plans in force that wait for each other, nil if none do. Plans that could be
// fulfilled without later plans do not count.
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

// fitsWithoutLater reports whether the tasks of a plan fit if only the earlier plans are carried out.
func fitsWithoutLater(s *framework.Session, p *cluster.Plan) bool {
	x := s.Begin()
	defer x.Undo()
	suspendLater(s, x, p)
	_, ok := inOrder(s, x, Withdraw(x, p.InSequence()))
	return ok
}
