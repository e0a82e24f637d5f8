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

// Event is one change outside the model: [Set], [Delete], [Measured], [BindFailed], [PlanFailed], [WorkloadWritten] or
// [WorkloadFailed].
type Event interface{ apply(*Cache) }

// Set says that an object was added or updated. Kinds that the model does not hold are ignored.
type Set struct{ Object runtime.Object }

// Delete says that an object was deleted. Only its name, namespace and UID are read.
type Delete struct{ Object runtime.Object }

// BindFailed says that a binding was refused for good: the pod is not bound and no request is in flight. The job backs
// off for a time that grows with each failure in a row.
type BindFailed struct {
	Pod    types.NamespacedName
	UID    types.UID
	At     time.Time
	Reason string // what the API server said, a clause
}

// Apply applies events. [Cache.Settle] must follow before the next decision.
func (k *Cache) Apply(events ...Event) {
	k.writer.RequireNoTransaction("events are applied")
	k.version++
	for _, e := range events {
		e.apply(k)
	}
}

func (e Set) apply(k *Cache) {
	switch object := e.Object.(type) {
	case *cluster.Pod:
		k.setPod(object)
	case *corev1.Pod:
		var before *cluster.Pod
		if t := k.Task(types.NamespacedName{Namespace: object.Namespace, Name: object.Name}); t != nil {
			before = t.Pod
		}
		k.setPod(k.pods.Of(object, before))
	case *corev1.Node:
		before := k.Node(object.Name)
		isCordoned := before != nil && before.Object != nil && !before.Object.Spec.Unschedulable && object.Spec.Unschedulable
		k.nodes.set(object)
		if isCordoned { // what is held there for pods to come is held elsewhere, as when the node is gone
			k.Workloads.Lost(before)
			k.StandIns.Lost(before)
		}
	case *schedulingv1beta1.PodGroup:
		k.setGroup(object)
	case *schedulingv1beta1.Queue:
		k.queues.set(object)
	case *schedulingv1.PriorityClass:
		k.Marks.OfClass(k.PriorityClass(object.Name), object)
		k.ranks.setClass(object.Name, object)
	case *policyv1.PodDisruptionBudget:
		k.budgetChanged(k.writer.SetBudget(object))
	case *corev1.ResourceQuota:
		k.ranks.setQuota(object)
		k.StandIns.LookAll(object.Namespace)
	case *topologyv1alpha1.HyperNode:
		k.nodes.topology.Set(object)
	case *corev1.Namespace:
		k.Workloads.Set(object)
		before := k.Namespace(object.Name)
		k.writer.SetNamespace(object.Name, object)
		if isEnding := object.DeletionTimestamp != nil; isEnding != (before != nil && before.DeletionTimestamp != nil) {
			k.followNamespace(object.Name)
		}
		if before == nil || !maps.Equal(before.Labels, object.Labels) {
			if before != nil { // selectors of policies and webhooks read its labels
				k.refusals.reconsider(func(t *cluster.Task) bool { return t.Pod.Namespace == object.Name })
			}
			k.writer.RenewNamespaces()
		}
	default:
		if k.Workloads.Set(object) {
			return
		}
		if kind := supplies.KindOf(object); kind != supplies.None {
			k.nodes.setSupply(kind, object.(supplies.Object))
		}
	}
}

func (e Delete) apply(k *Cache) {
	switch object := e.Object.(type) {
	case *cluster.Pod:
		k.deletePod(types.NamespacedName{Namespace: object.Namespace, Name: object.Name}, object.UID)
	case *corev1.Pod:
		k.deletePod(types.NamespacedName{Namespace: object.Namespace, Name: object.Name}, object.UID)
	case *corev1.Node:
		if n := k.Node(object.Name); n != nil && n.Object != nil && n.Object.UID == object.UID {
			k.Workloads.Lost(n)
			k.StandIns.Lost(n)
		}
		k.nodes.drop(object)
	case *schedulingv1beta1.PodGroup:
		k.dropGroup(object)
	case *schedulingv1beta1.Queue:
		k.queues.drop(object)
	case *schedulingv1.PriorityClass:
		if p := k.PriorityClass(object.Name); p != nil && p.UID == object.UID {
			k.ranks.setClass(object.Name, nil)
		}
	case *policyv1.PodDisruptionBudget:
		k.budgetChanged(k.writer.DeleteBudget(object))
	case *corev1.ResourceQuota:
		k.ranks.dropQuota(object)
		k.StandIns.LookAll(object.Namespace)
	case *topologyv1alpha1.HyperNode:
		if h := k.nodes.topology.Get(object.Name); h != nil && h.Object.UID == object.UID {
			k.nodes.topology.Delete(object.Name)
		}
	case *corev1.Namespace:
		if before := k.Namespace(object.Name); before != nil && before.UID == object.UID {
			k.writer.SetNamespace(object.Name, nil)
			k.followNamespace(object.Name)
			k.writer.RenewNamespaces()
			k.Workloads.Delete(object)
		}
	default:
		if k.Workloads.Delete(object) {
			return
		}
		if kind := supplies.KindOf(object); kind != supplies.None {
			k.nodes.dropSupply(kind, object.(supplies.Object))
		}
	}
}

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
	k.Workloads.Look(j)
	k.Plans().Unpromise(t, e.At, "the pod could not be bound")
	k.writer.Jobs.Renew(j)
	// The bindings of a gang are sent together. A refusal while the job backs off already is the same failure.
	if !e.At.Before(j.NotBefore) {
		j.Pause(e.At)
		k.SetVerdict(j, &verdict.Verdict{Code: verdict.BackingOff, Subject: e.Pod.Name, Help: verdict.HelpTime | verdict.HelpJob, Detail: e.Reason})
	}
}

// budgetChanged ends the back-off of pods whose evictions a disruption budget may have refused.
func (k *Cache) budgetChanged(change budget.Change) {
	if change.Concerns != nil {
		k.refusals.reconsider(func(t *cluster.Task) bool { return change.Concerns(t.Pod) })
	}
}

// Measured is the measured load of a node. It is ignored if a newer one is known, or if the node is not. The model only
// stores it, for plugins.
type Measured struct {
	Node string
	At   time.Time
	// CPU and Memory are in millionths of the node. If Absolute is set, they are in thousandths of a core and in bytes,
	// and are compared with the allocatable amounts.
	CPU, Memory int64
	Absolute    bool
}

func (e Measured) apply(k *Cache) { k.nodes.measure(e) }

// PlanFailed says that a plan cannot be carried out: it could not be recorded, or an eviction was refused for good. The
// job, if there is one, backs off. If victims are gone already, or were refused for the first time in a row, other
// victims are searched at once instead ([model.Plans.TakeInterrupted]), so that no other job gets their resources.
type PlanFailed struct {
	Job    cluster.JobID // zero if there is no preemptor
	Plan   string
	At     time.Time
	Reason string // what the API server said, a clause
	// Refused are the victims that are known to be refused. They are not chosen as victims for some time.
	Refused []Refused
	// Sent is the number of its evictions that the API server has accepted.
	Sent int
}

func (e PlanFailed) apply(k *Cache) {
	for _, refused := range e.Refused {
		k.refusals.remember(refused, e.At) // even if the plan has ended meanwhile
	}
	if p := k.Plans().Get(e.Plan); p != nil && p.Preemptor() == e.Job {
		k.fail(p, e)
	}
}

// fail cancels a plan that could not be carried out. If victims were refused, its next plan will be another, since they
// are not chosen again. So room is sought at once if others have left already, and the first time in any case.
// Otherwise jobs below it might get the room meanwhile, and would be evicted for it.
func (k *Cache) fail(p *cluster.Plan, e PlanFailed) {
	j := p.Job
	switch {
	case j == nil:
		k.Plans().Cancel(p, e.Reason)
		return
	case len(e.Refused) > 0 && (e.Sent > 0 || j.Internal.Failures == 0):
		if e.Sent == 0 {
			j.Internal.Failures++
		}
		k.Plans().Interrupt(p, e.Reason)
		k.SetVerdict(j, nil)
		return
	}
	k.Plans().Cancel(p, e.Reason)
	if j.Pause(e.At); len(e.Refused) > 0 {
		j.NotBefore = e.At.Add(min(j.NotBefore.Sub(e.At), longestSearch))
	}
	k.SetVerdict(j, &verdict.Verdict{Code: verdict.BackingOff, Help: verdict.HelpTime | verdict.HelpJob, Detail: e.Reason})
}

// longestSearch limits the back-off of a job whose victims were refused. There may be other victims, and a job that
// backs off is not placed on free nodes either.
const longestSearch = 8 * time.Second
