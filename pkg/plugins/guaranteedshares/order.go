package guaranteedshares

import (
	"cmp"
	"math"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/quota/guarantee"
	"hekla.sh/hekla/pkg/resources"
)

// service says which queue is served first (rule G14).
type service struct {
	session *framework.Session
	decided framework.Decided // when best was worked out
	// best is the priority of the best waiting job below a queue, as the queue above sees it.
	best map[*quota.Node]int64
	// waiting are the jobs that waited when the session began, nil before the first question. Those that nothing has
	// helped since their last verdict count too, so that the order is the same in a scheduler that has just begun.
	waiting map[*cluster.Queue][]*cluster.Job
}

// nothing is the priority of a queue in which no job waits.
const nothing = math.MinInt64

// bestOf returns the priority of the best waiting job below a queue, as the queue above sees it.
func (o *service) bestOf(n *quota.Node) int64 {
	if o.waiting == nil {
		o.list()
	}
	if decided := o.session.Decided(); o.best == nil || o.decided != decided {
		o.decided, o.best = decided, map[*quota.Node]int64{}
		for q := range o.waiting {
			o.lookAt(q)
		}
	}
	if best, ok := o.best[n]; ok {
		return best
	}
	return nothing
}

// list lists the waiting jobs of each queue that do not lack pods, the best first.
func (o *service) list() {
	o.waiting = map[*cluster.Queue][]*cluster.Job{}
	for _, j := range o.session.Cluster.Waiting() {
		if j.Queue != nil && !j.IsForeign && waits(j) && o.session.Validate(j) == nil {
			o.waiting[j.Queue] = append(o.waiting[j.Queue], j)
		}
	}
	for _, jobs := range o.waiting {
		slices.SortFunc(jobs, func(a, b *cluster.Job) int { return cmp.Compare(b.Priority, a.Priority) })
	}
}

// waits reports whether a job is to be admitted, or has pods that wait for nodes.
func waits(j *cluster.Job) bool { return j.IsPendingAdmission() || j.Count(cluster.Pending) > 0 }

// lookAt adds the best waiting job of a queue to the queue and all above it. Offsets and fences keep the order of
// priorities, so only the best job counts. Those before it have been served in this session.
func (o *service) lookAt(q *cluster.Queue) {
	jobs := o.waiting[q]
	first := slices.IndexFunc(jobs, waits)
	if first < 0 {
		return
	}
	for n := q.QuotaNode(); n != nil; n = n.Above() {
		relative := guarantee.Relative(q.QuotaNode(), n.Above(), jobs[first].Priority)
		if known, ok := o.best[n]; !ok || relative > known {
			o.best[n] = relative
		}
	}
}

// IsHierarchical reports that a placement in one queue may change the order of others, because it changes those above
// them.
func (*plugin) IsHierarchical() bool { return true }

// CompareQueues compares two queues where their ways part (rule G14). The better waiting job comes first, unless the
// queue above both says that priorities do not count. Then comes the queue that holds less of its guarantee, then the
// older.
func (p *plugin) CompareQueues(a, b *cluster.Queue) int {
	c := guarantee.Common(a.QuotaNode(), b.QuotaNode())
	if c == nil || !p.subtrees.Contains(c) {
		return 0
	}
	x, y := below(c, a.QuotaNode()), below(c, b.QuotaNode())
	if x == c || y == c {
		return cmp.Compare(a.Depth, b.Depth) // one is above the other, and has no jobs of its own
	}
	if p.subtrees.CountsPriorities(c) {
		if order := cmp.Compare(p.service.bestOf(y), p.service.bestOf(x)); order != 0 {
			return order
		}
	}
	if order := p.heldOf(x).Compare(p.heldOf(y)); order != 0 {
		return order
	}
	return quota.Compare(x, y)
}

// below returns the queue directly below c on the way of n, c itself if n is c.
func below(c, n *quota.Node) *quota.Node {
	for n != c && n.Above() != c {
		n = n.Above()
	}
	return n
}

// heldOf is the largest ratio of what a queue holds to its guarantee. Where that names nothing, the lowest capability
// above counts, and without one the cluster.
func (p *plugin) heldOf(n *quota.Node) resources.Ratio {
	worst := resources.Ratio{Den: 1}
	for i, held := range n.Subtree.Allocated {
		d := resources.Dim(i)
		if held <= 0 {
			continue
		}
		limit, isNamed := n.Guarantee.At(d)
		if !isNamed {
			if d == resources.Pods {
				continue
			}
			limit = p.cluster.Totals.Size(d)
			for m := n; m != nil; m = m.Above() {
				limit = min(limit, m.Capability.Value(d))
			}
		}
		if ratio := (resources.Ratio{Num: held, Den: limit}); ratio.Compare(worst) > 0 {
			worst = ratio
		}
	}
	return worst
}

// CompareJobs compares two jobs of a queue (rule G14): by priority, unless the queue says that priorities do not count.
// With the order fair the job that holds less comes first. The older job comes first otherwise, see
// [cluster.CompareJobs].
func (p *plugin) CompareJobs(a, b *cluster.Job) int {
	n := a.QuotaNode()
	if !p.subtrees.Contains(n) {
		return 0
	}
	if p.subtrees.CountsPriorities(n) {
		if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
			return c
		}
	}
	if !p.subtrees.IsFair(n) {
		return 0
	}
	return p.shareOf(n, a).Compare(p.shareOf(n, b))
}

// shareOf is the dominant share of a job of the guarantee of its queue. Where that names nothing, the capability
// counts, and without one the cluster.
func (p *plugin) shareOf(n *quota.Node, j *cluster.Job) resources.Ratio {
	worst := resources.Ratio{Den: 1}
	for i, held := range j.Usage.Allocated {
		d := resources.Dim(i)
		limit, isNamed := n.Guarantee.At(d)
		if !isNamed {
			limit = min(n.Capability.Value(d), p.cluster.Totals.Size(d))
		}
		if ratio := (resources.Ratio{Num: held, Den: limit}); held > 0 && (isNamed || d != resources.Pods) && ratio.Compare(worst) > 0 {
			worst = ratio
		}
	}
	return worst
}
