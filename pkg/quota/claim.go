package quota

import (
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Claim is what a task or a job asks of a queue.
type Claim struct {
	whole resources.Vector // what it wants in all
	lacks Lacker           // says what of it is missing; nil if all is
	// beside is the part of the ledger that it competes with beside what is held; Allocated if there is none.
	beside Part
}

// Lacker says how much of what it wants in all a job has not got, of one resource.
type Lacker interface {
	LacksResource(d resources.Dim) int64
}

// ToPlace is the claim of a task that is to be placed.
func ToPlace(request resources.Vector) Claim { return Claim{whole: request} }

// ToBind is the claim of a task that is to be bound now. What is to leave for others and was not told yet may stay in the end:
// then the queue would hold both, and not what was promised room.
func ToBind(request resources.Vector) Claim { return Claim{whole: request, beside: Unsettled} }

// ToAdmit is the claim of a job that waits for admission: its minResources, less what it holds already and what gates hold of
// it. It competes with what admitted jobs still lack. In Volcano what jobs hold beyond their minimum does not count there. Here it
// does, unless it may leave: that is for the actions that evict to find out (rule J4).
func ToAdmit(minResources resources.Vector, lacks Lacker) Claim {
	return Claim{whole: minResources, lacks: lacks, beside: Inqueue}
}

func (c *Claim) need(d resources.Dim) int64 {
	if c.lacks != nil {
		return c.lacks.LacksResource(d)
	}
	return c.whole.At(d)
}

// besides is what it competes with in a usage beside what is held.
func (c *Claim) besides(u *Usage, d resources.Dim) int64 {
	if c.beside == Allocated {
		return 0
	}
	return u.Part(c.beside).At(d)
}

// isOver reports whether a need, the claim's or what is left of it, is more than a node has room for. rest is what is left of it for
// the node above, once the node has covered what it can with what it withholds. It is not above zero if that is enough; where a
// node above is over its ceiling, it does not fit even then.
func (v *View) isOver(n *Node, c *Claim, need int64, d resources.Dim) (rest int64, isOver bool) {
	used, withheld := v.used(n, d)
	used += c.besides(v.Held(n), d)
	rest = need - max(withheld-max(used, 0), 0)
	return rest, rest > v.Of(n).Ceiling.Value(d)-max(used, withheld)
}

// Fits reports whether a claim fits under the ceilings of a node and of all above it.
func (v *View) Fits(n *Node, c Claim) bool {
	for i := range c.whole {
		d := resources.Dim(i)
		need, isOver := c.need(d), false
		if need <= 0 {
			continue
		}
		for m := n; m != nil; m = v.above(m) {
			if need, isOver = v.isOver(m, &c, need, d); isOver {
				return false
			}
		}
	}
	return true
}

// Full returns the highest of the nodes that a claim does not fit into, nil if it fits: while that one is full, room further down is
// of no use. Lowest is the same from the other end.
func (v *View) Full(n *Node, c Claim) (highest, lowest *Node) {
	for i := range c.whole {
		d := resources.Dim(i)
		need, isOver := c.need(d), false
		if need <= 0 {
			continue
		}
		for m := n; m != nil; m = v.above(m) {
			if need, isOver = v.isOver(m, &c, need, d); !isOver {
				continue
			}
			if highest == nil || m.Depth < highest.Depth {
				highest = m
			}
			if lowest == nil || m.Depth > lowest.Depth {
				lowest = m
			}
		}
	}
	return highest, lowest
}

// Room is how much more of a resource a node may use, in itself and in all above it. It is negative where a ceiling is exceeded.
func (v *View) Room(n *Node, d resources.Dim) int64 {
	used, withheld := v.used(n, d)
	room := v.Of(n).Ceiling.Value(d) - max(used, withheld)
	if above := v.above(n); above != nil {
		room = min(room, v.Room(above, d))
	}
	if free := max(withheld-max(used, 0), 0); room < resources.Unlimited-free {
		room += free
	}
	return room
}

// shortages returns what is missing for a claim to fit under limits, beside what a usage holds, by dimension.
func (c *Claim) shortages(index *resources.Index, u *Usage, limit func(resources.Dim) int64) []verdict.Shortage {
	var shortages []verdict.Shortage
	for i := range c.whole {
		d := resources.Dim(i)
		need, have := c.need(d), max(limit(d)-u.Allocated.At(d)-c.besides(u, d), 0)
		if need > 0 && need > have {
			shortages = append(shortages, verdict.Shortage{Resource: index.Name(d), Need: need, Have: have})
		}
	}
	return shortages
}

// Shortages returns what is missing for a claim to fit under the ceiling of a node, by dimension.
func (v *View) Shortages(index *resources.Index, n *Node, c Claim) []verdict.Shortage {
	return c.shortages(index, v.Held(n), v.Of(n).Ceiling.Value)
}

// Refusal says why a claim does not fit under the ceiling of a node.
func (v *View) Refusal(index *resources.Index, n *Node, c Claim) *verdict.Verdict {
	ceiling := v.Of(n).Ceiling.Value
	refusal := &verdict.Verdict{Code: verdict.OverCapability, Subject: n.Name, Help: verdict.HelpQueue}
	alone := ToPlace(c.whole)
	if refusal.Shortages = alone.shortages(index, &Usage{}, ceiling); refusal.Shortages != nil {
		refusal.Code = verdict.TooLargeForQueue
		refusal.Help |= verdict.HelpJob
	} else {
		refusal.Shortages = v.Shortages(index, n, c)
	}
	for _, s := range refusal.Shortages {
		d, _ := index.Find(s.Resource)
		if ceiling(d) < n.Capability.Value(d) {
			refusal.Help |= verdict.HelpNode
			refusal.Detail = "its limit is the size of the cluster less what other queues are guaranteed"
			if refusal.Code == verdict.OverCapability {
				refusal.Code = verdict.OverCluster
			}
		}
	}
	return refusal
}

// OverCapability says which queue would hold more than its capability with an amount (rule Q4), nil if none would.
func OverCapability(index *resources.Index, n *Node, amount resources.Vector) *verdict.Verdict {
	written, claim := Written(Policy{}), ToPlace(amount)
	_, full := written.Full(n, claim)
	if full == nil {
		return nil
	}
	return &verdict.Verdict{Code: verdict.OverCapability, Subject: full.Name, Help: verdict.HelpQueue,
		Shortages: written.Shortages(index, full, claim)}
}

// RefuseClosed refuses to let a queue take anything that is not open (rule Q5); nil if it is.
func (n *Node) RefuseClosed() *verdict.Verdict {
	if n.Closed == "" {
		return nil
	}
	return &verdict.Verdict{Code: verdict.QueueClosed, Subject: n.Name, Help: verdict.HelpQueue,
		Detail: "its state is " + n.Closed}
}
