package flavors

import (
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/resources"
)

// choice is one flavor, and how well it fits.
type choice struct {
	flavor    *workload.Flavor
	position  int
	resources []workload.FlavorAssignment
	nodes     workload.Mode
	// mode and level are those of the worst of the resources and nodes.
	mode  workload.Mode
	level int
}

// pick tries the flavors of a group, and returns the preferred one of those that were tried (rule C7). stopped is the
// last one that was tried. It returns nil if there is none to try.
func (p *podSet) pick(g, from int) (best *choice, stopped int) {
	p.nodesOnly = false
	group := &p.queue.Groups[g]
	stopped = len(group.Flavors) - 1
	for i := from; i < len(group.Flavors); i++ {
		if !p.isPinned(group.Flavors[i].Flavor) {
			continue
		}
		c := p.try(g, i)
		if best == nil || p.isPreferred(c.mode, c.level, best.mode, best.level) {
			best = c
		}
		if !p.triesNext(c) {
			return best, i
		}
	}
	return best, stopped
}

// triesNext reports whether the search goes on after a flavor.
func (p *podSet) triesNext(c *choice) bool {
	f := &p.queue.Fungibility
	switch {
	case c.mode <= workload.NoCandidates:
		return true
	case c.mode < workload.Fit && f.NextOnPreempt:
		return true
	}
	return c.level > 0 && f.NextOnBorrow
}

// isPreferred reports whether one mode and level is better than another.
func (p *podSet) isPreferred(mode workload.Mode, level int, than workload.Mode, thanLevel int) bool {
	switch {
	case mode <= workload.NoCandidates || than <= workload.NoCandidates:
		if mode != than {
			return mode > than
		}
		return level < thanLevel
	case p.queue.Fungibility.PreemptionOverBorrowing && level != thanLevel:
		return level < thanLevel
	case mode != than:
		return mode > than
	}
	return level < thanLevel
}

// worsen counts a mode and level, if they are worse than those so far.
func (p *podSet) worsen(c *choice, mode workload.Mode, level int) {
	if p.isPreferred(c.mode, c.level, mode, level) {
		c.mode, c.level = mode, level
	}
}

// try works out how well a flavor fits (rule C6).
func (p *podSet) try(g, i int) *choice {
	flavor := &p.queue.Groups[g].Flavors[i]
	c := &choice{flavor: flavor.Flavor, position: i, nodes: workload.Fit, mode: workload.Fit}
	if text := Unusable(flavor.Flavor, p.template()); text != "" {
		c.mode = workload.NoFit
		p.assigned.Reasons = append(p.assigned.Reasons, workload.Reason{Code: workload.NoMatchingFlavor, Flavor: flavor.Name, Group: g, Text: text})
		return c
	}
	for _, r := range p.requests[g] {
		a := workload.FlavorAssignment{Resource: r.resource, Flavor: flavor.Flavor, FR: flavor.FRs[r.position], Value: r.value}
		p.ask(g, &a)
		p.worsen(c, a.Mode, a.Level)
		if c.mode == workload.NoFit {
			return c
		}
		c.resources = append(c.resources, a)
	}
	part := workload.Part{PodSet: p.part.PodSet, Count: p.part.Count}
	for _, earlier := range p.chosen {
		part.Flavors = append(part.Flavors, earlier.flavor)
	}
	part.Flavors = append(part.Flavors, flavor.Flavor)
	if c.nodes = p.place(part); c.nodes < workload.Fit {
		p.out.NodesLacked = true
		reason := noRoom(flavor.Flavor, &part)
		reason.Group = g
		p.assigned.Reasons = append(p.assigned.Reasons, reason)
		p.nodesOnly = p.nodesOnly || c.nodes == workload.NoFit
		p.worsen(c, c.nodes, c.level)
	}
	return c
}

// ask works out how well an amount of one resource fits by quota.
func (p *podSet) ask(g int, a *workload.FlavorAssignment) {
	assumed := p.assumes(a.FR)
	value := min(a.Value, resources.Unlimited-assumed) + assumed
	node, f := &p.queue.Node, workload.Reason{Flavor: a.Flavor.Name, Resource: string(p.Index.ResourceOf(a.FR)), Group: g}
	if value == 0 {
		a.Mode = workload.Fit // a Workload whose pods have all ended requests nothing
		return
	}
	if most := node.Potential(a.FR); value > most {
		f.Code, f.Assumed, f.Asked, f.Most = workload.ExceedsMaxQuota, assumed, a.Value, most
		p.assigned.Reasons = append(p.assigned.Reasons, f)
		if a.Value <= most { // alone it may fit, once the pod sets before take other flavors
			p.lackAny(g)
		}
		return
	}
	level, mayReclaim := node.BorrowLevel(a.FR, value)
	available := node.Available(a.FR)
	if value <= available {
		a.Mode, a.Level = workload.Fit, level
		return
	}
	p.out.Lacks = appendNew(p.out.Lacks, a.FR)
	f.Code, f.Missing = workload.WaitingForQuota, value-available
	p.assigned.Reasons = append(p.assigned.Reasons, f)
	if value <= node.Nominal(a.FR) || mayReclaim || p.mayPreemptWhileBorrowing() {
		a.Mode, a.Level = p.Oracle.Ask(p.w, a.FR, value)
	}
}

// lackAny notes that the Workload may fit when any flavor of a group has more room.
func (p *podSet) lackAny(g int) {
	for i := range p.queue.Groups[g].Flavors {
		for _, fr := range p.queue.Groups[g].Flavors[i].FRs {
			p.out.Lacks = appendNew(p.out.Lacks, fr)
		}
	}
}

func (p *podSet) mayPreemptWhileBorrowing() bool {
	return p.queue.Preemption.BorrowWithinCohort || p.FairSharing && p.queue.Preemption.ReclaimWithinCohort != workload.Never
}

// place asks the nodes about a part, together with those of the pod sets before.
func (p *podSet) place(part workload.Part) workload.Mode {
	parts := append(p.parts[:len(p.parts):len(p.parts)], part)
	switch {
	case p.Nodes.CanPlace(p.w, parts):
		return workload.Fit
	case p.Nodes.CouldPlace(p.w, parts):
		return workload.Preempt
	}
	return workload.NoFit
}

// noRoom is the reason of nodes without room for a part. flavor is nil if there is none.
func noRoom(flavor *workload.Flavor, part *workload.Part) workload.Reason {
	r := workload.Reason{Code: workload.TopologyPlacementFailed, Group: -1, Part: part}
	if flavor != nil {
		r.Flavor = flavor.Name
	}
	return r
}
