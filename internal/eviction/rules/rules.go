package rules

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Rules are the rules of an action for one preemptor in one scope.
type Rules struct {
	*Action
	Scope     decision.Scope
	Preemptor *cluster.Job
	Queues    quota.Rules // from which queues pods may be evicted, and how much the preemptor's queue may take
	// Guarantees are the same rules, if those of guaranteed shares hold between any queues; otherwise nil.
	Guarantees *Guaranteed

	// TakesNothing says that no pods are evicted for the preemptor, and no plans end for it. Then its queue stays
	// within its share (rule Q4), as it does for free room.
	TakesNothing bool

	markedByDefault bool // a pod without the mark volcano.sh/preemptable may be evicted
	poll            framework.Poll
	isEntitled      func() bool // the method value of HasRight, made once because every victim asks for it

	pod   *cluster.Task    // the preemptor's task that needs a node now; nil at admission
	whole resources.Vector // the requests of all tasks of a plan, while the plan is checked as a whole; otherwise nil
}

// SetPod chooses the preemptor's task that the rules are about. With nil they are about its minimum, as at admission.
func (r *Rules) SetPod(t *cluster.Task) { r.pod = t }

// Pod returns the preemptor's task that the rules are about, nil at admission.
func (r *Rules) Pod() *cluster.Task { return r.pod }

// SetWhole makes the rules about the requests of all tasks of a plan together. With nil they are about one task again.
func (r *Rules) SetWhole(requested resources.Vector) { r.whole = requested }

// Kind identifies tasks of the preemptor for which the same pods may be evicted.
type Kind struct {
	class    *cluster.Class
	priority int32 // of the task; it matters only inside a job
}

// KindOf returns the kind of a task.
func (r *Rules) KindOf(t *cluster.Task) Kind {
	if r.Scope == decision.WithinJob {
		return Kind{class: t.Class, priority: t.Priority}
	}
	return Kind{class: t.Class}
}

// Concerns reports whether a pod is in the scope: it holds a node, is not being deleted (rule P4), and its job is one
// that the scope includes.
func (r *Rules) Concerns(t *cluster.Task) bool {
	return t.Status.Yields() && t.Job != nil && r.ConcernsJob(t.Job)
}

// ConcernsJob reports whether the scope of some rules includes a job.
func (r *Rules) ConcernsJob(j *cluster.Job) bool {
	if j.Group == nil || j.Queue == nil {
		return false
	}
	switch r.Scope {
	case decision.WithinJob:
		return j == r.Preemptor
	case decision.BetweenJobs:
		return j != r.Preemptor && j.Queue == r.Preemptor.Queue
	case decision.BetweenQueues:
		return j.Queue != r.Preemptor.Queue
	}
	return j != r.Preemptor
}

// Protects names the rule that protects a pod as long as objects do not change, none if there is none.
func (r *Rules) Protects(t *cluster.Task) verdict.Protection {
	if r.Scope == decision.WithinJob && r.Preemptor.RestartsWhenEvicted() {
		return verdict.RuleRestartsWhole.Protection()
	}
	if r.Scope == decision.WithinJob && r.pod != nil && t.Priority >= r.pod.Priority {
		return verdict.RuleNotLowerTask.Protection()
	}
	if why := r.protectsJob(t.Job); why.Exists() {
		return why
	}
	return r.ProtectsPod(t)
}

// ProtectsPod names the rule that protects a pod itself, whatever its job is, none if there is none.
func (r *Rules) ProtectsPod(t *cluster.Task) (why verdict.Protection) {
	if r.IsGoverned(t.Job) {
		if why = r.Guarantees.protects(t); why.Exists() {
			return why
		}
	} else if !t.IsMarked(r.markedByDefault) {
		why.Kind = verdict.RuleNotMarked
		return why
	}
	switch {
	case r.pod != nil && r.pod.BestEffort() && !t.BestEffort():
		why.Kind = verdict.RuleRequestsNothing
	case !t.MayBeAsked():
		why.Kind = verdict.RuleWasRefused
	}
	return why
}

// ProtectsJobFromAll names the rule that protects all pods of a job from preemptors of any queue that have the same
// scope and priority, none if there is none. MayEvictFrom knows the rules that read the preemptor's queue. It is not
// for the rules of guaranteed shares.
func (r *Rules) ProtectsJobFromAll(j *cluster.Job) (why verdict.Protection) {
	switch {
	case j.IsForeign:
		why.Kind = verdict.RuleOtherScheduler
	case r.Scope != decision.BetweenQueues && j.Priority >= r.Preemptor.Priority:
		why.Kind = verdict.RuleNotLowerJob
	}
	return why
}

// MayEvictFrom reports whether the scope includes jobs of a queue, and no rule protects all of them from the
// preemptor's queue.
func (r *Rules) MayEvictFrom(q *quota.Node) bool {
	if isOwn := q == r.Preemptor.QuotaNode(); isOwn || r.Scope == decision.BetweenJobs || r.Scope == decision.WithinJob {
		return isOwn && r.Scope != decision.BetweenQueues
	}
	return r.Queues.Forbids(q).IsNone()
}

// protectsJob names the rule that protects all pods of a job.
func (r *Rules) protectsJob(j *cluster.Job) (why verdict.Protection) {
	if r.Scope == decision.WithinJob {
		if j.IsForeign {
			why.Kind = verdict.RuleOtherScheduler
		}
		return why
	}
	if why = r.ProtectsJobFromAll(j); why.Exists() || j.Queue == r.Preemptor.Queue {
		return why
	}
	if why = r.Queues.Forbids(j.QuotaNode()); why.IsNone() && r.Guarantees != nil {
		why = r.Guarantees.ForbidsJob(j.QuotaNode(), j.Priority)
	}
	return why
}

// WhyProtected says why pods of one job may not be evicted together at this point of the plan, none if they may. The
// rules about what queues hold come first, then the votes of plugins. isWhole says that the pods are the whole gang.
// held is the sum of their requests, nil if it is not worked out.
func (r *Rules) WhyProtected(pods []*cluster.Task, isWhole bool, held resources.Vector) verdict.Protection {
	d := framework.VictimProposal{Preemptor: r.Preemptor, For: r.pod, Victims: pods, Whole: isWhole, Held: held}
	if why := r.Queues.WhyProtected(pods[0].Job.QuotaNode(), d.Leaving(), r.Wanted(), r.isEntitled); why.Exists() {
		return why
	}
	why, _ := r.poll.Ask(&d)
	return why
}

// Wanted is what the preemptor needs: the request of its task, at admission its minimum.
func (r *Rules) Wanted() resources.Vector {
	if r.whole != nil {
		return r.whole
	}
	if r.pod != nil {
		return r.pod.Request()
	}
	return r.Preemptor.MinResources
}

// HasRight reports whether the preemptor's queue stays within its share with one more task (rule Q4).
func (r *Rules) HasRight() bool {
	if r.pod != nil {
		return r.Session.MayReclaim(r.pod) == nil
	}
	return r.Queues.IsEntitled(r.Preemptor.MinResources) // no task exists yet at admission, so the minimum counts
}

// MayPlace reports whether the preemptor's queue may hold one more task, see [Rules.WhyNotPlace].
func (r *Rules) MayPlace(t *cluster.Task) bool { return r.WhyNotPlace(t) == nil }

// WhyNotPlace says why the preemptor's queue may not hold one more task, nil if it may: every queue above it must stay
// within its capability (rule Q4). That a plugin keeps queues within their shares does not count where the rules allow
// more. A queue may exceed its share at the expense of queues of lower priority. Jobs may take from each other what
// their queue holds already.
func (r *Rules) WhyNotPlace(t *cluster.Task) *verdict.Verdict {
	v := r.Session.MayAllocate(t)
	if v != nil && v.Code == verdict.OverShare && !r.TakesNothing && r.Queues.MayExceed(t.Request()) {
		return nil
	}
	return v
}

// Fits reports whether a task of the preemptor fits on a node of the outlook, and its queue may hold it.
func (r *Rules) Fits(t *cluster.Task, n *cluster.Node) bool {
	return r.MayPlace(t) && r.Session.Outlook.Fits(t, n)
}

// NeedsRight reports whether the preemptor needs a right to reclaim from a job's queue, because that queue is not of
// lower priority.
func (r *Rules) NeedsRight(j *cluster.Job) bool { return r.Queues.NeedsRight(j.QuotaNode()) }

// StaysWithinShare reports whether the preemptor's queue stays within its share with all tasks of a plan (rule Q4). It
// checks this only if the plan takes from a queue of the same priority. When the victims were chosen, fewer tasks of
// the preemptor had nodes.
func (r *Rules) StaysWithinShare(x framework.Transaction, takesByRight bool, placed []*cluster.Task) bool {
	if !takesByRight {
		return true
	}
	for _, t := range cluster.OnePerClass(placed) {
		n := t.Node
		r.SetPod(t)
		x.Unpipeline(t)
		may := r.HasRight()
		x.Pipeline(t, n)
		if !may {
			return false
		}
	}
	return true
}

// Outranks reports whether the preemptor may take nodes that are nominated for another job.
func (r *Rules) Outranks(j *cluster.Job) bool {
	if j == r.Preemptor || j.Queue == nil {
		return false
	}
	switch r.Scope {
	case decision.BetweenJobs:
		return j.Queue == r.Preemptor.Queue && j.Priority < r.Preemptor.Priority
	case decision.Anywhere:
		return j.Priority < r.Preemptor.Priority && r.Queues.Forbids(j.QuotaNode()).IsNone()
	}
	return j.Queue != r.Preemptor.Queue && !r.IsGoverned(j) && !r.Queues.NeedsRight(j.QuotaNode()) && r.Queues.Forbids(j.QuotaNode()).IsNone()
}

// ByTiers runs a search with the votes of all tiers. With the compatibility setting for victim votes it runs the search
// with the votes of one tier after the other, until a tier allows evicting any pod. It reports whether the search was
// successful.
func (r *Rules) ByTiers(search func() bool, mayAnyLeave func() bool) bool {
	if r.Session.Policy.Configuration.Compatibility.VictimVote != conf.VictimVoteUpstream {
		return search()
	}
	for r.poll.From = 0; r.poll.From < max(r.poll.Tiers(), 1); r.poll.From++ {
		if search() {
			return true
		}
		if mayAnyLeave() {
			return false
		}
	}
	r.poll.From = 0
	return false
}
