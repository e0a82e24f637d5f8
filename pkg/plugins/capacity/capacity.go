package capacity

import (
	"cmp"
	"fmt"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
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
	levels       int // of ancestors whose shares count when queues reclaim from each other
	cluster      *model.Cluster
	view         *quota.View
	// attainable is the view for jobs without pods yet. It includes nodes with taints that no pod tolerates so far.
	attainable *quota.View
}

func (*plugin) Name() string { return Name }

// IsHierarchical reports whether a placement in one queue may change the order of others, because it changes their
// ancestors.
func (p *plugin) IsHierarchical() bool { return p.hierarchical }

// ValidateJob refuses jobs in queues that have queues below them.
func (p *plugin) ValidateJob(j *cluster.Job) *verdict.Verdict {
	if !p.hierarchical || len(j.Queue.Children) == 0 {
		return nil
	}
	return &verdict.Verdict{Code: verdict.QueueNotLeaf, Subject: j.Queue.Name, Help: verdict.HelpQueue}
}

// OpenSession works out the bounds of all queues.
func (p *plugin) OpenSession(s *framework.Session) {
	p.cluster = s.Cluster
	policy := quota.Policy{Flat: !p.hierarchical, Levels: p.levels, EmptyIsReached: true, Whole: s.Policy.Whole(),
		OrderOnly: s.Policy.Configuration.Compatibility.QueuePriority == conf.QueuePriorityOrder}
	p.attainable = p.bounded(policy, true)
	p.view = p.attainable
	if !p.cluster.Tainted.Total.IsZero() {
		p.view = p.bounded(policy, false)
	}
}

func (p *plugin) bounded(policy quota.Policy, withTainted bool) *quota.View {
	view := quota.NewBounded(p.cluster.Quota(), policy, p.cluster.Resources, p.cluster.Shared(withTainted))
	view.Others = p.cluster.Others()
	return view
}

// MayAllocate keeps the queue, and all queues above it, within their ceilings.
func (p *plugin) MayAllocate(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	return p.refusal(p.view, q, quota.ToPlace(t.Request()))
}

// MayBind does the same while planned evictions may still be refused.
func (p *plugin) MayBind(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	return p.refusal(p.view, q, quota.ToBind(t.Request()))
}

// MayEnqueue admits a job that fits under the ceilings of its queue and all above it, in addition to the jobs admitted
// before.
func (p *plugin) MayEnqueue(j *cluster.Job) (framework.Vote, *verdict.Verdict) {
	view := p.StockView(quota.AdmissionOf(j.AwaitsPods()))
	if v := p.refusal(view, j.Queue, quota.ToAdmit(j.MinResources, j)); v != nil {
		return framework.Reject, v
	}
	if view.IsPart(&j.Queue.Node) {
		return framework.Abstain, nil
	}
	return framework.Permit, nil
}

// StockView returns the ceilings by which jobs are admitted and pods held, and the shares.
func (p *plugin) StockView(purpose quota.Purpose) *quota.View {
	if purpose == quota.ToWideAdmission {
		return p.attainable
	}
	return p.view
}

// LackToAdmit returns what MayEnqueue refuses a job for.
func (p *plugin) LackToAdmit(j *cluster.Job) verdict.Lack {
	return quota.LackToAdmit(p, j.AwaitsPods(), &j.Queue.Node, quota.ToAdmit(j.MinResources, j))
}

// LackToPlace returns what MayAllocate refuses pods for that request so much together.
func (p *plugin) LackToPlace(q *cluster.Queue, more resources.Vector) verdict.Lack {
	return quota.LackToHold(p, &q.Node, more)
}

// LackToReclaim returns what MayReclaim refuses.
func (p *plugin) LackToReclaim(q *cluster.Queue, more resources.Vector) verdict.Lack {
	return quota.LackToDeserve(p, &q.Node, more)
}

// refusal says why a claim does not fit, nil if it does.
func (p *plugin) refusal(view *quota.View, q *cluster.Queue, claim quota.Claim) *verdict.Verdict {
	return view.Refuse(p.cluster.Resources, &q.Node, claim)
}

// Shares returns the bounds of all queues.
func (p *plugin) Shares() *quota.View { return p.view }

// CompareQueues puts higher priority first, then the smaller share; see invariant 4.
func (p *plugin) CompareQueues(a, b *cluster.Queue) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	if !p.hierarchical {
		return p.compareShares(&a.Node, &b.Node)
	}
	if c := compareLeaves(&a.Node, &b.Node); c != 0 {
		return c
	}
	return p.compareBranches(&a.Node, &b.Node)
}

func (p *plugin) compareShares(a, b *quota.Node) int {
	if c := p.view.Ratio(a).Compare(p.view.Ratio(b)); c != 0 {
		return c
	}
	switch isNothing, isNothingToo := p.view.Of(a).Deserved.IsZero(), p.view.Of(b).Deserved.IsZero(); {
	case isNothing && !isNothingToo:
		return 1
	case isNothingToo && !isNothing:
		return -1
	}
	return 0
}

// compareLeaves puts queues without children first.
func compareLeaves(a, b *quota.Node) int {
	return cmp.Compare(min(len(a.Below()), 1), min(len(b.Below()), 1))
}

// compareBranches compares the two branches below the nearest common ancestor of a and b. A queue comes before those
// below it.
func (p *plugin) compareBranches(a, b *quota.Node) int {
	x, y := a, b
	for x.Depth > y.Depth {
		x = x.Above()
	}
	for y.Depth > x.Depth {
		y = y.Above()
	}
	if x == y {
		return cmp.Compare(a.Depth, b.Depth)
	}
	for x.Above() != y.Above() {
		x, y = x.Above(), y.Above()
	}
	if c := p.compareShares(x, y); c != 0 {
		return c
	}
	// If other plugins ordered branches with equal shares queue by queue, the branches could mix, and three queues
	// could be in a circle. Only single queues may be left to other plugins.
	if c := compareLeaves(x, y); c != 0 || x.IsLeaf() {
		return c
	}
	return quota.Compare(x, y)
}
