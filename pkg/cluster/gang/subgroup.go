package gang

import (
	"cmp"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// SubgroupPolicy is how tasks of a job are grouped into subgroups.
type SubgroupPolicy struct {
	Name      string
	Proximity *Proximity // inside each subgroup, nil if it does not matter
	// Size is how many tasks of a subgroup are placed together or not at all. Minimum is how many subgroups must start
	// together.
	Size, Minimum int

	rank     int // index in the PodGroup
	selector labels.Selector
	keys     []string
}

// Subgroup is a gang inside a job: the tasks that one policy selects and that have equal values of its labels.
type Subgroup struct {
	Policy *SubgroupPolicy
	Values string // of these labels, separated by slashes

	tasks  int
	counts Counts
}

// Lacks returns how many more tasks must be placed before the subgroup is complete.
func (g *Subgroup) Lacks() int { return max(g.Policy.Size-g.counts.ready(), 0) }

// Ready is the number of its tasks that are placed, running, or succeeded.
func (g *Subgroup) Ready() int { return g.counts.ready() }

// Name is the name of the subgroup for users.
func (g *Subgroup) Name() string {
	if g.Values == "" {
		return g.Policy.Name
	}
	return g.Policy.Name + "/" + g.Values
}

// Subgroups returns the subgroups of the job, by policy and then by value, numbers in their order. The caller must not
// change the slice.
func (x *Gang) Subgroups() []*Subgroup { return x.subgroups }

// LacksSubgroups reports whether fewer subgroups of a policy are complete than must start together.
func (x *Gang) LacksSubgroups(p *SubgroupPolicy) bool {
	complete := 0
	for _, g := range x.subgroups {
		if g.Policy == p && g.Lacks() == 0 {
			complete++
		}
	}
	return complete < p.Minimum
}

// lacksOfSubgroups is how many tasks are missing from the subgroups that must be complete before the job may start. It
// counts the subgroups that lack least. promised says that pipelined tasks are not missing.
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
		slices.Sort(lacks)
		for _, n := range lacks[:min(len(lacks), p.Minimum)] {
			total += n
		}
		// What no task is in lacks all. Both numbers are the user's, and 2³¹−1 at most: they are multiplied and not
		// counted up.
		total = min(total+max(p.Minimum-len(lacks), 0)*p.Size, math.MaxInt32)
	}
	return total
}

// KeepsSubgroupsWhole reports whether every subgroup is complete, with placed and pipelined tasks, or has none of them.
func (x *Gang) KeepsSubgroupsWhole() bool {
	return !slices.ContainsFunc(x.subgroups, func(g *Subgroup) bool {
		have := g.counts.ready() + g.counts[Pipelined]
		return have > 0 && have < g.Policy.Size
	})
}

// readPolicies takes the policies from the PodGroup. No task is in a subgroup then.
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

// Unassign removes a task from a subgroup, which ceases to exist with its last task. Nil is no subgroup.
func (x *Gang) Unassign(g *Subgroup) {
	if g == nil {
		return
	}
	if g.tasks--; g.tasks == 0 {
		x.subgroups = slices.DeleteFunc(x.subgroups, func(other *Subgroup) bool { return other == g })
	}
}

// Count counts a task by its status, or with -1 removes it. [Gang.Add] calls it for the tasks of the gang.
func (g *Subgroup) Count(s Status, sign int) { g.counts[s] += sign }

// Tasks is the number of tasks in the subgroup.
func (g *Subgroup) Tasks() int { return g.tasks }

// Counts returns the number of them in each status.
func (g *Subgroup) Counts() Counts { return g.counts }

// subgroup returns the subgroup for a policy and values, and makes it if it does not exist.
func (x *Gang) subgroup(p *SubgroupPolicy, values string) *Subgroup {
	g := &Subgroup{Policy: p, Values: values}
	i, found := slices.BinarySearchFunc(x.subgroups, g, compareSubgroups)
	if !found {
		x.subgroups = slices.Insert(x.subgroups, i, g)
	}
	return x.subgroups[i]
}

// compareSubgroups compares by policy and then by values, shorter ones first, which sorts numbers.
func compareSubgroups(a, b *Subgroup) int {
	return cmp.Or(cmp.Compare(a.Policy.rank, b.Policy.rank), cmp.Compare(len(a.Values), len(b.Values)), cmp.Compare(a.Values, b.Values))
}
