package flavors

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// Oracle says whether evictions could make room for an amount of one flavor's resource, if quota alone counted. The
// answer is NoCandidates, Preempt or Reclaim, and how far up in the tree the amount would be found after the evictions.
type Oracle interface {
	Ask(w *workload.Workload, fr resources.FR, value int64) (mode workload.Mode, level int)
}

// Assigner chooses flavors.
type Assigner struct {
	Index  *resources.Index
	Oracle Oracle
	Nodes  workload.Nodes
	// FairSharing says that shares decide who is evicted, so that a queue may evict while it borrows.
	FairSharing bool
	// IgnoreUndeclared says that resources which no group covers need no quota.
	IgnoreUndeclared bool
}

// search is the choice for one Workload.
type search struct {
	*Assigner
	w       *workload.Workload
	queue   *workload.Queue
	out     *workload.Assignment
	pinned  *workload.Assignment
	parts   []workload.Part
	assumed []cohort.Amount // by the pod sets before
}

// Assign chooses flavors for a Workload with so many pods in each pod set. If pinned is given, only its flavors are
// tried.
func (a *Assigner) Assign(w *workload.Workload, counts []int32, pinned *workload.Assignment) *workload.Assignment {
	s := &search{Assigner: a, w: w, queue: w.Queue, pinned: pinned, out: &workload.Assignment{Mode: workload.Fit}}
	pending := false
	cursors := make([][]int, len(w.PodSets))
	for i := range w.PodSets {
		p := s.podSet(i, counts[i])
		s.out.PodSets = append(s.out.PodSets, p.assigned)
		s.out.Mode = min(s.out.Mode, p.assigned.Mode)
		cursors[i] = p.cursor
		pending = pending || p.isPending
		if p.assigned.Mode == workload.NoFit {
			s.out.Level = 0
			break
		}
		for _, f := range p.assigned.Flavors {
			s.out.Level = max(s.out.Level, f.Level)
			s.assume(f.FR, f.Value)
			if f.Mode < workload.Fit {
				s.out.Needs = appendNew(s.out.Needs, f.FR)
			}
		}
		s.parts = append(s.parts, p.part)
	}
	if pending {
		s.out.Cursor = cursors
	}
	s.out.Usage = s.assumed
	slices.SortFunc(s.out.Usage, func(a, b cohort.Amount) int { return cmp.Compare(a.FR, b.FR) })
	return s.out
}

// Counts returns how many pods each pod set has.
func Counts(w *workload.Workload) []int32 {
	counts := make([]int32, len(w.PodSets))
	for i := range counts {
		counts[i] = w.PodSets[i].Count
	}
	return counts
}

func (s *search) assume(fr resources.FR, value int64) {
	for i := range s.assumed {
		if s.assumed[i].FR == fr {
			s.assumed[i].Value += value
			return
		}
	}
	s.assumed = append(s.assumed, cohort.Amount{FR: fr, Value: value})
}

func (s *search) assumes(fr resources.FR) int64 {
	for _, a := range s.assumed {
		if a.FR == fr {
			return a.Value
		}
	}
	return 0
}

func appendNew(list []resources.FR, fr resources.FR) []resources.FR {
	if slices.Contains(list, fr) {
		return list
	}
	return append(list, fr)
}

// request is an amount of one resource that all pods of a pod set request together.
type request struct {
	resource resources.Dim
	position int // in the group
	value    int64
}

// podSet is the search for one pod set.
type podSet struct {
	*search
	of        *workload.PodSet
	part      workload.Part
	groups    []int // positions of groups that are asked, in order
	requests  [][]request
	assigned  workload.PodSetAssignment
	chosen    []*choice
	cursor    []int // by position of the group
	nodesOnly bool  // the last group without a flavor has one by quota
	isPending bool
}

// podSet chooses the flavors of one pod set.
func (s *search) podSet(i int, count int32) *podSet {
	p := &podSet{search: s, of: &s.w.PodSets[i], cursor: make([]int, len(s.queue.Groups))}
	p.part = workload.Part{PodSet: i, Count: count}
	p.assigned = workload.PodSetAssignment{Name: p.of.Name, Count: count, Mode: workload.NoFit}
	if !p.group(count) || !p.assign(0) {
		return p
	}
	p.assigned.Mode = workload.Fit
	for _, c := range p.chosen {
		p.assigned.Flavors = append(p.assigned.Flavors, c.resources...)
		p.part.Flavors = append(p.part.Flavors, c.flavor)
		for _, f := range c.resources {
			p.assigned.Mode = min(p.assigned.Mode, f.Mode)
		}
		if c.nodes < workload.Fit {
			p.assigned.Mode = min(p.assigned.Mode, c.nodes)
			p.out.NodesShort = true
		}
	}
	if len(p.groups) == 0 {
		p.placeOnly()
	}
	if p.assigned.Mode == workload.Fit {
		p.assigned.Reasons = nil // of flavors that were passed by
	}
	return p
}

// placeOnly asks the nodes for a pod set that needs no quota.
func (p *podSet) placeOnly() {
	mode := p.place(p.part)
	if mode < workload.Fit {
		p.assigned.Mode, p.out.NodesShort, p.out.NodesLacked = mode, true, true
		p.assigned.Reasons = append(p.assigned.Reasons, noRoom(nil, &p.part))
	}
}

// group sorts the requests by the groups that cover them. It reports false if a resource is not covered, and must be.
func (p *podSet) group(count int32) bool {
	p.requests = make([][]request, len(p.queue.Groups))
	add := func(resource resources.Dim, value int64) bool {
		g, position := p.queue.Group(resource)
		switch {
		case g >= 0:
			p.requests[g] = append(p.requests[g], request{resource, position, value})
		case value > 0 && !p.IgnoreUndeclared:
			name := string(p.Index.Name(resource))
			p.assigned.Reasons = append(p.assigned.Reasons, workload.Reason{Code: workload.NoMatchingFlavor, Resource: name, Group: -1,
				Text: "resource " + name + " unavailable in ClusterQueue"})
			return false
		}
		return true
	}
	covered := true
	for _, r := range p.of.Requests {
		if r.Dim != resources.Pods {
			covered = add(r.Dim, times(r.Value, count)) && covered
		}
	}
	if g, _ := p.queue.Group(resources.Pods); g >= 0 {
		add(resources.Pods, int64(count))
	}
	for g := range p.requests {
		if len(p.requests[g]) > 0 {
			slices.SortFunc(p.requests[g], func(a, b request) int { return a.position - b.position })
			p.groups = append(p.groups, g)
		}
	}
	return covered
}

// times multiplies an amount, at most to what fits.
func times(value int64, count int32) int64 {
	if count > 0 && value > resources.Unlimited/int64(count) {
		return resources.Unlimited
	}
	return value * int64(count)
}

// assign chooses a flavor for each group from the i-th on. If only nodes leave a later group without one, an earlier
// group goes on from the flavor that it had.
func (p *podSet) assign(i int) bool {
	if i == len(p.groups) {
		return true
	}
	g := p.groups[i]
	flavors := len(p.queue.Groups[g].Flavors)
	from, isOver := p.start(g)
	for {
		c, stopped := p.pick(g, from)
		if p.cursor[g] = stopped + 1; isOver || p.cursor[g] >= flavors {
			p.cursor[g] = over
		}
		p.isPending = p.isPending || p.cursor[g] > 0
		if c == nil || c.mode == workload.NoFit {
			return false
		}
		p.chosen = append(p.chosen, c)
		if p.assign(i + 1) {
			return true
		}
		p.chosen = p.chosen[:i]
		if from = c.position + 1; !p.nodesOnly || from >= flavors {
			return false
		}
	}
}

// over is the cursor of a group whose flavors have all been tried, while others have some left. Its search begins with
// the first flavor again, and leaves nothing to be tried. So a Workload is tried at most once for each flavor.
const over = -1

// start is the flavor with which the search in a group begins.
func (p *podSet) start(g int) (from int, isOver bool) {
	if p.pinned != nil || p.part.PodSet >= len(p.w.Cursor) || g >= len(p.w.Cursor[p.part.PodSet]) {
		return 0, false
	}
	from = p.w.Cursor[p.part.PodSet][g]
	return max(from, 0), from == over
}

// isPinned reports whether a flavor may be tried.
func (p *podSet) isPinned(f *workload.Flavor) bool {
	if p.pinned == nil || p.part.PodSet >= len(p.pinned.PodSets) {
		return true
	}
	return slices.ContainsFunc(p.pinned.PodSets[p.part.PodSet].Flavors, func(a workload.FlavorAssignment) bool { return a.Flavor == f })
}

func (p *podSet) template() *corev1.PodTemplateSpec { return p.of.Template }
