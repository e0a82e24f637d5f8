package candidates

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/victims"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// open evicts all pods that may be evicted from a node, and gives back those that need not be. If the pod does not fit
// even then, the caller has to undo the evictions. local is as in [victims.Options]. isLocal says that no whole gang
// was evicted, so that the result is the same with and without local.
func (c *Nodes) open(x framework.Transaction, t *cluster.Task, n, local *cluster.Node) (units []victims.Unit, isLocal bool, found result) {
	fits := func() bool { return c.rules.Fits(t, n) }
	options := victims.Options{Local: local}
	if c.fitsBetterOnLess(t) {
		options.Fits = fits
	}
	y := c.session.Begin()
	evicted := c.victims.Evict(x, n.Tasks(), options)
	wasRefused, fitted := evicted.WasRefused, evicted.Fits || fits()
	isLocal = !slices.ContainsFunc(evicted.Units, isWhole)
	again := func(o victims.Options) []victims.Unit {
		all := c.victims.Evict(x, n.Tasks(), o).Units
		isLocal = isLocal && !slices.ContainsFunc(all, isWhole)
		return all
	}
	// Small units may have used up what a queue may lose, before a unit that is large enough was tried.
	largestFirst := func() []victims.Unit {
		all := again(victims.Options{Local: local, LargestFirst: true, Lacking: lacking(t, n)})
		c.victims.Sort(all)
		return all
	}
	if !fitted {
		if !wasRefused {
			return nil, false, result{wasRefused: !c.fitsBetterOnLess(t)}
		}
		y.Undo()
		evicted.Units = largestFirst()
		if !fits() {
			return nil, false, result{wasRefused: true}
		}
	}
	units = c.victims.GiveBack(x, evicted.Units, local, func(*victims.Unit) bool { return fits() })
	if fitted && wasRefused && c.rules.RanksJobs() {
		units = c.cheaper(x, y, n, local, units, fits, largestFirst)
	}
	if c.rules.RanksJobs() && victims.Marked(units) > 1 {
		units = c.cheaper(x, y, n, local, units, fits, func() []victims.Unit {
			all := again(victims.Options{Local: local})
			victims.SortBySize(c.rules, all) // of the units with marks the small ones are given back first (rule G1)
			return all
		})
	}
	return units, isLocal, result{opens: true, wasRefused: wasRefused}
}

func isWhole(u victims.Unit) bool { return u.Whole }

// lacking is what a node lacks for a pod, nil if it lacks no resource.
func lacking(t *cluster.Task, n *cluster.Node) (lacks resources.Vector) {
	for i, amount := range t.Request() {
		d := resources.Dim(i)
		if short := amount - n.Future(d); amount > 0 && short > 0 {
			lacks.Set(d, min(short, amount))
		}
	}
	return lacks
}

// cheaper returns the cheaper of two sets of units that open a node, and evicts it. One set is evicted now. The other
// is left if those that evict returns are given back. start is the state before.
func (c *Nodes) cheaper(
	x, start framework.Transaction, n, local *cluster.Node, units []victims.Unit, fits func() bool, evict func() []victims.Unit,
) []victims.Unit {
	start.Undo()
	cost := c.victims.Cost(units, n.Rank) // that of pods that are there
	if all := evict(); fits() {
		other := c.victims.GiveBack(x, all, local, func(*victims.Unit) bool { return fits() })
		start.Undo()
		if c.compare(c.victims.Cost(other, n.Rank), cost) < 0 {
			units = other
		}
	}
	start.Undo()
	victims.LeaveOn(x, units, local)
	return units
}
