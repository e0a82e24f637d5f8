package explain

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/explain/holders"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/resources"
)

// Holders says who holds what a job waits for, and for whom it is kept, by the answer to why it waits: what a queue may
// hold no more of, or what is short on the nodes that could hold its pods. It is nil if the job waits for something
// else.
func (m *Model) Holders(id cluster.JobID, why *Why, ends holders.Ends) *holders.Holders {
	switch j := m.cluster.Job(id); {
	case !why.Cause.Waits || why.Cause.Never:
		return nil
	case why.Queued != nil && len(why.Queued.Short) > 0:
		return m.quotaHolders(id, &why.Queued.Short[0], ends)
	case j == nil || j.Group == nil:
		return m.nodeHolders(nil, why.Cause.Short, ends)
	default:
		if limit, d, queue := m.bound(&why.Job, &why.Cause); queue != nil {
			return holders.InQueue(m.cluster.Resources, d, queue, limit, j.IsPendingAdmission(), ends)
		}
		return m.nodeHolders(j, why.Cause.Short, ends)
	}
}

// bound is the limit of a queue that stops a job, nil if none does.
func (m *Model) bound(job *Job, c *Cause) (limit int64, d resources.Dim, queue *cluster.Queue) {
	if len(c.Nodes) > 0 {
		return 0, 0, nil // nodes refuse it
	}
	at := slices.IndexFunc(job.Bounds, func(b Bound) bool { return queueWord+b.Queue == c.Where })
	if at < 0 {
		return 0, 0, nil
	}
	b := &job.Bounds[at]
	d, isKnown := m.cluster.Resources.Find(corev1.ResourceName(b.Resource))
	if queue = m.cluster.Queue(b.Queue); queue == nil || !isKnown {
		return 0, 0, nil
	}
	limit = queue.Capability.Value(d)
	if share, ok := m.policy.Share(queue); ok && b.Limit == "deserved" {
		limit = share.Deserved.Value(d)
	}
	return limit, d, queue
}

// nodeHolders says who holds a resource that is short on the nodes that could hold the pods of a job.
func (m *Model) nodeHolders(j *cluster.Job, short []Shortage, ends holders.Ends) *holders.Holders {
	if len(short) == 0 {
		return nil
	}
	d, isKnown := m.cluster.Resources.Find(corev1.ResourceName(short[0].Resource))
	if !isKnown {
		return nil
	}
	var task *cluster.Task
	if j != nil {
		for _, t := range j.Tasks() {
			if t.Status == cluster.Pending && t.Request().At(d) > 0 && (task == nil || cluster.CompareTasks(t, task) < 0) {
				task = t
			}
		}
	}
	var nodes []*cluster.Node
	for _, n := range m.cluster.Nodes() {
		if n.Has(d) && (task == nil || n.Object != nil && m.outlook.CanOpen(task, n)) {
			nodes = append(nodes, n)
		}
	}
	var admitted []*cluster.Job
	if j != nil && j.IsPendingAdmission() { // once it is admitted, it competes with these for nodes
		m.cluster.EachJob(func(other *cluster.Job) {
			if other.Usage.Inqueue.At(d) > 0 {
				admitted = append(admitted, other)
			}
		})
	}
	return holders.OnNodes(m.cluster.Resources, d, nodes, admitted, ends)
}

// quotaHolders says who holds a quota that is less than a Workload requests.
func (m *Model) quotaHolders(id cluster.JobID, short *queued.Shortage, ends holders.Ends) *holders.Holders {
	e := m.cache.Workloads.Find(id.Key())
	if e == nil || e.Queue == nil {
		return nil
	}
	fr, isKnown := quotaNamed(m.cluster.Resources, e.Queue, short)
	if !isKnown {
		return nil
	}
	jobs := func(e *workloads.Entry) *cluster.Job { return m.cluster.Job(cluster.WorkloadID(e.Namespace, e.Name)) }
	return holders.OfQuota(m.cluster.Resources, m.cache.Workloads.Reader, e.Queue, short.Flavor, fr, jobs, ends)
}

// quotaNamed finds the resource of a flavor that a shortage names.
func quotaNamed(index *resources.Index, q *workload.Queue, short *queued.Shortage) (resources.FR, bool) {
	for g := range q.Groups {
		for _, flavor := range q.Groups[g].Flavors {
			if flavor.Name != short.Flavor {
				continue
			}
			for _, fr := range flavor.FRs {
				if string(index.ResourceOf(fr)) == short.Resource {
					return fr, true
				}
			}
		}
	}
	return 0, false
}

// maxScarce is of how many resources it is said who holds them.
const maxScarce = 3

// HoldersOfNodes says who holds the resources of which least is free on the nodes, the scarcest first.
func (m *Model) HoldersOfNodes(ends holders.Ends) []holders.Holders {
	type scarce struct {
		d    resources.Dim
		name corev1.ResourceName
		part float64
	}
	var all []scarce
	for d, name := range m.cluster.Resources.Resources() {
		if total, used := m.cluster.Total.At(d), m.cluster.Used.At(d); total > 0 && used > 0 && name != corev1.ResourcePods {
			all = append(all, scarce{d, name, float64(used) / float64(total)})
		}
	}
	slices.SortFunc(all, func(a, b scarce) int {
		return cmp.Or(cmp.Compare(b.part, a.part), strings.Compare(string(a.name), string(b.name)))
	})
	var found []holders.Holders
	for _, s := range all[:min(len(all), maxScarce)] {
		nodes := slices.DeleteFunc(slices.Clone(m.cluster.Nodes()), func(n *cluster.Node) bool { return !n.Has(s.d) })
		if h := holders.OnNodes(m.cluster.Resources, s.d, nodes, nil, ends); h != nil {
			found = append(found, *h)
		}
	}
	return found
}
