package capacity

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

const notWanted = "nothing they hold is wanted"

// MayReclaim allows a queue to reclaim if it is open (rule Q5), and if it, or a queue above that lends to it, stays
// within its share (rule Q4).
func (p *plugin) MayReclaim(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	if v := q.RefuseClosed(); v != nil {
		return v
	}
	if p.view.Ground(&q.Node, t.Request()) != quota.NoGround {
		return nil
	}
	return p.overShare(q, t)
}

// overShare returns by how much a task exceeds the share.
func (p *plugin) overShare(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	v := &verdict.Verdict{Code: verdict.OverShare, Subject: p.view.Seen(&q.Node).Name, Help: verdict.HelpOwnQueue,
		Shortages: p.view.ShareShortages(p.cluster.Resources, &q.Node, quota.ToPlace(t.Request()))}
	if v.Shortages == nil {
		v.Detail = "it deserves nothing of what is requested"
	}
	return v
}

// VoteReclaim permits evicting pods that hold something wanted, if their queue is above its share.
func (p *plugin) VoteReclaim(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	if p.view.AreOne(&d.VictimJob().Queue.Node, &d.Preemptor.Queue.Node) {
		return framework.Abstain, verdict.Protection{}
	}
	leaving := d.Leaving()
	if !isWanted(d.Preemptor, leaving) {
		return framework.Reject, verdict.Protection{Kind: verdict.ByPlugin, Detail: notWanted}
	}
	if why := p.view.MayGive(&d.VictimJob().Queue.Node, &d.Preemptor.Queue.Node, leaving); why.Exists() {
		return framework.Reject, why
	}
	return framework.Permit, verdict.Protection{}
}

// isWanted reports whether the preemptor's pods together request something of what would leave. Its pods may differ,
// and victims for one of them may make room for another.
func isWanted(preemptor *cluster.Job, leaving resources.Vector) bool {
	for i, amount := range leaving {
		d := resources.Dim(i)
		if amount > 0 && d != resources.Pods && (preemptor.Usage.Request.At(d) > 0 || preemptor.MinResources.At(d) > 0) {
			return true
		}
	}
	return false
}
