package gang

import (
	"math"
	"slices"
)

// Subgroup is a node of the tree of a job, below the root: a leaf with tasks, or an inner node with other subgroups.
type Subgroup struct {
	Proximity *Proximity // of the tasks of a leaf, nil if it does not matter
	// Size is how many tasks of a leaf are placed together or not at all, at least one. Minimum is how many children of
	// an inner subgroup must be whole.
	Size, Minimum int

	name           string
	isInner        bool
	sizeOfChildren int // of an inner subgroup with leaves
	parent         *Subgroup
	children       []*Subgroup
	whole          int // how many of its children are whole

	of     *policy // of a leaf
	values string  // of its labels, separated by slashes
	tasks  int     // assigned to a leaf
	counts Counts
}

// Lacks returns how many more tasks must be placed before the subgroup is whole: those of the children that lack least.
func (g *Subgroup) Lacks() int { return g.lacks(false) }

// lacks is Lacks. promised says that pipelined tasks are not missing.
func (g *Subgroup) lacks(promised bool) int {
	if !g.isInner {
		have := g.counts.ready()
		if promised {
			have += g.counts[Pipelined]
		}
		return max(g.Size-have, 0)
	}
	if g.Minimum == 0 {
		return 0
	}
	lacks := make([]int, len(g.children))
	for i, child := range g.children {
		lacks[i] = child.lacks(promised)
	}
	slices.Sort(lacks)
	total := 0
	for _, n := range lacks[:min(len(lacks), g.Minimum)] {
		total += n
	}
	// A child that does not exist lacks all. Both numbers are the user's, and 2³¹−1 at most: they are multiplied and
	// not counted up.
	return min(total+max(g.Minimum-len(lacks), 0)*g.sizeOfChildren, math.MaxInt32)
}

// IsWhole reports whether it lacks no tasks.
func (g *Subgroup) IsWhole() bool {
	if g.isInner {
		return g.whole >= g.Minimum
	}
	return g.counts.ready() >= g.Size
}

// IsNeeded reports whether the subgroup above needs more whole children.
func (g *Subgroup) IsNeeded() bool { return !g.parent.IsWhole() }

// IsLike reports whether another leaf needs as many tasks to be whole, by the same policy.
func (g *Subgroup) IsLike(other *Subgroup) bool {
	return g.parent == other.parent && g.Size == other.Size
}

// Ready is the number of its tasks that are placed, running, or succeeded.
func (g *Subgroup) Ready() int { return g.counts.ready() }

// Tasks is the number of tasks in a leaf.
func (g *Subgroup) Tasks() int { return g.tasks }

// Counts returns the number of tasks below it in each status.
func (g *Subgroup) Counts() Counts { return g.counts }

// Name is the name of the subgroup for users.
func (g *Subgroup) Name() string {
	if g.values == "" {
		return g.name
	}
	return g.name + "/" + g.values
}

// Count counts a task of a leaf by its status, for it and for all subgroups above it, or with -1 removes it. [Gang.Add]
// calls it for the tasks of the gang.
func (g *Subgroup) Count(s Status, sign int) {
	wasWhole := g.IsWhole()
	for n := g; n.parent != nil; n = n.parent {
		n.counts[s] += sign
	}
	for n := g; n.parent != nil; n = n.parent {
		isWhole := n.IsWhole()
		if isWhole == wasWhole {
			return
		}
		wasWhole = n.parent.IsWhole()
		if isWhole {
			n.parent.whole++
		} else {
			n.parent.whole--
		}
	}
}

// Subgroups returns the leaves of the job, by policy and then by value, numbers in their order. The caller must not
// change the slice.
func (g *Gang) Subgroups() []*Subgroup { return g.leaves }

// KeepsSubgroupsWhole reports whether every leaf is whole, with placed and pipelined tasks, or has none of them.
func (g *Gang) KeepsSubgroupsWhole() bool {
	return !slices.ContainsFunc(g.leaves, func(leaf *Subgroup) bool {
		have := leaf.counts.ready() + leaf.counts[Pipelined]
		return have > 0 && have < leaf.Size
	})
}
