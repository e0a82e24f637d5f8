package gang

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// wish is what tasks with a network topology need of the HyperNode in which they are placed.
type wish struct {
	proximity *cluster.Proximity
	held      []*cluster.Node  // nodes of related tasks that are placed already
	least     resources.Vector // the least that they request
	last      string           // the HyperNode in which they were before, "" if unknown
	roomiest  bool             // the HyperNode with most room is first, because more tasks will follow than any may hold
	making    bool             // evictions are to make room
}

// choices are domains in the order in which they are tried: HyperNodes, or the whole current domain.
type choices struct {
	domains []*cluster.Domain
	// full is the HyperNode with the most free of those that are left out because they have less free than is needed.
	// It is nil if none is left out.
	full *cluster.HyperNode
	// isBound is set if the tasks must be placed in one of them.
	isBound bool
	tier    int
}

// anywhere is the choice of the current domain, for tasks without a topology.
func anywhere(s *framework.Session) choices {
	return choices{domains: []*cluster.Domain{s.Domain()}}
}

// choose returns the HyperNodes for a wish inside the current domain, or a verdict that says why there are none.
func choose(s *framework.Session, w wish) (choices, *verdict.Verdict) {
	grader := s.Policy.Grader()
	switch {
	case w.proximity == nil, grader == nil && !w.proximity.IsHard():
		return anywhere(s), nil
	case grader == nil:
		return choices{}, &verdict.Verdict{Code: verdict.Refused, Subject: "the configuration of the scheduler", Help: verdict.HelpJob,
			Detail: "the job must be kept within a HyperNode, and no plugin sees to that; network-topology-aware would"}
	}
	all, c := s.Cluster.HyperNodes(), choices{isBound: w.proximity.IsHard()}
	if c.isBound {
		var ok bool
		if c.tier, ok = s.Cluster.TierOf(w.proximity); !ok {
			return choices{}, none("no HyperNode has the tierName %q, which the job must stay within", w.proximity.TierName())
		}
	}
	common, outer := cluster.Common(w.held), s.Domain().HyperNode()
	among := slices.DeleteFunc(slices.Clone(all), func(h *cluster.HyperNode) bool {
		return c.isBound && h.Tier > c.tier || outer != nil && !h.IsWithin(outer) || h.Domain.Intersect(s.Domain()).Len() == 0 ||
			len(w.held) > 0 && !slices.Contains(common, h)
	})
	if c.isBound && len(among) == 0 {
		return choices{}, w.nowhere(c.tier)
	}
	for _, group := range grader.GradeHyperNodes(among) {
		c.add(s, w, group)
	}
	if w.making {
		c.domains = c.domains[:min(len(c.domains), grader.MaxEvicting())]
	}
	if !c.isBound {
		c.domains, c.full = append(c.domains, s.Domain()), nil
	}
	return c, nil
}

// none is the verdict on tasks that fit into no HyperNode.
func none(format string, arguments ...any) *verdict.Verdict {
	return &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode | verdict.HelpJob, Detail: fmt.Sprintf(format, arguments...)}
}

// nowhere says why no HyperNode is possible.
func (w *wish) nowhere(tier int) *verdict.Verdict {
	if len(w.held) > 0 {
		return none("no HyperNode of tier %d or lower holds all nodes that the others of its pods are on, such as %s", tier, w.held[0].Name)
	}
	return none("there is no HyperNode of tier %d or lower, which the job must stay within", tier)
}

// add appends a group of HyperNodes, the best first, without those that have too little free.
func (c *choices) add(s *framework.Session, w wish, group []*cluster.HyperNode) {
	type rated struct {
		h     *cluster.HyperNode
		score int64
	}
	var open []rated
	for _, h := range group {
		if !w.making && !hasFree(h, w.least) {
			if c.full == nil || comesCloser(h, c.full, w.least) {
				c.full = h
			}
			continue
		}
		r := rated{h: h}
		for _, scorer := range s.Policy.HyperNodes {
			r.score += scorer.ScoreHyperNode(w.least, h)
		}
		open = append(open, r)
	}
	slices.SortFunc(open, func(a, b rated) int {
		if w.roomiest {
			a.score, b.score = copies(a.h, w.least), copies(b.h, w.least)
		}
		return cmp.Or(btoi(b.h.Name == w.last)-btoi(a.h.Name == w.last), cmp.Compare(b.score, a.score), cmp.Compare(a.h.Name, b.h.Name))
	})
	for _, r := range open {
		c.domains = append(c.domains, r.h.Domain)
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func free(h *cluster.HyperNode, d resources.Dim) int64 { return h.Allocatable(d) - h.Used(d) }

// hasFree reports whether a HyperNode has as much free, on all its nodes together.
func hasFree(h *cluster.HyperNode, least resources.Vector) bool {
	for i, amount := range least {
		if amount > 0 && amount > free(h, resources.Dim(i)) {
			return false
		}
	}
	return true
}

// copies is how many times the amount is free in a HyperNode, on all its nodes together.
func copies(h *cluster.HyperNode, least resources.Vector) int64 {
	most := int64(math.MaxInt64)
	for i, amount := range least {
		if amount > 0 {
			most = min(most, max(free(h, resources.Dim(i)), 0)/amount)
		}
	}
	return most
}

// comesCloser reports whether h has more of its scarcest resource than another HyperNode, relative to what is needed.
func comesCloser(h, than *cluster.HyperNode, least resources.Vector) bool {
	lowest := func(h *cluster.HyperNode) int64 {
		low := int64(resources.Million)
		for i, amount := range least {
			if amount > 0 {
				low = min(low, resources.Millionths(max(free(h, resources.Dim(i)), 0), amount))
			}
		}
		return low
	}
	return lowest(h) > lowest(than)
}

// choicesOf returns the HyperNodes in which tasks of a job may be placed together. With oneByOne they are placed one
// after the other, each close to those before it.
func choicesOf(s *framework.Session, j *cluster.Job, least resources.Vector, oneByOne bool) (choices, *verdict.Verdict) {
	if j.Proximity == nil || s.Domain().HyperNode() != nil { // a HyperNode was chosen already
		return anywhere(s), nil
	}
	w := wish{proximity: j.Proximity, held: j.Nodes(nil), least: least, roomiest: oneByOne}
	if j.Group != nil && len(w.held) == 0 {
		w.last = j.Group.Annotations[schedulingv1beta1.JobAllocatedHyperNodeKey]
	}
	return choose(s, w)
}

// EvictionDomains returns the domains in which pods may be evicted for a job, in the order in which they are tried. Nil
// is the whole cluster. A verdict says why there are none.
func EvictionDomains(s *framework.Session, j *cluster.Job) ([]*cluster.Domain, *verdict.Verdict) {
	for _, g := range j.Subgroups() {
		if g.Proximity.IsHard() {
			return nil, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: verdict.HelpNode | verdict.HelpJob,
				Detail: "no pods are evicted for a job of which each subgroup must be kept within a HyperNode of its own"}
		}
	}
	if !j.Proximity.IsHard() {
		return []*cluster.Domain{s.Domain()}, nil
	}
	pending := j.Pending(cluster.CompareTasks)
	c, v := choose(s, wish{proximity: j.Proximity, held: j.Nodes(nil), least: cluster.LeastRequest(pending, max(j.Lacks(), 1)), roomiest: true, making: true})
	return c.domains, v
}
