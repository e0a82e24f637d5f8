package framework

import (
	"cmp"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/quota/guarantee"
	"hekla.sh/hekla/pkg/verdict"
)

// Questions ask the plugins of a policy. The comment of each interface, such as [JobOrderer], says how the answers of
// several plugins become one. Where the answer is a verdict, nil means yes.
type Questions struct{ Policy *Policy }

// CompareQueues compares queues by the order in which they are served.
func (q Questions) CompareQueues(a, b *cluster.Queue) int {
	order := q.Policy.queueOrder
	if subtrees := q.Policy.Subtrees(); subtrees != nil {
		if subtrees.Contains(guarantee.Common(a.QuotaNode(), b.QuotaNode())) {
			order = q.Policy.subtreeQueueOrder
		} else { // the queues of a subtree stay together, so that the two orders do not contradict each other
			a, b = outermost(subtrees, a), outermost(subtrees, b)
		}
	}
	for _, plugin := range order {
		if c := plugin.CompareQueues(a, b); c != 0 {
			return c
		}
	}
	return cluster.CompareQueues(a, b)
}

// outermost returns the top of the subtree in which a queue is, or the queue itself.
func outermost(subtrees *guarantee.Subtrees, q *cluster.Queue) *cluster.Queue {
	top := subtrees.Top(q.QuotaNode())
	for p := q; top != nil && p != nil; p = p.Parent {
		if p.QuotaNode() == top {
			return p
		}
	}
	return q
}

// CompareJobs compares jobs of a queue by the order in which they are served.
func (q Questions) CompareJobs(a, b *cluster.Job) int {
	order := q.Policy.jobOrder
	if subtrees := q.Policy.Subtrees(); subtrees != nil && subtrees.Contains(a.QuotaNode()) {
		order = q.Policy.subtreeJobOrder
	}
	for _, plugin := range order {
		if c := plugin.CompareJobs(a, b); c != 0 {
			return c
		}
	}
	return cluster.CompareJobs(a, b)
}

// CompareTasks compares tasks of a job by the order in which they are placed.
func (q Questions) CompareTasks(a, b *cluster.Task) int {
	return cmp.Or(q.prefer(a, b), cluster.CompareTasks(a, b))
}

// prefer compares tasks of a job by what plugins say alone.
func (q Questions) prefer(a, b *cluster.Task) int {
	for _, plugin := range q.Policy.taskOrder {
		if c := plugin.CompareTasks(a, b); c != 0 {
			return c
		}
	}
	return 0
}

// MayEnqueue asks whether a job may be admitted.
func (q Questions) MayEnqueue(j *cluster.Job) *verdict.Verdict {
	for _, tier := range q.Policy.jobEnqueuers {
		if vote, v, _ := tally(tier, JobEnqueuer.MayEnqueue, j); vote != Abstain {
			return v
		}
	}
	return nil
}

// WhyNotEnqueue returns why a job may not be admitted, nil if it may. Of several plugins that refuse it, the one whose
// reason must be put right first decides the reason. Plugins that ask other processes are not asked for a further
// reason.
func (q Questions) WhyNotEnqueue(j *cluster.Job) *verdict.Verdict {
	for _, tier := range q.Policy.jobEnqueuers {
		answer := Abstain
		var why *verdict.Verdict
		for _, plugin := range tier {
			if _, isRemote := plugin.(RemotePlugin); isRemote && answer == Reject {
				continue
			}
			switch vote, v := plugin.MayEnqueue(j); {
			case vote == Reject:
				answer, why = Reject, why.With(v)
			case vote == Permit && answer == Abstain:
				answer = Permit
			}
		}
		if answer != Abstain {
			return why
		}
	}
	return nil
}

// LacksToAdmit returns what a job lacks to be admitted, of each plugin that refuses it. It reports false if it lacks
// nothing that is counted, or too much to wait for each. Only the plugins of the first tier that votes are asked,
// because a plugin before them could admit the job all the same.
func (q Questions) LacksToAdmit(j *cluster.Job) (lacks verdict.Lacks, ok bool) {
	for _, tier := range q.Policy.jobEnqueuers {
		for _, plugin := range tier {
			keeper, isKeeper := plugin.(AdmissionStockkeeper)
			if !isKeeper {
				continue
			}
			if lack := keeper.LackToAdmit(j); lack.Stock != nil {
				if lacks, ok = lacks.And(lack); !ok {
					return lacks, false
				}
			}
		}
		if len(tier) > 0 {
			break
		}
	}
	return lacks, ok
}

// LimitAdmission asks whether a job may not be admitted, whatever room there is. Nil means that it may.
func (q Questions) LimitAdmission(j *cluster.Job) *verdict.Verdict {
	for _, plugin := range q.Policy.admissionLimiters {
		if v := plugin.LimitAdmission(j); v != nil {
			return v
		}
	}
	return nil
}

// Overused asks whether a queue holds its whole share. Nil means that it may hold more.
func (q Questions) Overused(queue *cluster.Queue) *verdict.Verdict {
	for _, plugin := range q.Policy.overuse {
		if v := plugin.Overused(queue); v != nil {
			return v
		}
	}
	return nil
}

// MayAllocate asks whether the queue of a task may hold it too.
func (q Questions) MayAllocate(t *cluster.Task) *verdict.Verdict {
	for _, plugin := range q.Policy.allocation {
		if v := plugin.MayAllocate(t.Job.Queue, t); v != nil {
			return v
		}
	}
	return nil
}

// MayBind asks whether a task that its queue may hold can be bound at once. Planned evictions may be refused until they
// are sent, so the quota of their victims must not be given to others before.
func (q Questions) MayBind(t *cluster.Task) *verdict.Verdict {
	if t.Job.Queue.IsSettled() {
		return nil
	}
	for _, plugin := range q.Policy.binding {
		if v := plugin.MayBind(t.Job.Queue, t); v != nil {
			waits := *v
			waits.Help |= verdict.HelpPod | verdict.HelpQueue
			return &waits
		}
	}
	return nil
}

// IsReady asks whether enough of a job is placed to start it.
func (q Questions) IsReady(j *cluster.Job) bool {
	for _, plugin := range q.Policy.readiness {
		if !plugin.IsReady(j) {
			return false
		}
	}
	return true
}

// LacksToStart returns how many more pods of a job must be placed, at least, before it may start. Without a plugin that
// counts them, a job starts with any.
func (q Questions) LacksToStart(j *cluster.Job) (lacks int) {
	for _, plugin := range q.Policy.readiness {
		if counter, ok := plugin.(PodCounter); ok {
			lacks = max(lacks, counter.LacksToStart(j))
		}
	}
	return lacks
}

// IsStarving asks whether a job needs more tasks than it has, so that other pods may be evicted for it.
func (q Questions) IsStarving(j *cluster.Job) bool {
	for _, tier := range q.Policy.starvation {
		for _, judge := range tier {
			if !judge.IsStarving(j) {
				return false
			}
		}
		if len(tier) > 0 {
			return true
		}
	}
	return j.Count(cluster.Pending) > 0
}

// MayReclaim asks whether a queue may reclaim for a task from queues of its own priority.
func (q Questions) MayReclaim(t *cluster.Task) *verdict.Verdict {
	for _, judge := range q.Policy.reclaimCheckers {
		if v := judge.MayReclaim(t.Job.Queue, t); v != nil {
			return v
		}
	}
	if len(q.Policy.reclaimCheckers) == 0 {
		return &verdict.Verdict{Code: verdict.OverShare, Subject: t.Job.Queue.Name, Help: verdict.HelpQueue,
			Detail: "no plugin gives queues a share"}
	}
	return nil
}

// ChooseVictims returns the pods that plugins want evicted for no preemptor, each once, in the order in which they are
// named.
func (q Questions) ChooseVictims() []Chosen {
	for _, tier := range q.Policy.victimChoosers {
		var chosen []Chosen
		seen := map[*cluster.Task]bool{}
		for _, plugin := range tier {
			for _, c := range plugin.ChooseVictims() {
				if !seen[c.Task] {
					seen[c.Task] = true
					chosen = append(chosen, c)
				}
			}
		}
		if len(chosen) > 0 {
			return chosen
		}
	}
	return nil
}

// PollPreempt returns the poll of the plugins that vote on preemption inside a queue.
func (q Questions) PollPreempt() Poll { return Poll{policy: q.Policy} }

// PollReclaim returns the poll of the plugins that vote on reclaiming between queues.
func (q Questions) PollReclaim() Poll { return Poll{policy: q.Policy, reclaim: true} }
