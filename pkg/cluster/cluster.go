package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/topology"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/budget"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/internal/changelog"
	"hekla.sh/hekla/pkg/cluster/internal/priority"
	"hekla.sh/hekla/pkg/cluster/internal/taints"
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// Options are what a model is made with.
type Options struct {
	SchedulerNames []string // pods with one of these are ours
	DefaultQueue   string   // for jobs that name none; schedulingv1beta1.DefaultQueue if empty

	// OpensQueueGates treats pods that only the gate of queue admission holds as waiting for a node: their gates are opened
	// here. Otherwise they are held, as by any other gate.
	OpensQueueGates bool

	// Overlook says of a cause whether it wakes no job, as if it had been forgotten; nil: none is. It is for tests, which show
	// with it that they find such a mistake.
	Overlook func(wake.Cause) bool
}

// Cluster is the model: all that the scheduler knows of the world. See the package comment for its invariants.
type Cluster struct {
	Resources *resources.Index
	// Totals are those of the nodes that can be used (rule Q6): a node counts unless it is cordoned, not ready, or has a taint
	// that keeps pods off and that no pod of ours tolerates, waiting or running.
	Totals
	// Tainted are those of the nodes that only such a taint keeps from counting, Unusable those of all others.
	Tainted, Unusable Totals

	options    Options
	nodes      map[string]*Node
	byRank     []*Node // sorted by name after Settle
	bySlot     []*Node // nil where the slot is free
	freeSlots  []int
	tasks      map[types.NamespacedName]*Task
	jobs       map[JobID]*Job
	queues     map[string]*Queue
	classes    *podclass.Table
	priorities priority.Classes
	namespaces map[string]*corev1.Namespace
	budgets    budget.Set
	quotas     map[string][]*corev1.ResourceQuota // by namespace, sorted by name
	backOffs   map[string]BackOff                 // of namespaces, at admission
	requoted   map[string]struct{}                // namespaces whose quotas may bound other PriorityClasses than before

	taints taints.Tracker // and the tolerations of this scheduler's pods that are not finished

	plans   Plans
	leaving map[types.NamespacedName]*Task // whose status Leaves, by name
	refused map[types.NamespacedName]*Task // that the API server refused to evict and that are left alone, by name

	topology   *topology.Tree
	hyperNodes []*HyperNode // as of the last Settle, the lowest tier first, then by name
	talliedAt  uint64       // how far their totals have followed Changes

	namespacesGeneration uint64

	supplies   *supplies.Store
	served     *supplies.Served
	claimUsers map[types.NamespacedName][]*Task // of PersistentVolumeClaims: the tasks whose pods name them

	strangers  map[types.NamespacedName]stranger
	questioned []*Job // whose owner may have changed

	waiting     []*Job     // jobs that have something to place, or wait for admission
	sharesMore  bool       // since the last Settle a pod was placed where no other pod can go: see Shared
	touchedJobs []*Job     // changed since TakeTouchedJobs
	quota       quota.Tree // of the queues, and the ledger of what they hold
	ungrouped   []*Task    // found to name no PodGroup since TakeUngrouped
	forgotten   Forgotten  // since TakeForgotten

	log        []operation
	trial      *trial // nil while none is under way
	generation uint64
	changes    changelog.Log[int32] // slots of nodes
	world      wake.World

	ranksAreStale bool

	keysAreStale bool // no job goes by them yet
}

// New returns an empty model. It holds the root queue.
func New(options Options) *Cluster {
	options.DefaultQueue = cmp.Or(options.DefaultQueue, schedulingv1beta1.DefaultQueue)
	c := &Cluster{
		Resources:  resources.NewIndex(),
		options:    options,
		nodes:      map[string]*Node{},
		tasks:      map[types.NamespacedName]*Task{},
		jobs:       map[JobID]*Job{},
		queues:     map[string]*Queue{},
		priorities: priority.Classes{},
		namespaces: map[string]*corev1.Namespace{},
		budgets:    budget.NewSet(),
		quotas:     map[string][]*corev1.ResourceQuota{},
		requoted:   map[string]struct{}{},
		backOffs:   map[string]BackOff{},
		taints:     taints.New(),
		leaving:    map[types.NamespacedName]*Task{},
		refused:    map[types.NamespacedName]*Task{},
		strangers:  map[types.NamespacedName]stranger{},
		changes:    changelog.New[int32](maxChanges),
		supplies:   supplies.New(),
		claimUsers: map[types.NamespacedName][]*Task{},
		topology:   topology.New(),
		world:      wake.World{Overlook: options.Overlook},
	}
	c.plans = Plans{model: c, inForce: map[string]*Plan{}}
	c.served = supplies.NewServed(c.Resources)
	c.classes = podclass.NewTable(c.Resources, c.served)
	c.queues[schedulingv1beta1.RootQueue] = &Queue{Node: quota.Node{
		Name: schedulingv1beta1.RootQueue, Terms: quota.Terms{Weight: 1, Reclaimable: true}}}
	return c
}

// Nodes returns all known nodes by name; current after [Cluster.Settle]. The caller must not change the slice.
func (c *Cluster) Nodes() []*Node { return c.byRank }

// Node returns a node by name, nil if it is not known.
func (c *Cluster) Node(name string) *Node { return c.nodes[name] }

// BySlot returns the nodes by their slots, nil where there is none. The caller must not change the slice.
func (c *Cluster) BySlot() []*Node { return c.bySlot }

// Task returns a task by its pod's namespace and name, nil if it is not known.
func (c *Cluster) Task(key types.NamespacedName) *Task { return c.tasks[key] }

// Job returns a job, nil if it is not known.
func (c *Cluster) Job(id JobID) *Job { return c.jobs[id] }

// Jobs returns all jobs that have a PodGroup, by namespace and name.
func (c *Cluster) Jobs() []*Job {
	jobs := slices.DeleteFunc(slices.Collect(maps.Values(c.jobs)), func(j *Job) bool { return j.Group == nil })
	slices.SortFunc(jobs, func(a, b *Job) int { return CompareNames(a.ID, b.ID) })
	return jobs
}

// EachJob calls a function with each job that has a PodGroup, in no particular order.
func (c *Cluster) EachJob(visit func(*Job)) {
	for _, j := range c.jobs {
		if j.Group != nil {
			visit(j)
		}
	}
}

// Waiting returns the jobs that had something to place, or waited for admission, at the last [Cluster.Settle], in no
// particular order. The caller must not change the slice.
func (c *Cluster) Waiting() []*Job { return c.waiting }

// Queue returns a queue, nil if it does not exist.
func (c *Cluster) Queue(name string) *Queue {
	if q := c.queues[name]; q != nil && q.Object != nil {
		return q
	}
	return nil
}

// Root returns the queue above all others, which may have no object.
func (c *Cluster) Root() *Queue { return c.queues[schedulingv1beta1.RootQueue] }

// Queues returns all queues by name, the root included.
func (c *Cluster) Queues() []*Queue {
	queues := slices.Collect(maps.Values(c.queues))
	slices.SortFunc(queues, func(a, b *Queue) int { return cmp.Compare(a.Name, b.Name) })
	return queues
}

// Namespace returns a namespace, nil if it is not known.
func (c *Cluster) Namespace(name string) *corev1.Namespace { return c.namespaces[name] }

// Namespaces returns all known namespaces by name.
func (c *Cluster) Namespaces() []*corev1.Namespace {
	namespaces := slices.Collect(maps.Values(c.namespaces))
	slices.SortFunc(namespaces, func(a, b *corev1.Namespace) int { return cmp.Compare(a.Name, b.Name) })
	return namespaces
}

// NamespacesGeneration grows whenever a namespace comes, changes or goes.
func (c *Cluster) NamespacesGeneration() uint64 { return c.namespacesGeneration }

// TakeTouchedJobs returns the jobs that changed since it was called last, by namespace and name; those without PodGroup and
// those of other schedulers too.
func (c *Cluster) TakeTouchedJobs() []*Job {
	jobs := c.touchedJobs
	c.touchedJobs = nil
	for _, j := range jobs {
		j.touched = false
	}
	jobs = slices.DeleteFunc(jobs, func(j *Job) bool { return c.jobs[j.ID] != j })
	slices.SortFunc(jobs, func(a, b *Job) int { return CompareNames(a.ID, b.ID) })
	return jobs
}

// TakeUngrouped returns the tasks without a node whose pods were found to name no PodGroup since it was called last, by namespace
// and name.
func (c *Cluster) TakeUngrouped() []*Task {
	tasks := slices.DeleteFunc(c.ungrouped, func(t *Task) bool { return !c.IsUngrouped(t) })
	c.ungrouped = nil
	slices.SortFunc(tasks, func(a, b *Task) int {
		return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name))
	})
	return slices.Compact(tasks)
}

// IsUngrouped reports whether a task is still there, has no node, is held by no gate, and its pod names no PodGroup.
func (c *Cluster) IsUngrouped(t *Task) bool {
	return t.Job == nil && t.Status == Pending && c.isOurs(t.Pod) && c.tasks[t.Key()] == t
}

// Forgotten are the jobs, queues and tasks of which nothing counts any more that was decided before: they are gone, were made
// anew under the same name, or the job was handed over from one scheduler to another.
type Forgotten struct {
	Jobs   []*Job
	Queues []*Queue
	Tasks  []*Task
}

// TakeForgotten returns what was forgotten since it was called last, in the order of events.
func (c *Cluster) TakeForgotten() Forgotten {
	forgotten := c.forgotten
	c.forgotten = Forgotten{}
	return forgotten
}

// Quota returns the quota tree of the queues, and its ledger.
func (c *Cluster) Quota() *quota.Tree { return &c.quota }

// TakeTouchedQueues returns the queues that changed, or of which a descendant did, since it was called last, by name;
// those without object are left out.
func (c *Cluster) TakeTouchedQueues() []*Queue {
	var queues []*Queue
	for _, n := range c.quota.TakeTouched() {
		if q := c.queues[n.Name]; q != nil && q.Object != nil && &q.Node == n {
			queues = append(queues, q)
		}
	}
	slices.SortFunc(queues, func(a, b *Queue) int { return cmp.Compare(a.Name, b.Name) })
	return queues
}

// Settle brings up to date what is derived from many objects at once: whose the jobs are, ranks, the queue tree, HyperNodes, classes. It must be called
// after events were applied and before decisions are made.
func (c *Cluster) Settle() {
	if c.sharesMore {
		// What queues share is worked out when a session begins: who was refused after the placement was refused by what it was before.
		c.sharesMore = false
		c.world.Note(wake.ShareChanged)
	}
	c.settleOwners()
	c.settlePriorities()
	c.waiting = slices.DeleteFunc(c.waiting, func(j *Job) bool {
		j.waiting = c.jobs[j.ID] == j && j.wantsAttention()
		return !j.waiting
	})
	if c.ranksAreStale {
		slices.SortFunc(c.byRank, func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) })
		for rank, n := range c.byRank {
			n.Rank = rank
		}
		c.ranksAreStale = false
	}
	if c.topology.Settle() {
		c.growTopology()
	}
	if c.quota.IsStale() {
		c.growTree()
		c.keysAreStale = true // which queues are above others
	}
	if c.keysAreStale {
		c.keysAreStale = false
		for _, j := range c.jobs {
			c.belong(j)
		}
	}
	if c.classes.IsStale {
		c.classes.IsStale = false
		// Not only of the jobs that wait now: a PodGroup may be late, and a binding may be refused.
		for _, t := range c.tasks {
			if t.Status == Pending || t.Status.Assumed() {
				c.setClass(t, c.classOf(t))
			}
		}
	}
}

// Touch counts a node as changed though its object and what is on it are as they were: what a plugin says of it has changed
// with time, or could not be found out before.
func (c *Cluster) Touch(n *Node) {
	c.Outdate(n)
	c.world.Note(wake.NodeTouched)
}

// Outdate counts a node as changed for code that keeps answers about it: what a plugin says of it rests on other nodes too, and
// has changed with them. Unlike [Cluster.Touch] it gives no judged job new hope, so that what is tried and taken back leaves
// nobody restless.
func (c *Cluster) Outdate(n *Node) {
	if c.trial != nil {
		c.trial.isOutdated = true
	}
	c.changed(n)
}

// Postpone has a job looked at again in the next cycle, whatever else is said of it in this one: there is no time to look
// for room for it in a scope.
func (c *Cluster) Postpone(j *Job, scope decision.Scope) { j.postponed |= decision.ScopesOf(scope) }

// Reconsider makes every judged job worth another look: the rules have changed.
func (c *Cluster) Reconsider() {
	for _, j := range c.jobs {
		j.version++
	}
}

// NextDeadline returns the earliest time after now at which time alone makes a difference, zero if there is none.
func (c *Cluster) NextDeadline(now time.Time) time.Time {
	var next time.Time
	sooner := func(when time.Time) {
		if when.After(now) && (next.IsZero() || when.Before(next)) {
			next = when
		}
	}
	for _, t := range c.leaving {
		sooner(t.due())
	}
	for _, t := range c.refused {
		sooner(t.Refusal.until)
	}
	for _, p := range c.plans.inForce {
		sooner(p.Deadline)
	}
	for _, j := range c.waiting {
		sooner(j.NotBefore)
		sooner(j.Admission.revisit)
		if j.postponed != 0 || c.isHelpedSince(j, now) {
			sooner(now.Add(postponement))
		}
	}
	return next
}

// Changes returns the slots of the nodes that changed since a position, oldest first, and the position to ask from next.
// ok is false if that is too long ago to tell: then any node may have changed. The slots are good until the next operation.
func (c *Cluster) Changes(since uint64) (slots []int32, next uint64, ok bool) {
	return c.changes.Since(since)
}

// maxChanges bounds the list of changes: twice a hundred thousand placements in a cycle, one megabyte.
const maxChanges = 1 << 18

func (c *Cluster) changed(n *Node) {
	if c.trial != nil {
		if _, known := c.trial.generations[n]; !known {
			c.trial.generations[n] = n.Generation
		}
	}
	c.generation++
	n.Generation = c.generation
	c.changes.Add(int32(n.Slot))
}

// TouchJob has TakeTouchedJobs return a job although nothing has happened to it.
func (c *Cluster) TouchJob(j *Job) { c.touch(j) }

func (c *Cluster) touch(j *Job) {
	if !j.touched {
		j.touched = true
		c.touchedJobs = append(c.touchedJobs, j)
	}
}

// invariant panics if the model is broken. The loop recovers, drops the cycle's decisions and says so.
func invariant(holds bool, format string, arguments ...any) {
	if !holds {
		panic("invariant: " + fmt.Sprintf(format, arguments...))
	}
}
