package cohorts

import (
	"sort"

	"hekla.sh/hekla/internal/cohorts/flavors"
	"hekla.sh/hekla/pkg/cluster/workload"
)

// nominateAll is nominate. The head of a strict queue tries all flavors at once until one fits or may be made to: while
// it tried one in each round, others could take what it is entitled to.
func (c *Cycle) nominateAll(w *workload.Workload) *workload.Nomination {
	n := c.nominate(w)
	for w.Queue.Strict && n.Assignment.Cursor != nil && n.Assignment.Mode < workload.Fit && len(n.Victims) == 0 {
		w.Cursor = n.Assignment.Cursor
		next := c.nominate(w)
		next.Assignment.Join(n.Assignment)
		next.Held = next.Held || n.Held
		n = next
	}
	return n
}

// nominate works out what a head would get now: flavors, the number of pods, and who would be evicted.
func (c *Cycle) nominate(w *workload.Workload) *workload.Nomination {
	own := c.own(w.Queue)
	defer c.keep(own)
	c.Rules.Stayed = false
	n, ok := c.try(w, flavors.Counts(w))
	if !ok && w.CanShrink() {
		if fewer := c.shrink(w, n.Assignment); fewer != nil {
			fewer.Assignment.Cursor = n.Assignment.Cursor
			n = fewer
		}
	}
	n.Held = c.Rules.Stayed
	return n
}

// try reports whether a Workload with so many pods fits, now or after evictions.
func (c *Cycle) try(w *workload.Workload, counts []int32) (n *workload.Nomination, ok bool) {
	n = &workload.Nomination{Workload: w, Assignment: c.Assigner.Assign(w, counts, nil)}
	switch n.Assignment.Mode {
	case workload.Fit:
		return n, true
	case workload.NoFit:
		return n, false
	}
	n.Victims = c.Rules.Victims(claim(w, n.Assignment), c.Nodes)
	return n, len(n.Victims) > 0
}

// shrink finds the largest number of pods with which a Workload fits, nil if there is none (rule C8). It searches over
// how many pods are left out in all. Each pod set leaves out its part of them. What was short goes to the assignment of
// all pods.
func (c *Cycle) shrink(w *workload.Workload, whole *workload.Assignment) *workload.Nomination {
	most := int64(0)
	for i := range w.PodSets {
		most += int64(w.PodSets[i].Count - w.PodSets[i].MinCount)
	}
	var best, least *workload.Nomination
	sort.Search(int(most), func(i int) bool {
		left := int64(i) + 1 // with none left out it was tried before
		counts := make([]int32, len(w.PodSets))
		for j := range counts {
			p := &w.PodSets[j]
			counts[j] = p.Count - int32(int64(p.Count-p.MinCount)*left/most)
		}
		n, ok := c.try(w, counts)
		if ok {
			best = n
		} else {
			whole.Join(n.Assignment)
			least = n // the search ends with the fewest pods if no number of them fits
		}
		return ok
	})
	if best == nil && least != nil {
		whole.ExplainAs(least.Assignment)
	}
	return best
}

// claim is what a Workload asks for with an assignment that does not fit.
func claim(w *workload.Workload, a *workload.Assignment) *workload.Claim {
	return &workload.Claim{Workload: w, Usage: a.Usage, Needs: a.Needs, Parts: a.Parts()}
}
