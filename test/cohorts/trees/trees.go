// Package trees makes ClusterQueues, Cohorts and Workloads for tests, without objects of the API. All quota is of one
// resource, cpu, in one flavor, default.
package trees

import (
	"time"

	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// Start is the common time of a test.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Trees are queues below Cohorts. Queues are made first, and then Grow is called.
type Trees struct {
	*workload.Queues
	Flavor *workload.Flavor

	queues  []*workload.Queue
	cohorts map[string]*cohort.Node
	parents map[*cohort.Node]*cohort.Node
	made    int
}

// New returns trees without queues.
func New() *Trees {
	return &Trees{Queues: workload.New(resources.NewIndex()), Flavor: &workload.Flavor{Name: "default"},
		cohorts: map[string]*cohort.Node{}, parents: map[*cohort.Node]*cohort.Node{}}
}

// FR is the quota of cpu in the flavor default.
func (t *Trees) FR() resources.FR { return t.Index.OfFlavor(t.Flavor.Name, "cpu") }

// Queue makes a ClusterQueue with so many cores in a Cohort. It evicts Workloads of lower priority, and gets back what
// others borrow.
func (t *Trees) Queue(name, in string, cores int64) *workload.Queue {
	q := &workload.Queue{}
	q.Name, q.Weight = name, cohort.DefaultWeight
	q.Quotas = []cohort.Quota{{FR: t.FR(), Nominal: 1000 * cores, BorrowingLimit: cohort.Unlimited, LendingLimit: cohort.Unlimited}}
	q.Groups = []workload.Group{{Resources: []resources.Dim{resources.CPU},
		Flavors: []workload.GroupFlavor{{Flavor: t.Flavor, FRs: []resources.FR{t.FR()}}}}}
	q.Preemption = workload.Preemption{WithinClusterQueue: workload.LowerPriority, ReclaimWithinCohort: workload.Any}
	q.Fungibility.NextOnPreempt = true
	if t.cohorts[in] == nil {
		t.cohorts[in] = &cohort.Node{Name: in, Terms: cohort.Terms{Weight: cohort.DefaultWeight}}
	}
	t.queues, t.parents[&q.Node] = append(t.queues, q), t.cohorts[in]
	return q
}

// Grow takes in the queues that were made.
func (t *Trees) Grow() *Trees {
	var cohorts []*cohort.Node
	for _, q := range t.queues {
		cohorts = append(cohorts, t.parents[&q.Node])
	}
	t.Queues.Grow(t.queues, unique(cohorts), nil, func(n *cohort.Node) *cohort.Node { return t.parents[n] })
	return t
}

func unique(nodes []*cohort.Node) (once []*cohort.Node) {
	seen := map[*cohort.Node]bool{}
	for _, n := range nodes {
		if !seen[n] {
			seen[n], once = true, append(once, n)
		}
	}
	return once
}

// Workload makes a Workload of some pods of one core each. Each is a second younger than the one before.
func (t *Trees) Workload(q *workload.Queue, name string, pods, priority int32) *workload.Workload {
	t.made++
	return &workload.Workload{UID: name, Name: name, Queue: q, Priority: priority, Timestamp: Start.Add(time.Duration(t.made) * time.Second),
		PodSets: []workload.PodSet{{Name: "main", Count: pods, MinCount: pods, Requests: []resources.Amount{{Dim: resources.CPU, Value: 1000}}}}}
}

// Wait makes a Workload that waits in its queue.
func (t *Trees) Wait(q *workload.Queue, name string, pods, priority int32) *workload.Workload {
	w := t.Workload(q, name, pods, priority)
	t.Add(w)
	return w
}

// Hold makes a Workload that holds quota.
func (t *Trees) Hold(q *workload.Queue, name string, pods, priority int32) *workload.Workload {
	w := t.Workload(q, name, pods, priority)
	w.Reserved = w.Timestamp
	t.Charge(w, []cohort.Amount{{FR: t.FR(), Value: 1000 * int64(pods)}})
	return w
}

// Room is nodes with endless room, and no pod on them.
type Room struct{}

// CanPlace and the other methods implement [workload.Nodes].
func (Room) CanPlace(*workload.Workload, []workload.Part) bool { return true }

// CouldPlace answers as CanPlace does.
func (Room) CouldPlace(*workload.Workload, []workload.Part) bool { return true }

// Opens says that each Workload stands on a useful node.
func (Room) Opens(*workload.Workload, *workload.Workload, []workload.Part) bool { return true }

// Stays says that each Workload can leave.
func (Room) Stays(*workload.Workload) bool { return false }

// Leave changes nothing.
func (Room) Leave(*workload.Workload) {}

// Return changes nothing.
func (Room) Return(*workload.Workload) {}

// Promise always holds.
func (Room) Promise(*workload.Workload, []workload.Part) bool { return true }
