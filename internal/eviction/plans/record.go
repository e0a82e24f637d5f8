package plans

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// slack is added to the time for which the victims are counted on to end, for API requests.
const slack = 30 * time.Second

// Deadline is the time at which the nominated nodes should be free: when the victims, and the pods that others have
// deleted on these nodes, are not counted on to end any more.
func Deadline(s *framework.Session, p *cluster.Plan, promised []*cluster.Task) time.Time {
	now := s.Now
	last := now.Add(cluster.LeastAllowance)
	if slices.ContainsFunc(promised, func(t *cluster.Task) bool { return t.Class.NeedsSupplies() || s.Cluster.DependsOnPods(t.Class) }) {
		// Such a task may have to wait for pods on other nodes.
		if gone := s.Cluster.LastDue(); gone.After(last) {
			last = gone
		}
	}
	for _, t := range p.Victims {
		if gone := now.Add(t.Grace() + t.Allowance(now)); gone.After(last) {
			last = gone
		}
	}
	for _, t := range promised {
		for _, other := range t.Node.Tasks() {
			if due := other.Due(); due.After(last) {
				last = due
			}
		}
	}
	return last.Add(slack)
}

// Mention is the part of a victim's message that names the plan.
func Mention(plan string) string { return "(plan " + plan + ")" }

// ShowProgress sets a verdict on the job of a plan, which says how many victims are gone.
func ShowProgress(s *framework.Session, p *cluster.Plan) {
	v := &verdict.Verdict{Code: verdict.Preempting, Help: verdict.HelpNode | verdict.HelpPod | verdict.HelpTime,
		Placed: p.Evictions - len(p.Victims), Wanted: p.Evictions}
	if p.Evictions == 0 {
		v.Detail = "they were being deleted before, and no pod is evicted for it"
	}
	s.Cluster.SetVerdict(p.Job, v)
}
