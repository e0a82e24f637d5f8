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

// Action is one evicting action with its rules, in one session.
type Action struct {
	framework.EvictionRules
	Name    string
	Session *framework.Session

	lowest map[*cluster.Job]int64 // the lowest task priority of the job's pods
}

// Of returns the rules of an action in a session.
func Of(s *framework.Session, action framework.EvictingAction) *Action {
	return &Action{EvictionRules: action.EvictionRules(), Name: action.Name(), Session: s, lowest: map[*cluster.Job]int64{}}
}

// For returns the rules for a preemptor in a scope. The queue ledger of this moment is the state before the plan.
func (a *Action) For(scope decision.Scope, preemptor *cluster.Job) *Rules {
	r := &Rules{Action: a, Scope: scope, Preemptor: preemptor, Queues: betweenQueues(a.Session, scope, preemptor),
		markedByDefault: a.Session.Policy.Configuration.Compatibility.PreemptableByDefault}
	r.isEntitled = r.HasRight
	if r.Guarantees = guaranteed(a.Session, scope, preemptor, r.Queues, r.Wanted); r.Guarantees != nil {
		r.Queues = r.Guarantees
	}
	if scope == decision.BetweenQueues {
		r.poll = a.Session.PollReclaim()
	} else {
		r.poll = a.Session.PollPreempt()
	}
	return r
}

// LowestTaskPriority returns the lowest task priority of the pods of a job.
func (a *Action) LowestTaskPriority(j *cluster.Job) int64 {
	lowest, ok := a.lowest[j]
	if !ok {
		for i, t := range j.Tasks() {
			if i == 0 || int64(t.Priority) < lowest {
				lowest = int64(t.Priority)
			}
		}
		a.lowest[j] = lowest
	}
	return lowest
}

// betweenQueues returns the rules about queues for a preemptor in a scope. Among queues of equal priority only what is
// above a share may be reclaimed, except by a lone pod, for which its own priority counts (rule A3).
func betweenQueues(s *framework.Session, scope decision.Scope, preemptor *cluster.Job) quota.Rules {
	orderOnly := s.Policy.Configuration.Compatibility.QueuePriority == conf.QueuePriorityOrder
	return quota.NewBetween(s.Cluster.Quota(), quota.Between{Preemptor: preemptor.QuotaNode(), Shares: s.Policy.Shares(),
		OrderOnly: orderOnly, SurplusOnly: scope == decision.BetweenQueues, Whole: s.Policy.Whole()}, scope.CrossesQueues())
}

// QueueProtection says what protects all that a queue holds from reclaiming by another queue. It is none if
// nothing does. Rules about single jobs and pods may still protect them.
func QueueProtection(s *framework.Session, from *cluster.Queue, victims *quota.Node) verdict.Protection {
	none := &cluster.Job{Queue: from}
	rules := betweenQueues(s, decision.BetweenQueues, none)
	if subtrees := s.Policy.Subtrees(); subtrees != nil {
		rules = guaranteesOf(s, subtrees, decision.BetweenQueues, none, rules, func() resources.Vector { return nil }, false)
	}
	return quota.Protects(rules, victims)
}

// OverCapability returns a verdict if the capability of a task's queue leaves no room for it, whatever the share (rule
// Q4). Nil means that there is room.
func OverCapability(s *framework.Session, t *cluster.Task) *verdict.Verdict {
	if v := s.MayAllocate(t); v != nil && v.Code != verdict.OverShare {
		return v
	}
	return nil
}

// MayPreempt reports whether a job may look for victims: it is admitted, has pending tasks, and has no plan in force,
// and does not lack a claim that no evictions bring.
func MayPreempt(s *framework.Session, j *cluster.Job) bool {
	return !j.IsPendingAdmission() && j.Plan == nil && j.Count(cluster.Pending) > 0 && !s.Now.Before(j.NotBefore) && s.Validate(j) == nil &&
		!(s.Judged(j) && j.Verdict != nil && j.Verdict.Kinds() == verdict.HelpSupply)
}

// Pauses reports whether no pods are evicted for a job now, see [cluster.LoseRoom], and says so in its verdict.
func Pauses(s *framework.Session, j *cluster.Job) bool {
	if !s.Now.Before(j.EvictsFrom) {
		return false
	}
	s.AddVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpTime, RetryAt: j.EvictsFrom,
		Detail: "the room that was made for it was lost repeatedly, such as to pods of other schedulers; pods are evicted for it again later"})
	return true
}

// ScopeInQueue is the scope of preempt for a job. A lone pod preempts pods of any queue (rule A3).
func ScopeInQueue(j *cluster.Job) decision.Scope {
	if j.IsLone() {
		return decision.Anywhere
	}
	return decision.BetweenJobs
}
