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

// The rules that protect pods. Pods are counted by the rule that protects them, and the preemptor's owner reads the counts.
const (
	notLowerJob   = "rule J1 (the priority of their job is not lower)"
	notLowerTask  = "rule P1 (their task priority is not lower)"
	notMarked     = "rule P2 (not marked volcano.sh/preemptable)"
	ofAnother     = "rule P2 (their PodGroup belongs to another scheduler)"
	requestsMore  = "rule P3 (the pod that waits requests nothing)"
	wasNotEvicted = "rule S1 (the API server refused to evict them a while ago)"

	AtItsMinimum  = "rule J2 (their gang is at its minimum)"
	NeverPreempts = "rule P6 (the PriorityClass of the job never preempts)"
)

// Rules are the rules of an action for one preemptor in one scope.
type Rules struct {
	*Action
	Scope     decision.Scope
	Preemptor *cluster.Job
	Queues    quota.Rules // which queues victims may be of, and what the preemptor's queue may take

	markedByDefault bool // a pod that is not marked may be evicted
	poll            framework.Poll
	isEntitled      func() bool // mayTake: a method value that is made once, since it is asked for each victim

	pod   *cluster.Task    // of the preemptor that needs a node now; nil at admission
	whole resources.Vector // what all pods of a plan request, while the plan is judged as a whole; else nil
}

// SetPod has the rules speak of victims for one pod of the preemptor. With nil they speak of the preemptor's minimum, as at admission.
func (r *Rules) SetPod(t *cluster.Task) { r.pod = t }

// Pod returns the preemptor's pod that the rules speak of, nil at admission.
func (r *Rules) Pod() *cluster.Task { return r.pod }

// SetWhole has the rules speak of what all pods of a plan request together, nil of one pod again.
func (r *Rules) SetWhole(requested resources.Vector) { r.whole = requested }

// Kind is what pods of the preemptor have in common for which the same victims may leave.
type Kind struct {
	class    *cluster.Class
	priority int32 // of the pod, where that makes a difference: inside a job
}

// KindOf returns the kind of a pod.
func (r *Rules) KindOf(t *cluster.Task) Kind {
	if r.Scope == decision.WithinJob {
		return Kind{class: t.Class, priority: t.Priority}
	}
	return Kind{class: t.Class}
}

// Concerns reports whether the scope is about a pod: it holds a node, is not being deleted (rule P4), and is of a job that the scope
// looks at.
func (r *Rules) Concerns(t *cluster.Task) bool {
	j := t.Job
	if !t.Status.Evictable() || j == nil || j.Group == nil || j.Queue == nil {
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

// Protects names the rule that protects a pod for as long as the objects stay as they are, "" if none does.
func (r *Rules) Protects(t *cluster.Task) string {
	if r.Scope == decision.WithinJob && r.pod != nil && t.Priority >= r.pod.Priority {
		return notLowerTask
	}
	if why := r.protectsJob(t.Job); why != "" {
		return why
	}
	if !t.IsMarked(r.markedByDefault) {
		return notMarked
	}
	if r.pod != nil && r.pod.BestEffort() && !t.BestEffort() {
		return requestsMore
	}
	if !t.MayBeAsked() {
		return wasNotEvicted
	}
	return ""
}

// protectsJob names the rule that protects all pods of a job.
func (r *Rules) protectsJob(j *cluster.Job) string {
	if j.IsForeign {
		return ofAnother
	}
	if r.Scope == decision.WithinJob {
		return ""
	}
	if r.Scope != decision.BetweenQueues && j.Priority >= r.Preemptor.Priority {
		return notLowerJob
	}
	if j.Queue == r.Preemptor.Queue {
		return ""
	}
	return r.Queues.Forbids(j.QuotaNode())
}

// Objects says why pods of one job may not leave together as the plan stands, "" if they may: first the rules about what queues
// hold, then the votes of plugins. isWhole says that they are all of their gang. held is what they hold, nil if it was not added up.
func (r *Rules) Objects(pods []*cluster.Task, isWhole bool, held resources.Vector) string {
	d := framework.VictimProposal{Preemptor: r.Preemptor, For: r.pod, Victims: pods, Whole: isWhole, Held: held}
	if why := r.Queues.Objects(pods[0].Job.QuotaNode(), d.Leaving(), r.Wanted(), r.isEntitled); why != "" {
		return why
	}
	why, _ := r.poll.Ask(&d)
	return why
}

// Wanted is what the preemptor needs: the request of its pod; at admission its minimum.
func (r *Rules) Wanted() resources.Vector {
	if r.whole != nil {
		return r.whole
	}
	if r.pod != nil {
		return r.pod.Request()
	}
	return r.Preemptor.MinResources
}

// mayTake reports whether the preemptor's queue stays within its share with one more pod (rule Q4).
func (r *Rules) mayTake() bool {
	if r.pod != nil {
		return r.Session.MayTake(r.pod) == nil
	}
	return r.Queues.IsEntitled(r.Preemptor.MinResources) // at admission there is no pod yet: what counts is the minimum
}

// MayPlace reports whether the preemptor's queue may have a pod: the queue stays within its capability, at every level (rule Q4).
// A plugin that keeps queues within their shares does not forbid what the rules allow. A queue takes from lower ones beyond its
// share, and jobs take from each other what their queue has already.
func (r *Rules) MayPlace(t *cluster.Task) bool {
	v := r.Session.MayAllocate(t)
	if v == nil {
		return true
	}
	return v.Code == verdict.OverShare && r.Queues.MayExceed(t.Request())
}

// Fits reports whether a pod of the preemptor fits on a node as it will be, and its queue may have it.
func (r *Rules) Fits(t *cluster.Task, n *cluster.Node) bool {
	return r.MayPlace(t) && r.Session.Outlook.Fits(t, n)
}

// NeedsRight reports whether the preemptor must have a right to what it takes from a job: the job's queue is not of lower priority.
func (r *Rules) NeedsRight(j *cluster.Job) bool { return r.Queues.NeedsRight(j.QuotaNode()) }

// StaysWithinShare reports whether the preemptor's queue holds no more than its share with all that a plan gives it, if any of that
// comes from a queue of its own priority (rule Q4). When the victims were chosen, fewer of the preemptor's pods had their nodes.
func (r *Rules) StaysWithinShare(x framework.Transaction, takesByRight bool, placed []*cluster.Task) bool {
	if !takesByRight {
		return true
	}
	for _, t := range cluster.OnePerClass(placed) {
		n := t.Node
		r.SetPod(t)
		x.Unpipeline(t)
		may := r.mayTake()
		x.Pipeline(t, n)
		if !may {
			return false
		}
	}
	return true
}

// Outranks reports whether the preemptor may take the nodes that a plan of another job was promised.
func (r *Rules) Outranks(j *cluster.Job) bool {
	if j == r.Preemptor || j.Queue == nil {
		return false
	}
	switch r.Scope {
	case decision.BetweenJobs:
		return j.Queue == r.Preemptor.Queue && j.Priority < r.Preemptor.Priority
	case decision.Anywhere:
		return j.Priority < r.Preemptor.Priority && r.Queues.Forbids(j.QuotaNode()) == ""
	}
	return j.Queue != r.Preemptor.Queue && !r.Queues.NeedsRight(j.QuotaNode()) && r.Queues.Forbids(j.QuotaNode()) == ""
}

// ByTiers runs a search with the votes of all tiers. Where an empty answer counts as no answer, the search runs with the votes of one
// tier after the other, until a tier lets any pod leave. It reports whether the search has found what it looks for.
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
