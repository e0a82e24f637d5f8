package eviction

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Why pods may not leave. Each is counted, and shown to the taker's owner.
const (
	notLowerJob   = "law J1 (the priority of their job is not lower)"
	notLowerTask  = "law P1 (their task priority is not lower)"
	notMarked     = "law P2 (not marked volcano.sh/preemptable)"
	ofAnother     = "law P2 (their PodGroup belongs to another scheduler)"
	asksForMore   = "law P3 (the pod that waits requests nothing)"
	higherQueue   = "law Q1 (their queue has the higher priority)"
	withinShare   = "law Q1 (within what their queue deserves)"
	isGuaranteed  = "law Q2 (guaranteed to their queue)"
	notReclaimed  = "law Q3 (their queue is not reclaimable)"
	hasItsShare   = "law Q4 (the job's own queue has what it deserves)"
	atItsMinimum  = "law J2 (their gang is at its minimum)"
	preemptsNever = "law P6 (the PriorityClass of the job preempts nobody)"
	wasNotEvicted = "law S1 (the API server refused to evict them a while ago)"
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
	if a.relation(giver.Queue) < 0 {
		return higherQueue
	}
	if !a.isReclaimable(giver.Queue) {
		return notReclaimed
	}
	return ""
}

// relation compares the priorities of the taker's queue and another: positive if the other is lower. Where priority only
// orders queues all are equal.
func (a *attempt) relation(q *cluster.Queue) int {
	if !a.search.isStrict || a.taker.Queue.Priority == q.Priority {
		return 0
	}
	if a.taker.Queue.Priority > q.Priority {
		return 1
	}
	return -1
}

// isReclaimable reports whether neither a queue nor one above it that the taker's queue is not below keeps what
// it holds to itself (law Q3).
func (a *attempt) isReclaimable(q *cluster.Queue) bool {
	if q == a.taker.Queue {
		return true
	}
	// The giver's own queue is asked wherever it stands: the taker's may be below it.
	for isGiver := true; q != nil && (isGiver || !isAbove(q, a.taker.Queue)); q, isGiver = q.Parent, false {
		if !q.Reclaimable {
			return false
		}
	}
	return true
}

// isAbove reports whether a queue is another or one above it.
func isAbove(q, below *cluster.Queue) bool {
	for ; below != nil; below = below.Parent {
		if below == q {
			return true
		}
	}
	return false
}

// objects says why a unit may not leave as the plan stands, "" if it may: the laws that look at totals, then the plugins.
func (a *attempt) objects(u *unit) string {
	d := framework.Departure{Taker: a.taker, For: a.task, Victims: u.tasks, Whole: u.whole, Held: u.held}
	q := u.job.Queue
	if a.breaksGuarantee(q, d.Leaving()) {
		return isGuaranteed
	}
	if q != a.taker.Queue {
		if a.relation(q) == 0 {
			if a.scope == cluster.BetweenQueues && !a.search.session.Policy.IsSurplus(q, d.Leaving(), a.wanted()) {
				return withinShare
			}
			if !a.mayTake() {
				return hasItsShare
			}
		}
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

// breaksGuarantee reports whether a queue, or one above it, would hold less than it is guaranteed of something that leaves
// (law Q2). A queue that the taker is in or below gets what the taker takes: it may be below its guarantee, but must not fall
// further.
func (a *attempt) breaksGuarantee(q *cluster.Queue, leaving resources.Vector) bool {
	for ; q != nil; q = q.Parent {
		if q.Guarantee.IsZero() {
			continue
		}
		before, isShared := a.before[q]
		for i, amount := range leaving {
			d := resources.Dim(i)
			floor := q.Guarantee.At(d)
			if amount <= 0 || floor <= 0 {
				continue
			}
			after := q.Subtree.Allocated.At(d) - amount
			if isShared {
				after += a.wanted().At(d)
			}
			if after < floor && !(isShared && after >= before.At(d)) {
				return true
			}
		}
	}
	return false
}

// mayTake reports whether the taker's queue stays within its share with one more pod (law Q4).
func (a *attempt) mayTake() bool {
	s := a.search.session
	if a.task != nil {
		return s.MayTake(a.task) == nil
	}
	share, ok := s.Policy.Share(a.taker.Queue)
	if !ok {
		return false
	}
	// At the door there is no pod yet: what counts is the minimum.
	speaks := false
	for i, need := range a.taker.MinResources {
		d := resources.Dim(i)
		limit, limited := share.Deserved.At(d)
		if need <= 0 || !limited {
			continue
		}
		if a.taker.Queue.Subtree.Allocated.At(d)+need > limit {
			return false
		}
		speaks = speaks || limit > 0
	}
	return speaks
}

// mayPlace reports whether the taker's queue may have the pod: it stays within its capability, at every level (law Q4). A
// plugin that keeps queues within their shares does not stop what the laws allow: a queue takes from lower ones beyond its
// share, and jobs take from each other what their queue has already.
func (a *attempt) mayPlace(t *cluster.Task) bool {
	v := a.search.session.MayAllocate(t)
	if v == nil {
		return true
	}
	if v.Code != verdict.OverShare {
		return false
	}
	if a.hasLower {
		return true
	}
	q := a.taker.Queue
	share, _ := a.search.session.Policy.Share(q)
	for i, amount := range t.Request() {
		d := resources.Dim(i)
		if d == resources.Pods {
			continue // two small pods may take the place of a large one
		}
		if after := q.Subtree.Allocated.At(d) + amount; amount > 0 && after > a.before[q].At(d) && after > share.Deserved.Value(d) {
			return false
		}
	}
	return true
}

func compatibility(s *framework.Session) (byDefault, isStrict, isUpstream bool) {
	c := s.Policy.Configuration.Compatibility
	return c.PreemptableByDefault, c.QueuePriority != conf.QueuePriorityOrder, c.VictimVote == conf.VictimVoteUpstream
}
