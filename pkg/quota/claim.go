package quota

import (
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Claim is what a task or a job requests of a queue.
type Claim struct {
	whole resources.Vector // all that it requests
	lacks Lacker           // says how much of whole is still missing; nil if all of it is
	// base is the part of the usage that counts against the claim in addition to Allocated; Allocated if none does.
	base Part
	// away is what of Leaving does not count, by node: the claim is tried as if it had left.
	away Held
}

// Lacker says how much of a resource a job still lacks of all that it requests.
type Lacker interface {
	LacksResource(d resources.Dim) int64
}

// ToPlace is the claim of a task that is to be placed.
func ToPlace(request resources.Vector) Claim { return Claim{whole: request} }

// ToBind is the claim of a task that is to be bound now. Victims of planned evictions that are not sent may stay after
// all, so their requests count in addition to what the queue holds.
func ToBind(request resources.Vector) Claim { return Claim{whole: request, base: Unsettled} }

// ToAdmit is the claim of a job pending admission: its minResources, less what it holds already and what its pods with
// scheduling gates request. What admitted jobs still lack counts against it. In Volcano the surplus of running jobs
// does not count here. In Hekla it does, unless it may be evicted, which the evicting actions find out (rule J4).
func ToAdmit(minResources resources.Vector, lacks Lacker) Claim {
	return Claim{whole: minResources, lacks: lacks, base: Inqueue}
}

// ToStart is the claim of a Workload that is to be admitted (rule C22). In addition count the pods of Workloads that
// leave, until they are gone, but for those in away.
func ToStart(request resources.Vector, away Held) Claim {
	return Claim{whole: request, base: Leaving, away: away}
}

func (c *Claim) need(d resources.Dim) int64 {
	if c.lacks != nil {
		return c.lacks.LacksResource(d)
	}
	return c.whole.At(d)
}

// besides is what counts against the claim in addition to Allocated, at a node that holds a usage.
func (c *Claim) besides(n *Node, u *Usage, d resources.Dim) int64 {
	if c.base == Allocated {
		return 0
	}
	return u.Part(c.base).At(d) - c.away[n].At(d)
}

// isOver reports whether need does not fit under the ceiling of a node. rest is the part of it that the node above has
// to cover, because it does not fit into what this node withholds. If rest is not above zero, the claim still does not
// fit if a node above is over its ceiling.
func (v *View) isOver(n *Node, c *Claim, need int64, d resources.Dim) (rest int64, isOver bool) {
	used, withheld := v.used(n, d)
	used += c.besides(n, v.Held(n), d)
	rest = need - max(withheld-max(used, 0), 0)
	return rest, rest > v.Of(n).Ceiling.Value(d)-max(used, withheld)
}

// Fits reports whether a claim fits under the ceilings of a node and of all nodes above it.
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

// Full returns the highest and the lowest node whose ceilings leave no room for a claim, nil if it fits everywhere. As
// long as the highest is full, room in the nodes below it does not help.
func (v *View) Full(n *Node, c Claim) (highest, lowest *Node) {
	n = v.Seen(n)
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

// Room is how much more of a resource a node may use under its own ceiling and those above it. It is negative if one is
// exceeded.
func (v *View) Room(n *Node, d resources.Dim) int64 { return v.room(n, d, Allocated) }

// room is the room for a claim that the part of the usage counts against in addition to Allocated.
func (v *View) room(n *Node, d resources.Dim, base Part) int64 {
	c := Claim{base: base}
	used, withheld := v.used(n, d)
	used += c.besides(n, v.Held(n), d)
	room := v.Of(n).Ceiling.Value(d) - max(used, withheld)
	if above := v.above(n); above != nil {
		room = min(room, v.room(above, d, base))
	}
	if free := max(withheld-max(used, 0), 0); room < resources.Unlimited-free {
		room += free
	}
	return room
}

// shortages returns by how much a claim exceeds limits, given a usage, by dimension.
func (c *Claim) shortages(index *resources.Index, n *Node, u *Usage, limit func(resources.Dim) int64) []verdict.Shortage {
	var shortages []verdict.Shortage
	for i := range c.whole {
		d := resources.Dim(i)
		need, have := c.need(d), max(limit(d)-u.Allocated.At(d)-c.besides(n, u, d), 0)
		if need > 0 && need > have {
			shortages = append(shortages, verdict.Shortage{Resource: index.Name(d), Need: need, Have: have})
		}
	}
	return shortages
}

// Shortages returns by how much a claim exceeds the ceiling of a node, by dimension.
func (v *View) Shortages(index *resources.Index, n *Node, c Claim) []verdict.Shortage {
	return c.shortages(index, n, v.Held(n), v.Of(n).Ceiling.Value)
}

// What a limit is that no terms of a queue set.
const (
	sizeIsTheLimit = "its limit is the size of the cluster less what other queues are guaranteed"
	othersHold     = ", and less what pods hold that are in no queue"
)

// Refuse returns the verdict for a claim that does not fit under the ceilings of a node and of all nodes above it, nil
// if it does. The verdict is about the highest of them for which the claim is too large even when nothing is held: no
// job that ends helps there. If there is none, it is about the highest that is full.
func (v *View) Refuse(index *resources.Index, n *Node, c Claim) *verdict.Verdict {
	highest, _ := v.Full(n, c)
	if highest == nil {
		return nil
	}
	about, isTooLarge := highest, false
	for m := v.Seen(n); m != nil; m = v.above(m) {
		if v.Shortages(index, m, c) != nil && v.isTooLarge(index, m, c) {
			about, isTooLarge = m, true
		}
	}
	return v.refusal(index, about, c, isTooLarge)
}

// isTooLarge reports whether a claim exceeds the ceiling of a node alone. What only pods in no queue keep from fitting
// is not too large.
func (v *View) isTooLarge(index *resources.Index, n *Node, c Claim) bool {
	alone := ToPlace(c.whole)
	return alone.shortages(index, n, &Usage{}, func(d resources.Dim) int64 { return v.ceilingAlone(n, d) }) != nil
}

// ceilingAlone is how much a node could hold of a resource if no job held any, and no pods in no queue.
func (v *View) ceilingAlone(n *Node, d resources.Dim) int64 {
	limit := v.Of(n).Ceiling.Value(d)
	if capability := n.Capability.Value(d); limit < capability {
		limit = min(limit+v.Others.At(d), capability)
	}
	return limit
}

// roomAlone is that of a node and of all nodes above it.
func (v *View) roomAlone(n *Node, d resources.Dim) int64 {
	room := int64(resources.Unlimited)
	for m := v.Seen(n); m != nil; m = v.above(m) {
		room = min(room, v.ceilingAlone(m, d))
	}
	return room
}

// refusal is the verdict about a node whose ceiling leaves no room for a claim.
func (v *View) refusal(index *resources.Index, n *Node, c Claim, isTooLarge bool) *verdict.Verdict {
	ceiling := v.Of(n).Ceiling.Value
	refusal := &verdict.Verdict{Code: verdict.OverCapability, Subject: n.Name, Help: n.help()}
	if isTooLarge {
		alone := ToPlace(c.whole)
		refusal.Shortages = alone.shortages(index, n, &Usage{}, ceiling)
		refusal.Code = verdict.TooLargeForQueue
		refusal.Help |= verdict.HelpJob
	} else {
		refusal.Shortages = v.Shortages(index, n, c)
	}
	for _, s := range refusal.Shortages {
		d, _ := index.Find(s.Resource)
		if ceiling(d) < n.Capability.Value(d) {
			refusal.Help |= verdict.HelpNode
			refusal.OfCluster = true
			refusal.Detail = sizeIsTheLimit
			if v.Others.At(d) > 0 {
				refusal.Detail = sizeIsTheLimit + othersHold
			}
			if refusal.Code == verdict.OverCapability {
				refusal.Code = verdict.OverCluster
			}
		}
	}
	return refusal
}

// OverCapability returns a verdict about the queue that a claim would bring above its capability (rules Q4, C22), nil
// if there is none.
func OverCapability(index *resources.Index, n *Node, claim Claim) *verdict.Verdict {
	written := Written(Policy{})
	_, full := written.Full(n, claim)
	if full == nil {
		return nil
	}
	return &verdict.Verdict{Code: verdict.OverCapability, Subject: full.Name, Help: full.help(),
		Shortages: written.Shortages(index, full, claim)}
}

// help is what helps a job that the node has no room for. The root is no job's own queue.
func (n *Node) help() verdict.Help {
	if n.parent == nil {
		return verdict.HelpQueue
	}
	return verdict.HelpOwnQueue
}

// RefuseClosed returns a verdict if the queue is not open and so may not reclaim (rule Q5), nil if it is open.
func (n *Node) RefuseClosed() *verdict.Verdict {
	if n.Closed == "" {
		return nil
	}
	return &verdict.Verdict{Code: verdict.QueueClosed, Subject: n.Name, Help: verdict.HelpQueue,
		Detail: "its state is " + n.Closed}
}
