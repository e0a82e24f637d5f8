package cache

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// Options are what a cache is made with.
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

// base is what every part of the cache uses.
type base struct {
	*model.Cluster
	writer  *model.Writer
	options Options

	forgotten Forgotten // since TakeForgotten
}

// Forgotten are the jobs, queues and tasks of which nothing counts any more that was decided before: they are gone, were made
// anew under the same name, or the job was handed over from one scheduler to another.
type Forgotten struct {
	Jobs   []*cluster.Job
	Queues []*cluster.Queue
	Tasks  []*cluster.Task
}

// TakeForgotten returns what was forgotten since it was called last, in the order of events.
func (b *base) TakeForgotten() Forgotten {
	forgotten := b.forgotten
	b.forgotten = Forgotten{}
	return forgotten
}

// forget drops all that was decided of a job before: its PodGroup is another one or gone, or belongs to another scheduler now.
func (b *base) forget(j *cluster.Job) {
	j.Verdict, j.IsReported = nil, false
	j.Forgive()
	b.forgotten.Jobs = append(b.forgotten.Jobs, j)
}

// isOurs reports whether a pod is this scheduler's.
func (b *base) isOurs(pod *corev1.Pod) bool {
	return slices.Contains(b.options.SchedulerNames, pod.Spec.SchedulerName)
}

// Cache is a model that follows what happens outside.
type Cache struct {
	*base

	nodes    nodes
	queues   queues
	owners   owners
	ranks    ranks
	refusals refusals

	ungrouped    []*cluster.Task // found to name no PodGroup since TakeUngrouped
	keysAreStale bool            // no job goes by them yet
}

// New returns a cache that knows nothing yet.
func New(options Options) *Cache {
	options.DefaultQueue = cmp.Or(options.DefaultQueue, schedulingv1beta1.DefaultQueue)
	c, w := model.New(options.Overlook)
	b := &base{Cluster: c, writer: w, options: options}
	return &Cache{base: b, nodes: newNodes(b), queues: queues{b}, owners: newOwners(b), ranks: newRanks(b), refusals: newRefusals(b)}
}

// Settle brings up to date what is derived from many objects at once: whose the jobs are, ranks, the queue tree, HyperNodes, classes.
// It must be called after events were applied and before decisions are made.
func (k *Cache) Settle() {
	k.writer.SettleShares()
	k.owners.settle()
	k.ranks.settle()
	k.writer.Jobs.SettleWaiting()
	k.writer.Nodes.SettleRanks()
	k.nodes.settle()
	if k.Quota().IsStale() {
		k.queues.growTree()
		k.keysAreStale = true // which queues are above others
	}
	if k.keysAreStale {
		k.keysAreStale = false
		k.writer.Jobs.Each(k.belong)
	}
	if classes := k.writer.Classes(); classes.IsStale {
		classes.IsStale = false
		// Not only of the jobs that wait now: a PodGroup may be late, and a binding may be refused.
		k.EachTask(func(t *cluster.Task) {
			if t.Status == cluster.Pending || t.Status.Assumed() {
				k.writer.Tasks.SetClass(t, false)
			}
		})
	}
}

// Refresh brings the model up to date for a session: its pods are of one class if these keys tell them not apart, and what time alone
// changes has changed.
func (k *Cache) Refresh(keys *cluster.Keys, now time.Time) {
	k.UseKeys(keys)
	k.Settle()
	k.Expire(now)
}

// UseKeys has the classes of pods go by other keys from the next [Cache.Settle] on. The keys must not change afterwards; the same
// again is no change.
func (k *Cache) UseKeys(keys *cluster.Keys) {
	classes := k.writer.Classes()
	if classes.Keys() == keys {
		return
	}
	classes.UseKeys(keys)
	// What comes later goes by them from the beginning.
	k.keysAreStale = k.keysAreStale || k.writer.Jobs.Len() > 0
	classes.IsStale = classes.IsStale || k.writer.Tasks.Len() > 0
}

// Expire stops counting on tasks that should be gone for a while, and on refusals that are old.
func (k *Cache) Expire(now time.Time) {
	invariant(!k.writer.IsInTransaction(), "tasks expire inside a transaction")
	k.refusals.expire(now)
	for _, t := range k.Overdue(now) {
		k.writer.Tasks.Linger(t)
		if p := t.Evicts; p != nil {
			k.Plans().Stir(p)
		}
	}
}

// NextDeadline returns the earliest time after now at which time alone makes a difference, zero if there is none.
func (k *Cache) NextDeadline(now time.Time) time.Time {
	var next time.Time
	for _, when := range [...]time.Time{k.NextDue(now), k.Plans().NextDeadline(now), k.refusals.nextEnd(now)} {
		if !when.IsZero() && (next.IsZero() || when.Before(next)) {
			next = when
		}
	}
	return next
}

// TakeBack frees tasks whose binding was decided at a time and never handed out.
func (k *Cache) TakeBack(binds []decision.Bind, now time.Time) {
	for _, b := range binds {
		if t := k.Task(b.Pod); t != nil && t.UID() == b.UID && t.Status == cluster.Binding {
			k.writer.Tasks.Release(t, cluster.Pending)
			k.Plans().Unpromise(t, now, "the scheduler failed")
		}
	}
}

// TakeUngrouped returns the tasks without a node whose pods were found to name no PodGroup since it was called last, by namespace
// and name.
func (k *Cache) TakeUngrouped() []*cluster.Task {
	tasks := slices.DeleteFunc(k.ungrouped, func(t *cluster.Task) bool { return !k.IsUngrouped(t) })
	k.ungrouped = nil
	slices.SortFunc(tasks, func(a, b *cluster.Task) int { return cluster.CompareNames(a.Key(), b.Key()) })
	return slices.Compact(tasks)
}

// IsUngrouped reports whether a task is still there, has no node, is held by no gate, and its pod names no PodGroup.
func (k *Cache) IsUngrouped(t *cluster.Task) bool {
	return t.Job == nil && t.Status == cluster.Pending && k.isOurs(t.Pod) && k.Task(t.Key()) == t
}

// invariant panics if the cache is used wrongly. The loop recovers, drops the cycle's decisions and says so.
func invariant(holds bool, format string, arguments ...any) {
	if !holds {
		panic("invariant: " + fmt.Sprintf(format, arguments...))
	}
}
