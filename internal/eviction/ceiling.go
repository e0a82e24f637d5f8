package eviction

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/victims"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// maxCeilingNodes limits the nodes on which a pod is tried if an upper limit of its queue is in the way and no node has
// room. For each of them victims are looked for on all nodes.
const maxCeilingNodes = 8

// underCeiling looks for a draft for one pod whose queue, or one above it, is at its upper limit (rule G8). The victims
// then may be on any node, and one elsewhere may be cheaper than two on the node itself. It returns nil if no upper
// limit is in the way, or if it finds none. The cheapest set for a node with room is the cheapest of all, since a node
// without room needs at least as much to leave.
func (a *attempt) underCeiling(x framework.Transaction, pods []*cluster.Task) *draft {
	j := a.rules.Preemptor
	i := slices.IndexFunc(pods, func(t *cluster.Task) bool { return j.LacksPromises() == 0 || j.WantsPromise(t.Role) })
	if i < 0 {
		return nil
	}
	t := pods[i]
	if !a.rules.RanksJobs() || j.LacksPromises() > 1 || !a.evictsFor(t) || t.BestEffort() {
		return nil
	}
	a.reset()
	a.rules.SetPod(t)
	if a.rules.MayPlace(t) {
		return nil
	}
	a.everywhere = true
	defer func() { a.everywhere = false }()
	nodes := a.candidates.Cheapest(t, maxCeilingNodes)
	if n := a.search.session.Outlook.Best(t); n != nil {
		nodes = []*cluster.Node{n}
	}
	var best *draftOn
	var bestCost victims.Cost
	for _, n := range nodes {
		for _, largestFirst := range []bool{false, true} {
			y := a.search.session.Begin()
			on := &draftOn{node: n, largestFirst: largestFirst}
			d := on.try(a, y, t)
			y.Undo()
			if d != nil { // the cost is that of pods that are there
				if cost := a.victims.Cost(d.units, n.Rank); best == nil || cost.Compare(&bestCost, &a.rules.EvictionRules) < 0 {
					best, bestCost = on, cost
				}
			}
		}
	}
	if best == nil {
		return nil
	}
	return best.try(a, x, t)
}

// draftOn is a way to make a draft for a pod: its node, and whether small victims are given back before important ones.
type draftOn struct {
	node         *cluster.Node
	largestFirst bool
}

// try evicts all pods that may be evicted, places a pod on one node, and gives back what is not needed. It returns nil
// if the pod does not fit, and leaves its changes for the caller to undo.
func (on *draftOn) try(a *attempt, x framework.Transaction, t *cluster.Task) *draft {
	a.reset()
	a.rules.SetPod(t)
	evicted := a.victims.Evict(x, a.around([]*cluster.Task{t}), victims.Options{LargestFirst: on.largestFirst})
	a.victims.PlanChanged()
	if len(evicted.Units) == 0 || !a.rules.Fits(t, on.node) || a.search.session.Outlook.Veto(t, on.node) != "" {
		return nil
	}
	x.Pipeline(t, on.node)
	d := &draft{units: evicted.Units, placed: []*cluster.Task{t}}
	if on.largestFirst {
		d.units = a.victims.GiveBack(x, d.units, nil, func(u *victims.Unit) bool { return a.stillFit(x, d.placed, u) })
	} else {
		a.giveBack(x, d)
	}
	if !a.isComplete(x, d) {
		return nil
	}
	return d
}
