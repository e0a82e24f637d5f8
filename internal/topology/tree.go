package topology

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

// HyperNode is a set of nodes that are close to each other. What is exported is current after [Tree.Settle].
type HyperNode struct {
	Object   *topologyv1alpha1.HyperNode
	Name     string
	Tier     int
	TierName string
	// Problem is why the HyperNode is left out, "" if it is not.
	Problem string
	// Nodes are all known nodes in it, those of its members included, by name; none if it is left out.
	Nodes []string

	selectors
	direct map[string]bool    // the known nodes that it selects itself
	holder map[int]*HyperNode // whose member it is, by tier
}

// Tree is all HyperNodes and nodes there are. The zero value is not usable; see [New].
type Tree struct {
	hyperNodes map[string]*HyperNode
	labels     map[string]map[string]string // of the nodes, by name
	chains     map[string][]*HyperNode      // by node
	sorted     []*HyperNode                 // by name
	stale      bool
}

// New returns a tree of nothing.
func New() *Tree {
	return &Tree{hyperNodes: map[string]*HyperNode{}, labels: map[string]map[string]string{}, chains: map[string][]*HyperNode{}}
}

// Set takes in a HyperNode, or what has become of it.
func (t *Tree) Set(object *topologyv1alpha1.HyperNode) {
	if h := t.hyperNodes[object.Name]; h != nil && h.Object.UID == object.UID && equality.Semantic.DeepEqual(h.Object.Spec, object.Spec) {
		h.Object = object
		return
	}
	h := &HyperNode{Object: object, Name: object.Name, Tier: object.Spec.Tier, TierName: object.Spec.TierName,
		selectors: readSelectors(object), direct: map[string]bool{}}
	for name := range h.names {
		if _, known := t.labels[name]; known {
			h.direct[name] = true
		}
	}
	if h.isDynamic() {
		for name, labels := range t.labels {
			if h.selects(name, labels) {
				h.direct[name] = true
			}
		}
	}
	t.hyperNodes[object.Name] = h
	t.stale = true
}

// Delete takes out the HyperNode of a name.
func (t *Tree) Delete(name string) {
	if t.hyperNodes[name] != nil {
		delete(t.hyperNodes, name)
		t.stale = true
	}
}

// Get returns the HyperNode of a name, nil if there is none.
func (t *Tree) Get(name string) *HyperNode { return t.hyperNodes[name] }

// SetNode takes in a node, or what has become of it.
func (t *Tree) SetNode(name string, labels map[string]string) {
	if before, known := t.labels[name]; known && maps.Equal(before, labels) {
		return
	}
	t.labels[name] = labels
	for _, h := range t.hyperNodes {
		is := h.selects(name, labels)
		if is == h.direct[name] {
			continue
		}
		if is {
			h.direct[name] = true
		} else {
			delete(h.direct, name)
		}
		t.stale = true
	}
}

// DeleteNode takes out the node of a name.
func (t *Tree) DeleteNode(name string) {
	delete(t.labels, name)
	for _, h := range t.hyperNodes {
		if h.direct[name] {
			delete(h.direct, name)
			t.stale = true
		}
	}
}

// HyperNodes returns all HyperNodes by name, those that are left out included. The caller must not change the slice.
func (t *Tree) HyperNodes() []*HyperNode { return t.sorted }

// Chain returns the HyperNodes that a node is in, the lowest tier first. The caller must not change the slice.
func (t *Tree) Chain(node string) []*HyperNode { return t.chains[node] }

// IsSettled reports whether nothing has changed since Settle was called last.
func (t *Tree) IsSettled() bool { return !t.stale }

// Settle works out who is in what, and reports whether anything may have changed since it was called last.
func (t *Tree) Settle() bool {
	if !t.stale {
		return false
	}
	t.stale = false
	t.chains = map[string][]*HyperNode{}
	t.sorted = slices.SortedFunc(maps.Values(t.hyperNodes), func(a, b *HyperNode) int { return cmp.Compare(a.Name, b.Name) })
	// From the lowest tier up, so that members come before what they are members of, and the older first.
	order := slices.Clone(t.sorted)
	slices.SortStableFunc(order, func(a, b *HyperNode) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), a.Object.CreationTimestamp.Compare(b.Object.CreationTimestamp.Time))
	})
	for _, h := range order {
		h.Nodes, h.holder = nil, map[int]*HyperNode{}
	}
	for _, h := range order {
		if h.Problem = h.problem; h.Problem == "" {
			h.Problem = t.join(h)
		}
	}
	return true
}

// join puts a HyperNode above its members, unless something forbids it: then it says what.
func (t *Tree) join(h *HyperNode) string {
	within := map[string]bool{}
	maps.Copy(within, h.direct)
	var members []*HyperNode
	for _, name := range h.members {
		m := t.hyperNodes[name]
		switch {
		case m == nil:
			continue
		case m.Tier >= h.Tier:
			return t.misplaced(h, m)
		case m.Problem != "":
			continue
		case m.holder[h.Tier] != nil:
			return fmt.Sprintf("its member HyperNode %s is a member of HyperNode %s, which has tier %d too", name, m.holder[h.Tier].Name, h.Tier)
		}
		members = append(members, m)
		for _, node := range m.Nodes {
			within[node] = true
		}
	}
	nodes := slices.Sorted(maps.Keys(within))
	for _, node := range nodes {
		chain := t.chains[node]
		if last := len(chain) - 1; last >= 0 && chain[last].Tier == h.Tier {
			return fmt.Sprintf("node %s is in HyperNode %s, which has tier %d too", node, chain[last].Name, h.Tier)
		}
	}
	h.Nodes = nodes
	for _, node := range nodes {
		t.chains[node] = append(t.chains[node], h)
	}
	for _, m := range members {
		m.holder[h.Tier] = h
	}
	return ""
}

// misplaced says what is wrong with a member that is not of a lower tier, and whether there is a circle behind it.
func (t *Tree) misplaced(h, m *HyperNode) string {
	if h == m {
		return "it is a member of itself"
	}
	if way := t.way(m, h, map[string]bool{}); way != nil {
		return fmt.Sprintf("it is a member of itself, by way of %s", strings.Join(way[:len(way)-1], ", "))
	}
	return fmt.Sprintf("its member HyperNode %s has tier %d, and members must be of lower tiers than %d", m.Name, m.Tier, h.Tier)
}

// way returns the names on a way down from one HyperNode to another, both included, nil if there is none.
func (t *Tree) way(from, to *HyperNode, seen map[string]bool) []string {
	if from == to {
		return []string{to.Name}
	}
	if seen[from.Name] {
		return nil
	}
	seen[from.Name] = true
	for _, name := range from.members {
		if m := t.hyperNodes[name]; m != nil {
			if rest := t.way(m, to, seen); rest != nil {
				return append([]string{from.Name}, rest...)
			}
		}
	}
	return nil
}
