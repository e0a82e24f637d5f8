package quota

import (
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Stockkeeper has the views from which stocks are counted. It is comparable, and the same one in every session.
type Stockkeeper interface {
	// StockView returns the view of this session that bounds a purpose.
	StockView(p Purpose) *View
}

// Purpose is what a stock is needed for.
type Purpose uint8

// The purposes.
const (
	ToAdmission     Purpose = iota // to admit a job, by the ceilings, in addition to what admitted jobs lack
	ToWideAdmission                // the same for a job without pods yet
	ToHolding                      // to hold pods, by the ceilings
	ToReclaiming                   // to reclaim, by the share of the queue, or of one that lends to it
)

// AdmissionOf is the purpose of the admission of a job. wide is for a job without pods yet.
func AdmissionOf(wide bool) Purpose {
	if wide {
		return ToWideAdmission
	}
	return ToAdmission
}

// Stock is how much more of a resource a queue may hold, request or reclaim. Two that are equal are the same, also in
// different sessions.
type Stock struct {
	keeper   Stockkeeper
	purpose  Purpose
	node     *Node
	resource resources.Dim
	alone    bool // nothing that is held counts: whether a claim could ever fit
}

// Left is in the unit of the resource. It is below 0 if a bound is exceeded.
func (s Stock) Left() int64 {
	view := s.keeper.StockView(s.purpose)
	if s.alone {
		return view.roomAlone(s.node, s.resource)
	}
	switch s.purpose {
	case ToHolding:
		return view.Room(s.node, s.resource)
	case ToReclaiming:
		return view.leftOfShare(s.node, s.resource)
	default:
		return view.room(s.node, s.resource, Inqueue)
	}
}

// Source is the queues.
func (Stock) Source() verdict.Help { return verdict.HelpQueue }

// LackToAdmit returns the first lack of a job in a queue that would claim so much ([ToAdmit]). It has none if the claim
// fits. A claim that is too large even when nothing is held lacks that: what others give up changes nothing, and once
// it could fit it waits for another reason.
func LackToAdmit(k Stockkeeper, wide bool, n *Node, c Claim) verdict.Lack {
	s := Stock{keeper: k, purpose: AdmissionOf(wide), node: n}
	lack := s.lack(&c)
	if lack.Stock == nil {
		return lack
	}
	whole := ToPlace(c.whole)
	s.alone = true
	if ever := s.lack(&whole); ever.Stock != nil {
		return ever
	}
	return lack
}

// LackToHold returns the first lack of a queue that is to hold so much more. It has none if the claim fits under all
// ceilings.
func LackToHold(k Stockkeeper, n *Node, more resources.Vector) verdict.Lack {
	c := ToPlace(more)
	return Stock{keeper: k, purpose: ToHolding, node: n}.lack(&c)
}

// LackToDeserve returns the first lack of a queue that is to reclaim so much, or to hold so much more within its share.
// If it has none, it may not have the right to reclaim all the same, see [View.Ground].
func LackToDeserve(k Stockkeeper, n *Node, more resources.Vector) verdict.Lack {
	c := ToPlace(more)
	return Stock{keeper: k, purpose: ToReclaiming, node: n}.lack(&c)
}

// lack returns the first resource, in place of that of the stock, of which less is left than a claim needs.
func (s Stock) lack(c *Claim) verdict.Lack {
	for i := range c.whole {
		s.resource = resources.Dim(i)
		if needed := c.need(s.resource); needed > 0 && needed > s.Left() {
			return verdict.Lack{Stock: s, Needed: needed}
		}
	}
	return verdict.Lack{}
}
