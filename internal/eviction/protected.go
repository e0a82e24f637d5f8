package eviction

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Why pods may not leave. Each is counted, and shown to the taker's owner.
const (
	notLowerJob   = "rule J1 (the priority of their job is not lower)"
	notLowerTask  = "rule P1 (their task priority is not lower)"
	notMarked     = "rule P2 (not marked volcano.sh/preemptable)"
	ofAnother     = "rule P2 (their PodGroup belongs to another scheduler)"
	asksForMore   = "rule P3 (the pod that waits requests nothing)"
	atItsMinimum  = "rule J2 (their gang is at its minimum)"
	preemptsNever = "rule P6 (the PriorityClass of the job never preempts)"
	wasNotEvicted = "rule S1 (the API server refused to evict them a while ago)"
)

// concerns reports whether a task is one that the taker could look at: it holds a node, is not on its way out (law P4), and
// stands where the scope looks.
func (a *attempt) concerns(t *cluster.Task) bool {
	j := t.Job
	if !t.Status.Evictable() || j == nil || j.Group == nil || j.Queue == nil {
		return false
	}
	switch a.scope {
	case cluster.WithinJob:
		return j == a.taker
	case cluster.BetweenJobs:
		return j != a.taker && j.Queue == a.taker.Queue
	case cluster.BetweenQueues:
		return j.Queue != a.taker.Queue
	}
	return j != a.taker
}

// forbids says which law protects a task for as long as the objects stay as they are; "" if none does.
func (a *attempt) forbids(t *cluster.Task) string {
	if a.scope == cluster.WithinJob && a.task != nil && t.Priority >= a.task.Priority {
		return notLowerTask
	}
	if why := a.forbidsJob(t.Job); why != "" {
		return why
	}
	if !t.IsMarked(a.search.byDefault) {
		return notMarked
	}
	if a.task != nil && a.task.BestEffort() && !t.BestEffort() {
		return asksForMore
	}
	if !t.MayBeAsked() {
		return wasNotEvicted
	}
	return ""
}

// forbidsJob says which law protects all tasks of a job.
func (a *attempt) forbidsJob(giver *cluster.Job) string {
	if giver.IsForeign {
		return ofAnother
	}
	if a.scope == cluster.WithinJob {
		return ""
	}
	if a.scope != cluster.BetweenQueues && giver.Priority >= a.taker.Priority {
		return notLowerJob
	}
	if giver.Queue == a.taker.Queue {
		return ""
	}
	return a.queues.Forbids(giver.QuotaNode())
}

// objects says why a unit may not leave as the plan stands, "" if it may: the laws that look at totals, then the plugins.
func (a *attempt) objects(u *unit) string {
	d := framework.VictimProposal{Taker: a.taker, For: a.task, Victims: u.tasks, Whole: u.whole, Held: u.held}
	if why := a.queues.Objects(u.job.QuotaNode(), d.Leaving(), a.wanted(), a.entitled); why != "" {
		return why
	}
	why, _ := a.poll.Ask(&d)
	return why
}

// wanted is what the taker needs: its pod's request, at the door its minimum.
func (a *attempt) wanted() resources.Vector {
	if a.all != nil {
		return a.all
	}
	if a.task != nil {
		return a.task.Request()
	}
	return a.taker.MinResources
}

// mayTake reports whether the taker's queue stays within its share with one more pod (law Q4).
func (a *attempt) mayTake() bool {
	if a.task != nil {
		return a.search.session.MayTake(a.task) == nil
	}
	return a.queues.IsEntitled(a.taker.MinResources) // at admission there is no pod yet: what counts is the minimum
}

// mayPlace reports whether the taker's queue may have the pod: it stays within its capability, at every level (law Q4). A
// plugin that keeps queues within their shares does not stop what the laws allow: a queue takes from lower ones beyond its
// share, and jobs take from each other what their queue has already.
func (a *attempt) mayPlace(t *cluster.Task) bool {
	v := a.search.session.MayAllocate(t)
	if v == nil {
		return true
	}
	return v.Code == verdict.OverShare && a.queues.MayExceed(t.Request())
}

// queueRules are the rules about queues for a taker in a scope. Queues that are equal otherwise give only what is above their shares,
// unless a lone pod takes, which counts with its priority (law A3).
func (f *Search) queueRules(scope cluster.Scope, taker *cluster.Job) quota.Rules {
	s := f.session
	return quota.NewBetween(s.Cluster.Quota(), quota.Between{Taker: taker.QuotaNode(), Shares: s.Policy.Shares(),
		OrderOnly: !f.isStrict, SurplusOnly: scope == cluster.BetweenQueues}, scope.CrossesQueues())
}

func compatibility(s *framework.Session) (byDefault, isStrict, isUpstream bool) {
	c := s.Policy.Configuration.Compatibility
	return c.PreemptableByDefault, c.QueuePriority != conf.QueuePriorityOrder, c.VictimVote == conf.VictimVoteUpstream
}
