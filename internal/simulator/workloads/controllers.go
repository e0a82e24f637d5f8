package workloads

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
)

// Cluster is the simulated cluster.
type Cluster interface {
	Now() time.Time
	// Write shows an object that is new or has changed. Its resource version is set.
	Write(o client.Object)
	// Drop shows that an object is gone.
	Drop(o client.Object)
	// Pods are all pods by name. They must not be changed.
	Pods() map[types.NamespacedName]*corev1.Pod
	// MakePod completes a new pod and shows it, unless there is one of its name. It reports whether there was none.
	MakePod(*corev1.Pod) bool
	// EndPod ends a pod, with its grace period.
	EndPod(*corev1.Pod)
	// PriorityClass returns the class of a name, or the default one for "", nil if there is none.
	PriorityClass(name string) *schedulingv1.PriorityClass
}

// Controllers are those of Workloads. The zero value has nothing to do.
type Controllers struct {
	Cluster    Cluster
	Policy     queueing.Policy
	Schedulers []string // the names of ours

	// Evicted is told of each Workload that is evicted, after that is written, and for which other one, empty if for
	// none.
	Evicted func(w *v1beta2.Workload, by types.NamespacedName)

	objects   map[string]client.Object // by kind and name, without Workloads
	workloads map[types.NamespacedName]*v1beta2.Workload
	jobs      map[types.NamespacedName]*job // by their Workload
	unqueued  map[types.UID]bool            // Jobs of Kubernetes that are not queued themselves: their pods may be
	// NamespaceLabels are the labels of a namespace.
	NamespaceLabels func(name string) map[string]string

	problems []error
	again    bool // a Workload waits for a time
}

// Set takes an object in, which is shown already. It ignores kinds that are not its own.
func (c *Controllers) Set(o client.Object) {
	switch o := o.(type) {
	case *v1beta2.Workload:
		if c.workloads == nil {
			c.workloads = map[types.NamespacedName]*v1beta2.Workload{}
		}
		c.workloads[client.ObjectKeyFromObject(o)] = o
	case *v1beta2.ClusterQueue, *v1beta2.LocalQueue, *v1beta2.ResourceFlavor, *v1beta2.WorkloadPriorityClass:
		if c.objects == nil {
			c.objects = map[string]client.Object{}
		}
		c.objects[keyOf(o, o.GetNamespace(), o.GetName())] = o
	}
}

// Unset takes in that an object is gone.
func (c *Controllers) Unset(o client.Object) {
	delete(c.objects, keyOf(o, o.GetNamespace(), o.GetName()))
	if _, is := o.(*v1beta2.Workload); is {
		delete(c.workloads, client.ObjectKeyFromObject(o))
		delete(c.jobs, client.ObjectKeyFromObject(o))
	}
}

func keyOf(o client.Object, namespace, name string) string {
	return fmt.Sprintf("%T %s/%s", o, namespace, name)
}

func find[T client.Object](c *Controllers, namespace, name string) T {
	var empty T
	found, _ := c.objects[keyOf(empty, namespace, name)].(T)
	return found
}

// Workload returns a Workload, nil if it does not exist. It must not be changed.
func (c *Controllers) Workload(key types.NamespacedName) *v1beta2.Workload { return c.workloads[key] }

// Workloads returns all Workloads by name.
func (c *Controllers) Workloads() []*v1beta2.Workload {
	return slices.SortedFunc(maps.Values(c.workloads), func(a, b *v1beta2.Workload) int {
		return cluster.CompareNames(client.ObjectKeyFromObject(a), client.ObjectKeyFromObject(b))
	})
}

// Update writes a Workload, of which no other code holds this copy.
func (c *Controllers) Update(w *v1beta2.Workload) {
	c.Cluster.Write(w)
	c.Set(w)
}

// create makes a Workload that is new.
func (c *Controllers) create(w *v1beta2.Workload, created time.Time) {
	w.UID = types.UID("Workload " + client.ObjectKeyFromObject(w).String())
	w.CreationTimestamp.Time = created
	c.Update(w)
}

// AwaitsTime reports whether a Workload waits for a time.
func (c *Controllers) AwaitsTime() bool { return c.again }

// Step moves all jobs and Workloads on. It reports whether pods were made or their gates opened, and whether anything
// has changed. The error is that of a job whose Workload cannot be made.
func (c *Controllers) Step() (starts, changed bool, err error) {
	if !c.Policy.IsOn {
		return false, false, nil
	}
	c.again = false
	groups := c.groups()
	changed = c.makeWorkloads(groups)
	if len(c.problems) > 0 {
		return false, false, errors.Join(c.problems...)
	}
	for _, w := range c.Workloads() {
		started, moved := c.step(w, groups[client.ObjectKeyFromObject(w)])
		starts, changed = starts || started, changed || started || moved
	}
	return starts, changed, nil
}

// pendingAfter is how long a new Workload has no condition.
const pendingAfter = time.Second

// step moves one Workload on, and starts or stops its job. g is its group of pods, nil if it is for a job.
func (c *Controllers) step(w *v1beta2.Workload, g *group) (starts, changed bool) {
	if conditions.Is(w, v1beta2.Finished) {
		return false, false
	}
	now := c.Cluster.Now()
	w, changed = c.advance(w, now)
	if w == nil {
		return false, true
	}
	j := c.jobOf(w, g)
	w, reclaims := c.reclaim(w, j)
	changed = changed || reclaims
	isRight := conditions.Is(w, v1beta2.Admitted) && !conditions.Is(w, v1beta2.Evicted) && w.Status.Admission != nil
	switch pods := j.pods(c, w); {
	case isRight:
		infos, err := queueing.PodSetInfos(w, w.Spec.PodSets, c.Schedulers, lookup{c})
		if err == nil {
			starts, err = j.start(c, w, infos, pods)
		}
		if cannot, is := errors.AsType[queueing.Contradiction](err); is {
			next := w.DeepCopy()
			conditions.Finish(next, queueing.FailedToStart, cannot.Error(), now)
			c.Update(next)
			return false, true
		} // otherwise a flavor is missing, and the job waits for it
	case slices.ContainsFunc(pods, isRunning):
		for _, pod := range pods {
			if isRunning(pod) && pod.DeletionTimestamp == nil {
				c.Cluster.EndPod(pod)
				changed = true
			}
		}
	case conditions.Is(w, v1beta2.Evicted) && conditions.Is(w, v1beta2.QuotaReserved):
		j.restore(w)
		next := w.DeepCopy()
		queueing.Release(next, now)
		if j.of != nil {
			queueing.Reclaim(next, j.of.Demand(), j.of.KeepsCounts())
		}
		c.Update(next)
		changed = true
	}
	return starts, changed
}

// reclaim writes which places the job of a Workload needs no more.
func (c *Controllers) reclaim(w *v1beta2.Workload, j *job) (after *v1beta2.Workload, changed bool) {
	if j.of == nil {
		return w, false
	}
	next := w.DeepCopy()
	if queueing.Reclaim(next, j.of.Demand(), j.of.KeepsCounts()); equality.Semantic.DeepEqual(w.Status, next.Status) {
		return w, false
	}
	c.Update(next)
	return next, true
}

// advance is the part of a step that the controller of the Workload's life does. It returns nil for one that is kept no
// longer.
func (c *Controllers) advance(w *v1beta2.Workload, now time.Time) (after *v1beta2.Workload, changed bool) {
	next := w.DeepCopy()
	outcome := c.around(w, now).Advance(next)
	c.again = c.again || outcome.Again > 0 && !conditions.Is(w, v1beta2.QuotaReserved)
	if outcome.Deletes {
		c.Cluster.Drop(w)
		delete(c.workloads, client.ObjectKeyFromObject(w))
		return nil, true
	}
	if conditions.Of(next, v1beta2.QuotaReserved) == nil && now.Sub(w.CreationTimestamp.Time) > pendingAfter {
		conditions.Pend(next, v1beta2.ReasonPendingEvaluation, conditions.PendingEvaluation, now)
	}
	if c.Policy.PodsReady != nil && conditions.Is(next, v1beta2.Admitted) && !conditions.Is(next, v1beta2.Evicted) {
		queueing.ObservePods(next, c.areReady(next), now)
	}
	if outcome.Deactivates {
		inactive := false
		next.Spec.Active = &inactive
	}
	if equality.Semantic.DeepEqual(w.Status, next.Status) && !outcome.Deactivates {
		return w, false
	}
	c.Update(next)
	if !conditions.Is(w, v1beta2.Evicted) && conditions.Is(next, v1beta2.Evicted) && c.Evicted != nil {
		c.Evicted(next, types.NamespacedName{})
	}
	return next, true
}

// areReady reports whether as many pods of a Workload run as were admitted.
func (c *Controllers) areReady(w *v1beta2.Workload) bool {
	running, want := int32(0), int32(0)
	for _, pod := range c.Cluster.Pods() {
		if pod.Namespace == w.Namespace && pod.Annotations[v1beta2.WorkloadAnnotation] == w.Name && pod.DeletionTimestamp == nil &&
			(pod.Status.Phase == corev1.PodRunning || pod.Status.Phase == corev1.PodSucceeded) {
			running++
		}
	}
	for _, p := range w.Status.Admission.PodSetAssignments {
		if p.Count != nil {
			want += *p.Count
		}
	}
	return running >= want
}

func (c *Controllers) around(w *v1beta2.Workload, now time.Time) *queueing.Lifecycle {
	in, name := &queueing.Lifecycle{Policy: c.Policy, Now: now}, ""
	if o := find[*v1beta2.LocalQueue](c, w.Namespace, w.Spec.QueueName); o != nil {
		q := settings.OfLocalQueue(o)
		in.LocalQueue, name = &q, q.ClusterQueue
	}
	if w.Status.Admission != nil {
		name = w.Status.Admission.ClusterQueue
	}
	if o := find[*v1beta2.ClusterQueue](c, "", name); o != nil {
		q := settings.OfClusterQueue(o)
		in.ClusterQueue = &q
	}
	return in
}

// lookup finds what jobs and Workloads name.
type lookup struct{ *Controllers }

var _ queueing.Lookup = lookup{}

// WorkloadPriorityClass implements [queueing.Lookup].
func (l lookup) WorkloadPriorityClass(name string) (*v1beta2.WorkloadPriorityClass, error) {
	if found := find[*v1beta2.WorkloadPriorityClass](l.Controllers, "", name); found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("WorkloadPriorityClass %q is not given", name)
}

// PriorityClass implements [queueing.Lookup].
func (l lookup) PriorityClass(name string) (*schedulingv1.PriorityClass, error) {
	found := l.Cluster.PriorityClass(name)
	if found == nil && name != "" {
		return nil, fmt.Errorf("PriorityClass %q is not given", name)
	}
	return found, nil
}

// Flavor implements [queueing.Lookup].
func (l lookup) Flavor(name string) (*v1beta2.ResourceFlavor, error) {
	if found := find[*v1beta2.ResourceFlavor](l.Controllers, "", name); found != nil {
		return found, nil
	}
	return nil, fmt.Errorf("ResourceFlavor %q is not given", name)
}

// Standing is where a Workload stands: what it holds, or why it waits.
type Standing struct {
	ClusterQueue string
	IsAdmitted   bool
	Flavors      map[string]map[string]string // by pod set and resource
	Nodes        map[string]map[string]int    // pods by pod set and node
	Reason       string                       // why it is not admitted, "" if it is
	Message      string
}

// Stand returns where a Workload stands.
func (c *Controllers) Stand(w *v1beta2.Workload) Standing {
	s := Standing{Flavors: map[string]map[string]string{}, Nodes: map[string]map[string]int{}}
	if q := find[*v1beta2.LocalQueue](c, w.Namespace, w.Spec.QueueName); q != nil {
		s.ClusterQueue = settings.OfLocalQueue(q).ClusterQueue
	}
	s.IsAdmitted = conditions.Is(w, v1beta2.Admitted) && !conditions.Is(w, v1beta2.Evicted) && !conditions.Is(w, v1beta2.Finished)
	if a := w.Status.Admission; a != nil {
		s.ClusterQueue = a.ClusterQueue
		for i := range a.PodSetAssignments {
			p := &a.PodSetAssignments[i]
			flavors, nodes := map[string]string{}, map[string]int{}
			for name, flavor := range p.Flavors {
				flavors[string(name)] = flavor
			}
			counts, _ := settings.Nodes(p.TopologyAssignment) // one that cannot be read names no nodes
			for _, n := range counts {
				nodes[n.Node] += int(n.Count)
			}
			s.Flavors[p.Name], s.Nodes[p.Name] = flavors, nodes
		}
	}
	if !s.IsAdmitted {
		s.Reason, s.Message = why(w)
	}
	return s
}

// why is why a Workload is not admitted, as its conditions say.
func why(w *v1beta2.Workload) (reason, message string) {
	for _, kind := range []string{v1beta2.Finished, v1beta2.Evicted} {
		if kind == v1beta2.Evicted && !conditions.Is(w, v1beta2.QuotaReserved) {
			continue // it has stopped, and waits for something now
		}
		if conditions.Is(w, kind) {
			c := conditions.Of(w, kind)
			return c.Reason, c.Message
		}
	}
	if conditions.Is(w, v1beta2.QuotaReserved) {
		if c := conditions.Of(w, v1beta2.Admitted); c != nil {
			return c.Reason, c.Message
		}
		return "UnsatisfiedAdmissionChecks", "The workload has not all checks ready"
	}
	if c := conditions.Of(w, v1beta2.QuotaReserved); c != nil {
		return c.Reason, c.Message
	}
	return v1beta2.ReasonPendingEvaluation, conditions.PendingEvaluation
}

func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cluster.CompareNames(client.ObjectKeyFromObject(a), client.ObjectKeyFromObject(b)))
}
