package gang

import (
	"fmt"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// placeClose places a gang, and each subgroup of it, in HyperNodes. It tries them in turn, each in its own transaction,
// and takes the first that can hold the gang.
func placeClose(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) *verdict.Verdict {
	least := cluster.LeastRequest(tasks, j.Lacks())
	c, v := choicesOf(s, j, least, false)
	if v != nil {
		return v
	}
	return c.try(s, least, func() *verdict.Verdict {
		if len(j.Subgroups()) > 0 {
			return bySubgroup(s, j, tasks)
		}
		return placeHere(s, j, tasks)
	})
}

// try calls place in one domain after the other until it succeeds. If it never does, the verdict is about the domain in
// which most tasks were placed.
func (c *choices) try(s *framework.Session, least resources.Vector, place func() *verdict.Verdict) *verdict.Verdict {
	domains := c.domains
	switch {
	case len(domains) == 0 && c.full == nil:
		return none("no HyperNode comes into question")
	case len(domains) == 0:
		domains = []*cluster.Domain{c.full.Domain} // only for the verdict
	}
	var best *verdict.Verdict
	var where *cluster.HyperNode
	var help verdict.Help
	for _, domain := range domains {
		var v *verdict.Verdict
		s.Within(domain, func() { v = place() })
		if v == nil {
			return nil
		}
		help |= v.Help
		// Tasks that need not be in one HyperNode are judged by the last choice, which is the widest.
		if best == nil || !c.isBound || v.Placed > best.Placed {
			best, where = v, domain.HyperNode()
		}
	}
	if best.Help != help {
		// What helps in another domain is enough, too.
		all := *best
		all.Help, best = help, &all
	}
	if !c.isBound {
		return best
	}
	return c.explain(s, best, where, least)
}

// explain adds to the verdict on the best HyperNode which HyperNodes there are to choose from.
func (c *choices) explain(s *framework.Session, v *verdict.Verdict, where *cluster.HyperNode, least resources.Vector) *verdict.Verdict {
	bound := *v
	bound.Help |= verdict.HelpNode
	detail := fmt.Sprintf("all must be within one HyperNode of tier %d or lower, and the best is %s of tier %d", c.tier, where.Name, where.Tier)
	for i, need := range least {
		d := resources.Dim(i)
		if have := free(where, d); need > have && d != resources.Pods {
			shortage := verdict.Shortage{Resource: s.Cluster.Resources.Name(d), Need: need, Have: max(have, 0)}
			detail += "; " + shortage.String()
		}
	}
	if bound.Detail != "" {
		detail = bound.Detail + "; " + detail
	}
	bound.Detail = detail
	return &bound
}

// bySubgroup places as many whole subgroups, and as many other tasks, as a job needs to start. If that fails, it
// changes nothing.
func bySubgroup(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) *verdict.Verdict {
	x := s.Begin()
	var why *verdict.Verdict
	var failed []*cluster.Subgroup
	for _, g := range inOrder(j) {
		if s.IsReady(j) {
			return nil
		}
		members := membersOf(g, tasks)
		if g.IsWhole() || len(members) < g.Lacks() || !wanted(j, g, members[0]) || slices.ContainsFunc(failed, func(h *cluster.Subgroup) bool {
			return isLike(h, g, tasks)
		}) {
			continue
		}
		if v := complete(s, j, g, members); v != nil {
			failed, why = append(failed, g), why.With(v)
		}
	}
	if s.IsReady(j) {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(tasks), func(t *cluster.Task) bool {
		return t.Status != cluster.Pending || t.Subgroup != nil && !t.Subgroup.IsWhole()
	})
	v := placeHere(s, j, rest)
	if v == nil {
		return nil
	}
	if why != nil && v.Code != verdict.NotEnoughTasks {
		why = v.With(why)
	} else if why == nil {
		why = v
	}
	refusal := *why
	refusal.Placed, refusal.Wanted = j.Ready(), j.Ready()+max(j.Lacks(), 1)
	if refusal.Code == verdict.NotEnoughResources {
		refusal.Fitting = append(namesOf(x.Tasks()), v.Fitting...)
	}
	x.Undo()
	return &refusal
}

// inOrder returns the subgroups of a job, those that have started first.
func inOrder(j *cluster.Job) []*cluster.Subgroup {
	order := slices.Clone(j.Subgroups())
	slices.SortStableFunc(order, func(a, b *cluster.Subgroup) int { return btoi(b.Ready() > 0) - btoi(a.Ready() > 0) })
	return order
}

// membersOf returns the pending tasks of a subgroup among some tasks.
func membersOf(g *cluster.Subgroup, tasks []*cluster.Task) []*cluster.Task {
	var members []*cluster.Task
	for _, t := range tasks {
		if t.Subgroup == g && t.Status == cluster.Pending {
			members = append(members, t)
		}
	}
	return members
}

// wanted reports whether completing a subgroup brings its job closer to its start.
func wanted(j *cluster.Job, g *cluster.Subgroup, t *cluster.Task) bool {
	return g.IsNeeded() || j.LacksOf(t.Role) > 0 || j.MinMember > j.Ready() && useful(j, t)
}

// isLike reports whether a subgroup cannot fit because another did not: neither has a task placed, and their tasks are
// alike.
func isLike(failed, g *cluster.Subgroup, tasks []*cluster.Task) bool {
	if !g.IsLike(failed) || failed.Ready() > 0 || g.Ready() > 0 {
		return false
	}
	of := membersOf(failed, tasks)
	return len(of) > 0 && len(cluster.OnePerClass(append(of, membersOf(g, tasks)...))) == 1
}

// complete places the tasks that a subgroup lacks, close to each other and to those it has, or none.
func complete(s *framework.Session, j *cluster.Job, g *cluster.Subgroup, members []*cluster.Task) *verdict.Verdict {
	least := cluster.LeastRequest(members, g.Lacks())
	w := wish{proximity: g.Proximity, least: least}
	if w.proximity != nil {
		w.held = j.Nodes(g)
	}
	c, v := choose(s, w)
	if v != nil {
		v.Subject = "subgroup " + g.Name()
		return v
	}
	return c.try(s, least, func() *verdict.Verdict { return fill(s, g, members) })
}

// fill places the tasks that a subgroup lacks, or none. It tries them in several orders, as [Place] does.
func fill(s *framework.Session, g *cluster.Subgroup, members []*cluster.Task) *verdict.Verdict {
	return inSomeOrder(s, members, g.Lacks(), func(order []*cluster.Task) (*verdict.Verdict, []*cluster.Task) { return fillInOrder(s, g, order) })
}

func fillInOrder(s *framework.Session, g *cluster.Subgroup, members []*cluster.Task) (*verdict.Verdict, []*cluster.Task) {
	x := s.Begin()
	var why *verdict.Verdict
	var failed []*cluster.Task
	for _, t := range members {
		if g.IsWhole() {
			return nil, nil
		}
		if t.Status != cluster.Pending || HasFailedAlike(s, failed, t) {
			continue
		}
		if v := place(s, x, t); v != nil {
			failed, why = append(failed, t), why.With(v)
		}
	}
	if g.IsWhole() {
		return nil, nil
	}
	refusal := verdict.Verdict{Code: verdict.NotEnoughTasks, Help: verdict.HelpJob}
	if why != nil {
		refusal = *why
	}
	refusal.Placed, refusal.Wanted, refusal.Subject = g.Ready(), g.Size, "subgroup "+g.Name()
	x.Undo()
	return &refusal, cluster.OnePerClass(failed)
}

// PlaceNext places a task of a job that has started, close to the others if the job has a topology. If its subgroup is
// incomplete, it places the tasks that the subgroup lacks, or none. It returns why not, nil if it did.
func PlaceNext(s *framework.Session, x framework.Transaction, t *cluster.Task, tasks []*cluster.Task) *verdict.Verdict {
	g := t.Subgroup
	if g == nil || g.IsWhole() {
		return PlaceOne(s, x, t)
	}
	members := membersOf(g, tasks)
	if len(members) < g.Lacks() {
		return &verdict.Verdict{Code: verdict.NotEnoughTasks, Subject: "subgroup " + g.Name(), Help: verdict.HelpJob,
			Placed: g.Ready() + len(members), Wanted: g.Size}
	}
	least := cluster.LeastRequest(members, g.Lacks())
	c, v := choicesOf(s, t.Job, least, false)
	if v != nil {
		return v
	}
	return c.try(s, least, func() *verdict.Verdict { return complete(s, t.Job, g, members) })
}

// PlaceOne places one task on the best node, close to the others of its job and subgroup if these have a topology, and
// if its queue may hold it. It returns why not, nil if it did.
func PlaceOne(s *framework.Session, x framework.Transaction, t *cluster.Task) *verdict.Verdict {
	j, g := t.Job, t.Subgroup
	if j.Proximity == nil && (g == nil || g.Proximity == nil) {
		return place(s, x, t)
	}
	c, v := choicesOf(s, j, t.Request(), true)
	if v != nil {
		return v
	}
	return c.try(s, t.Request(), func() *verdict.Verdict {
		if g == nil || g.Proximity == nil {
			return place(s, x, t)
		}
		inner, v := choose(s, wish{proximity: g.Proximity, held: j.Nodes(g), least: t.Request(), roomiest: true})
		if v != nil {
			return v
		}
		return inner.try(s, t.Request(), func() *verdict.Verdict { return place(s, x, t) })
	})
}
