package guarantee

import (
	"slices"

	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// Balance is what a queue has of its guarantees toward queues of other parts of its subtree: toward the top, since
// other queues are nearer to it at most.
type Balance struct {
	// Guaranteed is what counts of each resource: the guarantee of the first queue on the way that names it. By has the
	// names of these queues.
	Guaranteed resources.Limits
	By         map[resources.Dim]string
	// Remaining is what a job of the queue may still take of each of these resources, by evictions if necessary (rule
	// G4).
	Remaining resources.Limits
	// Preemptable is what other queues may take from it (rule G2). All that it holds is, of a resource that the way
	// does not name.
	Preemptable resources.Vector
}

// Balance returns the balance of a queue, and false if it is in no subtree.
func (s *Subtrees) Balance(n *quota.Node) (b Balance, isInside bool) {
	top := s.Top(n)
	if top == nil {
		return b, false
	}
	b.By = map[resources.Dim]string{}
	b.Preemptable = n.Subtree.Allocated.Clone()
	for m := n; m != top; m = m.Above() {
		for i := range m.Guarantee.Len() {
			d := resources.Dim(i)
			guaranteed, isNamed := m.Guarantee.At(d)
			if !isNamed {
				continue
			}
			above := max(m.Subtree.Allocated.At(d)-guaranteed, 0)
			if above < b.Preemptable.At(d) {
				b.Preemptable.Set(d, above)
			}
			if _, isKnown := b.By[d]; !isKnown {
				b.By[d] = m.Name
				b.Guaranteed.Set(d, guaranteed)
				b.Remaining.Set(d, max(guaranteed-m.Subtree.Allocated.At(d), 0))
			}
		}
	}
	if s.isDisabled(n, top) {
		b.Preemptable = nil
	}
	return b, true
}

// isDisabled reports whether a queue gives nothing to others (rule G7).
func (s *Subtrees) isDisabled(n, top *quota.Node) bool {
	for ; n != top; n = n.Above() {
		if n.Policies.Disabled || !n.Reclaimable {
			return true
		}
	}
	return false
}

// IsTop reports whether a node is the top of a subtree.
func (s *Subtrees) IsTop(n *quota.Node) bool { return s != nil && slices.Contains(s.tops, n) }
