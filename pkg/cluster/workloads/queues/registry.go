package queues

import (
	"iter"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// flavor is a ResourceFlavor, or one that is named and does not exist.
type flavor struct {
	core     *workload.Flavor // it is replaced, never changed
	settings *settings.Flavor // nil if it does not exist
}

// group is a Cohort, or one that is named and does not exist. It has no quota then.
type group struct {
	settings *settings.Cohort // nil if it does not exist
	node     cohort.Node
}

// ClusterQueue is one of the API, or one that is named and does not exist.
type ClusterQueue struct {
	Name     string
	Settings *settings.ClusterQueue // nil if it does not exist
	Queue    *workload.Queue        // nil if it does not exist
	Causes   []settings.Cause       // why it is not active; see [settings.ClusterQueue.Causes]
	Locals   map[*LocalQueue]bool   // the LocalQueues that name it

	isTerminating bool
}

// LocalQueue is one of the API, or one that is named and does not exist.
type LocalQueue struct {
	Key      types.NamespacedName
	Settings *settings.LocalQueue // nil if it does not exist
}

// Listener is told what changes of objects mean for Workloads. It is told at once, and decides later.
type Listener interface {
	// ChangedLocalQueue says that a LocalQueue has changed, or something that its Workloads depend on.
	ChangedLocalQueue(*LocalQueue)
	// ChangedClusterQueue says so of a ClusterQueue and what is admitted by it.
	ChangedClusterQueue(*ClusterQueue)
	// Leave says that no Workload may wait in a ClusterQueue now, and if it is deleted none may be charged.
	Leave(c *ClusterQueue, isDeleted bool)
	// ChangedTrees says that trees have changed: those of the queues for which it reports true.
	ChangedTrees(concerns func(*workload.Queue) bool)
	// IsNamed reports whether Workloads name a LocalQueue that does not exist, or a ClusterQueue.
	IsNamed(*LocalQueue) bool
	HoldsIn(*ClusterQueue) bool
}

// Registry keeps the queues up to date with objects. Only one goroutine may use it.
type Registry struct {
	Queues *workload.Queues

	index      *resources.Index
	listener   Listener
	flavors    map[string]*flavor
	checks     map[string]settings.AdmissionCheck
	cohorts    map[string]*group
	clusters   map[string]*ClusterQueue
	locals     map[types.NamespacedName]*LocalQueue
	namespaces map[string]labels.Set

	isStale  bool                   // the trees must be grown again
	changed  map[*cohort.Node]bool  // what has changed of them; nil is anything
	suspects map[*ClusterQueue]bool // whose activity may have changed
}

// New returns a registry without objects.
func New(index *resources.Index, listener Listener) *Registry {
	return &Registry{
		Queues: workload.New(index), index: index, listener: listener,
		flavors: map[string]*flavor{}, checks: map[string]settings.AdmissionCheck{}, cohorts: map[string]*group{},
		clusters: map[string]*ClusterQueue{}, locals: map[types.NamespacedName]*LocalQueue{}, namespaces: map[string]labels.Set{},
		changed: map[*cohort.Node]bool{}, suspects: map[*ClusterQueue]bool{},
	}
}

func (r *Registry) flavor(name string) *flavor {
	f := r.flavors[name]
	if f == nil {
		f = &flavor{core: &workload.Flavor{Name: name, Missing: true}}
		r.flavors[name] = f
	}
	return f
}

// Flavor returns a flavor by its name, also one that does not exist.
func (r *Registry) Flavor(name string) *workload.Flavor { return r.flavor(name).core }

// Matches reports whether Workloads of a namespace may use a ClusterQueue, which exists.
func (r *Registry) Matches(c *ClusterQueue, namespace string) bool {
	return c.Settings.Namespaces.Matches(r.namespaces[namespace])
}

func (r *Registry) cohort(name string) *group {
	g := r.cohorts[name]
	if g == nil {
		g = &group{}
		g.node.Name, g.node.Weight = name, cohort.DefaultWeight
		r.cohorts[name] = g
	}
	return g
}

// ClusterQueue returns a ClusterQueue by its name, also one that does not exist.
func (r *Registry) ClusterQueue(name string) *ClusterQueue {
	c := r.clusters[name]
	if c == nil {
		c = &ClusterQueue{Name: name, Locals: map[*LocalQueue]bool{}}
		r.clusters[name] = c
	}
	return c
}

// LocalQueue returns a LocalQueue by its name, also one that does not exist.
func (r *Registry) LocalQueue(key types.NamespacedName) *LocalQueue {
	l := r.locals[key]
	if l == nil {
		l = &LocalQueue{Key: key}
		r.locals[key] = l
	}
	return l
}

// FindClusterQueue returns a ClusterQueue that exists, nil if there is none of the name.
func (r *Registry) FindClusterQueue(name string) *ClusterQueue {
	if c := r.clusters[name]; c != nil && c.Settings != nil {
		return c
	}
	return nil
}

// FindLocalQueue returns a LocalQueue that exists, nil if there is none of the name.
func (r *Registry) FindLocalQueue(key types.NamespacedName) *LocalQueue {
	if l := r.locals[key]; l != nil && l.Settings != nil {
		return l
	}
	return nil
}

// LocalQueues are those that exist, in no particular order.
func (r *Registry) LocalQueues() iter.Seq[*LocalQueue] {
	return func(yield func(*LocalQueue) bool) {
		for _, l := range r.locals {
			if l.Settings != nil && !yield(l) {
				return
			}
		}
	}
}

// LocalQueueNames are the names of the LocalQueues of a namespace that exist, in any order.
func (r *Registry) LocalQueueNames(namespace string) (names []string) {
	for l := range r.LocalQueues() {
		if l.Key.Namespace == namespace {
			names = append(names, l.Key.Name)
		}
	}
	return names
}

// ClusterQueueNames are the names of the ClusterQueues that exist, in any order.
func (r *Registry) ClusterQueueNames() (names []string) {
	for name, c := range r.clusters {
		if c.Settings != nil {
			names = append(names, name)
		}
	}
	return names
}

// SetFlavor, SetCheck, SetNamespace, SetLocalQueue, SetCohort and SetClusterQueue say that an object was added or
// changed; the Drop function next to each says that it is gone.
func (r *Registry) SetFlavor(o *v1beta2.ResourceFlavor) {
	read, f := settings.OfFlavor(o), r.flavor(o.Name)
	if f.settings != nil && equality.Semantic.DeepEqual(*f.settings, read) {
		return
	}
	f.settings = &read
	f.core = &workload.Flavor{Name: o.Name, NodeLabels: read.NodeLabels, NodeTaints: read.NodeTaints, Tolerations: read.Tolerations}
	r.suspectAll(func(q *settings.ClusterQueue) bool { return names(q, o.Name) }, true)
}

// DropFlavor: see [Registry.SetFlavor].
func (r *Registry) DropFlavor(name string) {
	f := r.flavor(name)
	f.settings = nil
	f.core = &workload.Flavor{Name: name, Missing: true}
	r.suspectAll(func(q *settings.ClusterQueue) bool { return names(q, name) }, true)
}

// names reports whether a ClusterQueue has a flavor.
func names(q *settings.ClusterQueue, flavor string) bool {
	return slices.ContainsFunc(q.Groups, func(g settings.ResourceGroup) bool {
		return slices.ContainsFunc(g.Flavors, func(f settings.Flavors) bool { return f.Name == flavor })
	})
}

// SetCheck: see [Registry.SetFlavor].
func (r *Registry) SetCheck(o *v1beta2.AdmissionCheck) {
	read := settings.OfCheck(o)
	if known, is := r.checks[o.Name]; is && known == read {
		return
	}
	r.checks[o.Name] = read
	r.suspectAll(func(q *settings.ClusterQueue) bool { return checks(q, o.Name) }, false)
}

// DropCheck: see [Registry.SetFlavor].
func (r *Registry) DropCheck(name string) {
	delete(r.checks, name)
	r.suspectAll(func(q *settings.ClusterQueue) bool { return checks(q, name) }, false)
}

// checks reports whether a ClusterQueue has a check.
func checks(q *settings.ClusterQueue, name string) bool {
	return slices.ContainsFunc(q.Checks, func(c settings.Check) bool { return c.Name == name })
}

// suspectAll marks ClusterQueues whose activity is to be determined again. If retries is set, they refer to their
// flavors again, and their Workloads are tried again.
func (r *Registry) suspectAll(is func(*settings.ClusterQueue) bool, retries bool) {
	for _, c := range r.clusters {
		if c.Settings == nil || !is(c.Settings) {
			continue
		}
		r.suspects[c] = true
		if retries {
			r.fill(c)
			r.Queues.RetryAll(c.Queue)
			r.listener.ChangedClusterQueue(c)
		}
	}
}

// SetNamespace: see [Registry.SetFlavor]. Labels that are nil say that the namespace is gone.
func (r *Registry) SetNamespace(name string, of map[string]string) {
	if before, is := r.namespaces[name]; is == (of != nil) && maps.Equal(before, of) {
		return
	}
	if of == nil {
		delete(r.namespaces, name)
	} else {
		r.namespaces[name] = labels.Set(of)
	}
	for key, l := range r.locals {
		if key.Namespace == name {
			r.listener.ChangedLocalQueue(l)
		}
	}
}

// SetLocalQueue: see [Registry.SetFlavor].
func (r *Registry) SetLocalQueue(o *v1beta2.LocalQueue) {
	read := settings.OfLocalQueue(o)
	l := r.LocalQueue(types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
	if l.Settings != nil && *l.Settings == read {
		return
	}
	if l.Settings != nil {
		delete(r.ClusterQueue(l.Settings.ClusterQueue).Locals, l)
	}
	l.Settings = &read
	r.ClusterQueue(read.ClusterQueue).Locals[l] = true
	r.listener.ChangedLocalQueue(l)
}

// DropLocalQueue: see [Registry.SetFlavor].
func (r *Registry) DropLocalQueue(key types.NamespacedName) {
	l := r.locals[key]
	if l == nil || l.Settings == nil {
		return
	}
	c := r.ClusterQueue(l.Settings.ClusterQueue)
	delete(c.Locals, l)
	r.ForgetClusterQueue(c)
	l.Settings = nil
	r.listener.ChangedLocalQueue(l)
	r.ForgetLocalQueue(l)
}

// ForgetLocalQueue and ForgetClusterQueue end the memory of what neither exists nor is named.
func (r *Registry) ForgetLocalQueue(l *LocalQueue) {
	if l.Settings == nil && !r.listener.IsNamed(l) {
		delete(r.locals, l.Key)
	}
}

func (r *Registry) ForgetClusterQueue(c *ClusterQueue) {
	if c.Settings == nil && len(c.Locals) == 0 && !r.listener.HoldsIn(c) {
		delete(r.clusters, c.Name)
	}
}

// SetCohort: see [Registry.SetFlavor].
func (r *Registry) SetCohort(o *v1beta2.Cohort) {
	read, g := settings.OfCohort(o), r.cohort(o.Name)
	if g.settings != nil && equality.Semantic.DeepEqual(*g.settings, read) {
		return
	}
	g.settings = &read
	r.change(&g.node)
	g.node.Terms = r.terms(read.Groups, read.WeightNanos, read.Queue)
	r.suspectAll(func(q *settings.ClusterQueue) bool { return q.Cohort != "" }, false)
}

// DropCohort: see [Registry.SetFlavor].
func (r *Registry) DropCohort(name string) {
	g := r.cohorts[name]
	if g == nil || g.settings == nil {
		return
	}
	g.settings = nil
	r.change(&g.node)
	g.node.Terms = cohort.Terms{Weight: cohort.DefaultWeight}
	r.suspectAll(func(q *settings.ClusterQueue) bool { return q.Cohort != "" }, false)
}

// SetClusterQueue: see [Registry.SetFlavor].
func (r *Registry) SetClusterQueue(o *v1beta2.ClusterQueue) {
	read, c := settings.OfClusterQueue(o), r.ClusterQueue(o.Name)
	isTerminating := o.DeletionTimestamp != nil
	if c.Settings != nil && c.isTerminating == isTerminating && equality.Semantic.DeepEqual(withoutSelector(*c.Settings), withoutSelector(read)) &&
		c.Settings.Namespaces.String() == read.Namespaces.String() {
		return
	}
	isSame := c.Settings != nil && equality.Semantic.DeepEqual(shared(*c.Settings), shared(read))
	c.Settings, c.isTerminating = &read, isTerminating
	r.suspects[c] = true
	if !isSame {
		if c.Queue != nil && c.Queue.Strict != read.StrictFIFO {
			r.listener.Leave(c, false) // a strict queue keeps its refused Workloads elsewhere
		}
		r.fill(c)
		r.change(&c.Queue.Node)
	}
	r.listener.ChangedClusterQueue(c)
}

// withoutSelector is what can be compared by value.
func withoutSelector(q settings.ClusterQueue) settings.ClusterQueue {
	q.Namespaces = labels.Nothing()
	return q
}

// shared is what of a ClusterQueue others see, and what decides about its Workloads once they wait.
func shared(q settings.ClusterQueue) settings.ClusterQueue {
	q.Namespaces, q.Checks, q.Stop, q.Problem = labels.Nothing(), nil, "", ""
	return q
}

// DropClusterQueue: see [Registry.SetFlavor].
func (r *Registry) DropClusterQueue(name string) {
	c := r.clusters[name]
	if c == nil || c.Settings == nil {
		return
	}
	r.listener.Leave(c, true)
	r.change(&c.Queue.Node)
	c.Settings, c.Queue, c.Causes, c.isTerminating = nil, nil, nil, false
	delete(r.suspects, c)
	r.listener.ChangedClusterQueue(c)
	r.ForgetClusterQueue(c)
}
