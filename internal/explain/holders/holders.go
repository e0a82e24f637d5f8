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
	// Held is how much of it pods hold, and Total how much there is, "" if that is not limited. Kept is how much more
	// is kept for jobs that have not got it yet, "" if nothing is; see [Job].
	Held  string `json:"held"`
	Kept  string `json:"kept,omitempty"`
	Total string `json:"total,omitempty"`
	// Queues, Namespaces and Jobs are those that hold most of it, with what is kept for them.
	Queues     []Group `json:"queues,omitempty"`
	Namespaces []Group `json:"namespaces,omitempty"`
	Jobs       []Job   `json:"jobs,omitempty"`
}

// Group are the jobs of a queue or namespace.
type Group struct {
	Name string `json:"name"`
	Held string `json:"held"`
	Kept string `json:"kept,omitempty"`
	Jobs int    `json:"jobs"`
}

// Why room is kept for a job.
const (
	// ForAdmission: the job is admitted, and lacks so much of its minResources.
	ForAdmission = "Admission"
	// ForPlan: a plan has promised nodes to its pods. What victims still hold there counts as theirs.
	ForPlan = "Plan"
)

// Job is a job that holds some of the resource, or for which some is kept.
type Job struct {
	Job      string `json:"job"` // namespace and name, as users call it
	Queue    string `json:"queue,omitempty"`
	Priority int32  `json:"priority"`
	Held     string `json:"held"`
	// Kept is what is kept for it beyond that, "" if nothing is, and KeptFor why: [ForAdmission] or [ForPlan].
	Kept    string `json:"kept,omitempty"`
	KeptFor string `json:"keptFor,omitempty"`
	// Ends is when it is expected to end, if it holds any.
	Ends forecast.Ends `json:"ends"`
}

// Ends returns when a job that holds nodes is expected to end.
type Ends func(j *cluster.Job) forecast.Ends

// row is a job while the sums are made.
type row struct {
	job                    *cluster.Job // nil for pods without one, and for Workloads that have no pods yet
	name, namespace, queue string
	priority               int32
	amount, kept           int64
	keptFor                string
}

// tally makes the sums of one resource.
type tally struct {
	name       corev1.ResourceName
	held, kept int64
	jobs       map[*cluster.Job]*row
	rows       []*row
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
	y.of(j).amount += amount
}

// keep counts what is kept for a job.
func (y *tally) keep(j *cluster.Job, why string, amount int64) {
	if amount <= 0 || j == nil {
		return
	}
	y.kept += amount
	r := y.of(j)
	r.kept += amount
	if r.keptFor != ForPlan {
		r.keptFor = why
	}
}

// of is the row of a job.
func (y *tally) of(j *cluster.Job) *row {
	r := y.jobs[j]
	if r == nil {
		r = &row{job: j, name: j.Name(), namespace: j.ID.Namespace, queue: queueOf(j), priority: j.Priority}
		y.jobs[j] = r
		y.rows = append(y.rows, r)
	}
	return r
}

// write formats an amount.
func (y *tally) write(amount int64) string { return resources.FormatAmount(y.name, amount) }

// writeKept formats an amount, "" if it is 0.
func (y *tally) writeKept(amount int64) string {
	if amount == 0 {
		return ""
	}
	return y.write(amount)
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
	a := &Holders{Resource: string(y.name), Where: where, Held: y.write(y.held), Kept: y.writeKept(y.kept)}
	if total < resources.Unlimited {
		a.Total = y.write(total)
	}
	a.Queues = y.grouped(func(r *row) string { return r.queue })
	a.Namespaces = y.grouped(func(r *row) string { return r.namespace })
	slices.SortFunc(y.rows, func(r, s *row) int {
		return cmp.Or(cmp.Compare(s.amount+s.kept, r.amount+r.kept), cmp.Compare(r.name, s.name))
	})
	for _, r := range y.rows {
		if len(a.Jobs) == MaxListed {
			break
		}
		if r.name == "" {
			continue
		}
		j := Job{Job: r.name, Queue: r.queue, Priority: r.priority, Held: y.write(r.amount), Kept: y.writeKept(r.kept), KeptFor: r.keptFor}
		if r.job != nil && r.amount > 0 {
			j.Ends = ends(r.job)
		}
		a.Jobs = append(a.Jobs, j)
	}
	return a
}

// grouped sums up jobs by what they have in common. What has no name is left out.
func (y *tally) grouped(key func(*row) string) []Group {
	type sum struct {
		name         string
		amount, kept int64
		jobs         int
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
		s.kept += r.kept
		if r.name != "" {
			s.jobs++
		}
	}
	slices.SortFunc(all, func(a, b *sum) int {
		return cmp.Or(cmp.Compare(b.amount+b.kept, a.amount+a.kept), cmp.Compare(a.name, b.name))
	})
	var groups []Group
	for _, s := range all[:min(len(all), MaxListed)] {
		groups = append(groups, Group{Name: s.name, Held: y.write(s.amount), Kept: y.writeKept(s.kept), Jobs: s.jobs})
	}
	return groups
}

// OnNodes finds who holds a resource of some nodes, and for whom it is kept there; nil if there is no such job. Pods
// that leave hold it until they are gone. What a plan has promised is kept as far as it does not come from these, so
// that what is left is free. admitted are jobs for which so much of their minResources is kept as they lack, on
// whatever nodes.
func OnNodes(index *resources.Index, d resources.Dim, nodes []*cluster.Node, admitted []*cluster.Job, ends Ends) *Holders {
	y := newTally(index.Name(d))
	total := int64(0)
	for _, n := range nodes {
		total += n.Allocatable.At(d)
		var promised []*cluster.Task
		for _, t := range n.Tasks() {
			switch {
			case t.Status.Holds():
				y.add(t.Job, t.Key().Namespace, t.Request().At(d))
			case t.Status == cluster.Pipelined:
				promised = append(promised, t)
			}
		}
		slices.SortFunc(promised, func(t, u *cluster.Task) int { return cluster.CompareNames(t.Key(), u.Key()) })
		left := n.Promised.At(d) - n.Releasing.At(d)
		for _, t := range promised {
			kept := min(t.Request().At(d), left)
			y.keep(t.Job, ForPlan, kept)
			left -= max(kept, 0)
		}
	}
	for _, j := range admitted {
		y.keep(j, ForAdmission, j.Usage.Inqueue.At(d))
	}
	if y.held+y.kept == 0 {
		return nil
	}
	noun := "nodes"
	if len(nodes) == 1 {
		noun = "node"
	}
	return y.answer(fmt.Sprintf("%d %s", len(nodes), noun), total, ends)
}

// InQueue finds who holds a resource in a queue and those below it, of which these may hold so much, and for whom it is
// kept; nil if there is no such job. For a job that waits for admission what admitted jobs lack of their minResources
// is kept, too.
func InQueue(index *resources.Index, d resources.Dim, q *cluster.Queue, limit int64, isAdmission bool, ends Ends) *Holders {
	y := newTally(index.Name(d))
	for each := []*cluster.Queue{q}; len(each) > 0; {
		last := each[len(each)-1]
		each = append(each[:len(each)-1], last.Children...)
		for _, j := range last.Members() {
			promised := int64(0)
			if j.Count(cluster.Pipelined) > 0 {
				for _, t := range j.Tasks() {
					if t.Status == cluster.Pipelined {
						promised += t.Request().At(d)
					}
				}
			}
			y.add(j, j.ID.Namespace, j.Usage.Allocated.At(d)-promised)
			y.keep(j, ForPlan, promised)
			if isAdmission {
				y.keep(j, ForAdmission, j.Usage.Inqueue.At(d))
			}
		}
	}
	if y.held+y.kept == 0 {
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
