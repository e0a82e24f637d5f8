package framework

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// VictimProposal is the question whether pods may leave for another. The model shows the plan as far as it has come: victims
// that were chosen before are gone, and the preemptor's pods that have found their room are there (rule T2). The pods in
// question are still there.
type VictimProposal struct {
	Preemptor *cluster.Job
	// For is the preemptor's pod that needs the room, not placed yet; nil while its job is pending admission.
	For *cluster.Task
	// Victims go together: one pod, or all pods of a gang that hold room. All are of one job.
	Victims []*cluster.Task
	// Whole is set if the victims are all of their gang.
	Whole bool
	// Held is what the victims hold together, nil if it was not added up; see Leaving.
	Held resources.Vector
}

// VictimJob is the job that the victims belong to.
func (d *VictimProposal) VictimJob() *cluster.Job { return d.Victims[0].Job }

// Leaving is what the victims hold together. The caller must not change it.
func (d *VictimProposal) Leaving() resources.Vector {
	if d.Held != nil {
		return d.Held
	}
	if len(d.Victims) == 1 {
		return d.Victims[0].Request()
	}
	var sum resources.Vector
	for _, t := range d.Victims {
		sum.Add(t.Request())
	}
	return sum
}

// PreemptVoter has a say in which pods leave for a job of their own queue, for a pod of their own job, or for a lone pod
// (enablePreemptable). A Reject comes with why, in a few words that are the same for all pods it holds for, beginning with
// the law if it is one: they are counted and shown to the preemptor's owner. Of a tier that has any say all who do not abstain
// must permit, and lower tiers are not asked (rule T1).
type PreemptVoter interface {
	VotePreempt(d *VictimProposal) (Vote, string)
}

// ReclaimVoter is the same for pods that leave for a job of another queue (enableReclaimable).
type ReclaimVoter interface {
	VoteReclaim(d *VictimProposal) (Vote, string)
}

// QueueReclaimChecker says whether a queue may take what other queues of its priority hold above their shares, to place one more
// task (enablePreemptive): rule Q4. A verdict says why not; all must agree. Without any judge no queue may.
type QueueReclaimChecker interface {
	MayTake(q *cluster.Queue, t *cluster.Task) *verdict.Verdict
}

// StarvationJudge says whether a job lacks enough for pods of others to leave for it (enableJobStarving). The judges of the
// first tier that has any must agree; without any, a job with a pod that waits is starving. Inside a job it is not asked.
type StarvationJudge interface {
	IsStarving(j *cluster.Job) bool
}

// VictimChooser names pods that are to leave though no job takes their room (enabledVictim): their time is up, or they
// stand in the wrong place. The action shuffle asks. Of the first tier that names any, all are evicted. Each comes with why,
// a clause.
type VictimChooser interface {
	ChooseVictims() []Chosen
}

// Chosen is a pod that is to leave, and why.
type Chosen struct {
	Task *cluster.Task
	Why  string
}

// NodeVetoer refuses a node that would be chosen for a pod, in the words that are shown; "" if it agrees (enablePredicate). Unlike a
// NodeFilter it is asked about the pod itself, all of which it may look at, and only about nodes that pass everything else, the best
// first, until it agrees to one: it may cost something to ask. Its answer stands until the node or the pod changes.
type NodeVetoer interface {
	VetoNode(t *cluster.Task, n *cluster.Node) string
}

// Poll is the question which tiers decide on victims between queues, or within one.
type Poll struct {
	policy  *Policy
	reclaim bool
	// From is the first tier that is asked; see Tiers.
	From int
}

// Tiers is how many tiers there are.
func (p Poll) Tiers() int { return len(p.policy.preemptVoters) }

// Ask asks whether victims may leave. by is the tier that decided, Tiers if none has a say; then there is no objection. why says
// what the first who objects says, "" if they may leave.
func (p Poll) Ask(d *VictimProposal) (why string, by int) {
	for tier := p.From; tier < p.Tiers(); tier++ {
		var vote Vote
		if p.reclaim {
			vote, why = tally(p.policy.reclaimVoters[tier], ReclaimVoter.VoteReclaim, d)
		} else {
			vote, why = tally(p.policy.preemptVoters[tier], PreemptVoter.VotePreempt, d)
		}
		if vote != Abstain {
			return why, tier
		}
	}
	return "", p.Tiers()
}

// tally is the answer of a tier: no if any of its voters says so, with what the first of these says.
func tally[Voter, Subject, Reason any](voters []Voter, ask func(Voter, Subject) (Vote, Reason), subject Subject) (Vote, Reason) {
	var none Reason
	answer := Abstain
	for _, voter := range voters {
		switch vote, reason := ask(voter, subject); vote {
		case Reject:
			return Reject, reason
		case Permit:
			answer = Permit
		}
	}
	return answer, none
}
