package cohorts

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/cohorts"
	"hekla.sh/hekla/internal/cohorts/flavors"
	"hekla.sh/hekla/internal/cohorts/victims"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/test/cohorts/trees"
)

// wide is a model of 1,000 queues in 100 cohorts with so much quota of cpu each.
func wide(nominal int64, fair bool) *model {
	m := &model{index: resources.NewIndex(), byName: map[string]*workload.Queue{}, flavors: map[string]*workload.Flavor{}}
	m.queues = workload.New(m.index)
	var nodes []*cohort.Node
	var queues []*workload.Queue
	parents := map[*cohort.Node]*cohort.Node{}
	cpu, fr := m.index.Dim(corev1.ResourceCPU), m.fr("default", "cpu")
	for i := range 100 {
		c := &cohort.Node{Name: fmt.Sprintf("c%03d", i), Terms: cohort.Terms{Weight: cohort.DefaultWeight}}
		nodes = append(nodes, c)
		for j := range 10 {
			q := &workload.Queue{}
			q.Name, q.Weight = fmt.Sprintf("q%03d-%d", i, j), cohort.DefaultWeight
			q.Quotas = []cohort.Quota{{FR: fr, Nominal: nominal, BorrowingLimit: cohort.Unlimited, LendingLimit: cohort.Unlimited}}
			q.Groups = []workload.Group{{Resources: []resources.Dim{cpu}, Flavors: []workload.GroupFlavor{{Flavor: m.flavor("default"), FRs: []resources.FR{fr}}}}}
			q.Preemption = workload.Preemption{WithinClusterQueue: workload.LowerPriority, ReclaimWithinCohort: workload.Any}
			q.Fungibility.NextOnPreempt = true
			queues = append(queues, q)
			parents[&q.Node] = c
		}
	}
	m.queues.Grow(queues, nodes, nil, func(n *cohort.Node) *cohort.Node { return parents[n] })
	m.rules = &victims.Rules{Queues: m.queues, FairSharing: fair, Strategies: []workload.Strategy{workload.LessThanOrEqualToFinalShare, workload.LessThanInitialShare}}
	assigner := &flavors.Assigner{Index: m.index, Oracle: m.rules, Nodes: trees.Room{}, FairSharing: fair}
	m.cycle = &cohorts.Cycle{Queues: m.queues, Rules: m.rules, Assigner: assigner, Nodes: trees.Room{}, ByPriority: true, Now: after(1000)}
	return m
}

// wait adds Workloads of one CPU, the same number to each queue.
func (m *model) wait(each int, shape string) {
	for _, q := range m.queues.All() {
		for i := range each {
			m.queues.Add(m.one(q, i, shape))
		}
	}
}

func (m *model) one(q *workload.Queue, i int, shape string) *workload.Workload {
	name := fmt.Sprintf("%s-%04d", q.Name, i)
	if shape == "" {
		shape = name
	}
	return &workload.Workload{UID: name, Name: name, Queue: q, Timestamp: after(i), Shape: shape,
		PodSets: []workload.PodSet{{Name: "main", Count: 1, MinCount: 1, Requests: []resources.Amount{{Dim: resources.CPU, Value: 1000}}}}}
}

// fillUp charges each queue for what it may use.
func (m *model) fillUp(each int) {
	for _, q := range m.queues.All() {
		for i := range each {
			w := m.one(q, 1000+i, "")
			m.queues.Charge(w, []cohort.Amount{{FR: q.Quotas[0].FR, Value: 1000}})
		}
	}
	m.queues.Settle()
}

func BenchmarkNothingHasChanged(b *testing.B) {
	m := wide(4000, false)
	m.fillUp(4)
	m.wait(10, "")
	m.cycle.Run()
	for b.Loop() {
		m.cycle.Run()
	}
}

// BenchmarkRefusedHeads is a round in which the heads of 1,000 queues are refused, while each queue uses what it has.
func BenchmarkRefusedHeads(b *testing.B) {
	for _, fair := range []bool{false, true} {
		b.Run(fmt.Sprintf("fair=%t", fair), func(b *testing.B) {
			m := wide(4000, fair)
			m.fillUp(4)
			m.wait(10, "equal")
			m.cycle.Run()
			for b.Loop() {
				for _, q := range m.queues.All() {
					w := q.Holders()[0]
					m.queues.Release(w)
					m.queues.Charge(w, []cohort.Amount{{FR: q.Quotas[0].FR, Value: 1000}})
				}
				m.cycle.Run()
			}
		})
	}
}

// BenchmarkAdmissions admits 10,000 Workloads.
func BenchmarkAdmissions(b *testing.B) {
	for _, fair := range []bool{false, true} {
		b.Run(fmt.Sprintf("fair=%t", fair), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				m := wide(10000, fair)
				m.wait(10, "equal")
				admitted := 0
				m.cycle.Decided = func(n *workload.Nomination) { admitted++ }
				b.StartTimer()
				m.cycle.Run()
				if admitted != 10000 {
					b.Fatalf("%d were admitted, want 10,000", admitted)
				}
			}
			b.ReportMetric(10000*float64(b.N)/b.Elapsed().Seconds(), "admissions/s")
		})
	}
}

// BenchmarkManyCandidates searches among 700 candidates for a Workload that needs them all.
func BenchmarkManyCandidates(b *testing.B) {
	for _, fair := range []bool{false, true} {
		b.Run(fmt.Sprintf("fair=%t", fair), func(b *testing.B) {
			m := wide(100_000, fair)
			victims := m.queues.All()[1]
			for i := range 700 {
				m.queues.Charge(m.one(victims, i, ""), []cohort.Amount{{FR: victims.Quotas[0].FR, Value: 1000}})
			}
			w := m.one(m.queues.All()[0], 0, "")
			claim := &workload.Claim{Workload: w, Usage: []cohort.Amount{{FR: victims.Quotas[0].FR, Value: 900_000}}, Needs: []resources.FR{victims.Quotas[0].FR}}
			for b.Loop() {
				m.rules.Victims(claim, nil)
			}
		})
	}
}
