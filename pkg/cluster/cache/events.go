package cache

import (
	"maps"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/budget"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/verdict"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Event is one thing that happened outside the model: [Set], [Delete], [Measured], [BindFailed] or [PlanFailed].
type Event interface{ apply(*Cache) }

// Set says that an object exists and looks like this. Kinds that the model does not hold are ignored.
type Set struct{ Object runtime.Object }

// Delete says that an object is gone. Only its name, namespace and UID are read.
type Delete struct{ Object runtime.Object }

// BindFailed says that a binding was refused for good: the pod was not bound and no attempt is under way. The job backs
// off until a time that grows with each failure in a row.
type BindFailed struct {
	Pod    types.NamespacedName
	UID    types.UID
	At     time.Time
	Reason string // what the API server said, a clause
}

// Apply takes in what happened. [Cache.Settle] must follow before the next decision.
func (k *Cache) Apply(events ...Event) {
	invariant(!k.writer.IsInTransaction(), "events are applied inside a transaction")
	for _, e := range events {
		e.apply(k)
	}
}

func (e Set) apply(k *Cache) {
	switch object := e.Object.(type) {
	case *corev1.Pod:
		k.setPod(object)
	case *corev1.Node:
		k.nodes.set(object)
	case *schedulingv1beta1.PodGroup:
		k.setGroup(object)
	case *schedulingv1beta1.Queue:
		k.queues.set(object)
	case *schedulingv1.PriorityClass:
		k.writer.SetPriorityClass(object.Name, object)
		k.ranks.reprioritize()
	case *policyv1.PodDisruptionBudget:
		k.budgetChanged(k.writer.SetBudget(object))
	case *corev1.ResourceQuota:
		k.ranks.setQuota(object)
	case *topologyv1alpha1.HyperNode:
		k.nodes.topology.Set(object)
	case *corev1.Namespace:
		before := k.Namespace(object.Name)
		k.writer.SetNamespace(object.Name, object)
		if before == nil || !maps.Equal(before.Labels, object.Labels) {
			if before != nil { // policies and webhooks select by them
				k.refusals.reconsider(func(t *cluster.Task) bool { return t.Pod.Namespace == object.Name })
			}
			k.writer.RenewNamespaces()
		}
	default:
		if kind := supplies.KindOf(object); kind != supplies.None {
			k.nodes.setSupply(kind, object.(supplies.Object))
		}
	}
}

func (e Delete) apply(k *Cache) {
	switch object := e.Object.(type) {
	case *corev1.Pod:
		key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
		if t := k.Task(key); t != nil && t.UID() == object.UID {
			k.dropTask(t)
		}
		if k.owners.strangers[key].uid == object.UID {
			k.owners.dropStranger(key)
		}
	case *corev1.Node:
		k.nodes.drop(object)
	case *schedulingv1beta1.PodGroup:
		k.dropGroup(object)
	case *schedulingv1beta1.Queue:
		k.queues.drop(object)
	case *schedulingv1.PriorityClass:
		if p := k.PriorityClass(object.Name); p != nil && p.UID == object.UID {
			k.writer.SetPriorityClass(object.Name, nil)
			k.ranks.reprioritize()
		}
	case *policyv1.PodDisruptionBudget:
		k.budgetChanged(k.writer.DeleteBudget(object))
	case *corev1.ResourceQuota:
		k.ranks.dropQuota(object)
	case *topologyv1alpha1.HyperNode:
		if h := k.nodes.topology.Get(object.Name); h != nil && h.Object.UID == object.UID {
			k.nodes.topology.Delete(object.Name)
		}
	case *corev1.Namespace:
		if before := k.Namespace(object.Name); before != nil && before.UID == object.UID {
			k.writer.SetNamespace(object.Name, nil)
			k.writer.RenewNamespaces()
		}
	default:
		if kind := supplies.KindOf(object); kind != supplies.None {
			k.nodes.dropSupply(kind, object.(supplies.Object))
		}
	}
}

// The back-off after refused bindings: a second, doubled by each failure in a row, at most a minute. Long enough that a
// job that can never be bound costs little, short enough that one that can again does not wait long.
const (
	firstBackOff = time.Second
	lastBackOff  = time.Minute
)

func (e BindFailed) apply(k *Cache) {
	t := k.Task(e.Pod)
	if t == nil || t.UID() != e.UID || t.Status != cluster.Binding {
		return
	}
	k.writer.Tasks.Release(t, cluster.Pending)
	j := t.Job
	if j == nil {
		return
	}
	k.Plans().Unpromise(t, e.At, "the pod could not be bound")
	k.writer.Jobs.Renew(j)
	// The bindings of a gang are under way together: what is refused while it backs off already is the same failure.
	if !e.At.Before(j.NotBefore) {
		k.backOff(j, e.At)
		k.SetVerdict(j, &verdict.Verdict{Code: verdict.BackingOff, Subject: e.Pod.Name, Help: verdict.HelpTime | verdict.HelpJob, Detail: e.Reason})
	}
}

// backOff keeps a job waiting after a failure.
func (k *Cache) backOff(j *cluster.Job, at time.Time) {
	pause := lastBackOff
	if j.Internal.Failures < 6 {
		pause = firstBackOff << j.Internal.Failures
	}
	j.Internal.Failures++
	j.NotBefore = at.Add(min(pause, lastBackOff))
}

// budgetChanged has pods be asked for again whose evictions a disruption budget may have refused.
func (k *Cache) budgetChanged(change budget.Change) {
	if change.Concerns != nil {
		k.refusals.reconsider(func(t *cluster.Task) bool { return change.Concerns(t.Pod) })
	}
}

// Measured says how busy a node was found. Older than what is known already, or of a node that is not known, it says nothing.
// The model only keeps it: what follows is for plugins to say.
type Measured struct {
	Node string
	At   time.Time
	// CPU and Memory are in millionths of what the node has, or, if Absolute is set, in thousandths of a core and in bytes, and
	// then counted against what it can allocate.
	CPU, Memory int64
	Absolute    bool
}

func (e Measured) apply(k *Cache) { k.nodes.measure(e) }

// PlanFailed says that a plan cannot be carried out: it could not be recorded, or an eviction was refused for good. The job,
// if there is one, backs off. If pods have left for it already, other victims are looked for at once instead
// ([model.Plans.TakeInterrupted]): what they have left is not to go to others.
type PlanFailed struct {
	Job    cluster.JobID // zero if the plan is for no job
	Plan   string
	At     time.Time
	Reason string // what the API server said, a clause
	// Refused are the victims that cannot be evicted, as far as that is known. They are no victims for a while.
	Refused []Refused
	// Sent is how many evictions of it the API server has taken.
	Sent int
}

func (e PlanFailed) apply(k *Cache) {
	for _, refused := range e.Refused {
		k.refusals.remember(refused, e.At) // also if the plan has ended meanwhile
	}
	if p := k.Plans().Get(e.Plan); p != nil && p.Preemptor() == e.Job {
		k.fail(p, e)
	}
}

// fail cancels a plan that could not be carried out.
func (k *Cache) fail(p *cluster.Plan, e PlanFailed) {
	j := p.Job
	if j != nil && len(e.Refused) > 0 && e.Sent > 0 {
		k.Plans().Interrupt(p, e.Reason)
		k.SetVerdict(j, nil)
		return
	}
	k.Plans().Cancel(p, e.Reason)
	if j == nil {
		return
	}
	k.backOff(j, e.At)
	if len(e.Refused) > 0 {
		// Its next plan is another, since these are no victims any more.
		j.NotBefore = e.At.Add(min(j.NotBefore.Sub(e.At), longestSearch))
	}
	k.SetVerdict(j, &verdict.Verdict{Code: verdict.BackingOff, Help: verdict.HelpTime | verdict.HelpJob, Detail: e.Reason})
}

// longestSearch bounds the back-off of a job whose victims were refused: there may be others, and a job that backs off takes no
// free room either.
const longestSearch = 8 * time.Second
