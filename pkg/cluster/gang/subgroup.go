package gang

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// policy makes subgroups by labels: each leaf below its subgroup has the tasks that it selects with equal values.
type policy struct {
	proximity *Proximity // inside each leaf
	size      int        // of each leaf
	rank      int        // index in the PodGroup
	selector  labels.Selector
	keys      []string
	subgroup  *Subgroup
}

// readPolicies takes the policies from the PodGroup. No task is in a subgroup then. The job needs the minimum of each.
func (g *Gang) readPolicies(group *schedulingv1beta1.PodGroup) {
	g.policies, g.leaves = nil, nil
	g.root = Subgroup{counts: g.root.counts}
	for i := range min(len(group.Spec.SubGroupPolicy), schedulingv1beta1.MaxSubGroupPolicies) {
		spec := &group.Spec.SubGroupPolicy[i]
		p := &policy{proximity: proximityOf(spec.NetworkTopology), size: 1, rank: i, keys: spec.MatchLabelKeys}
		if spec.SubGroupSize != nil {
			p.size = max(int(*spec.SubGroupSize), 1)
		}
		minimum := 0
		if spec.MinSubGroups != nil {
			minimum = max(int(*spec.MinSubGroups), 0)
		}
		if p.selector = selectorOf(spec); p.size > 1 || minimum > 0 || p.proximity != nil {
			p.subgroup = &Subgroup{name: spec.Name, Minimum: minimum, isInner: true, sizeOfChildren: p.size, parent: &g.root}
			g.policies = append(g.policies, p)
			g.root.children = append(g.root.children, p.subgroup)
			if minimum == 0 {
				g.root.whole++
			}
		}
	}
	g.root.Minimum, g.root.isInner = len(g.policies), len(g.policies) > 0
}

// selectorOf returns which pods a policy selects. Without a selector it selects nothing. Nor does it with one that
// cannot be read, or that is larger than the definition allows, since every pod is matched with it.
func selectorOf(spec *schedulingv1beta1.SubGroupPolicySpec) labels.Selector {
	if s := spec.LabelSelector; s != nil && max(len(s.MatchExpressions), len(s.MatchLabels), len(spec.MatchLabelKeys)) > schedulingv1beta1.MaxSelectorTerms {
		return labels.Nothing()
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.LabelSelector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// Assign adds a task with these labels to its subgroup, and returns it: the subgroup of the first policy that selects
// the task. It is nil if there is none, or if the task lacks a label of the policy.
func (g *Gang) Assign(of map[string]string) *Subgroup {
	for _, p := range g.policies {
		if !p.selector.Matches(labels.Set(of)) {
			continue
		}
		values := make([]string, len(p.keys))
		for i, key := range p.keys {
			value, ok := of[key]
			if !ok {
				return nil
			}
			values[i] = value
		}
		leaf := g.leaf(p, strings.Join(values, "/"))
		leaf.tasks++
		return leaf
	}
	return nil
}

// Unassign removes a task from a leaf, which ceases to exist with its last task. Nil is no leaf.
func (g *Gang) Unassign(leaf *Subgroup) {
	if leaf == nil {
		return
	}
	if leaf.tasks--; leaf.tasks == 0 {
		isLeaf := func(other *Subgroup) bool { return other == leaf }
		g.leaves = slices.DeleteFunc(g.leaves, isLeaf)
		leaf.parent.children = slices.DeleteFunc(leaf.parent.children, isLeaf)
	}
}

// leaf returns the subgroup for a policy and values, and makes it if it does not exist.
func (g *Gang) leaf(p *policy, values string) *Subgroup {
	leaf := &Subgroup{name: p.subgroup.name, Size: p.size, Proximity: p.proximity, parent: p.subgroup, of: p, values: values}
	i, found := slices.BinarySearchFunc(g.leaves, leaf, compareLeaves)
	if !found {
		g.leaves = slices.Insert(g.leaves, i, leaf)
		at, _ := slices.BinarySearchFunc(p.subgroup.children, leaf, compareLeaves)
		p.subgroup.children = slices.Insert(p.subgroup.children, at, leaf)
	}
	return g.leaves[i]
}

// compareLeaves compares by policy and then by values, shorter ones first, which sorts numbers.
func compareLeaves(a, b *Subgroup) int {
	return cmp.Or(cmp.Compare(a.of.rank, b.of.rank), cmp.Compare(len(a.values), len(b.values)), cmp.Compare(a.values, b.values))
}
