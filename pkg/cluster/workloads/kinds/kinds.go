package kinds

import (
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

// Cluster is a ClusterQueue, or one that is named and does not exist.
type Cluster struct {
	Name     string
	Settings *settings.ClusterQueue // nil if it does not exist
	Queue    *workload.Queue        // nil if it does not exist
	Causes   []settings.Cause       // why it is not active; see [settings.ClusterQueue.Causes]
	Locals   map[*Local]bool        // the LocalQueues that name it

	isTerminating bool
}

// Local is a LocalQueue, or one that is named and does not exist.
type Local struct {
	Key      types.NamespacedName
	Settings *settings.LocalQueue // nil if it does not exist
}

// Listener is told what changes of objects mean for Workloads. It is told at once, and decides later.
type Listener interface {
	// Changed says that a LocalQueue has changed, or something that its Workloads depend on.
	Changed(*Local)
	// ChangedCluster says so of a ClusterQueue and what is admitted by it.
	ChangedCluster(*Cluster)
	// Leave says that no Workload may wait in a ClusterQueue now, and if it is deleted none may be charged.
	Leave(c *Cluster, isDeleted bool)
	// Regrown says that trees have changed: those of the queues for which it reports true.
	Regrown(concerns func(*workload.Queue) bool)
	// IsNamed reports whether Workloads name a LocalQueue that does not exist, or a ClusterQueue.
	IsNamed(*Local) bool
	HoldsIn(*Cluster) bool
}

// Kinds keeps queues up to date with objects. Only one goroutine may use it.
type Kinds struct {
	Queues *workload.Queues

	index      *resources.Index
	listener   Listener
	flavors    map[string]*flavor
	checks     map[string]settings.AdmissionCheck
	cohorts    map[string]*group
	clusters   map[string]*Cluster
	locals     map[types.NamespacedName]*Local
	namespaces map[string]labels.Set

	isStale  bool                  // the trees must be grown again
	changed  map[*cohort.Node]bool // what has changed of them; nil is anything
	suspects map[*Cluster]bool     // whose activity may have changed
}

// New returns kinds without objects.
func New(index *resources.Index, listener Listener) *Kinds {
	return &Kinds{
		Queues: workload.New(index), index: index, listener: listener,
		flavors: map[string]*flavor{}, checks: map[string]settings.AdmissionCheck{}, cohorts: map[string]*group{},
		clusters: map[string]*Cluster{}, locals: map[types.NamespacedName]*Local{}, namespaces: map[string]labels.Set{},
		changed: map[*cohort.Node]bool{}, suspects: map[*Cluster]bool{},
	}
}

func (k *Kinds) flavor(name string) *flavor {
	f := k.flavors[name]
	if f == nil {
		f = &flavor{core: &workload.Flavor{Name: name, Missing: true}}
		k.flavors[name] = f
	}
	return f
}

// Flavor returns a flavor by its name, also one that does not exist.
func (k *Kinds) Flavor(name string) *workload.Flavor { return k.flavor(name).core }

// Matches reports whether Workloads of a namespace may use a ClusterQueue, which exists.
func (k *Kinds) Matches(c *Cluster, namespace string) bool {
	return c.Settings.Namespaces.Matches(k.namespaces[namespace])
}

func (k *Kinds) cohort(name string) *group {
	g := k.cohorts[name]
	if g == nil {
		g = &group{}
		g.node.Name, g.node.Weight = name, cohort.DefaultWeight
		k.cohorts[name] = g
	}
	return g
}

// Cluster returns a ClusterQueue by its name, also one that does not exist.
func (k *Kinds) Cluster(name string) *Cluster {
	c := k.clusters[name]
	if c == nil {
		c = &Cluster{Name: name, Locals: map[*Local]bool{}}
		k.clusters[name] = c
	}
	return c
}

// Local returns a LocalQueue by its name, also one that does not exist.
func (k *Kinds) Local(key types.NamespacedName) *Local {
	l := k.locals[key]
	if l == nil {
		l = &Local{Key: key}
		k.locals[key] = l
	}
	return l
}

// SetFlavor, SetCheck, SetNamespace, SetLocal, SetCohort and SetCluster say that an object was added or changed; the functions beside
// them that it is gone.
func (k *Kinds) SetFlavor(o *v1beta2.ResourceFlavor) {
	read, f := settings.OfFlavor(o), k.flavor(o.Name)
	if f.settings != nil && equality.Semantic.DeepEqual(*f.settings, read) {
		return
	}
	f.settings = &read
	f.core = &workload.Flavor{Name: o.Name, NodeLabels: read.NodeLabels, NodeTaints: read.NodeTaints, Tolerations: read.Tolerations}
	k.suspectAll(func(q *settings.ClusterQueue) bool { return names(q, o.Name) }, true)
}

// DropFlavor: see [Kinds.SetFlavor].
func (k *Kinds) DropFlavor(name string) {
	f := k.flavor(name)
	f.settings = nil
	f.core = &workload.Flavor{Name: name, Missing: true}
	k.suspectAll(func(q *settings.ClusterQueue) bool { return names(q, name) }, true)
}

// names reports whether a ClusterQueue has a flavor.
func names(q *settings.ClusterQueue, flavor string) bool {
	return slices.ContainsFunc(q.Groups, func(g settings.ResourceGroup) bool {
		return slices.ContainsFunc(g.Flavors, func(f settings.Flavors) bool { return f.Name == flavor })
	})
}

// SetCheck: see [Kinds.SetFlavor].
func (k *Kinds) SetCheck(o *v1beta2.AdmissionCheck) {
	read := settings.OfCheck(o)
	if known, is := k.checks[o.Name]; is && known == read {
		return
	}
	k.checks[o.Name] = read
	k.suspectAll(func(q *settings.ClusterQueue) bool { return checks(q, o.Name) }, false)
}

// DropCheck: see [Kinds.SetFlavor].
func (k *Kinds) DropCheck(name string) {
	delete(k.checks, name)
	k.suspectAll(func(q *settings.ClusterQueue) bool { return checks(q, name) }, false)
}

// checks reports whether a ClusterQueue has a check.
func checks(q *settings.ClusterQueue, name string) bool {
	return slices.ContainsFunc(q.Checks, func(c settings.Check) bool { return c.Name == name })
}

// suspectAll has the activity of ClusterQueues looked at again. If retries is set, they refer to their flavors anew, and their Workloads are tried again.
func (k *Kinds) suspectAll(is func(*settings.ClusterQueue) bool, retries bool) {
	for _, c := range k.clusters {
		if c.Settings == nil || !is(c.Settings) {
			continue
		}
		k.suspects[c] = true
		if retries {
			k.fill(c)
			k.Queues.RetryAll(c.Queue)
			k.listener.ChangedCluster(c)
		}
	}
}

// SetNamespace: see [Kinds.SetFlavor]. Labels that are nil say that the namespace is gone.
func (k *Kinds) SetNamespace(name string, of map[string]string) {
	if before, is := k.namespaces[name]; is == (of != nil) && maps.Equal(before, of) {
		return
	}
	if of == nil {
		delete(k.namespaces, name)
	} else {
		k.namespaces[name] = labels.Set(of)
	}
	for key, l := range k.locals {
		if key.Namespace == name {
			k.listener.Changed(l)
		}
	}
}

// SetLocal: see [Kinds.SetFlavor].
func (k *Kinds) SetLocal(o *v1beta2.LocalQueue) {
	read := settings.OfLocalQueue(o)
	l := k.Local(types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
	if l.Settings != nil && *l.Settings == read {
		return
	}
	if l.Settings != nil {
		delete(k.Cluster(l.Settings.ClusterQueue).Locals, l)
	}
	l.Settings = &read
	k.Cluster(read.ClusterQueue).Locals[l] = true
	k.listener.Changed(l)
}

// DropLocal: see [Kinds.SetFlavor].
func (k *Kinds) DropLocal(key types.NamespacedName) {
	l := k.locals[key]
	if l == nil || l.Settings == nil {
		return
	}
	c := k.Cluster(l.Settings.ClusterQueue)
	delete(c.Locals, l)
	k.ForgetCluster(c)
	l.Settings = nil
	k.listener.Changed(l)
	k.ForgetLocal(l)
}

// ForgetLocal and ForgetCluster end the memory of what neither exists nor is named.
func (k *Kinds) ForgetLocal(l *Local) {
	if l.Settings == nil && !k.listener.IsNamed(l) {
		delete(k.locals, l.Key)
	}
}

func (k *Kinds) ForgetCluster(c *Cluster) {
	if c.Settings == nil && len(c.Locals) == 0 && !k.listener.HoldsIn(c) {
		delete(k.clusters, c.Name)
	}
}

// SetCohort: see [Kinds.SetFlavor].
func (k *Kinds) SetCohort(o *v1beta2.Cohort) {
	read, g := settings.OfCohort(o), k.cohort(o.Name)
	if g.settings != nil && equality.Semantic.DeepEqual(*g.settings, read) {
		return
	}
	g.settings = &read
	k.change(&g.node)
	g.node.Terms = k.terms(read.Groups, read.WeightNanos, read.Queue)
	k.suspectAll(func(q *settings.ClusterQueue) bool { return q.Cohort != "" }, false)
}

// DropCohort: see [Kinds.SetFlavor].
func (k *Kinds) DropCohort(name string) {
	g := k.cohorts[name]
	if g == nil || g.settings == nil {
		return
	}
	g.settings = nil
	k.change(&g.node)
	g.node.Terms = cohort.Terms{Weight: cohort.DefaultWeight}
	k.suspectAll(func(q *settings.ClusterQueue) bool { return q.Cohort != "" }, false)
}

// SetCluster: see [Kinds.SetFlavor].
func (k *Kinds) SetCluster(o *v1beta2.ClusterQueue) {
	read, c := settings.OfClusterQueue(o), k.Cluster(o.Name)
	isTerminating := o.DeletionTimestamp != nil
	if c.Settings != nil && c.isTerminating == isTerminating && equality.Semantic.DeepEqual(withoutSelector(*c.Settings), withoutSelector(read)) &&
		c.Settings.Namespaces.String() == read.Namespaces.String() {
		return
	}
	isSame := c.Settings != nil && equality.Semantic.DeepEqual(shared(*c.Settings), shared(read))
	c.Settings, c.isTerminating = &read, isTerminating
	k.suspects[c] = true
	if !isSame {
		if c.Queue != nil && c.Queue.Strict != read.StrictFIFO {
			k.listener.Leave(c, false) // a strict queue keeps its refused Workloads elsewhere
		}
		k.fill(c)
		k.change(&c.Queue.Node)
	}
	k.listener.ChangedCluster(c)
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

// DropCluster: see [Kinds.SetFlavor].
func (k *Kinds) DropCluster(name string) {
	c := k.clusters[name]
	if c == nil || c.Settings == nil {
		return
	}
	k.listener.Leave(c, true)
	k.change(&c.Queue.Node)
	c.Settings, c.Queue, c.Causes, c.isTerminating = nil, nil, nil, false
	delete(k.suspects, c)
	k.listener.ChangedCluster(c)
	k.ForgetCluster(c)
}
