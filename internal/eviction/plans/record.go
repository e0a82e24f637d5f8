package plans

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// slack is how much longer a plan waits than its last victim has to end, for the requests and the kubelet.
const slack = time.Minute

// Deadline is when the room of a plan should be free: its victims have ended, and so have the pods that others have deleted on the
// nodes that it promises.
func Deadline(s *framework.Session, p *cluster.Plan, promised []*cluster.Task) time.Time {
	now := s.Now
	last := now
	if slices.ContainsFunc(promised, func(t *cluster.Task) bool { return t.Class.NeedsSupplies() || s.Cluster.DependsOnPods(t.Class) }) {
		// What keeps such a pod from its node may be leaving anywhere.
		if gone := s.Cluster.LastToLeave(); gone.After(last) {
			last = gone
		}
	}
	for _, t := range p.Victims {
		if gone := now.Add(t.Grace()); gone.After(last) {
			last = gone
		}
	}
	for _, t := range promised {
		for _, other := range t.Node.Tasks() {
			if stamp := other.Pod.DeletionTimestamp; other.Status == cluster.Releasing && stamp != nil && stamp.After(last) {
				last = stamp.Time
			}
		}
	}
	return last.Add(slack)
}

// Mention is how the messages on the victims of a plan name it.
func Mention(plan string) string { return "(plan " + plan + ")" }

// ShowProgress sets the verdict of a job with a plan: how far the plan has come.
func ShowProgress(s *framework.Session, p *cluster.Plan) {
	v := &verdict.Verdict{Code: verdict.Preempting, Help: verdict.HelpNode | verdict.HelpPod | verdict.HelpTime,
		Placed: p.Evictions - len(p.Victims), Wanted: p.Evictions}
	if p.Evictions == 0 {
		v.Detail = "they were being deleted before, and no pod is evicted for it"
	}
	s.Cluster.SetVerdict(p.Job, v)
}
