package framework

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// VictimProposal asks whether pods may be evicted for a preemptor. In the model, earlier victims of the plan are gone,
// and the tasks of the preemptor that have a node are on it (rule T2). The pods in question are still there.
type VictimProposal struct {
	Preemptor *cluster.Job
	// For is the task of the preemptor that needs a node, nil while its job is pending admission.
	For *cluster.Task
	// Victims are evicted together: one pod, or all pods of a gang that hold resources. All are of one job.
	Victims []*cluster.Task
	// Whole is set if the victims are the whole gang.
	Whole bool
	// Held is the sum of the victims' requests, nil if it is not worked out yet; see Leaving.
	Held resources.Vector
}

// VictimJob returns the job of the victims.
func (d *VictimProposal) VictimJob() *cluster.Job { return d.Victims[0].Job }

// Leaving returns the sum of the victims' requests. The caller must not change it.
func (d *VictimProposal) Leaving() resources.Vector {
	if d.Held != nil {
		return d.Held
	}
	if len(d.Victims) == 1 {
		return d.Victims[0].Request()
	}
	return cluster.RequestOf(d.Victims)
}

// PreemptVoter votes on victims for a preemptor of their own queue, or for a lone pod (enablePreemptable; Volcano's
// Preemptable). With a Reject it says what protects them, which is the same for all pods with this reason: a rule of
// the scheduler, or ByPlugin, ByMark or ByBudget with a few words of its own. These are counted and shown to the user
// with the name of the plugin. ByMark and ByBudget give the job that waits the reasons VictimsOptedOut and BudgetSpent.
// A tier in which no plugin rejects and one permits allows the eviction. Lower tiers are then not asked (rule T1).
type PreemptVoter interface {
	VotePreempt(d *VictimProposal) (Vote, verdict.Protection)
}

// ReclaimVoter votes on victims for a preemptor of another queue (enableReclaimable; Volcano's Reclaimable).
type ReclaimVoter interface {
	VoteReclaim(d *VictimProposal) (Vote, verdict.Protection)
}

// QueueReclaimChecker says whether a queue may place one more task with what queues of its own priority hold above
// their shares (enablePreemptive; Volcano's Preemptive): rule Q4. A verdict says why not. All plugins must agree.
// Without any, no queue may.
type QueueReclaimChecker interface {
	MayReclaim(q *cluster.Queue, t *cluster.Task) *verdict.Verdict
}

// StarvationJudge says whether a job is starving, so that other pods may be evicted for it (enableJobStarving;
// Volcano's JobStarving). All judges of the first tier with any must agree. Without any, a job with a pending task is
// starving. It is not asked about preemption inside a job.
type StarvationJudge interface {
	IsStarving(j *cluster.Job) bool
}

// VictimChooser names pods to evict for no preemptor, because their time is up or they run in the wrong place
// (enabledVictim; Volcano's VictimTasks). The action shuffle asks it. All pods that the first tier with any names are
// evicted.
type VictimChooser interface {
	ChooseVictims() []Chosen
}

// Chosen is a pod to evict, and why, as a clause of a sentence.
type Chosen struct {
	Task *cluster.Task
	Why  string
	Rule string // the number of the rule, "" if there is none
}

// NodeVetoer may refuse the node that would be chosen for a task (enablePredicate). It returns a reason that users
// read, "" if it agrees. A NodeFilter is asked about a class, a NodeVetoer about the pod itself, of which it may read
// everything. So that it may be slow, it is asked last, about the best node first, until it agrees to one. Its answer
// is kept until the node or the pod changes.
type NodeVetoer interface {
	VetoNode(t *cluster.Task, n *cluster.Node) string
}

// Poll asks for votes on victims, either inside a queue or between queues.
type Poll struct {
	policy  *Policy
	reclaim bool
	// From is the first tier that is asked.
	From int
}

// Tiers is the number of tiers.
func (p Poll) Tiers() int { return len(p.policy.preemptVoters) }

// Ask asks whether victims may be evicted. why is the first objection, none if there is none. by is the tier that
// decided, or Tiers if every plugin abstained.
func (p Poll) Ask(d *VictimProposal) (why verdict.Protection, by int) {
	for tier := p.From; tier < p.Tiers(); tier++ {
		vote, why := p.askTier(tier, d)
		if vote != Abstain {
			return why, tier
		}
	}
	return verdict.Protection{}, p.Tiers()
}

func (p Poll) askTier(tier int, d *VictimProposal) (vote Vote, why verdict.Protection) {
	var voter any
	if p.reclaim {
		vote, why, voter = tally(p.policy.reclaimVoters[tier], ReclaimVoter.VoteReclaim, d)
	} else {
		vote, why, voter = tally(p.policy.preemptVoters[tier], PreemptVoter.VotePreempt, d)
	}
	if vote == Reject {
		why = signed(why, voter)
	}
	return vote, why
}

// signed returns an objection with the name of the plugin, so that users know which it is. A rule has none: two plugins
// may say the same.
func signed(why verdict.Protection, voter any) verdict.Protection {
	if why.IsNone() {
		why.Kind = verdict.ByPlugin
	}
	if why.Kind.IsObjection() {
		why.Plugin = voter.(Plugin).Name()
	}
	return why
}

// tally returns the vote of a tier. One Reject decides it, and its reason is returned, with the voter.
func tally[Voter, Subject, Reason any](voters []Voter, ask func(Voter, Subject) (Vote, Reason), subject Subject) (answer Vote, why Reason, by Voter) {
	for _, voter := range voters {
		switch vote, reason := ask(voter, subject); vote {
		case Reject:
			return Reject, reason, voter
		case Permit:
			answer = Permit
		}
	}
	return answer, why, by
}
