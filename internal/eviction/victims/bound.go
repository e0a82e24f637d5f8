package victims

import (
	"cmp"

	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// bound is a lower bound of the cost of opening a node for a class: one offer is the most important victim, and so many
// more are needed besides.
type bound struct {
	of    *nodeOffers
	offer int32 // its index, -1 if the node is large enough without evictions
	more  int32
	ended int32 // so many jobs end, at least
	slot  int32
	rank  int32
}

// cost returns the bound as a cost, without the share of the queue.
func (b *bound) cost() Cost {
	if b.offer < 0 {
		return Cost{rank: int(b.rank)}
	}
	c := b.of.offers[b.offer].cost
	c.victims += int(b.more)
	c.endedJobs = max(c.endedJobs, int(b.ended))
	for k := range c.sum {
		c.sum[k] += int64(b.more) * b.of.least[k]
	}
	return c
}

// compareBounds compares bounds of one queue.
func (s *Selector) compareBounds(a, b bound) int {
	if a.offer < 0 || b.offer < 0 {
		c, d := a.cost(), b.cost()
		return c.Compare(&d, &s.rules.EvictionRules)
	}
	// as the costs compare, without making them
	return a.compareWith(&a.of.offers[a.offer].cost, &b, &b.of.offers[b.offer].cost, &s.rules.EvictionRules)
}

// compareWith compares bounds of which the costs of the most important victims are known.
func (a *bound) compareWith(one *Cost, b *bound, other *Cost, action *framework.EvictionRules) int {
	if a.more == 0 && b.more == 0 {
		return one.Compare(other, action)
	}
	if n := one.compareFirst(other); n != 0 { // more victims do not change these parts
		return n
	}
	if n := cmp.Compare(max(one.endedJobs, int(a.ended)), max(other.endedJobs, int(b.ended))); n != 0 && action.Ends {
		return n
	}
	for k := range one.sum {
		if n := cmp.Compare(one.sum[k]+int64(a.more)*a.of.least[k], other.sum[k]+int64(b.more)*b.of.least[k]); n != 0 {
			return n
		}
	}
	if n := cmp.Compare(one.victims+int(a.more), other.victims+int(b.more)); n != 0 {
		return n
	}
	return one.compareLast(other, action)
}

// hasRoom reports whether a request fits without evictions.
func (o *nodeOffers) hasRoom(request resources.Vector) bool {
	for i, amount := range request {
		if amount > 0 && amount > o.future.At(resources.Dim(i)) {
			return false
		}
	}
	return true
}

// noBound is in place of the offer of a bound that does not exist.
const noBound = -2

// boundsFor works out, for each queue with offers on a node, the lower bound of the cost if a request must fit and the
// most important victim is of that queue. It reports whether there is any. Offers are added one after the other, the
// least important first. As soon as all of them together are large enough, the last may be the most important victim. A
// queue for which the node cannot be opened in this way has noBound. Queues whose entries are spared count as if they
// had no pods; spared is nil if none are.
func (s *Selector) boundsFor(bounds []bound, o *nodeOffers, spared []bool, request resources.Vector) (found bool) {
	for k := range bounds {
		bounds[k].offer = noBound
	}
	offers, indexes, total := o.without(spared)
	short, ok := shortagesOf(request, o.future, total)
	if !ok {
		return false
	}
	var few [fewQueues]bool
	done := few[:]
	if len(bounds) > len(few) {
		done = make([]bool, len(bounds))
	}
	done = done[:len(bounds)] // further offers of the queue cost more
	left := len(done)
	ending := int32(0) // jobs that end if all offers so far leave
	for first := 0; first < len(offers) && left > 0; {
		next := first + 1
		for next < len(offers) && offers[next].compare(&offers[first]) == 0 {
			next++ // one as important as the other
		}
		for i := first; i < next; i++ {
			ending += int32(btoi(offers[i].endsJob))
		}
		enough := true
		for i := range short {
			for k := first; k < next; k++ {
				short[i].add(offers[k].size)
			}
			enough = short[i].isCovered() && enough
		}
		for i := first; enough && i < next; i++ {
			k := offers[i].entry
			if done[k] {
				continue
			}
			b := bound{of: o, offer: int32(i), more: moreBesides(offers[i].size, short)}
			if indexes != nil {
				b.offer = indexes[i]
			}
			b.ended = ending - (int32(next) - 1 - b.more) // each offer that stays may keep one job
			if bounds[k].offer == noBound || s.compareBounds(b, bounds[k]) < 0 {
				bounds[k], found = b, true
			}
		}
		for k := range bounds {
			if best := bounds[k].offer; !done[k] && best != noBound && next < len(offers) && offers[next].compareRank(&o.offers[best]) > 0 &&
				o.offers[best].cost.violations == 0 {
				done[k] = true
				left--
			}
		}
		first = next
	}
	return found
}

// without returns the offers of queues whose entries are not spared, their indexes among all if some are, and their
// total.
func (o *nodeOffers) without(spared []bool) (offers []offer, indexes []int32, total resources.Vector) {
	if spared == nil {
		return o.offers, nil, o.total
	}
	for i := range o.offers {
		if p := &o.offers[i]; !spared[p.entry] {
			offers, indexes = append(offers, *p), append(indexes, int32(i))
			total.Add(p.size)
		}
	}
	return offers, indexes, total
}

// include takes in the offers of a node, for atLeast.
func (f *Floors) include(o *nodeOffers) {
	f.extremes.include(o.future)
	for i := range o.offers {
		f.extremes.include(nil, o.offers[i].size)
	}
	for k, sum := range o.least {
		if len(o.offers) > 0 && sum < f.least[k] {
			f.least[k] = sum
		}
	}
}

// atLeast returns the least cost of a node without room for a request if it does not come before an entry in the orders
// of a depth.
func (f *Floors) atLeast(e entry, depth int, request resources.Vector) Cost {
	c, more := e.offer.cost, f.extremes.moreBesidesAny(request)
	c.victims += int(more)
	for k := range c.sum {
		c.sum[k] += int64(depth)*e.offer.of.least[k] + (more-int64(depth))*f.least[k]
	}
	return c
}
