package victims

import "hekla.sh/hekla/pkg/resources"

// shortage is how much of one resource must leave a node.
type shortage struct {
	dim    resources.Dim
	amount int64
	sizes  []int64 // of the offers that may be evicted, the largest first
}

// shortagesOf returns what must leave a node for a request. ok is false if the total of what may be evicted is too
// small.
func shortagesOf(request, future, total resources.Vector) (short []shortage, ok bool) {
	for i, amount := range request {
		d := resources.Dim(i)
		lacks := amount - future.At(d)
		if lacks <= 0 || amount <= 0 {
			continue
		}
		if lacks > total.At(d) {
			return nil, false
		}
		short = append(short, shortage{dim: d, amount: lacks})
	}
	return short, true
}

// add adds an offer to those that may be evicted.
func (s *shortage) add(offer resources.Vector) {
	size := offer.At(s.dim)
	at := len(s.sizes)
	s.sizes = append(s.sizes, size)
	for ; at > 0 && s.sizes[at-1] < size; at-- {
		s.sizes[at] = s.sizes[at-1]
	}
	s.sizes[at] = size
}

// isCovered reports whether all offers that may be evicted are enough.
func (s *shortage) isCovered() bool {
	sum := int64(0)
	for _, size := range s.sizes {
		if sum += size; sum >= s.amount {
			return true
		}
	}
	return false
}

// moreBesides returns how many offers have to be evicted besides one of them, at least.
func moreBesides(offer resources.Vector, short []shortage) int32 {
	most := int32(0)
	for i := range short {
		s := &short[i]
		own := offer.At(s.dim)
		lacks, count, isLeftOut := s.amount-own, int32(0), false
		for _, size := range s.sizes {
			if lacks <= 0 {
				break
			}
			if size == own && !isLeftOut {
				isLeftOut = true
				continue
			}
			lacks -= size
			count++
		}
		most = max(most, count)
	}
	return most
}

// extremes are of all nodes and offers so far.
type extremes struct {
	largest  resources.Vector // what leaves with an offer, the most of each resource
	roomiest resources.Vector // what a node has room for, the most of each resource
}

// include takes in a node, by the room that it has and the sizes of its offers.
func (x *extremes) include(future resources.Vector, offers ...resources.Vector) {
	raise(&x.roomiest, future)
	for _, size := range offers {
		raise(&x.largest, size)
	}
}

func raise(most *resources.Vector, v resources.Vector) {
	for i, amount := range v {
		if d := resources.Dim(i); amount > most.At(d) {
			most.Set(d, amount)
		}
	}
}

// moreBesidesAny returns how many offers have to be evicted besides the first on any node without room for a request,
// at least.
func (x *extremes) moreBesidesAny(request resources.Vector) (more int64) {
	for i, amount := range request {
		d := resources.Dim(i)
		if lacks, most := amount-x.roomiest.At(d), x.largest.At(d); amount > 0 && lacks > 0 && most > 0 {
			more = max(more, (lacks-1)/most)
		}
	}
	return more
}
