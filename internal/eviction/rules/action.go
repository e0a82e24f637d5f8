package rules

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/verdict"
)

// Action is what the configuration says of one evicting action, in one session.
type Action struct {
	framework.EvictionRules
	Name    string
	Session *framework.Session

	lowest map[*cluster.Job]int64 // task priority of a pod of the job
}

// Of returns the rules of an action in a session.
func Of(s *framework.Session, action framework.EvictingAction) *Action {
	return &Action{EvictionRules: action.EvictionRules(), Name: action.Name(), Session: s, lowest: map[*cluster.Job]int64{}}
}

// For returns the rules for a preemptor in a scope, as the ledger of queues stands.
func (a *Action) For(scope decision.Scope, preemptor *cluster.Job) *Rules {
	r := &Rules{Action: a, Scope: scope, Preemptor: preemptor, Queues: betweenQueues(a.Session, scope, preemptor),
		markedByDefault: a.Session.Policy.Configuration.Compatibility.PreemptableByDefault}
	r.isEntitled = r.mayTake
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

// betweenQueues are the rules about queues for a preemptor in a scope. Queues that are equal otherwise give only what is above their
// shares, unless a lone pod preempts, which counts with its priority (rule A3).
func betweenQueues(s *framework.Session, scope decision.Scope, preemptor *cluster.Job) quota.Rules {
	orderOnly := s.Policy.Configuration.Compatibility.QueuePriority == conf.QueuePriorityOrder
	return quota.NewBetween(s.Cluster.Quota(), quota.Between{Preemptor: preemptor.QuotaNode(), Shares: s.Policy.Shares(),
		OrderOnly: orderOnly, SurplusOnly: scope == decision.BetweenQueues}, scope.CrossesQueues())
}

// QueueProtection names the rule about queues that protects all that a queue holds at the moment from jobs of another queue that
// reclaim it. It is "" if none does: rules about single jobs and pods may still protect them.
func QueueProtection(s *framework.Session, from *cluster.Queue, victims *quota.Node) string {
	return quota.Protects(betweenQueues(s, decision.BetweenQueues, &cluster.Job{Queue: from}), victims)
}

// OverCapability says why the queue of a pod may not have the pod, whatever its share: a capability forbids it (rule Q4). Nil means
// that it may.
func OverCapability(s *framework.Session, t *cluster.Task) *verdict.Verdict {
	if v := s.MayAllocate(t); v != nil && v.Code != verdict.OverShare {
		return v
	}
	return nil
}

// MayPreempt reports whether a job may look for victims: it was admitted, has pods that wait for a node, and no plan in force.
func MayPreempt(s *framework.Session, j *cluster.Job) bool {
	return !j.IsPendingAdmission() && j.Plan == nil && j.Count(cluster.Pending) > 0 && !s.Now.Before(j.NotBefore) && s.Validate(j) == nil
}
