package capacity

import (
	"cmp"
	"fmt"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/internal/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Name is the name of the plugin in the configuration.
const Name = "capacity"

const ancestorLevelKey = "ancestorReclaimLevel"

const noClaims = "resource claims are not counted yet, whatever it says"

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{Arguments: []conf.Argument{
			{Name: ancestorLevelKey, Kind: conf.Int, Default: 0,
				Doc: "With enableHierarchy: how many levels of queues above one may lend it their share when it takes from others, and protect it with theirs when it gives."},
			{Name: "capacity.DynamicResourceAllocationEnable", Kind: conf.Bool, Doc: "Counts resource claims.",
				NoEffect: noClaims},
			{Name: "capacity.DRAConsumableCapacityEnable", Kind: conf.Bool, Doc: "Counts parts of shared devices.",
				NoEffect: noClaims},
		}},
		New: newPlugin,
	}
}

func newPlugin(on conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	levels := arguments.Int(ancestorLevelKey)
	if levels < 0 {
		return nil, fmt.Errorf("%s is %d: it must not be below 0", ancestorLevelKey, levels)
	}
	return &plugin{hierarchical: on.On(conf.EnableHierarchy), levels: levels}, nil
}

type plugin struct {
	hierarchical bool
	levels       int  // of ancestors whose share counts when queues take from each other
	ordered      bool // a queue's priority orders, and gives no right to the share of another
	cluster      *cluster.Cluster
	bounds       map[*cluster.Queue]*bounds
	// attainable are the bounds for jobs whose pods are not made yet: with the nodes whose taints nobody tolerates so far.
	attainable map[*cluster.Queue]*bounds
	total      resources.Vector // of the cluster, while bounds are worked out
}

// bounds are what a queue may hold.
type bounds struct {
	guarantee, deserved, ceiling resources.Vector
	counted                      resources.Vector // positive for the resources that count in the share
	share                        resources.Limits // what is deserved of those
}

func (*plugin) Name() string { return Name }

// IsHierarchical reports whether a placement in one queue can change the order of others: it changes their ancestors.
func (p *plugin) IsHierarchical() bool { return p.hierarchical }

// ValidateJob refuses jobs in queues that have queues below them.
func (p *plugin) ValidateJob(j *cluster.Job) *verdict.Verdict {
	if !p.hierarchical || len(j.Queue.Children) == 0 {
		return nil
	}
	return &verdict.Verdict{Code: verdict.QueueNotLeaf, Subject: j.Queue.Name, Help: verdict.HelpQueue}
}

// usage is what counts as held by a queue, and above is the queue that holds it too.
func (p *plugin) usage(q *cluster.Queue) *cluster.Usage {
	if p.hierarchical {
		return &q.Subtree
	}
	return &q.Own
}

func (p *plugin) above(q *cluster.Queue) *cluster.Queue {
	if p.hierarchical {
		return q.Parent
	}
	return nil
}

// MayAllocate keeps the queue, and all above it, within their ceilings.
func (p *plugin) MayAllocate(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	return p.refusal(q, quota.OfTask(t), p.bounds)
}

// MayBind does the same while evictions that were decided may be refused still.
func (p *plugin) MayBind(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	return p.refusal(q, quota.OfBinding(t), p.bounds)
}

// MayEnqueue lets a job in that fits under the ceilings of its queue and all above it, beside the jobs already let in.
func (p *plugin) MayEnqueue(j *cluster.Job) (framework.Vote, *verdict.Verdict) {
	bounds := p.bounds
	if j.AwaitsPods() {
		bounds = p.attainable
	}
	if v := p.refusal(j.Queue, quota.OfJob(j), bounds); v != nil {
		return framework.Reject, v
	}
	return framework.Permit, nil
}

// refusal says why a claim does not fit. Of the queues it does not fit into, the highest is named: while that one is full,
// room further down is of no use.
func (p *plugin) refusal(q *cluster.Queue, claim quota.Claim, bounds map[*cluster.Queue]*bounds) *verdict.Verdict {
	var full *cluster.Queue
	for ; q != nil; q = p.above(q) {
		if !claim.Fits(p.usage(q), bounds[q].ceiling) {
			full = q
		}
	}
	if full == nil {
		return nil
	}
	return claim.Refusal(p.cluster.Resources, full, p.usage(full), bounds[full].ceiling)
}

// Share is what the queue deserves, and how far it has come.
func (p *plugin) Share(q *cluster.Queue) framework.Share {
	return framework.Share{Ceiling: p.bounds[q].ceiling, Deserved: p.bounds[q].share, Share: p.share(q)}
}

// IsSurplus reports whether what would leave a queue lies above what it deserves.
func (p *plugin) IsSurplus(q *cluster.Queue, leaving, wanted resources.Vector) bool {
	return quota.IsSurplus(p.usage(q).Allocated, p.bounds[q].share, leaving, wanted)
}

func (p *plugin) share(q *cluster.Queue) resources.Ratio {
	b := p.bounds[q]
	if b.deserved.IsZero() {
		return resources.Ratio{Num: 1, Den: 1}
	}
	return quota.Worst(p.usage(q).Allocated, b.deserved, b.counted)
}

// CompareQueues puts more priority first, then the smaller share; see invariant 4.
func (p *plugin) CompareQueues(a, b *cluster.Queue) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	if !p.hierarchical {
		return p.compareShares(a, b)
	}
	if c := compareLeaves(a, b); c != 0 {
		return c
	}
	return p.compareBranches(a, b)
}

func (p *plugin) compareShares(a, b *cluster.Queue) int {
	if c := p.share(a).Compare(p.share(b)); c != 0 {
		return c
	}
	switch isNothing, isNothingToo := p.bounds[a].deserved.IsZero(), p.bounds[b].deserved.IsZero(); {
	case isNothing && !isNothingToo:
		return 1
	case isNothingToo && !isNothing:
		return -1
	}
	return 0
}

// compareLeaves puts queues without children first.
func compareLeaves(a, b *cluster.Queue) int {
	return cmp.Compare(min(len(a.Children), 1), min(len(b.Children), 1))
}

// compareBranches compares the queues where the ways from the root to a and b part; a queue comes before those below it.
func (p *plugin) compareBranches(a, b *cluster.Queue) int {
	x, y := a, b
	for x.Depth > y.Depth {
		x = x.Parent
	}
	for y.Depth > x.Depth {
		y = y.Parent
	}
	if x == y {
		return cmp.Compare(a.Depth, b.Depth)
	}
	for x.Parent != y.Parent {
		x, y = x.Parent, y.Parent
	}
	if c := p.compareShares(x, y); c != 0 {
		return c
	}
	// Were branches with equal shares left to others to order, queue by queue, they could mix, and three queues go round
	// in a circle. Only single queues may be left to them.
	if c := compareLeaves(x, y); c != 0 || len(x.Children) == 0 {
		return c
	}
	return cluster.CompareQueues(x, y)
}
