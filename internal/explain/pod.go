package explain

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/gang"
)

// Pod explains the state of a pod. Pods of other schedulers are known once they have a node.
func (m *Model) Pod(now time.Time, key types.NamespacedName) (Pod, error) {
	t := m.cluster.Task(key)
	if t == nil {
		return Pod{}, NotFound{Kind: "Pod", Name: key.String(), Schedulers: m.cache.SchedulerNames()}
	}
	answer := Pod{Pod: key.String(), Status: t.Status.String(), Priority: t.Priority, Requests: m.amounts(t.Request()),
		Evictable: t.Status.Evictable() && t.IsMarked(m.policy.Configuration.Compatibility.PreemptableByDefault), NotAsked: m.notAsked}
	if t.Node != nil {
		answer.Node = t.Node.Name
	}
	if p := t.Evicts; p != nil {
		answer.Plan = p.ID
		if p.Job != nil {
			answer.LeavesFor = p.Job.ID.String()
		}
	}
	if t.Refusal != nil {
		answer.Refused = t.Refusal.Why
	}
	answer.Reason, answer.Message = t.WhyPodWaits(now, gang.PlacedPodReason(m.policy.Configuration))
	j := t.Job
	if j == nil {
		return answer, nil
	}
	answer.Job, answer.Queue = j.ID.String(), j.QueueName
	if t.Status == cluster.Pending {
		answer.Verdict = VerdictOf(j.Verdict)
		m.try(now, func(s *framework.Session) { answer.Nodes = m.refusals(s, []*cluster.Task{t}) })
	}
	return answer, nil
}

// PodCause returns why a pod waits, nil if it has a node or is not known. It is the cause of its job, as far as that is
// known.
func (m *Model) PodCause(now time.Time, key types.NamespacedName) *Cause {
	t := m.cluster.Task(key)
	if t == nil || t.Status != cluster.Pending {
		return nil
	}
	if j := t.Job; j != nil && j.Group != nil && !j.IsForeign {
		return m.Cause(now, j.ID)
	}
	c := &Cause{Code: NotTriedYet, Message: "no PodGroup was made for it yet", Waits: true, Pod: key.String()}
	if t.Job != nil {
		*c = m.ungrouped(t.Job)
	} else if reason, message := t.WhyPodWaits(now, ""); reason != "" {
		c.Code, c.Message = reason, message
	}
	c.Pod = key.String()
	return c
}

// ungrouped is why the pods of a job wait whose PodGroup does not exist, or belongs to another scheduler. It names a
// PodGroup of the same name in another namespace: a pod belongs to one of its own.
func (m *Model) ungrouped(j *cluster.Job) Cause {
	reason, message, _ := j.WhyPodsWait()
	c := Cause{Code: reason, Message: message, Waits: true, Never: true, Where: "PodGroup " + j.ID.String()}
	if j.Group != nil {
		return c
	}
	var elsewhere *cluster.Job
	m.cluster.EachJob(func(other *cluster.Job) {
		if other.ID.Name == j.ID.Name && other.ID.Kind == j.ID.Kind && (elsewhere == nil || other.ID.Compare(elsewhere.ID) < 0) {
			elsewhere = other
		}
	})
	if elsewhere != nil {
		c.Message += fmt.Sprintf("; PodGroup %s does, and a pod belongs to a PodGroup of its own namespace", elsewhere.ID)
	}
	return c
}
