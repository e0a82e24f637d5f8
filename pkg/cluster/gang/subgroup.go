package gang

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// SubgroupPolicy is how some tasks of a job fall into subgroups.
type SubgroupPolicy struct {
	Name      string
	Proximity *Proximity // of each subgroup, nil if it has none
	// Size is how many tasks of a subgroup are placed together or not at all, Minimum how many subgroups the job needs to start.
	Size, Minimum int

	rank     int // in the PodGroup
	selector labels.Selector
	keys     []string
}

// Subgroup is a gang inside a job: tasks that one policy selects and that agree in the labels it goes by.
type Subgroup struct {
	Policy *SubgroupPolicy
	Values string // of those labels, separated by slashes

	tasks  int
	counts Counts
}

// Lacks returns how many more tasks must be placed before the subgroup has as many as it needs.
func (g *Subgroup) Lacks() int { return max(g.Policy.Size-g.counts.ready(), 0) }

// Ready is the number of its tasks that are placed, running, or done.
func (g *Subgroup) Ready() int { return g.counts.ready() }

// Name is what a person calls the subgroup.
func (g *Subgroup) Name() string {
	if g.Values == "" {
		return g.Policy.Name
	}
	return g.Policy.Name + "/" + g.Values
}

// Subgroups returns the subgroups of the job, in the order of their policies and then of their values; those whose values are
// numbers go by them. The caller must not change the slice.
func (x *Gang) Subgroups() []*Subgroup { return x.subgroups }

// LacksSubgroups reports whether fewer subgroups of a policy are complete than the job needs to start.
func (x *Gang) LacksSubgroups(p *SubgroupPolicy) bool {
	complete := 0
	for _, g := range x.subgroups {
		if g.Policy == p && g.Lacks() == 0 {
			complete++
		}
	}
	return complete < p.Minimum
}

// lacksOfSubgroups is how many tasks are missing from the subgroups that must be complete before the job may start, those
// counted that lack least; promised says that a task with the promise of a node is no longer missing.
func (x *Gang) lacksOfSubgroups(promised bool) int {
	total := 0
	for _, p := range x.policies {
		if p.Minimum == 0 {
			continue
		}
		var lacks []int
		for _, g := range x.subgroups {
			if g.Policy == p {
				have := g.counts.ready()
				if promised {
					have += g.counts[Pipelined]
				}
				lacks = append(lacks, max(p.Size-have, 0))
			}
		}
		for len(lacks) < p.Minimum {
			lacks = append(lacks, p.Size)
		}
		slices.Sort(lacks)
		for _, n := range lacks[:p.Minimum] {
			total += n
		}
	}
	return total
}

// KeepsSubgroupsWhole reports whether every subgroup has at least as many tasks with a node, or the promise of one, as it
// needs, or none.
func (x *Gang) KeepsSubgroupsWhole() bool {
	return !slices.ContainsFunc(x.subgroups, func(g *Subgroup) bool {
		have := g.counts.ready() + g.counts[Pipelined]
		return have > 0 && have < g.Policy.Size
	})
}

// readPolicies takes over what the PodGroup says of subgroups. No task is in one afterwards.
func (x *Gang) readPolicies(group *schedulingv1beta1.PodGroup) {
	x.policies, x.subgroups = nil, nil
	for i := range min(len(group.Spec.SubGroupPolicy), schedulingv1beta1.MaxSubGroupPolicies) {
		spec := &group.Spec.SubGroupPolicy[i]
		p := &SubgroupPolicy{Name: spec.Name, Proximity: proximityOf(spec.NetworkTopology), Size: 1, rank: i, keys: spec.MatchLabelKeys}
		if spec.SubGroupSize != nil {
			p.Size = max(int(*spec.SubGroupSize), 1)
		}
		if spec.MinSubGroups != nil {
			p.Minimum = max(int(*spec.MinSubGroups), 0)
		}
		if p.selector = selectorOf(spec); p.Size > 1 || p.Minimum > 0 || p.Proximity != nil {
			x.policies = append(x.policies, p)
		}
	}
}

// selectorOf says which pods a policy is for. A selector that cannot be read selects nothing, and so do none at all and one that is
// larger than the definition lets in: every pod is held against it.
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

// Assign puts a task with some labels into its subgroup, and returns that: that of the first policy that selects it, if it has all the
// labels that the policy goes by; nil if there is none.
func (x *Gang) Assign(of map[string]string) *Subgroup {
	for _, p := range x.policies {
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
		g := x.subgroup(p, strings.Join(values, "/"))
		g.tasks++
		return g
	}
	return nil
}

// Unassign takes a task out of a subgroup, which is forgotten with its last; nil is none.
func (x *Gang) Unassign(g *Subgroup) {
	if g == nil {
		return
	}
	if g.tasks--; g.tasks == 0 {
		x.subgroups = slices.DeleteFunc(x.subgroups, func(other *Subgroup) bool { return other == g })
	}
}

// Count counts a task of the subgroup by its status, or with -1 counts it no more. [Gang.Add] does so for a task that is of the gang.
func (g *Subgroup) Count(s Status, sign int) { g.counts[s] += sign }

// Tasks is how many tasks are in the subgroup.
func (g *Subgroup) Tasks() int { return g.tasks }

// Counts is how many of them are in each status.
func (g *Subgroup) Counts() Counts { return g.counts }

// subgroup returns the subgroup of a policy and values, which is made if it does not exist.
func (x *Gang) subgroup(p *SubgroupPolicy, values string) *Subgroup {
	g := &Subgroup{Policy: p, Values: values}
	i, found := slices.BinarySearchFunc(x.subgroups, g, compareSubgroups)
	if !found {
		x.subgroups = slices.Insert(x.subgroups, i, g)
	}
	return x.subgroups[i]
}

// compareSubgroups orders by policy and then by values, shorter ones first: so numbers come in their order.
func compareSubgroups(a, b *Subgroup) int {
	return cmp.Or(cmp.Compare(a.Policy.rank, b.Policy.rank), cmp.Compare(len(a.Values), len(b.Values)), cmp.Compare(a.Values, b.Values))
}
