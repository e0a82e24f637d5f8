package holders

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/explain/forecast"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// MaxListed is how many queues, namespaces and jobs are named.
const MaxListed = 5

// Holders are who holds a resource. Amounts are quantities of Kubernetes: cpu in cores, memory in bytes, others by
// number.
type Holders struct {
	Resource string `json:"resource"`
	// Where says in words whose it is, such as "3 nodes", "queue team" or "ClusterQueue team, flavor default".
	Where string `json:"where"`
	// Held is how much of it is held, and Total how much there is, "" if that is not limited.
	Held  string `json:"held"`
	Total string `json:"total,omitempty"`
	// Queues, Namespaces and Jobs are those that hold most of it.
	Queues     []Group `json:"queues,omitempty"`
	Namespaces []Group `json:"namespaces,omitempty"`
	Jobs       []Job   `json:"jobs,omitempty"`
}

// Group are the jobs of a queue or namespace.
type Group struct {
	Name string `json:"name"`
	Held string `json:"held"`
	Jobs int    `json:"jobs"`
}

// Job is a job that holds some of the resource.
type Job struct {
	Job      string        `json:"job"` // namespace and name, as users call it
	Queue    string        `json:"queue,omitempty"`
	Priority int32         `json:"priority"`
	Held     string        `json:"held"`
	Ends     forecast.Ends `json:"ends"`
}

// Ends returns when a job that holds nodes is expected to end.
type Ends func(j *cluster.Job) forecast.Ends

// row is a job while the sums are made.
type row struct {
	job                    *cluster.Job // nil for pods without one, and for Workloads that have no pods yet
	name, namespace, queue string
	priority               int32
	amount                 int64
}

// tally makes the sums of one resource.
type tally struct {
	name corev1.ResourceName
	held int64
	jobs map[*cluster.Job]*row
	rows []*row
}

func newTally(name corev1.ResourceName) *tally {
	return &tally{name: name, jobs: map[*cluster.Job]*row{}}
}

// add counts what a job holds, or a pod without one.
func (y *tally) add(j *cluster.Job, namespace string, amount int64) {
	if amount <= 0 {
		return
	}
	y.held += amount
	if j == nil {
		y.rows = append(y.rows, &row{namespace: namespace, amount: amount})
		return
	}
	r := y.jobs[j]
	if r == nil {
		r = &row{job: j, name: j.Name(), namespace: j.ID.Namespace, queue: queueOf(j), priority: j.Priority}
		y.jobs[j] = r
		y.rows = append(y.rows, r)
	}
	r.amount += amount
}

// queueOf is the queue of a job, in Volcano's or Kueue's API.
func queueOf(j *cluster.Job) string {
	if w := j.Workload; w != nil && w.Queue != nil {
		return w.Queue.Name
	}
	return j.QueueName
}

// answer lists who holds most.
func (y *tally) answer(where string, total int64, ends Ends) *Holders {
	a := &Holders{Resource: string(y.name), Where: where, Held: resources.FormatAmount(y.name, y.held)}
	if total < resources.Unlimited {
		a.Total = resources.FormatAmount(y.name, total)
	}
	a.Queues = y.grouped(func(r *row) string { return r.queue })
	a.Namespaces = y.grouped(func(r *row) string { return r.namespace })
	slices.SortFunc(y.rows, func(r, s *row) int { return cmp.Or(cmp.Compare(s.amount, r.amount), cmp.Compare(r.name, s.name)) })
	for _, r := range y.rows {
		if len(a.Jobs) == MaxListed {
			break
		}
		if r.name == "" {
			continue
		}
		j := Job{Job: r.name, Queue: r.queue, Priority: r.priority, Held: resources.FormatAmount(y.name, r.amount)}
		if r.job != nil {
			j.Ends = ends(r.job)
		}
		a.Jobs = append(a.Jobs, j)
	}
	return a
}

// grouped sums up jobs by what they have in common. What has no name is left out.
func (y *tally) grouped(key func(*row) string) []Group {
	type sum struct {
		name   string
		amount int64
		jobs   int
	}
	sums := map[string]*sum{}
	var all []*sum
	for _, r := range y.rows {
		name := key(r)
		if name == "" {
			continue
		}
		s := sums[name]
		if s == nil {
			s = &sum{name: name}
			sums[name] = s
			all = append(all, s)
		}
		s.amount += r.amount
		if r.name != "" {
			s.jobs++
		}
	}
	slices.SortFunc(all, func(a, b *sum) int { return cmp.Or(cmp.Compare(b.amount, a.amount), cmp.Compare(a.name, b.name)) })
	var groups []Group
	for _, s := range all[:min(len(all), MaxListed)] {
		groups = append(groups, Group{Name: s.name, Held: resources.FormatAmount(y.name, s.amount), Jobs: s.jobs})
	}
	return groups
}

// OnNodes finds who holds a resource of some nodes, nil if no job does. Pods that leave hold it until they are gone.
func OnNodes(index *resources.Index, d resources.Dim, nodes []*cluster.Node, ends Ends) *Holders {
	y := newTally(index.Name(d))
	total := int64(0)
	for _, n := range nodes {
		total += n.Allocatable.At(d)
		for _, t := range n.Tasks() {
			if t.Status.Holds() {
				y.add(t.Job, t.Key().Namespace, t.Request().At(d))
			}
		}
	}
	if y.held == 0 {
		return nil
	}
	noun := "nodes"
	if len(nodes) == 1 {
		noun = "node"
	}
	return y.answer(fmt.Sprintf("%d %s", len(nodes), noun), total, ends)
}

// InQueue finds who holds a resource in a queue and those below it, of which these may hold so much; nil if no job
// does.
func InQueue(index *resources.Index, d resources.Dim, q *cluster.Queue, limit int64, ends Ends) *Holders {
	y := newTally(index.Name(d))
	for each := []*cluster.Queue{q}; len(each) > 0; {
		last := each[len(each)-1]
		each = append(each[:len(each)-1], last.Children...)
		for _, j := range last.Members() {
			y.add(j, j.ID.Namespace, j.Usage.Allocated.At(d))
		}
	}
	if y.held == 0 {
		return nil
	}
	return y.answer("queue "+q.Name, limit, ends)
}

// OfQuota finds which Workloads hold quota of a resource of a flavor, in a ClusterQueue and those of its Cohort that
// may have lent to each other; nil if none does. jobs returns the job of a Workload, nil if it has no pods.
func OfQuota(index *resources.Index, reader *workloads.Reader, q *workload.Queue, flavor string, fr resources.FR, jobs func(*workloads.Entry) *cluster.Job, ends Ends) *Holders {
	root := &q.Node
	for root.Parent() != nil {
		root = root.Parent()
	}
	y := newTally(index.ResourceOf(fr))
	for _, other := range reader.Queues().All() {
		if !root.Contains(&other.Node) {
			continue
		}
		for _, w := range other.Holders() {
			e := reader.Of(w)
			if e == nil {
				continue
			}
			r := &row{job: jobs(e), name: e.ID().String(), namespace: w.Namespace, queue: other.Name, priority: w.Priority}
			for _, a := range w.Charge {
				if a.FR == fr {
					r.amount += a.Value
				}
			}
			if r.amount > 0 {
				y.held += r.amount
				y.rows = append(y.rows, r)
			}
		}
	}
	if y.held == 0 {
		return nil
	}
	where := "ClusterQueue " + q.Name
	if root != &q.Node {
		where = "Cohort " + root.Name
	}
	return y.answer(where+", flavor "+flavor, quotaOf(root, fr), ends)
}

// quotaOf is the quota of a node and of all below it.
func quotaOf(n *cohort.Node, fr resources.FR) int64 {
	sum := n.Nominal(fr)
	for _, child := range n.Children() {
		sum = min(sum, cohort.Unlimited-1) // of several without limit
		sum = min(sum+min(quotaOf(child, fr), cohort.Unlimited-sum), cohort.Unlimited)
	}
	return sum
}
