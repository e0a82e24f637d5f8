package capacity

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/internal/quota"
	"hekla.sh/hekla/pkg/resources"
)

func (p *plugin) OpenSession(s *framework.Session) {
	p.cluster = s.Cluster
	p.ordered = s.Policy.Configuration.Compatibility.QueuePriority == conf.QueuePriorityOrder
	queues := p.cluster.Queues()
	p.boundAll(queues, p.cluster.Shared(true))
	p.attainable = p.bounds
	if !p.cluster.Tainted.Total.IsZero() {
		p.boundAll(queues, p.cluster.Shared(false))
	}
}

// boundAll works out what all queues may hold in a cluster of a size.
func (p *plugin) boundAll(queues []*cluster.Queue, total resources.Vector) {
	p.total, p.bounds = total, make(map[*cluster.Queue]*bounds, len(queues))
	if p.hierarchical {
		p.boundTree(queues)
	} else {
		p.boundFlat(queues)
	}
}

func (p *plugin) boundFlat(queues []*cluster.Queue) {
	var guarantees resources.Vector
	for _, q := range queues {
		guarantees.Add(q.Guarantee)
	}
	for _, q := range queues {
		p.bounds[q] = &bounds{guarantee: q.Guarantee}
		p.bound(q, p.total, guarantees)
	}
}

func (p *plugin) boundTree(queues []*cluster.Queue) {
	root := p.cluster.Root()
	p.guarantee(root)
	p.bound(root, p.total, p.bounds[root].guarantee)
	p.boundChildren(root)
	b := p.bounds[root]
	b.deserved, b.counted = nil, nil
	for _, child := range root.Children {
		b.deserved.Add(p.bounds[child].deserved)
		b.counted.Add(p.bounds[child].counted)
	}
	b.share = quota.Limits(b.deserved, b.counted)
	// A queue without a place in the tree starts nothing; what it holds is shown against what it says.
	for _, q := range queues {
		if q.Problem != "" {
			p.bounds[q] = &bounds{guarantee: q.Guarantee}
			p.bound(q, p.total, q.Guarantee)
		}
	}
}

// guarantee works out what a queue and all below it are guaranteed, children first.
func (p *plugin) guarantee(q *cluster.Queue) resources.Vector {
	b := &bounds{guarantee: make(resources.Vector, p.cluster.Resources.Len())}
	for _, child := range q.Children {
		b.guarantee.Add(p.guarantee(child))
	}
	b.guarantee.AtLeast(q.Guarantee)
	p.bounds[q] = b
	return b.guarantee
}

// boundChildren bounds all queues below one that is bound itself.
func (p *plugin) boundChildren(q *cluster.Queue) {
	var guarantees resources.Vector
	for _, child := range q.Children {
		guarantees.Add(p.bounds[child].guarantee)
	}
	for _, child := range q.Children {
		p.bound(child, p.bounds[q].ceiling, guarantees)
		p.boundChildren(child)
	}
}

// bound works out what one queue may hold of a room in which it and its siblings have guarantees.
func (p *plugin) bound(q *cluster.Queue, room, guarantees resources.Vector) {
	b, dims := p.bounds[q], p.cluster.Resources.Len()
	b.ceiling = quota.Ceiling(dims, room, guarantees, b.guarantee, q.Capability)
	b.deserved, b.counted = make(resources.Vector, dims), make(resources.Vector, dims)
	for i := range dims {
		d := resources.Dim(i)
		written, named := q.Deserved.At(d)
		b.deserved[d] = max(min(written, b.ceiling[d]), b.guarantee.At(d))
		if named || b.guarantee.At(d) > 0 {
			b.counted[d] = p.total.At(d)
		}
	}
	b.share = quota.Limits(b.deserved, b.counted)
}
