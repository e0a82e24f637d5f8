package workloads

import (
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads/queues"
	"hekla.sh/hekla/pkg/cluster/workloads/shapes"
	"hekla.sh/hekla/pkg/resources"
)

// Options are the arguments of the plugin cohorts that the reader goes by. The zero value is not the default: see
// [Defaults].
type Options struct {
	// EvictionTimestamp is requeuingStrategy.timestamp: a Workload whose pods were not ready in time waits behind those
	// that came before its eviction. Otherwise it keeps the place of its creation.
	EvictionTimestamp bool
	// ByPriority is prioritySortingWithinCohort. Without it, one that was preempted while it borrowed waits behind
	// those of its time.
	ByPriority bool
	// Counted is resources: what of the requests counts.
	Counted shapes.Counted
	// External is integrations.externalFrameworks: the kinds whose own controllers follow Workloads.
	External []schema.GroupVersionKind
}

// Defaults are the options if the configuration says nothing.
func Defaults() Options { return Options{EvictionTimestamp: true, ByPriority: true} }

// base is what the parts of a reader share.
type base struct {
	registry *queues.Registry
	queues   *workload.Queues
	index    *resources.Index
	shapes   *shapes.Table
	options  Options

	revealed int // resources, when all Workloads were read

	entries map[types.NamespacedName]*Entry
	byUID   map[types.UID]*Entry
	named   map[*queues.LocalQueue]map[*Entry]bool // by their LocalQueue

	// first are the refused heads of queues with StrictFIFO, and what is said to those behind them.
	first map[*workload.Queue]behind

	toPlace  []*Entry
	backoffs map[*Entry]bool // those that wait for a time
	dirty    []*Entry        // what is decided of them may have to be written

	// IsIdle says that nothing is decided or written, as under a configuration that admits no Workloads. Plans wait.
	IsIdle bool
	// TreesChanged says that the trees of ClusterQueues have changed. The caller that follows them resets it.
	TreesChanged bool
}

// holding is what Workloads hold or are promised: quota, and the nodes of their pods.
type holding struct {
	*base
	inside  map[*queues.ClusterQueue]map[*Entry]bool // by the ClusterQueue that they hold quota of
	planned map[*Entry]bool                          // those with a plan
	moved   []*Entry                                 // those that hold other nodes than before
}

// planning is when plans begin and end.
type planning struct {
	*holding
	areUnsure bool // plans are to be reviewed
}

// writing is what the objects are to say.
type writing struct {
	*base
	drifting map[*Entry]bool // those whose message waits to be written again
}

// Reader keeps queues up to date with objects. Only one goroutine may use it.
type Reader struct {
	*base
	held   *holding
	plans  *planning
	writes *writing
	Tally  Tally                         // what was decided since it was last taken
	isCut  bool                          // heads are left that no round has decided about
	tried  map[types.NamespacedName]bool // the LocalQueues of Workloads about which anything was decided
}

// New returns a reader without objects. Dimensions are those of the index, which the model shares.
func New(index *resources.Index) *Reader {
	b := &base{
		index: index, options: Defaults(), shapes: shapes.NewTable(index), entries: map[types.NamespacedName]*Entry{}, byUID: map[types.UID]*Entry{},
		named: map[*queues.LocalQueue]map[*Entry]bool{}, first: map[*workload.Queue]behind{}, backoffs: map[*Entry]bool{},
	}
	held := &holding{base: b, inside: map[*queues.ClusterQueue]map[*Entry]bool{}, planned: map[*Entry]bool{}}
	r := &Reader{base: b, held: held, plans: &planning{holding: held}, writes: &writing{base: b, drifting: map[*Entry]bool{}},
		tried: map[types.NamespacedName]bool{}}
	b.registry = queues.New(index, &listening{r})
	b.queues = b.registry.Queues
	return r
}

// Queues are what rounds decide on. They are up to date after [Reader.Settle].
func (r *Reader) Queues() *workload.Queues { return r.queues }

// QueueNames returns the names of the LocalQueues of a namespace and of all ClusterQueues that exist, in any order.
func (r *Reader) QueueNames(namespace string) (locals, clusters []string) {
	return r.registry.LocalQueueNames(namespace), r.registry.ClusterQueueNames()
}

// Use sets the options. All Workloads are read again if they differ.
func (r *Reader) Use(options Options) {
	if reflect.DeepEqual(r.options, options) {
		return
	}
	r.options = options
	r.readAll()
}

// readAll reads all Workloads again.
func (r *Reader) readAll() {
	r.revealed = r.index.Revealed()
	r.shapes.Count(r.options.Counted)
	for _, e := range r.entries {
		r.read(e, e.Object)
	}
}

// Set says that an object was added or changed. It reports false of kinds that are not read here.
func (r *Reader) Set(object runtime.Object) (isRead bool) {
	switch o := object.(type) {
	case *v1beta2.ClusterQueue:
		r.registry.SetClusterQueue(o)
	case *v1beta2.Cohort:
		r.registry.SetCohort(o)
	case *v1beta2.LocalQueue:
		r.registry.SetLocalQueue(o)
	case *v1beta2.ResourceFlavor:
		r.registry.SetFlavor(o)
	case *v1beta2.AdmissionCheck:
		r.registry.SetCheck(o)
	case *v1beta2.Workload:
		r.setWorkload(o)
	case *corev1.Namespace:
		r.registry.SetNamespace(o.Name, o.Labels)
	case *corev1.LimitRange:
		r.reread(r.shapes.SetLimits(o.Namespace, o.Name, o), o.Namespace)
	case *nodev1.RuntimeClass:
		r.reread(r.shapes.SetRuntimeClass(o.Name, o), "")
	default:
		return false
	}
	return true
}

// Delete says that an object is gone. It reports false of kinds that are not read here.
func (r *Reader) Delete(object runtime.Object) (isRead bool) {
	switch o := object.(type) {
	case *v1beta2.ClusterQueue:
		r.registry.DropClusterQueue(o.Name)
		r.Tally.GoneQueues = append(r.Tally.GoneQueues, o.Name)
	case *v1beta2.Cohort:
		r.registry.DropCohort(o.Name)
	case *v1beta2.LocalQueue:
		key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
		r.registry.DropLocalQueue(key)
		if r.tried[key] {
			delete(r.tried, key)
			r.Tally.Gone = append(r.Tally.Gone, key)
		}
	case *v1beta2.ResourceFlavor:
		r.registry.DropFlavor(o.Name)
	case *v1beta2.AdmissionCheck:
		r.registry.DropCheck(o.Name)
	case *v1beta2.Workload:
		r.dropWorkload(types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, o.UID)
	case *corev1.Namespace:
		r.registry.SetNamespace(o.Name, nil)
	case *corev1.LimitRange:
		r.reread(r.shapes.SetLimits(o.Namespace, o.Name, nil), o.Namespace)
	case *nodev1.RuntimeClass:
		r.reread(r.shapes.SetRuntimeClass(o.Name, nil), "")
	default:
		return false
	}
	return true
}

// reread places the Workloads of a namespace again, or of all if it is "", if what their pods get has changed.
func (b *base) reread(changed bool, namespace string) {
	for key, e := range b.entries {
		if changed && (namespace == "" || key.Namespace == namespace) {
			b.later(e)
		}
	}
}

// Find returns a Workload by its name, nil if it does not exist.
func (r *base) Find(key types.NamespacedName) *Entry { return r.entries[key] }

// Entries are the Workloads, in no particular order.
func (r *base) Entries() iter.Seq[*Entry] { return maps.Values(r.entries) }

// Registry has the ClusterQueues, Cohorts and LocalQueues.
func (r *base) Registry() *queues.Registry { return r.registry }

// All are the Workloads, by name.
func (r *base) All() []*Entry {
	all := slices.Collect(maps.Values(r.entries))
	sortEntries(all)
	return all
}

// Of returns the entry of a Workload of the queues.
func (r *base) Of(w *workload.Workload) *Entry {
	return r.entries[types.NamespacedName{Namespace: w.Namespace, Name: w.Name}]
}

// Settle brings the queues up to date with the objects. It must be called after events and before decisions.
func (r *Reader) Settle(now time.Time) {
	r.isCut = false
	r.registry.Settle()
	if r.revealed != r.index.Revealed() {
		r.readAll() // they may ask for resources that were not known
	}
	r.expire(now)
	r.placeLater(now)
	r.plans.follow(now)
	r.placeLater(now) // those whose plans have ended
}

// IsSettled reports whether all objects and decisions are taken in, and what Workloads hold was taken by TakeMoved.
func (r *Reader) IsSettled() bool { return len(r.toPlace)+len(r.held.moved) == 0 }

// NextDue returns the earliest time after now at which time alone changes something, zero if there is none.
func (r *Reader) NextDue(now time.Time) (next time.Time) {
	sooner := func(at time.Time) {
		if at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if r.isCut {
		return now.Add(time.Millisecond)
	}
	for e := range r.backoffs {
		sooner(e.until)
	}
	for e := range r.held.planned {
		sooner(e.plan.until)
	}
	for e := range r.writes.drifting {
		sooner(e.refresh)
	}
	return next
}

// TakeMoved returns the Workloads that hold other nodes than when it was last called, or none any more, other than by
// [Reader.NoteOutcome]. They are in the order of their names.
func (r *Reader) TakeMoved() []*Entry {
	moved := r.held.moved
	r.held.moved = nil
	for _, e := range moved {
		e.isMoved = false
	}
	sortEntries(moved)
	return moved
}

// MoveAll makes [Reader.TakeMoved] return all Workloads: what their jobs hold is not known any more.
func (r *Reader) MoveAll() {
	for _, e := range r.entries {
		r.held.moves(e)
	}
}

// later notes that a Workload is to be placed when the queues are settled.
func (b *base) later(e *Entry) {
	if !e.isQueued {
		e.isQueued = true
		b.toPlace = append(b.toPlace, e)
	}
}
