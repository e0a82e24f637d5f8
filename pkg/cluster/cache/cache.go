package cache

import (
	"cmp"
	"slices"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache/held"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/cluster/standins"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// Options are the settings of a cache.
type Options struct {
	SchedulerNames []string // the names of this scheduler
	DefaultQueue   string   // for jobs that name none; schedulingv1beta1.DefaultQueue if empty

	// OpensQueueGates says that the scheduler removes the scheduling gate of queue admission. Pods with only this gate
	// then count as pending, otherwise as gated.
	OpensQueueGates bool

	// LongestHold is how long nodes are held for pods that do not exist yet; yunikorn.DefaultGangTimeout if it is zero.
	LongestHold time.Duration

	// Overlook, unless nil, says that a cause wakes no job. Tests use it to show that they find a missing cause.
	Overlook func(wake.Cause) bool
}

// base is what every part of the cache uses.
type base struct {
	*model.Cluster
	writer  *model.Writer
	options Options

	forgotten Forgotten // since TakeForgotten
	notices   []decision.Notice
	orphaned  []orphaned // the oldest first
	pods      *pods.Table
	version   uint64 // see Version

	ignoresWorkloads bool // see ServeWorkloads
}

// Version grows with every event and every cycle. While it stays, the model stays, but for trials, which are undone.
func (b *base) Version() uint64 { return b.version }

// Forgotten are the jobs, queues and tasks for which earlier decisions no longer count: they were deleted, or created
// again under the same name, or the job has changed its scheduler.
type Forgotten struct {
	Jobs   []*cluster.Job
	Queues []*cluster.Queue
	Tasks  []*cluster.Task
}

// TakeForgotten returns what was forgotten since the last call, in the order of events.
func (b *base) TakeForgotten() Forgotten {
	forgotten := b.forgotten
	b.forgotten = Forgotten{}
	return forgotten
}

// forget drops all earlier decisions about a job, whose PodGroup was deleted or replaced, or has another scheduler.
func (b *base) forget(j *cluster.Job) {
	j.Verdict, j.IsReported = nil, false
	j.Forgive()
	b.forgotten.Jobs = append(b.forgotten.Jobs, j)
}

// isOurs reports whether a pod belongs to this scheduler.
func (b *base) isOurs(pod *cluster.Pod) bool {
	return b.isOurName(pod.Spec.SchedulerName)
}

// SchedulerNames are the names of this scheduler.
func (b *base) SchedulerNames() []string { return b.options.SchedulerNames }

// isOurName reports whether a name is one of this scheduler.
func (b *base) isOurName(name string) bool { return slices.Contains(b.options.SchedulerNames, name) }

// Cache is a model that follows the events of the cluster.
type Cache struct {
	*base

	nodes    nodes
	queues   queues
	owners   owners
	ranks    ranks
	refusals refusals
	late     late
	// StandIns are those of jobs that expect pods.
	StandIns *standins.StandIns
	// Workloads are the Workloads, and which of them have other pods.
	Workloads *held.Workloads
	// Called finds jobs by the names of the objects for which their PodGroups were made.
	Called Names

	// Marks are the marks of pods and classes that cannot be read.
	Marks cluster.Marks

	ungrouped    []*cluster.Task // tasks without a PodGroup since TakeUngrouped
	keysAreStale bool            // jobs have to be updated for new keys
}

// New returns an empty cache.
func New(options Options) *Cache {
	options.DefaultQueue = cmp.Or(options.DefaultQueue, schedulingv1beta1.DefaultQueue)
	c, w := model.New(options.Overlook)
	b := &base{Cluster: c, writer: w, options: options, pods: pods.NewTable()}
	return &Cache{base: b, nodes: newNodes(b), queues: queues{base: b}, owners: newOwners(b), ranks: newRanks(b), refusals: newRefusals(b), StandIns: standins.New(c, w, cmp.Or(options.LongestHold, yunikorn.DefaultGangTimeout)),
		Workloads: held.New(c)}
}

// Settle updates what depends on many objects: the schedulers of jobs, ranks, the queue tree, HyperNodes, classes. It
// must be called after events and before decisions.
func (k *Cache) Settle() {
	k.settleRevealed()
	for _, j := range k.owners.questioned {
		k.StandIns.Look(j)
	}
	k.owners.settle()
	k.ranks.settle()
	k.StandIns.Settle()
	k.writer.Jobs.SettleWaiting()
	k.writer.Nodes.SettleRanks()
	k.nodes.settle()
	if k.Quota().IsStale() {
		k.queues.growTree()
		k.keysAreStale = true // a key may depend on the queues above
	}
	if k.keysAreStale {
		k.keysAreStale = false
		k.writer.Jobs.Each(k.belong)
	}
	k.writer.SettleShares()
	if classes := k.writer.Classes(); classes.IsStale {
		classes.IsStale = false
		// Not only for waiting jobs: a PodGroup may come late, and a binding may be refused.
		k.EachTask(func(t *cluster.Task) {
			if t.Status == cluster.Pending || t.Status.Assumed() {
				k.writer.Tasks.SetClass(t, false)
			}
		})
	}
}

// Refresh updates the model for a session: with these keys for classes, and with what changes by time alone.
func (k *Cache) Refresh(keys *cluster.Keys, now time.Time) {
	k.version++
	k.UseKeys(keys)
	k.writer.Classes().Age(now)
	k.Settle()
	k.FollowPods()
	k.Workloads.Settle(now)
	k.late.settle(now)
	k.Expire(now)
}

// UseKeys sets the keys for the classes of pods from the next [Cache.Settle] on. The keys must not change afterwards.
// Setting the same pointer again changes nothing.
func (k *Cache) UseKeys(keys *cluster.Keys) {
	classes := k.writer.Classes()
	if classes.Keys() == keys {
		return
	}
	classes.UseKeys(keys)
	// Later jobs use them from the beginning.
	k.keysAreStale = k.keysAreStale || k.writer.Jobs.Len() > 0
	classes.IsStale = classes.IsStale || k.writer.Tasks.Len() > 0
}

// Expire stops counting on terminating tasks that are overdue, and ends back-offs after refused evictions.
func (k *Cache) Expire(now time.Time) {
	k.writer.RequireNoTransaction("tasks expire")
	k.refusals.expire(now)
	for _, t := range k.Overdue(now) {
		k.writer.Tasks.Linger(t)
		k.Workloads.Look(t.Job)
		if p := t.Evicts; p != nil {
			k.Plans().Requeue(p)
		}
	}
}

// NextDeadline returns the earliest time after now at which time alone changes something, zero if there is none.
func (k *Cache) NextDeadline(now time.Time) time.Time {
	next := k.NextDue(now)
	for _, t := range k.refusals.refused {
		if until := t.Refusal.Until; until.After(now) && (next.IsZero() || until.Before(next)) {
			next = until
		}
	}
	for _, due := range [...]time.Time{k.StandIns.NextDue(now), k.Workloads.NextDue(now)} {
		if !due.IsZero() && (next.IsZero() || due.Before(next)) {
			next = due
		}
	}
	return next
}

// TakeBack undoes binds that were decided and never sent.
func (k *Cache) TakeBack(binds []decision.Bind, now time.Time) {
	for _, b := range binds {
		if t := k.Task(b.Pod); t != nil && t.UID() == b.UID && t.Status == cluster.Binding {
			k.writer.Tasks.Release(t, cluster.Pending)
			k.Plans().Unpromise(t, now, "the scheduler failed")
		}
	}
}

// TakeUngrouped returns the tasks without a node whose pods name no PodGroup, as far as they are new since the last
// call, by namespace and name.
func (k *Cache) TakeUngrouped() []*cluster.Task {
	tasks := slices.DeleteFunc(k.ungrouped, func(t *cluster.Task) bool { return !k.IsUngrouped(t) })
	k.ungrouped = nil
	slices.SortFunc(tasks, func(a, b *cluster.Task) int { return cluster.CompareNames(a.Key(), b.Key()) })
	return slices.Compact(tasks)
}

// IsUngrouped reports whether a task still exists, has no node and no scheduling gate, and its pod names no PodGroup.
func (k *Cache) IsUngrouped(t *cluster.Task) bool {
	return t.Job == nil && t.Status == cluster.Pending && k.isOurs(t.Pod) && k.Task(t.Key()) == t
}
