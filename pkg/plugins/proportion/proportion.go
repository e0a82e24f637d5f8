package proportion

import (
	"cmp"
	"slices"
	"strings"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/internal/quota"
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
	cluster *cluster.Cluster
	limits  map[*cluster.Queue]limits
	divider divider
	total   resources.Vector // that is divided
	ordered bool             // a queue's priority orders, and gives no right to the share of another
}

// limits are what a queue deserves, and what it may hold at most.
type limits struct {
	deserved, ceiling resources.Vector
	// attainable is the ceiling for jobs whose pods are not made yet: with the nodes whose taints nobody tolerates so far.
	attainable resources.Vector
	capability resources.Vector // unlimited where the queue says nothing
	share      resources.Limits // what is deserved of the resources that the cluster has
}

func (*plugin) Name() string { return Name }

// OpenSession works out what every queue deserves that has jobs or guarantees.
func (p *plugin) OpenSession(s *framework.Session) {
	p.cluster = s.Cluster
	p.ordered = s.Policy.Configuration.Compatibility.QueuePriority == conf.QueuePriorityOrder
	total, dims := p.cluster.Shared(false), p.cluster.Resources.Len()
	p.total = total
	var guarantees resources.Vector
	queues := slices.DeleteFunc(p.cluster.Queues(), func(q *cluster.Queue) bool {
		guarantees.Add(q.Guarantee)
		return q.Jobs == 0 && q.Guarantee.IsZero()
	})
	slices.SortFunc(queues, cluster.CompareQueues)
	list := make([]limits, len(queues))
	for n, q := range queues {
		list[n].deserved = make(resources.Vector, dims)
		list[n].capability = make(resources.Vector, dims)
		for i := range dims {
			list[n].capability[i] = q.Capability.Value(resources.Dim(i))
		}
		list[n].ceiling = quota.Ceiling(dims, total, guarantees, q.Guarantee, q.Capability)
		list[n].attainable = list[n].ceiling
		if !p.cluster.Tainted.Total.IsZero() {
			list[n].attainable = quota.Ceiling(dims, p.cluster.Shared(true), guarantees, q.Guarantee, q.Capability)
		}
	}
	portions := slices.Grow(p.divider.portions[:0], len(queues))[:len(queues)]
	p.divider.portions = portions
	for i := range dims {
		d := resources.Dim(i)
		for n, q := range queues {
			floor := q.Guarantee.At(d)
			top := max(min(wanted(q).At(d), list[n].ceiling[d]), floor)
			portions[n] = portion{weight: q.Weight, floor: floor, top: top}
		}
		p.divider.divide(total.At(d))
		for n := range list {
			list[n].deserved[d] = portions[n].amount
		}
	}
	before := p.limits
	p.limits = make(map[*cluster.Queue]limits, len(queues))
	moved := false
	for n, q := range queues {
		list[n].share = quota.Limits(list[n].deserved, total)
		p.limits[q] = list[n]
		moved = moved || moves(q, before[q].deserved, list[n].deserved)
	}
	if moved {
		p.cluster.Note(cluster.ShareChanged)
	}
}

// moves reports whether another share of a queue than before lets somebody have something: the queue wants more and deserves
// more now, or it holds what it deserves no more. What others ask for moves a share too, and nothing else tells of that.
func moves(q *cluster.Queue, before, now resources.Vector) bool {
	for i, deserved := range now {
		d := resources.Dim(i)
		held := q.Own.Allocated.At(d)
		switch was := before.At(d); {
		case deserved > was && wanted(q).At(d) > held, deserved < was && held > deserved:
			return true
		}
	}
	return false
}

// wanted is what a queue would hold if there were room for all.
func wanted(q *cluster.Queue) resources.Vector {
	if q.Problem != "" || !q.Open() {
		return q.Own.Allocated
	}
	return q.Own.Request
}

// CompareQueues puts more priority first, then the smaller share.
func (p *plugin) CompareQueues(a, b *cluster.Queue) int {
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	return p.share(a).Compare(p.share(b))
}

func (p *plugin) share(q *cluster.Queue) resources.Ratio {
	return quota.Worst(q.Own.Allocated, p.limits[q].deserved, p.total)
}

// Share is what the queue deserves, and how far it has come.
func (p *plugin) Share(q *cluster.Queue) framework.Share {
	return framework.Share{Deserved: p.limits[q].share, Share: p.share(q)}
}

// IsSurplus reports whether what would leave a queue lies above what it deserves.
func (p *plugin) IsSurplus(q *cluster.Queue, leaving, wanted resources.Vector) bool {
	return quota.IsSurplus(q.Own.Allocated, p.limits[q].share, leaving, wanted)
}

// Overused holds back a queue that wants more and has all that it deserves, of every resource.
func (p *plugin) Overused(q *cluster.Queue) *verdict.Verdict {
	deserved := p.limits[q].deserved
	if !deserved.LessEqual(q.Own.Allocated) || q.Own.Request.LessEqual(q.Own.Allocated) {
		return nil
	}
	return p.refusal(q, nil)
}

// MayAllocate lets a queue grow up to what it deserves, in the resources that the task requests. A refusal is OverShare only
// if the queue's capability would allow the task; that the cluster is too small is for the nodes to say.
func (p *plugin) MayAllocate(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	capability, claim := p.limits[q].capability, quota.OfTask(t)
	if !claim.Fits(&q.Own, capability) {
		return claim.Refusal(p.cluster.Resources, q, &q.Own, capability)
	}
	return p.overShare(q, claim)
}

// MayBind keeps a queue within its capability while evictions that were decided may be refused still.
func (p *plugin) MayBind(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	capability, claim := p.limits[q].capability, quota.OfBinding(t)
	if claim.Fits(&q.Own, capability) {
		return nil
	}
	return claim.Refusal(p.cluster.Resources, q, &q.Own, capability)
}

// MayTake lets a queue take from others up to what it deserves, as long as it is open (laws Q4, Q5).
func (p *plugin) MayTake(q *cluster.Queue, t *cluster.Task) *verdict.Verdict {
	if v := quota.Closed(q); v != nil {
		return v
	}
	if t.BestEffort() {
		return p.refusal(q, nil) // a pod's place on a node alone gives no right to what others hold
	}
	return p.overShare(q, quota.OfTask(t))
}

func (p *plugin) overShare(q *cluster.Queue, claim quota.Claim) *verdict.Verdict {
	deserved := p.limits[q].deserved
	if claim.Fits(&q.Own, deserved) {
		return nil
	}
	return p.refusal(q, claim.Shortages(p.cluster.Resources, &q.Own, deserved))
}

// VoteReclaim lets pods go as long as their queue holds more than it deserves of some resource, and those of queues with
// less priority than the taker's whatever their queue deserves (law Q1).
func (p *plugin) VoteReclaim(d *framework.Departure) (framework.Vote, string) {
	giver, taker := d.Giver().Queue, d.Taker.Queue
	if !p.ordered && giver.Priority < taker.Priority ||
		quota.IsAbove(giver.Own.Allocated, p.limits[giver].share, p.total) {
		return framework.Permit, ""
	}
	return framework.Reject, quota.WithinShare
}

func (p *plugin) refusal(q *cluster.Queue, shortages []verdict.Shortage) *verdict.Verdict {
	return &verdict.Verdict{Code: verdict.OverShare, Subject: q.Name, Help: verdict.HelpQueue | verdict.HelpNode,
		Shortages: shortages, Detail: p.deserves(q, shortages)}
}

// deserves says what a queue deserves of what is short, or of everything. It leaves out what the queue holds: that changes
// all the time, and every status it is written to would change with it.
func (p *plugin) deserves(q *cluster.Queue, shortages []verdict.Shortage) string {
	var amounts []string
	for i, amount := range p.limits[q].deserved {
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

// MayEnqueue lets a job in that fits under the ceiling of its queue, beside the jobs already let in.
func (p *plugin) MayEnqueue(j *cluster.Job) (framework.Vote, *verdict.Verdict) {
	q, claim := j.Queue, quota.OfJob(j)
	ceiling := p.limits[q].ceiling
	if j.AwaitsPods() {
		ceiling = p.limits[q].attainable
	}
	if claim.Fits(&q.Own, ceiling) {
		return framework.Permit, nil
	}
	return framework.Reject, claim.Refusal(p.cluster.Resources, q, &q.Own, ceiling)
}
