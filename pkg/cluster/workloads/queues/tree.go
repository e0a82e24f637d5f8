package queues

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

var policies = map[v1beta2.PreemptionPolicy]workload.Policy{
	v1beta2.PreemptNever: workload.Never, v1beta2.PreemptLowerPriority: workload.LowerPriority,
	v1beta2.PreemptLowerOrNewerEqualPriority: workload.LowerOrNewerEqualPriority, v1beta2.PreemptAny: workload.Any,
}

// fill makes the queue of a ClusterQueue say what its settings do.
func (r *Registry) fill(c *ClusterQueue) {
	s := c.Settings
	if c.Queue == nil {
		c.Queue = &workload.Queue{}
		c.Queue.Name = c.Name
	}
	q := c.Queue
	q.Terms, q.Groups = r.terms(s.Groups, s.WeightNanos, s.Queue), nil
	for _, g := range s.Groups {
		var group workload.Group
		for _, name := range g.Resources {
			group.Resources = append(group.Resources, r.index.Dim(name))
		}
		for _, f := range g.Flavors {
			of := workload.GroupFlavor{Flavor: r.flavor(f.Name).core}
			for _, name := range g.Resources {
				of.FRs = append(of.FRs, r.index.OfFlavor(f.Name, name))
			}
			group.Flavors = append(group.Flavors, of)
		}
		q.Groups = append(q.Groups, group)
	}
	q.Strict = s.StrictFIFO
	q.Preemption = workload.Preemption{
		WithinClusterQueue: policies[s.WithinClusterQueue], ReclaimWithinCohort: policies[s.ReclaimWithinCohort],
		BorrowWithinCohort: s.BorrowWithinCohort != v1beta2.PreemptNever, MaxPriorityThreshold: s.MaxPriorityThreshold,
	}
	q.Fungibility = workload.Fungibility{
		NextOnBorrow: s.WhenCanBorrow == v1beta2.TryNextFlavor, NextOnPreempt: s.WhenCanPreempt == v1beta2.TryNextFlavor,
		PreemptionOverBorrowing: s.Preference == v1beta2.PreemptionOverBorrowing,
	}
}

func (r *Registry) terms(groups []settings.ResourceGroup, weight int64, below string) cohort.Terms {
	terms := cohort.Terms{Weight: weight, Below: below}
	for _, g := range groups {
		for _, f := range g.Flavors {
			for i, name := range g.Resources {
				if i < len(f.Quotas) {
					terms.Quotas = append(terms.Quotas, r.quota(f.Name, name, &f.Quotas[i]))
				}
			}
		}
	}
	return terms
}

func (r *Registry) quota(flavor string, name corev1.ResourceName, q *settings.Quota) cohort.Quota {
	limit := func(of *resource.Quantity) int64 {
		if of == nil {
			return cohort.Unlimited
		}
		return resources.Saturated(name, *of)
	}
	return cohort.Quota{FR: r.index.OfFlavor(flavor, name), Nominal: resources.Saturated(name, q.Nominal), BorrowingLimit: limit(q.Borrowing), LendingLimit: limit(q.Lending)}
}

// Settle works out which ClusterQueues are active, and grows the trees if one of them has changed.
func (r *Registry) Settle() {
	for c := range r.suspects {
		r.judge(c)
	}
	clear(r.suspects)
	if r.isStale {
		r.isStale = false
		r.grow()
	}
}

// Rebuild makes the registry build all trees again, so that all that was refused is tried again.
func (r *Registry) Rebuild() { r.isStale, r.changed = true, nil }

// change notes that a ClusterQueue or Cohort has changed.
func (r *Registry) change(n *cohort.Node) {
	if r.isStale = true; r.changed != nil {
		r.changed[n] = true
	}
}

// judge works out whether a ClusterQueue is active.
func (r *Registry) judge(c *ClusterQueue) {
	if c.Settings == nil {
		return
	}
	causes := c.Settings.Causes(c.isTerminating, settings.Others{
		Flavor: func(name string) (settings.Flavor, bool) {
			if f := r.flavors[name]; f != nil && f.settings != nil {
				return *f.settings, true
			}
			return settings.Flavor{}, false
		},
		Check: func(name string) (settings.AdmissionCheck, bool) { check, is := r.checks[name]; return check, is },
		Cohort: func(name string) (settings.Cohort, bool) {
			if g := r.cohorts[name]; g != nil && g.settings != nil {
				return *g.settings, true
			}
			return settings.Cohort{}, false
		},
	})
	if slices.Equal(causes, c.Causes) {
		return
	}
	wasActive := len(c.Causes) == 0
	c.Causes, c.Queue.Inactive = causes, ""
	for i, cause := range causes {
		if i > 0 {
			c.Queue.Inactive += ", "
		}
		c.Queue.Inactive += cause.Text
	}
	if wasActive != (len(causes) == 0) {
		r.change(&c.Queue.Node) // its Workloads become candidates of others, or cease to be
	}
	r.listener.ChangedClusterQueue(c)
}

// grow makes the trees of the ClusterQueues and Cohorts there are.
func (r *Registry) grow() {
	above := map[*cohort.Node]*cohort.Node{}
	var queues []*workload.Queue
	named := map[string]bool{}
	for _, c := range r.clusters {
		if c.Settings == nil {
			continue
		}
		queues = append(queues, c.Queue)
		if name := c.Settings.Cohort; name != "" && r.isTree(name) {
			above[&c.Queue.Node] = &r.cohort(name).node
			named[name] = true
		}
	}
	for name, g := range r.cohorts {
		if g.settings == nil {
			continue
		}
		if parent := g.settings.Parent; parent != "" && r.isTree(name) {
			above[&g.node] = &r.cohort(parent).node
			named[parent] = true
		}
	}
	var cohorts []*cohort.Node
	for _, name := range slices.Sorted(maps.Keys(r.cohorts)) {
		if g := r.cohorts[name]; g.settings != nil || named[name] {
			cohorts = append(cohorts, &g.node)
		} else {
			delete(r.cohorts, name)
		}
	}
	slices.SortFunc(queues, func(a, b *workload.Queue) int { return cmp.Compare(a.Name, b.Name) })
	r.listener.ChangedTrees(r.Queues.Grow(queues, cohorts, r.changed, func(n *cohort.Node) *cohort.Node { return above[n] }))
	r.changed = map[*cohort.Node]bool{}
}

// isTree reports whether the Cohorts from one upwards end in a root.
func (r *Registry) isTree(name string) bool {
	seen := map[string]bool{}
	for name != "" {
		if seen[name] {
			return false
		}
		seen[name] = true
		g := r.cohorts[name]
		if g == nil || g.settings == nil {
			return true
		}
		name = g.settings.Parent
	}
	return true
}
