package proportion

import (
	"cmp"
	"slices"
	"strings"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the plugin in the configuration.
const Name = "proportion"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{Name: Name, New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) {
		return &plugin{}, nil
	}}
}

type plugin struct {
	cluster *model.Cluster
	view    *quota.View
	// attainable has the ceilings for jobs without pods yet. It includes nodes with taints that no pod tolerates so
	// far.
	attainable *quota.View
	written    *quota.View // the limits by the specs of the queues
	divider    divider
}

func (*plugin) Name() string { return Name }

// OpenSession works out the share of every queue with jobs or a guarantee.
func (p *plugin) OpenSession(s *framework.Session) {
	p.cluster = s.Cluster
	policy := quota.Policy{Flat: true, Strict: true, AnyExcess: true, Whole: s.Policy.Whole(),
		OrderOnly: s.Policy.Configuration.Compatibility.QueuePriority == conf.QueuePriorityOrder}
	p.written = quota.Written(policy)
	var guarantees resources.Vector
	queues := slices.DeleteFunc(p.cluster.Queues(), func(q *cluster.Queue) bool {
		if p.written.Seen(&q.Node) != &q.Node {
			return true // a part of a subtree that counts as one queue
		}
		guarantee := q.Guarantee.Vector()
		guarantees.Add(guarantee)
		return q.Jobs == 0 && guarantee.IsZero() && !p.written.IsPart(&q.Node)
	})
	slices.SortFunc(queues, cluster.CompareQueues)
	total := p.cluster.Shared(false)
	p.view = p.within(policy, queues, total, guarantees)
	p.attainable = p.view
	if !p.cluster.Tainted.Total.IsZero() {
		p.attainable = p.within(policy, queues, p.cluster.Shared(true), guarantees)
	}
	p.share(queues, total)
}

// within returns a view with the ceilings of queues, given the size of the cluster and the sum of all guarantees,
// without shares.
func (p *plugin) within(policy quota.Policy, queues []*cluster.Queue, room, guarantees resources.Vector) *quota.View {
	view, dims := quota.NewView(p.cluster.Quota(), policy), p.cluster.Resources.Len()
	view.Others = p.cluster.Others()
	amounts, present := make(resources.Vector, len(queues)*dims), make([]bool, dims)
	for d := range present {
		present[d] = true
	}
	for n, q := range queues {
		ceiling := amounts[n*dims : (n+1)*dims : (n+1)*dims]
		for i := range ceiling {
			d := resources.Dim(i)
			own := q.Guarantee.Amount(d)
			ceiling[i] = quota.Ceiling(room.At(d), guarantees.At(d), own, q.Terms.Ceiling(d))
		}
		view.Bound(&q.Node).Ceiling = resources.LimitsOf(ceiling, present)
	}
	return view
}

// share divides the cluster among queues, resource by resource.
func (p *plugin) share(queues []*cluster.Queue, total resources.Vector) {
	dims := p.cluster.Resources.Len()
	amounts, counts := make(resources.Vector, len(queues)*dims), make([]bool, dims)
	for n, q := range queues {
		b := p.view.Bound(&q.Node)
		b.Deserved = amounts[n*dims : (n+1)*dims : (n+1)*dims]
		b.Share = resources.LimitsOf(b.Deserved, counts)
	}
	portions := slices.Grow(p.divider.portions[:0], len(queues))[:len(queues)]
	p.divider.portions = portions
	for i := range dims {
		d := resources.Dim(i)
		counts[d] = total.At(d) > 0
		for n, q := range queues {
			floor := q.Guarantee.Amount(d)
			top := max(min(p.wanted(q).At(d), p.view.Of(&q.Node).Ceiling.Value(d)), floor)
			portions[n] = portion{weight: q.Weight, floor: floor, top: top}
		}
		p.divider.divide(total.At(d))
		for n := range queues {
			amounts[n*dims+i] = portions[n].amount
		}
	}
}

// wanted is what a queue requests.
func (p *plugin) wanted(q *cluster.Queue) resources.Vector {
	held := p.written.Held(&q.Node)
	if q.Problem != "" || !q.Open() {
		return held.Allocated
	}
	return held.Request
}

// CompareQueues puts higher priority first, then the smaller ratio of what is held to the share.
func (p *plugin) CompareQueues(a, b *cluster.Queue) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	return p.view.Ratio(&a.Node).Compare(p.view.Ratio(&b.Node))
}

// Shares returns the bounds of all queues.
func (p *plugin) Shares() *quota.View { return p.view }

// Overused refuses a queue that requests more and holds all that it deserves, of every resource.
func (p *plugin) Overused(q *cluster.Queue) *verdict.Verdict {
	if !p.view.IsSaturated(&q.Node) {
		return nil
	}
	return p.refusal(q, nil)
}

// MayAllocate lets a queue hold up to what it deserves, of the resources that the task requests. The verdict is
// OverShare only if the queue's capability has room for the task. That the cluster is too small is reported by the
// search for nodes.
func (p *plugin) MayAllocate(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	claim := quota.ToPlace(t.Request())
	if refusal := p.written.Refuse(p.cluster.Resources, &q.Node, claim); refusal != nil {
		return refusal
	}
	return p.overShare(q, claim)
}

// MayBind keeps a queue within its capability while planned evictions may still be refused.
func (p *plugin) MayBind(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	return p.written.Refuse(p.cluster.Resources, &q.Node, quota.ToBind(t.Request()))
}

// MayReclaim allows a queue to reclaim up to what it deserves, if it is open (rules Q4, Q5). The number of pods alone
// gives no right to reclaim.
func (p *plugin) MayReclaim(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	switch v := q.RefuseClosed(); {
	case v != nil:
		return v
	case t.BestEffort():
		return p.refusal(q, nil)
	case p.view.Ground(&q.Node, t.Request()) != quota.NoGround:
		return nil
	}
	return p.refusal(q, p.view.ShareShortages(p.cluster.Resources, &q.Node, quota.ToPlace(t.Request())))
}

// overShare returns a verdict if a claim does not fit into the share of a queue, otherwise nil.
func (p *plugin) overShare(q *cluster.Queue, claim quota.Claim) *verdict.Verdict {
	if short := p.view.ShareShortages(p.cluster.Resources, &q.Node, claim); short != nil {
		return p.refusal(q, short)
	}
	return nil
}

// VoteReclaim permits evicting pods if their queue holds more than it deserves of some resource. Against a preemptor of
// higher queue priority it always does (rule Q1).
func (p *plugin) VoteReclaim(d *framework.VictimProposal) (framework.Vote, verdict.Protection) {
	if p.view.AreOne(&d.VictimJob().Queue.Node, &d.Preemptor.Queue.Node) {
		return framework.Abstain, verdict.Protection{}
	}
	if why := p.view.MayGive(&d.VictimJob().Queue.Node, &d.Preemptor.Queue.Node, d.Leaving()); why.Exists() {
		return framework.Reject, why
	}
	return framework.Permit, verdict.Protection{}
}

func (p *plugin) refusal(q *cluster.Queue, shortages []verdict.Shortage) *verdict.Verdict {
	return &verdict.Verdict{Code: verdict.OverShare, Subject: p.view.Seen(&q.Node).Name, Help: verdict.HelpOwnQueue, OfCluster: true,
		Shortages: shortages, Detail: p.deserves(q, shortages)}
}

// deserves says what a queue deserves of what is short, or of everything. It does not say what the queue holds: that
// changes all the time, and every status that contains it would be written again.
func (p *plugin) deserves(q *cluster.Queue, shortages []verdict.Shortage) string {
	var amounts []string
	for i, amount := range p.view.Of(&q.Node).Deserved {
		name := p.cluster.Resources.Name(resources.Dim(i))
		isShort := slices.ContainsFunc(shortages, func(s verdict.Shortage) bool { return s.Resource == name })
		if isShort || len(shortages) == 0 && amount > 0 {
			amounts = append(amounts, string(name)+" "+resources.Format(name, amount))
		}
	}
	if amounts == nil {
		return "it deserves nothing"
	}
	return "it deserves " + strings.Join(amounts, ", ")
}

// MayEnqueue admits a job that fits under the ceiling of its queue, in addition to the jobs admitted before.
func (p *plugin) MayEnqueue(j *cluster.Job) (framework.Vote, *verdict.Verdict) {
	view := p.StockView(quota.AdmissionOf(j.AwaitsPods()))
	if refusal := view.Refuse(p.cluster.Resources, &j.Queue.Node, quota.ToAdmit(j.MinResources, j)); refusal != nil {
		return framework.Reject, refusal
	}
	if view.IsPart(&j.Queue.Node) {
		return framework.Abstain, nil
	}
	return framework.Permit, nil
}

// StockView returns the ceilings by which jobs are admitted and pods held, and the shares.
func (p *plugin) StockView(purpose quota.Purpose) *quota.View {
	switch purpose {
	case quota.ToWideAdmission:
		return p.attainable
	case quota.ToHolding:
		return p.written
	default:
		return p.view
	}
}

// LackToAdmit returns what MayEnqueue refuses a job for.
func (p *plugin) LackToAdmit(j *cluster.Job) verdict.Lack {
	return quota.LackToAdmit(p, j.AwaitsPods(), &j.Queue.Node, quota.ToAdmit(j.MinResources, j))
}

// LackToPlace returns what MayAllocate refuses pods for that request so much together.
func (p *plugin) LackToPlace(q *cluster.Queue, more resources.Vector) verdict.Lack {
	if lack := quota.LackToHold(p, &q.Node, more); lack.Stock != nil {
		return lack
	}
	return quota.LackToDeserve(p, &q.Node, more)
}

// LackToReclaim returns what MayReclaim refuses.
func (p *plugin) LackToReclaim(q *cluster.Queue, more resources.Vector) verdict.Lack {
	return quota.LackToDeserve(p, &q.Node, more)
}
