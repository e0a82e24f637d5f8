package explain

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// Pod explains the state of a pod. Pods of other schedulers are known once they have a node.
func (m *Model) Pod(now time.Time, key types.NamespacedName) (Pod, error) {
	t := m.cluster.Task(key)
	if t == nil {
		return Pod{}, NotFound{"Pod", key.String()}
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
