package victims

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// GiveBack takes back evictions that are not needed: first of units that violate a disruption budget, then of the most
// important units, each if the preemptor still fits. It returns the units that must be evicted, in the given order.
func (s *Selector) GiveBack(x framework.Transaction, gone []Unit, local *cluster.Node, stillFits func(u *Unit) bool) []Unit {
	order := lastFirst(gone)
	if violations := s.violations(order); violations != nil {
		spent := map[*cluster.Job]bool{}
		for u := range violations {
			spent[u.Job] = true
		}
		// A surplus pod is of use only with the rest of its gang, so that comes back before it.
		comesFirst := func(u *Unit) int { return int(u.top.class)*2 + btoi(violations[u] > 0 || u.Whole && spent[u.Job]) }
		slices.SortStableFunc(order, func(u, v *Unit) int { return comesFirst(v) - comesFirst(u) })
	}
	back := map[*Unit]bool{}
	for _, u := range order {
		if !u.Whole && leavesWhole(gone, back, u.Job) {
			continue // the surplus of a gang that is evicted is of no use
		}
		u.stay(x)
		if stillFits(u) {
			back[u] = true
		} else {
			u.leave(x, local)
		}
	}
	kept := gone
	if len(back) > 0 {
		kept = nil
		for i := range gone {
			if !back[&gone[i]] {
				kept = append(kept, gone[i])
			}
		}
	}
	singles := map[*cluster.Job][]*cluster.Task{}
	for i := range kept {
		if u := &kept[i]; !u.Whole {
			singles[u.Job] = append(singles[u.Job], u.Tasks...)
		}
	}
	for i := range kept {
		u := &kept[i]
		if !u.Whole || len(singles[u.Job]) == 0 && (local != nil || !u.hasSurplus()) {
			continue // a gang that stays incomplete is of no use
		}
		if needed, ok := s.shrink(x, u, singles[u.Job], stillFits); ok {
			shrunk := slices.DeleteFunc(slices.Clone(kept), func(v Unit) bool { return v.Job == u.Job })
			return s.GiveBack(x, append(shrunk, needed...), local, stillFits)
		}
	}
	return kept
}

// shrink tries to evict some pods of a gang instead of all. The surplus was chosen by importance, before it was known
// on which nodes room is needed. singles are surplus pods of the gang that are evicted one by one. If the gang can stay
// without the pods that are needed, ok is true, and needed are the units of these pods. Otherwise nothing has changed.
func (s *Selector) shrink(
	x framework.Transaction, whole *Unit, singles []*cluster.Task, stillFits func(u *Unit) bool,
) (needed []Unit, ok bool) {
	j := whole.Job
	leaving := slices.Concat(whole.gone, singles)
	byImportance := func(t, v *cluster.Task) int {
		i, k := s.importanceOf(t), s.importanceOf(v)
		return k.compare(&i)
	}
	smallestFirst := func(t, v *cluster.Task) int {
		// More small pods can stay, and the minimum counts pods.
		total := s.rules.Session.Cluster.Total
		share, _ := resources.DominantShare(t.Request(), total)
		other, _ := resources.DominantShare(v.Request(), total)
		return cmp.Or(share.Compare(other), byImportance(t, v))
	}
	for _, order := range []func(t, v *cluster.Task) int{byImportance, smallestFirst} {
		slices.SortFunc(leaving, func(t, v *cluster.Task) int {
			// Pods of roles with a minimum stay first. Without them the others are of no use.
			return cmp.Or(btoi(hasMinimum(v))-btoi(hasMinimum(t)), order(t, v))
		})
		y := s.rules.Session.Begin()
		needed = s.mustLeave(x, leaving, stillFits)
		isElsewhere := slices.ContainsFunc(needed, func(u Unit) bool { return s.rules.StandsElsewhere(u.Tasks[0]) })
		if j.Lacks() == 0 && len(needed) > 0 && !isElsewhere && j.KeptSubgroups(TasksOf(needed)) && s.mayLeaveAlone(x, needed) {
			slices.Reverse(needed)
			return needed, true
		}
		y.Undo()
	}
	return nil, false
}

// mustLeave takes back evictions one by one, each if the preemptor still fits, and returns the others.
func (s *Selector) mustLeave(x framework.Transaction, leaving []*cluster.Task, stillFits func(u *Unit) bool) (needed []Unit) {
	for _, t := range leaving {
		u := Unit{Job: t.Job, Tasks: []*cluster.Task{t}, top: s.importanceOf(t)}
		x.Spare(t)
		if !stillFits(&u) {
			u.leave(x, nil)
			needed = append(needed, u)
		}
	}
	return needed
}

// mayLeaveAlone reports whether each unit may be evicted in addition to the others.
func (s *Selector) mayLeaveAlone(x framework.Transaction, units []Unit) bool {
	for i := range units {
		u := &units[i]
		u.stay(x)
		why := s.WhyProtected(u)
		u.leave(x, nil)
		if why.Exists() {
			return false
		}
	}
	return true
}

// hasSurplus reports whether a gang that is evicted as a whole could do without one of its pods: it has a role with
// more pods than the role's minimum.
func (u *Unit) hasSurplus() bool {
	j := u.Job
	if j.Ready()+len(u.Tasks) <= j.MinMember {
		return false
	}
	return slices.ContainsFunc(u.Tasks, func(t *cluster.Task) bool {
		leaving := 0
		for _, other := range u.Tasks {
			leaving += btoi(other.Role == t.Role)
		}
		return !j.ChecksRoles() || !slices.ContainsFunc(j.RoleMinimums, func(r cluster.RoleMinimum) bool {
			return r.Role == t.Role && j.RoleReady(r.Role)+leaving <= r.Minimum
		})
	})
}

// hasMinimum reports whether a pod is of a role with a minimum.
func hasMinimum(t *cluster.Task) bool {
	return t.Job.ChecksRoles() && slices.ContainsFunc(t.Job.RoleMinimums, func(r cluster.RoleMinimum) bool { return r.Role == t.Role })
}

// lastFirst returns units in the opposite order. The last to be evicted is the most important, because units are
// evicted in the order of queues and importance.
func lastFirst(units []Unit) []*Unit {
	order := make([]*Unit, len(units))
	for i := range units {
		order[i] = &units[len(units)-1-i]
	}
	return order
}

// leavesWhole reports whether the rest of a job is evicted as a whole.
func leavesWhole(gone []Unit, back map[*Unit]bool, j *cluster.Job) bool {
	for i := range gone {
		if gone[i].Whole && gone[i].Job == j && !back[&gone[i]] {
			return true
		}
	}
	return false
}

// violations returns, by unit, how many of its pods violate a disruption budget, if the units before it use up what the
// budgets allow. The most important units come first. It is nil if no budget covers any unit.
func (s *Selector) violations(order []*Unit) map[*Unit]int {
	if !s.rules.Budgets {
		return nil
	}
	c := s.rules.Session.Cluster
	var left map[*cluster.Budget]int
	for _, u := range order {
		if u.unbudgeted {
			continue // this check is repeated for every node, and a gang may be large
		}
		for _, t := range u.Tasks {
			for _, b := range c.Budgets(t) {
				if left == nil {
					left = map[*cluster.Budget]int{}
				}
				if _, known := left[b]; !known {
					left[b] = b.Left()
				}
				// the model counts it as disrupted already
				if t.Status == cluster.Evicting {
					left[b]++
				}
			}
		}
	}
	if left == nil {
		return nil
	}
	violations := map[*Unit]int{}
	for _, u := range order {
		if u.unbudgeted {
			continue
		}
		for _, t := range u.Tasks {
			isViolating := false
			for _, b := range c.Budgets(t) {
				left[b]--
				isViolating = isViolating || left[b] < 0
			}
			if isViolating {
				violations[u]++
			}
		}
	}
	return violations
}
