package eviction

import (
	"fmt"
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// recheck is how often the votes on victims that are not on their way yet are asked again, beside every change of the
// configuration.
const recheck = time.Second

// Uphold looks after the plans that are under way: those whose room is there are fulfilled, those that cannot come true any
// more are cancelled, the others are told how far they have come. rulesOf returns the rules of an action, ok is false if it
// is not in the pipeline any more; changed says that the configuration is another than before.
func Uphold(s *framework.Session, rulesOf func(action string) (rules Rules, ok bool), changed bool) {
	// With a plan that ends and whose victims stay after all, others may lose room that they have counted on.
	for isSpared := true; isSpared; changed = false {
		isSpared = false
		for _, p := range s.Cluster.Plans() {
			if p.Job == nil {
				upholdNobodys(s, p, rulesOf)
			} else {
				s.LookAt(p.Job, func() { uphold(s, p, rulesOf, changed) })
			}
			isSpared = isSpared || len(p.Spared) > 0
		}
	}
}

// upholdNobodys looks after evictions that nobody takes the room of.
func upholdNobodys(s *framework.Session, p *cluster.Plan, rulesOf func(string) (Rules, bool)) {
	if _, ok := rulesOf(p.Action); !ok && len(p.Unsent()) > 0 {
		s.Cluster.Cancel(p, "action "+p.Action+" is not in the configuration any more")
	} else if !s.Now.Before(p.Deadline) {
		s.Cluster.Cancel(p, "the pods did not leave in time")
	}
}

func uphold(s *framework.Session, p *cluster.Plan, rulesOf func(string) (Rules, bool), changed bool) {
	if why := broken(s, p); why != "" {
		cancel(s, p, why)
		return
	}
	if unsent := p.Unsent(); len(unsent) > 0 && (changed || s.Now.Sub(p.Checked) >= recheck) {
		p.Checked = s.Now
		rules, ok := rulesOf(p.Action)
		if !ok {
			cancel(s, p, "action "+p.Action+" is not in the configuration any more")
			return
		}
		if why := unlawful(s, p, rules, unsent); why != "" {
			cancel(s, p, why)
			return
		}
	}
	if why := forbidden(s, p); why != "" {
		cancel(s, p, why)
		return
	}
	if fulfil(s, p) {
		return
	}
	if isLost(s, p) {
		cancel(s, p, "the room that was promised is not there any more")
		return
	}
	judge(s, p)
}

// cancel ends a plan; its job is looked at anew by the actions of the next cycle.
func cancel(s *framework.Session, p *cluster.Plan, why string) {
	j := p.Job
	s.Cluster.Cancel(p, why)
	s.Cluster.Judge(j, nil)
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
func unlawful(s *framework.Session, p *cluster.Plan, rules Rules, unsent []*cluster.Task) string {
	f := NewSearch(s, rules)
	promised := p.Promised()
	nodes := make([]*cluster.Node, len(promised))
	x := s.Begin()
	defer x.Undo()
	// When the first was asked nothing of the taker was placed. What was in between for the others is not known any more, so
	// the question is put as it was for the first: it is about what has changed outside.
	for i, t := range promised {
		nodes[i] = t.Node
		x.Unpipeline(t)
	}
	for _, later := range s.Cluster.Plans() {
		if later.Order <= p.Order {
			continue
		}
		for _, t := range later.Promised() {
			x.Unpipeline(t)
		}
	}
	for _, t := range unsent {
		x.Spare(t)
	}
	a := f.attempt(f.levelOf(p, unsent[0]), p.Job)
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
			if a.level == withinJob {
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
	for i, t := range promised {
		x.Pipeline(t, nodes[i])
	}
	a.placed, a.all = promised, nil
	if !a.staysWithinShare(x) {
		return "the plan takes more than the job's queue may any more: " + hasItsShare
	}
	return ""
}

// spokesman returns the one of the tasks that others leave for: within a job the highest; else one that requests something.
func (a *attempt) spokesman(tasks []*cluster.Task) *cluster.Task {
	best := tasks[0]
	for _, t := range tasks[1:] {
		if a.level == withinJob && t.Priority > best.Priority || a.level != withinJob && best.BestEffort() && !t.BestEffort() {
			best = t
		}
	}
	return best
}

// levelOf returns on whose authority a plan was made.
func (f *Search) levelOf(p *cluster.Plan, victim *cluster.Task) level {
	switch {
	case victim.Job == p.Job:
		return withinJob
	case p.Action == ReclaimAction:
		return betweenQueues
	case p.Job.IsLone():
		return anywhere
	}
	return betweenJobs
}

// The actions that make plans.
const (
	PreemptAction = "preempt"
	ReclaimAction = "reclaim"
)

// fulfil binds what was promised, as far as the room is there: all at once for a job that has not started, pod by pod for
// one that has. It reports whether nothing more is promised.
func fulfil(s *framework.Session, p *cluster.Plan) bool {
	j, promised := p.Job, p.Promised()
	if j.Lacks() > 0 && slices.ContainsFunc(p.Victims, func(t *cluster.Task) bool { return t.Status.Holds() }) {
		return false
	}
	possible := promised
	if unsent := p.Unsent(); len(unsent) > 0 {
		// These may stay in the end, and count for their queues until they are on their way.
		x := s.Begin()
		for _, t := range unsent {
			x.Spare(t)
		}
		possible = placeWhatFits(s, x, promised)
		x.Undo()
	}
	x := s.Begin()
	placed := len(placeWhatFits(s, x, possible))
	if placed == 0 || !s.IsReady(j) {
		x.Undo()
		return false
	}
	x.Commit()
	if placed < len(promised) {
		return false
	}
	s.Cluster.Fulfil(p)
	s.Judge(j, nil)
	return true
}

// placeWhatFits places those of some promised tasks whose room is free and whose queue may have them, and returns them.
func placeWhatFits(s *framework.Session, x framework.Transaction, promised []*cluster.Task) []*cluster.Task {
	var placed []*cluster.Task
	for _, t := range promised {
		n := t.Node
		if !isFree(n, t.Request()) {
			continue
		}
		y := s.Begin()
		x.Unpipeline(t)
		if mayHave(s, t) == nil && s.Placer.Fits(t, n) {
			x.Place(t, n)
			placed = append(placed, t)
		} else {
			y.Undo()
		}
	}
	return placed
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

// isLost reports whether the room of a promise can never become free: more is promised on its node than there will be, or
// nothing is leaving there and the pod does not fit.
func isLost(s *framework.Session, p *cluster.Plan) bool {
	for _, t := range p.Promised() {
		n := t.Node
		for i, amount := range t.Request() {
			if d := resources.Dim(i); amount > 0 && n.Future(d) < 0 {
				return true
			}
		}
		if !t.Class.HasPorts && !t.Class.NeedsSupplies() && !s.Cluster.DependsOnPods(t.Class) {
			continue
		}
		x := s.Begin()
		x.Unpipeline(t)
		fits := s.Outlook.Fits(t, n)
		x.Undo()
		if !fits {
			return true
		}
	}
	return false
}
