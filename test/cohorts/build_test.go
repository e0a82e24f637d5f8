package cohorts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/internal/cohorts"
	"hekla.sh/hekla/internal/cohorts/flavors"
	"hekla.sh/hekla/internal/cohorts/victims"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/cohorts/trees"
)

// start is the common time of a case.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func after(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// model is a case turned into queues and Workloads.
type model struct {
	index     *resources.Index
	queues    *workload.Queues
	byName    map[string]*workload.Queue
	nodes     map[string]*cohort.Node
	flavors   map[string]*workload.Flavor
	workloads map[string]*workload.Workload
	rules     *victims.Rules
	cycle     *cohorts.Cycle

	evictions int
	check     func() // after each cycle, before victims leave
	note      func(*workload.Nomination)
}

func quantity(name, text string) int64 {
	q := resource.MustParse(text)
	if name == string(corev1.ResourceCPU) {
		return q.MilliValue()
	}
	return q.Value()
}

func (m *model) fr(flavor, name string) resources.FR {
	return m.index.OfFlavor(flavor, corev1.ResourceName(name))
}

func (m *model) amounts(specs []amountSpec) (v []cohort.Amount) {
	for _, s := range specs {
		v = append(v, cohort.Amount{FR: m.fr(s.Flavor, s.Resource), Value: quantity(s.Resource, s.Amount)})
	}
	return v
}

func weight(s *fairSpec) int64 {
	if s == nil || s.Weight == "" {
		return cohort.DefaultWeight
	}
	q := resource.MustParse(s.Weight)
	return q.ScaledValue(resource.Nano)
}

func (m *model) terms(groups []groupSpec, fair *fairSpec) cohort.Terms {
	terms := cohort.Terms{Weight: weight(fair)}
	for _, g := range groups {
		for _, f := range g.Flavors {
			for _, r := range f.Resources {
				q := cohort.Quota{FR: m.fr(f.Name, r.Name), Nominal: quantity(r.Name, r.NominalQuota), BorrowingLimit: cohort.Unlimited, LendingLimit: cohort.Unlimited}
				if r.BorrowingLimit != nil {
					q.BorrowingLimit = quantity(r.Name, *r.BorrowingLimit)
				}
				if r.LendingLimit != nil {
					q.LendingLimit = quantity(r.Name, *r.LendingLimit)
				}
				terms.Quotas = append(terms.Quotas, q)
			}
		}
	}
	return terms
}

var policies = map[string]workload.Policy{"": workload.Never, "Never": workload.Never, "LowerPriority": workload.LowerPriority,
	"LowerOrNewerEqualPriority": workload.LowerOrNewerEqualPriority, "Any": workload.Any}

func policy(t *testing.T, name string) workload.Policy {
	p, ok := policies[name]
	if !ok {
		t.Fatalf("policy %q is not known", name)
	}
	return p
}

func (m *model) queue(t *testing.T, s *queueSpec) *workload.Queue {
	q := &workload.Queue{}
	q.Name, q.Terms = s.Name, m.terms(s.ResourceGroups, s.FairSharing)
	for _, g := range s.ResourceGroups {
		group := workload.Group{}
		for _, r := range g.CoveredResources {
			group.Resources = append(group.Resources, m.index.Dim(corev1.ResourceName(r)))
		}
		for _, f := range g.Flavors {
			flavor := workload.GroupFlavor{Flavor: m.flavor(f.Name)}
			for _, r := range g.CoveredResources {
				flavor.FRs = append(flavor.FRs, m.fr(f.Name, r))
			}
			group.Flavors = append(group.Flavors, flavor)
		}
		q.Groups = append(q.Groups, group)
	}
	q.Preemption.WithinClusterQueue = policy(t, s.Preemption.WithinClusterQueue)
	q.Preemption.ReclaimWithinCohort = policy(t, s.Preemption.ReclaimWithinCohort)
	if b := s.Preemption.BorrowWithinCohort; b != nil {
		q.Preemption.BorrowWithinCohort = policy(t, b.Policy) != workload.Never
		q.Preemption.MaxPriorityThreshold = b.MaxPriorityThreshold
	}
	f := s.FlavorFungibility
	q.Fungibility = workload.Fungibility{NextOnBorrow: f.WhenCanBorrow == "TryNextFlavor", NextOnPreempt: f.WhenCanPreempt != "MayStopSearch",
		PreemptionOverBorrowing: f.Preference == "PreemptionOverBorrowing"}
	return q
}

func (m *model) flavor(name string) *workload.Flavor {
	if m.flavors[name] == nil {
		m.flavors[name] = &workload.Flavor{Name: name}
	}
	return m.flavors[name]
}

// phaseOf is the phase of a Workload that holds quota.
func phaseOf(isEvicted bool) workload.Phase {
	if isEvicted {
		return workload.PhaseEvicting
	}
	return workload.PhaseAdmitted
}

// build makes the model of a case.
func build(t *testing.T, c *theCase) *model {
	t.Helper()
	m := &model{index: resources.NewIndex(), byName: map[string]*workload.Queue{}, nodes: map[string]*cohort.Node{},
		flavors: map[string]*workload.Flavor{}, workloads: map[string]*workload.Workload{}}
	m.queues = workload.New(m.index)
	m.grow(t, c)
	m.rules = &victims.Rules{Queues: m.queues, FairSharing: c.FairSharing}
	for _, s := range c.PreemptionStrategies {
		m.rules.Strategies = append(m.rules.Strategies, map[string]workload.Strategy{
			"LessThanOrEqualToFinalShare": workload.LessThanOrEqualToFinalShare, "LessThanInitialShare": workload.LessThanInitialShare}[s])
	}
	assigner := &flavors.Assigner{Index: m.index, Oracle: m.rules, Nodes: trees.Room{}, FairSharing: c.FairSharing}
	m.cycle = &cohorts.Cycle{Queues: m.queues, Rules: m.rules, Assigner: assigner, Nodes: trees.Room{}, ByPriority: true, Now: after(1000)}
	for _, s := range c.Admitted {
		w := &workload.Workload{UID: s.Name, Name: s.Name, Queue: m.byName[s.ClusterQueue], Priority: s.Priority,
			Timestamp: after(s.CreatedSeconds), Reserved: after(s.ReservedSeconds), Phase: phaseOf(s.Evicted)}
		m.workloads[w.Name] = w
		m.queues.Charge(w, m.amounts(s.Usage))
	}
	for i := range c.Pending {
		w := m.pending(&c.Pending[i])
		m.workloads[w.Name] = w
		m.queues.Add(w)
	}
	m.queues.Settle()
	return m
}

// grow makes the tree of a case.
func (m *model) grow(t *testing.T, c *theCase) {
	parents := map[*cohort.Node]string{}
	var cohorts []*cohort.Node
	add := func(name, parent string, terms cohort.Terms) {
		n := &cohort.Node{Name: name, Terms: terms}
		m.nodes[name], parents[n] = n, parent
		cohorts = append(cohorts, n)
	}
	named := map[string]bool{}
	for i := range c.Cohorts {
		s := &c.Cohorts[i]
		add(s.Name, s.ParentName, m.terms(s.ResourceGroups, s.FairSharing))
		named[s.ParentName] = true
	}
	var queues []*workload.Queue
	for i := range c.ClusterQueues {
		q := m.queue(t, &c.ClusterQueues[i])
		m.byName[q.Name], parents[&q.Node] = q, c.ClusterQueues[i].CohortName
		queues = append(queues, q)
		named[c.ClusterQueues[i].CohortName] = true
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if m.nodes[name] == nil && name != "" {
			add(name, "", cohort.Terms{Weight: cohort.DefaultWeight})
		}
	}
	m.queues.Grow(queues, cohorts, nil, func(n *cohort.Node) *cohort.Node {
		if parents[n] == "" {
			return nil
		}
		return m.nodes[parents[n]]
	})
}

func (m *model) pending(s *pendingSpec) *workload.Workload {
	w := &workload.Workload{UID: s.Name, Name: s.Name, Queue: m.byName[s.ClusterQueue], Priority: s.Priority, Timestamp: after(s.CreatedSeconds)}
	for _, p := range s.PodSets {
		set := workload.PodSet{Name: p.Name, Count: p.Count, MinCount: p.Count}
		if p.MinCount != nil {
			set.MinCount = *p.MinCount
		}
		for _, name := range slices.Sorted(maps.Keys(p.Requests)) {
			set.Requests = append(set.Requests, resources.Amount{Dim: m.index.Dim(corev1.ResourceName(name)), Value: quantity(name, p.Requests[name])})
		}
		slices.SortFunc(set.Requests, func(a, b resources.Amount) int { return cmp.Compare(a.Dim, b.Dim) })
		w.PodSets = append(w.PodSets, set)
	}
	w.Shape = fmt.Sprint(s.Priority, w.PodSets)
	return w
}

// state prints the whole ledger, and who holds quota.
func (m *model) state() string {
	var said []string
	for _, tree := range m.queues.Trees {
		var visit func(n *cohort.Node)
		visit = func(n *cohort.Node) {
			for _, fr := range tree.FRs() {
				said = append(said, fmt.Sprintf("%s %d: %d of %d, %d left", n.Path(), fr, n.Usage(fr), n.Subtree(fr), n.Available(fr)))
			}
			for _, child := range n.Children() {
				visit(child)
			}
		}
		visit(tree.Root)
	}
	return strings.Join(said, "\n")
}
