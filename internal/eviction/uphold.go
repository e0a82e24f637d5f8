package eviction

import (
	"fmt"
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// recheck is how often the votes on victims that are not on their way yet are asked again, beside every change of the
// configuration.
const recheck = time.Second

// Uphold looks after the plans that are under way: those that cannot come true any more are cancelled, those whose room is there are
// fulfilled, the others are told how far they have come. changed says that the configuration is another than before.
func Uphold(s *framework.Session, changed bool) {
	// With a plan that ends and whose victims stay after all, others may lose what they have counted on.
	for again := true; again; {
		again = upholdAll(s, changed)
		changed = again
	}
	resume(s)
}

// upholdAll looks at each plan once, and reports whether it is to be asked again, since victims of any stay after all. Plans that came
// into force later were made beside those before them, not the other way round: so the latest is asked first whether it can stand
// beside the others, and the earliest is fulfilled first. Otherwise two that cannot both come true would cancel each other.
func upholdAll(s *framework.Session, changed bool) (isSpared bool) {
	plans := s.Cluster.PlansInOrder()
	each := func(look func(p *cluster.Plan)) {
		for _, p := range plans {
			if p.IsInForce() {
				s.LookAt(p.Job, func() { look(p) })
				isSpared = isSpared || len(p.Spared) > 0
			}
		}
	}
	each(func(p *cluster.Plan) {
		if p.Job == nil {
			upholdNobodys(s, p)
		} else if why := broken(s, p); why != "" {
			cancel(s, p, why)
		}
	})
	plans = slices.DeleteFunc(plans, func(p *cluster.Plan) bool { return p.Job == nil })
	slices.Reverse(plans)
	each(func(p *cluster.Plan) {
		if why := refuted(s, p, changed); why != "" {
			cancel(s, p, why)
		}
	})
	if p := lastInCircle(s); p != nil {
		s.LookAt(p.Job, func() { cancel(s, p, "its pods and those of other plans would wait for each other") })
		return true
	}
	slices.Reverse(plans)
	each(func(p *cluster.Plan) {
		if !fulfil(s, p) {
			judge(s, p)
		}
	})
	return isSpared
}

// upholdNobodys looks after evictions that nobody takes the room of.
func upholdNobodys(s *framework.Session, p *cluster.Plan) {
	if s.Policy.EvictingAction(p.Action) == nil && len(p.Unsent()) > 0 {
		s.Cluster.Cancel(p, notConfigured(p))
	} else if !s.Now.Before(p.Deadline) {
		s.Cluster.Cancel(p, "the pods did not leave in time")
	}
}

// refuted says why a plan cannot come true beside those that came into force before it, "" if it may.
func refuted(s *framework.Session, p *cluster.Plan, changed bool) string {
	if unsent := p.Unsent(); len(unsent) > 0 && (changed || s.Now.Sub(p.Checked) >= recheck) {
		p.Checked = s.Now
		action, why := ruler(s, p)
		if why == "" {
			why = unlawful(s, p, action, unsent)
		}
		if why != "" {
			return why
		}
	}
	if why := forbidden(s, p); why != "" {
		return why
	}
	order, isLost := outlookOf(s, p)
	if isLost {
		return "the room that was promised is not there any more"
	}
	if order != nil {
		p.Sequence = order // the one in which the plan was made may not do any more
	}
	return ""
}

// ruler returns the action by whose rules the victims of a plan leave. why says that there is none any more.
func ruler(s *framework.Session, p *cluster.Plan) (action framework.EvictingAction, why string) {
	action = s.Policy.EvictingAction(p.Action)
	switch {
	case action == nil:
		return nil, notConfigured(p)
	case !action.EvictionRules().Scopes.Has(p.Scope):
		return nil, fmt.Sprintf("action %s makes no plans of its scope %q", p.Action, p.Scope)
	}
	return action, ""
}

func notConfigured(p *cluster.Plan) string {
	return "action " + p.Action + " is not in the configuration any more"
}

// cancel ends a plan. Its job is looked at anew in the same cycle: what has become free for it is not to go to others before it has
// been asked.
func cancel(s *framework.Session, p *cluster.Plan, why string) {
	j := p.Job
	s.Cluster.Cancel(p, why)
	s.Cluster.SetVerdict(j, nil)
	s.Rejoin(j)
}

// broken says why a plan cannot come true any more, "" if it may.
func broken(s *framework.Session, p *cluster.Plan) string {
	j, promised := p.Job, p.Promised()
	switch {
	case j.Queue == nil:
		return "queue " + j.QueueName + " is gone"
	case p.Lost != "":
		return "node " + p.Lost + " is gone"
	case len(promised) == 0, j.LacksPromises() > 0:
		return "pods that room was made for are gone"
	case !s.Now.Before(p.Deadline):
		return "the room did not become free in time"
	}
	if v := s.Validate(j); v != nil {
		return v.Sentence()
	}
	for _, t := range p.Victims {
		if t.Status == cluster.Lingering {
			return fmt.Sprintf("pod %s did not end within its grace period", t.Key())
		}
	}
	for _, t := range promised {
		if !s.Outlook.CanOpen(t, t.Node) {
			return fmt.Sprintf("node %s does not take pod %s any more", t.Node.Name, t.Key())
		}
	}
	return ""
}

// forbidden says why the queue of a plan's job may not have by now what was promised, "" if it may: a queue that has shrunk is
// not filled beyond its capability (law Q4).
func forbidden(s *framework.Session, p *cluster.Plan) string {
	for _, t := range cluster.OnePerClass(p.Promised()) {
		x := s.Begin()
		x.Unpipeline(t)
		v := mayHave(s, t)
		x.Undo()
		if v != nil {
			return v.Sentence()
		}
	}
	return ""
}

// unlawful says which law a victim that is not on its way yet is protected by now, "" if all may still leave.
func unlawful(s *framework.Session, p *cluster.Plan, action framework.EvictingAction, unsent []*cluster.Task) string {
	f := NewSearch(s, action)
	promised := p.Promised()
	x := s.Begin()
	defer x.Undo()
	// When the first was asked nothing of the taker was placed. What was in between for the others is not known any more, so
	// the question is put as it was for the first: it is about what has changed outside.
	lost := withdraw(x, promised)
	suspend(s, x, p)
	for _, t := range unsent {
		x.Spare(t)
	}
	a := f.attempt(p.Scope, p.Job)
	a.need(a.spokesman(promised))
	for _, t := range promised {
		a.all.Add(t.Request())
	}
	var broken []*cluster.Task
	for _, t := range unsent {
		why := a.forbids(t)
		if why == "" && t.Job.KeepsMinimum(t, cluster.Leaving{}) {
			u := unit{job: t.Job, tasks: []*cluster.Task{t}}
			why = a.objects(&u)
		} else if why == "" && !slices.ContainsFunc(broken, func(b *cluster.Task) bool { return b.Job == t.Job }) {
			if a.scope == cluster.WithinJob {
				return "pod " + t.Key().String() + " may not leave: " + atItsMinimum
			}
			u, ok := a.wholeGang(t.Job)
			if why = atItsMinimum; ok {
				why = a.objects(&u)
			}
			broken = append(broken, t)
		}
		if why != "" {
			return fmt.Sprintf("pod %s may not leave any more: %s", t.Key(), why)
		}
		x.Evict(t)
		a.taken = append(a.taken, unit{job: t.Job, tasks: []*cluster.Task{t}})
	}
	for _, t := range broken {
		// What was to leave with it for another plan stays, or a pod of it has come since.
		of := func(other *cluster.Task) bool { return other.Job != t.Job }
		if t.Job.Ready() > 0 && (t.Job.Lacks() > 0 || !t.Job.KeptSubgroups(slices.DeleteFunc(slices.Clone(unsent), of))) {
			return fmt.Sprintf("pod %s may not leave any more: %s", t.Key(), atItsMinimum)
		}
	}
	for _, m := range lost {
		x.Pipeline(m.task, m.node)
	}
	a.placed, a.all = promised, nil
	if !a.staysWithinShare(x) {
		return "the plan takes more than the job's queue may any more: " + quota.HasItsShare
	}
	return ""
}

// spokesman returns the one of the tasks that others leave for: within a job the highest; else one that requests something.
func (a *attempt) spokesman(tasks []*cluster.Task) *cluster.Task {
	best := tasks[0]
	for _, t := range tasks[1:] {
		if a.scope == cluster.WithinJob && t.Priority > best.Priority || a.scope != cluster.WithinJob && best.BestEffort() && !t.BestEffort() {
			best = t
		}
	}
	return best
}

// fulfil binds what was promised, as far as the room is there: all at once for a job that has not started, pod by pod for
// one that has, its subgroups whole. It reports whether nothing more is promised.
func fulfil(s *framework.Session, p *cluster.Plan) bool {
	j, promised := p.Job, p.InSequence()
	if j.Lacks() > 0 && slices.ContainsFunc(p.Victims, func(t *cluster.Task) bool { return t.Status.Holds() }) {
		return false
	}
	x := s.Begin()
	// Evictions that are not sent are not counted on: what others were promised may rest on the same room.
	spareUnsent(x, p)
	placed := placePromised(s, x, p, promised)
	isLawful := len(placed) > 0 && s.IsReady(j) && KeepsPromises(s, placed, p)
	where := nodesOf(placed)
	x.Undo()
	if !isLawful {
		return false
	}
	withdraw(x, placed)
	for i, t := range placed {
		x.Place(t, where[i])
	}
	x.Commit()
	if len(placed) < len(promised) {
		return false
	}
	s.Cluster.Fulfil(p)
	s.AddVerdict(j, nil)
	s.Rejoin(j)
	return true
}

// spareUnsent has those stay who are to leave for a plan and were not told yet.
func spareUnsent(x framework.Transaction, p *cluster.Plan) {
	for _, t := range p.Unsent() {
		x.Spare(t)
	}
}

func nodesOf(tasks []*cluster.Task) []*cluster.Node {
	nodes := make([]*cluster.Node, len(tasks))
	for i, t := range tasks {
		nodes[i] = t.Node
	}
	return nodes
}

// Elsewhere reports whether all tasks that a plan promises nodes can be placed now, by a function that places them all or fails, and
// has them placed there. What they were promised is free for it, and who was to leave for them and was not told stays. Nothing is
// done if it fails, or if others would lose what they were promised.
func Elsewhere(s *framework.Session, x framework.Transaction, p *cluster.Plan, placeAll func(x framework.Transaction, tasks []*cluster.Task) bool) bool {
	y := s.Begin()
	promised := slices.SortedFunc(slices.Values(p.Promised()), s.CompareTasks) // the plan is not in force for what is asked here
	withdraw(x, promised)
	spareUnsent(x, p)
	isLawful := placeAll(x, promised) && KeepsPromises(s, promised, p)
	where := nodesOf(promised)
	order := slices.Clone(x.Tasks())
	y.Undo()
	if !isLawful {
		return false
	}
	withdraw(x, promised)
	for _, t := range order {
		x.Place(t, where[slices.Index(promised, t)])
	}
	return true
}

// placePromised places those of the promised tasks that may be placed now, and returns them: their room is free, their queue may
// have them, none of a subgroup starts without the others that it needs, and what stays promised can still come true beside them.
func placePromised(s *framework.Session, x framework.Transaction, p *cluster.Plan, promised []*cluster.Task) []*cluster.Task {
	waits := map[*cluster.Subgroup]bool{}
	for {
		y := s.Begin()
		placed := placeInSequence(s, x, p, promised, waits)
		isWhole := true
		for _, t := range placed {
			if g := t.Subgroup; g != nil && g.Lacks() > 0 {
				waits[g], isWhole = true, false
			}
		}
		if isWhole {
			return placed
		}
		y.Undo()
	}
}

// placeInSequence places those of some promised tasks, in their order, that may be placed now, those of some subgroups left out.
func placeInSequence(
	s *framework.Session, x framework.Transaction, p *cluster.Plan, promised []*cluster.Task, waits map[*cluster.Subgroup]bool,
) []*cluster.Task {
	if !dependsOnOthers(s.Cluster, promised) {
		var placed []*cluster.Task
		for _, t := range promised {
			if y, n := s.Begin(), t.Node; !waits[t.Subgroup] && isFree(n, t.Request()) {
				x.Unpipeline(t)
				if place(s, x, t, n) {
					placed = append(placed, t)
				} else {
					y.Undo()
				}
			}
		}
		return placed
	}
	// First all that fit, then, if what is left could not come beside them any more, the first of the order only. What plans promise that
	// came into force later gives way, but a pod may need it too: to be near one of theirs, instead of one that leaves for them.
	for _, way := range []struct{ besideLater, onlyFirst bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		y := s.Begin()
		promises := withdraw(x, promised)
		var suspended []promise
		if !way.besideLater {
			suspended = suspendPromises(s, x, p)
		}
		var placed []*cluster.Task
		var left []promise
		for _, m := range promises {
			if !waits[m.task.Subgroup] && !(way.onlyFirst && len(left) > 0) && isFree(m.node, m.task.Request()) && place(s, x, m.task, m.node) {
				placed = append(placed, m.task)
			} else {
				// What comes after it in the order may count on it.
				x.Pipeline(m.task, m.node)
				left = append(left, m)
			}
		}
		for _, m := range left {
			x.Unpipeline(m.task)
		}
		if _, ok := inSequence(s, x, left); ok && len(placed) > 0 {
			for _, m := range suspended {
				x.Pipeline(m.task, m.node)
			}
			return placed
		}
		y.Undo()
		if way.onlyFirst && len(suspended) == 0 {
			break // there is no later plan
		}
	}
	return nil
}

// suspendPromises takes the promises back of plans that came into force after one, and returns them.
func suspendPromises(s *framework.Session, x framework.Transaction, p *cluster.Plan) []promise {
	var all []promise
	for _, later := range laterThan(s, p) {
		all = append(all, withdraw(x, later.InSequence())...)
	}
	return all
}

// place places a task on the node that it was promised, if it may be there now and its queue may have it.
func place(s *framework.Session, x framework.Transaction, t *cluster.Task, n *cluster.Node) bool {
	if mayHave(s, t) != nil || s.MayBind(t) != nil || !s.Placer.Fits(t, n) {
		return false
	}
	x.Place(t, n)
	return true
}

// isFree reports whether a node has an amount idle, whoever it is promised to.
func isFree(n *cluster.Node, amounts resources.Vector) bool {
	for i, amount := range amounts {
		if d := resources.Dim(i); amount > 0 && n.Allocatable.At(d)-n.Used.At(d) < amount {
			return false
		}
	}
	return true
}
