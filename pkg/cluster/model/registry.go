package model

import (
	"cmp"
	"maps"
	"slices"

	"hekla.sh/hekla/pkg/cluster"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/budget"
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// registry has all objects by name.
type registry struct {
	Resources *resources.Index

	nodes         map[string]*cluster.Node
	byRank        []*cluster.Node // sorted by name after [Writer.SettleRanks]
	bySlot        []*cluster.Node // nil if the slot is free
	freeSlots     []int
	ranksAreStale bool

	tasks  map[types.NamespacedName]*cluster.Task
	jobs   map[cluster.JobID]*cluster.Job
	queues map[string]*cluster.Queue
	quota  quota.Tree // the tree of queues with their usage

	classes    *podclass.Table
	priorities map[string]*schedulingv1.PriorityClass
	budgets    budget.Set
	quotas     map[string][]*corev1.ResourceQuota // by namespace, sorted by name

	namespaces           map[string]*corev1.Namespace
	namespacesGeneration uint64

	supplies   *supplies.Store
	served     *supplies.Served
	claimUsers map[types.NamespacedName][]*cluster.Task // tasks by the PersistentVolumeClaims of their pods
}

// Nodes returns all nodes by name, when the model was last settled. The caller must not change the slice.
func (r *registry) Nodes() []*cluster.Node { return r.byRank }

// Node returns a node by name, nil if there is none.
func (r *registry) Node(name string) *cluster.Node { return r.nodes[name] }

// BySlot returns the nodes by their slots, nil where there is none. The caller must not change the slice.
func (r *registry) BySlot() []*cluster.Node { return r.bySlot }

// TasksOnNodes returns the tasks of all nodes that hold resources there, node by node.
func (r *registry) TasksOnNodes() []*cluster.Task {
	var all []*cluster.Task
	for _, n := range r.byRank {
		all = append(all, n.Internal.Tasks...)
	}
	return all
}

// Task returns a task by its pod's namespace and name, nil if there is none.
func (r *registry) Task(key types.NamespacedName) *cluster.Task { return r.tasks[key] }

// EachTask calls a function with each task, in no particular order.
func (r *registry) EachTask(visit func(*cluster.Task)) {
	for _, t := range r.tasks {
		visit(t)
	}
}

// Job returns a job, nil if there is none.
func (r *registry) Job(id cluster.JobID) *cluster.Job { return r.jobs[id] }

// Jobs returns all jobs that have a PodGroup, by namespace and name.
func (r *registry) Jobs() []*cluster.Job {
	jobs := slices.DeleteFunc(slices.Collect(maps.Values(r.jobs)), func(j *cluster.Job) bool { return j.Group == nil })
	slices.SortFunc(jobs, func(a, b *cluster.Job) int { return a.ID.Compare(b.ID) })
	return jobs
}

// JobCount is how many jobs there are, also without a PodGroup.
func (r *registry) JobCount() int { return len(r.jobs) }

// EachJob calls a function with each job that has a PodGroup, in no particular order.
func (r *registry) EachJob(visit func(*cluster.Job)) {
	for _, j := range r.jobs {
		if j.Group != nil {
			visit(j)
		}
	}
}

// EachWithoutGroup calls a function with each job of pods that wait for a PodGroup which does not exist, in no
// particular order.
func (r *registry) EachWithoutGroup(visit func(*cluster.Job)) {
	for _, j := range r.jobs {
		if j.LacksGroup() {
			visit(j)
		}
	}
}

// Queue returns a queue, nil if it does not exist.
func (r *registry) Queue(name string) *cluster.Queue {
	if q := r.queues[name]; q != nil && q.Object != nil {
		return q
	}
	return nil
}

// Root returns the root queue, which may have no object.
func (r *registry) Root() *cluster.Queue { return r.queues[schedulingv1beta1.RootQueue] }

// Queues returns all queues by name, the root included.
func (r *registry) Queues() []*cluster.Queue {
	queues := slices.Collect(maps.Values(r.queues))
	slices.SortFunc(queues, func(a, b *cluster.Queue) int { return cmp.Compare(a.Name, b.Name) })
	return queues
}

// Quota returns the quota tree of the queues, and its ledger.
func (r *registry) Quota() *quota.Tree { return &r.quota }

// TakeTouchedQueues returns the queues that have changed since the last call, also by a queue below, by name. Queues
// without object are left out.
func (r *registry) TakeTouchedQueues() []*cluster.Queue {
	var queues []*cluster.Queue
	for _, n := range r.quota.TakeTouched() {
		if q := r.queues[n.Name]; q != nil && q.Object != nil && &q.Node == n {
			queues = append(queues, q)
		}
	}
	slices.SortFunc(queues, func(a, b *cluster.Queue) int { return cmp.Compare(a.Name, b.Name) })
	return queues
}

// Namespace returns a namespace, nil if there is none.
func (r *registry) Namespace(name string) *corev1.Namespace { return r.namespaces[name] }

// Namespaces returns all known namespaces by name.
func (r *registry) Namespaces() []*corev1.Namespace {
	namespaces := slices.Collect(maps.Values(r.namespaces))
	slices.SortFunc(namespaces, func(a, b *corev1.Namespace) int { return cmp.Compare(a.Name, b.Name) })
	return namespaces
}

// NamespacesGeneration grows whenever a namespace is added, changed or removed.
func (r *registry) NamespacesGeneration() uint64 { return r.namespacesGeneration }

// PriorityClass returns the class of a name, nil if there is none.
func (r *registry) PriorityClass(name string) *schedulingv1.PriorityClass { return r.priorities[name] }

// PriorityClassNames returns the names of all classes, in no particular order.
func (c *Cluster) PriorityClassNames() []string { return slices.Collect(maps.Keys(c.priorities)) }

// Quotas returns the ResourceQuotas of a namespace, by name. The caller must not change them.
func (r *registry) Quotas(namespace string) []*corev1.ResourceQuota { return r.quotas[namespace] }

// Budgets returns the budgets that cover a task's pod, by name. The caller must not change the slice.
func (r *registry) Budgets(t *cluster.Task) []*cluster.Budget {
	return r.budgets.Of(t.Pod, &t.Internal.Budgets)
}

// BudgetsIn returns the budgets of a namespace. The caller must not change the slice.
func (r *registry) BudgetsIn(namespace string) []*cluster.Budget { return r.budgets.In(namespace) }

// Supplies returns the volumes and devices.
func (r *registry) Supplies() *supplies.Store { return r.supplies }

// Users returns the tasks whose pods name a PersistentVolumeClaim, in no particular order. The caller must not change
// the slice.
func (r *registry) Users(claim types.NamespacedName) []*cluster.Task { return r.claimUsers[claim] }

// DependsOnPods reports whether the answer for a class may depend on pods on other nodes.
func (r *registry) DependsOnPods(k *cluster.Class) bool { return r.classes.DependsOnPods(k) }

// Concerns reports whether another task may decide if a task fits on a node: a required affinity term of the task
// selects the other.
func (r *registry) Concerns(t, other *cluster.Task) bool {
	return t.Class.HasTerms && podclass.Concerns(t.Pod, other.Pod)
}

// AsPending passes a copy of a task to look, as if its pod were pending: of the same job, and of the class that it
// would have then. The copy is not part of the model. It may be asked about, but not changed or kept.
func (r *registry) AsPending(t *cluster.Task, look func(*cluster.Task)) {
	pod := *t.Pod
	pod.NodeName, pod.Status = "", pods.Status{Phase: corev1.PodPending}
	imagined := &cluster.Task{Pod: &pod, Job: t.Job, Role: t.Role, Index: t.Index, Priority: t.Priority, Internal: cluster.TaskInternals{InJob: -1}}
	r.setClass(imagined, r.classOf(imagined))
	defer r.setClass(imagined, nil)
	look(imagined)
}

// classOf returns the class of a pending task.
func (r *registry) classOf(t *cluster.Task) *cluster.Class { return r.classes.Of(t.Pod, t.Belonging()) }

// setClass moves a task from its class to another.
func (r *registry) setClass(t *cluster.Task, k *cluster.Class) {
	t.Class = r.classes.Exchange(t.Class, k)
}
