package plans

import (
	"fmt"
	"slices"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/internal/eviction/victims"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// broken says why a plan can no longer be fulfilled, "" if it can.
func broken(s *framework.Session, p *cluster.Plan) string {
	j, promised := p.Job, p.Promised()
	switch {
	case j.Queue == nil:
		return "queue " + j.QueueName + " is gone"
	case p.Lost != "":
		return "node " + p.Lost + " is gone"
	case len(promised) == 0, j.LacksPromises() > 0:
		return "pods that room was made for are gone"
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

// forbidsPlaces says why the queue of the preemptor may no longer hold its tasks, "" if it may: the queue's capability
// may have been lowered (rule Q4).
func forbidsPlaces(s *framework.Session, p *cluster.Plan) string {
	for _, t := range cluster.OnePerClass(p.Promised()) {
		x := s.Begin()
		x.Unpipeline(t)
		v := rules.OverCapability(s, t)
		x.Undo()
		if v != nil {
			return v.Sentence()
		}
	}
	return ""
}

// forbidsVictims names the rule that now protects a victim whose eviction is not sent, "" if there is none. Later plans
// must be suspended.
func forbidsVictims(s *framework.Session, p *cluster.Plan) string {
	action, why := actionOf(s, p)
	if why != "" {
		return why
	}
	promised, unsent := p.Promised(), p.Unsent()
	x := s.Begin()
	defer x.Undo()
	// The check repeats the question for the first victim, when no task of the preemptor was placed. Which tasks were
	// placed when the later victims were chosen is not known any more. The check is about changes outside the plan.
	promises := Withdraw(x, promised)
	for _, t := range unsent {
		x.Spare(t)
	}
	r := rules.Of(s, action).For(p.Scope, p.Job)
	r.SetPod(representative(p.Scope, promised))
	r.SetWhole(cluster.RequestOf(promised))
	selector, atItsMinimum := victims.New(r), verdict.RuleAtItsMinimum.Protection()
	var units []victims.Unit
	var broken []*cluster.Task // one task of each gang that is evicted as a whole
	for _, t := range unsent {
		why := r.Protects(t)
		if why.IsNone() && t.Job.KeepsMinimum(t, cluster.Leaving{}) {
			u := victims.OneTask(t)
			why = selector.WhyProtected(&u)
		} else if why.IsNone() && !slices.ContainsFunc(broken, func(b *cluster.Task) bool { return b.Job == t.Job }) {
			if p.Scope == decision.WithinJob {
				return "pod " + t.Key().String() + " may not leave: " + atItsMinimum.String()
			}
			u, ok := selector.WholeGang(t.Job)
			if why = atItsMinimum; ok {
				why = selector.WhyProtected(&u)
			}
			broken = append(broken, t)
		}
		if why.Exists() {
			return fmt.Sprintf("pod %s may not leave any more: %s", t.Key(), why)
		}
		x.Evict(t)
		units = append(units, victims.OneTask(t))
	}
	for _, t := range broken {
		// Tasks that another plan was to evict may stay, or tasks may have been added.
		of := func(other *cluster.Task) bool { return other.Job != t.Job }
		if t.Job.Ready() > 0 && (t.Job.Lacks() > 0 || !t.Job.KeptSubgroups(slices.DeleteFunc(slices.Clone(unsent), of))) {
			return fmt.Sprintf("pod %s may not leave any more: %s", t.Key(), atItsMinimum)
		}
	}
	repromise(x, promises)
	r.SetWhole(nil)
	if !r.StaysWithinShare(x, selector.TakesByRight(units), promised) {
		return "the plan takes more than the job's queue may any more: " + verdict.RuleHasItsShare.Protection().String()
	}
	return ""
}

// representative returns the task that stands for the preemptor: within a job that of the highest priority, otherwise
// one that requests something.
func representative(scope decision.Scope, pods []*cluster.Task) *cluster.Task {
	best := pods[0]
	for _, t := range pods[1:] {
		if scope == decision.WithinJob && t.Priority > best.Priority || scope != decision.WithinJob && best.BestEffort() && !t.BestEffort() {
			best = t
		}
	}
	return best
}
