package eviction

import (
	"slices"

	"hekla.sh/hekla/internal/placement"
	"hekla.sh/hekla/pkg/cluster"
)

// plan looks for room in the HyperNodes in turn of which the taker must stay within one, as many as the rules let it, or in the
// whole cluster, and puts the first plan in force that makes it.
func (f *Search) plan(a *attempt, lower []*cluster.Plan, tasks []*cluster.Task) bool {
	areas, _ := placement.RoomIn(f.session, a.taker)
	if most := f.rules.MaxDomains; most > 0 && len(areas) > most {
		areas = areas[:most]
	}
	for _, domain := range areas {
		found := false
		f.session.Within(domain, func() { found = f.planHere(a, lower, tasks) })
		if found {
			return true
		}
	}
	return false
}

// around returns the pods on the nodes that come into question.
func (a *attempt) around() []*cluster.Task {
	s := a.search.session
	domain := s.Domain()
	if domain == nil {
		return s.Cluster.TasksOnNodes()
	}
	var all []*cluster.Task
	for _, n := range s.Cluster.NodesIn(domain) {
		all = append(all, n.Tasks()...)
	}
	return all
}

// bySubgroup puts tasks of one subgroup beside each other, so that as few subgroups as possible are begun.
func bySubgroup(j *cluster.Job, tasks []*cluster.Task) []*cluster.Task {
	groups := j.Subgroups()
	if len(groups) == 0 {
		return tasks
	}
	slices.SortStableFunc(tasks, func(t, u *cluster.Task) int {
		return slices.Index(groups, t.Subgroup) - slices.Index(groups, u.Subgroup)
	})
	return tasks
}

// goesAnywhere reports whether where a job may be placed depends on nothing but the kinds of its pods.
func goesAnywhere(j *cluster.Job) bool { return !j.Proximity.IsHard() && len(j.Subgroups()) == 0 }
