package workload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/internal/recorder"
	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// recheckDeletion is how soon is looked again whether the job of a Workload that is being deleted is gone.
const recheckDeletion = time.Second

// reasonEvicted begins the reason of the Event of an eviction; that of the condition follows.
const reasonEvicted = "EvictedDueTo"

// lives moves Workloads on, one at a time.
type lives struct {
	client client.Client
	reader client.Reader // of the API server
	events events.EventRecorder
	state  *state
	owners *queueing.OwnerFinder
	kinds  queueing.Kinds
	told   *cache.LRUExpireCache // by UID, the Workloads of which was said that no controller would start their jobs
}

// Reconcile does with a Workload what live decides. A Workload that is being deleted goes when its job is gone.
func (r *lives) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.state.isOn() {
		return reconcile.Result{}, nil
	}
	w := &v1beta2.Workload{}
	if err := r.client.Get(ctx, request.NamespacedName, w); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if work.LeavesAlone(r.events, w) {
		return reconcile.Result{}, nil
	}
	owner := settings.NotStarted(w, r.state.policy().External)
	if owner != nil && w.DeletionTimestamp == nil && !conditions.Is(w, v1beta2.Finished) {
		if hasEnded, err := r.follow(ctx, w, owner); hasEnded || err != nil {
			return reconcile.Result{}, err
		}
	}
	again, err := r.step(ctx, w)
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: work.RereadAfter}, nil
	}
	if owner != nil && !conditions.Is(w, v1beta2.Finished) && (again.Again == 0 || again.Again > followInterval) {
		again.Again = followInterval
	}
	return reconcile.Result{RequeueAfter: again.Again}, client.IgnoreNotFound(err)
}

// reasonOrphaned is the reason of the Event of a Workload whose job has left its pods behind.
const reasonOrphaned = "PodsLeftBehind"

// followInterval is how often is looked whether the owner of a Workload has ended that no controller here follows.
const followInterval = time.Minute

// follow looks after a Workload whose job no controller here starts or stops, as one that was left by Kueue: it ends
// with its job, so that it is not charged for ever. While it waits, it is said once that it is not admitted.
func (r *lives) follow(ctx context.Context, w *v1beta2.Workload, owner *metav1.OwnerReference) (hasEnded bool, err error) {
	end, is, err := r.owners.Ended(ctx, w.Namespace, owner)
	if err != nil {
		return false, err
	}
	if is {
		reason, message := v1beta2.ReasonFailed, end.Message
		switch {
		case end.IsGone:
			reason, message = v1beta2.ReasonOwnerNotFound, "The workload's owner no longer exists"
		case end.Succeeded:
			reason = v1beta2.ReasonSucceeded
		}
		return true, patchStatus(ctx, r.client, w, func() { conditions.Finish(w, reason, message, r.state.now()) })
	}
	if _, isTold := r.told.Get(w.UID); !isTold && !conditions.Is(w, v1beta2.QuotaReserved) {
		r.told.Add(w.UID, true, toldFor)
		recorder.Once(r.events, w, corev1.EventTypeWarning, reasonNotSupported, "Follow", "%s", settings.NotStartedMessage(owner))
	}
	return false, nil
}

func (r *lives) step(ctx context.Context, w *v1beta2.Workload) (queueing.Outcome, error) {
	if w.DeletionTimestamp != nil {
		return r.finishDeletion(ctx, w)
	}
	if err := r.value(ctx, w); err != nil {
		return queueing.Outcome{}, err
	}
	in, err := r.around(ctx, w)
	if err != nil {
		return queueing.Outcome{}, err
	}
	var o queueing.Outcome
	wasEvicted := conditions.Is(w, v1beta2.Evicted)
	if err := patchStatus(ctx, r.client, w, func() { o = in.Advance(w) }); err != nil {
		return o, err
	}
	if in.HasPods && !conditions.Is(w, v1beta2.Finished) {
		if err := r.keepOrphan(ctx, w); err != nil {
			return o, err
		}
	}
	if evicted := conditions.Of(w, v1beta2.Evicted); !wasEvicted && conditions.Is(w, v1beta2.Evicted) {
		r.events.Eventf(w, nil, corev1.EventTypeNormal, reasonEvicted+evicted.Reason, "Evict", "%.1000s", evicted.Message)
	}
	if o.Deletes {
		return o, r.client.Delete(ctx, w, client.Preconditions{UID: &w.UID})
	}
	if o.Deactivates {
		before, inactive := w.DeepCopy(), false
		w.Spec.Active = &inactive
		if err := r.client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return o, fmt.Errorf("making Workload %s inactive: %w", w.Name, err)
		}
	}
	return o, nil
}

// value makes the priority of a Workload follow its WorkloadPriorityClass, also while it runs, and its class be spelled
// as clients of both versions read it. A class that is gone is the last value it had.
func (r *lives) value(ctx context.Context, w *v1beta2.Workload) error {
	class := settings.PriorityClass(&w.Spec)
	if class.Name == "" || conditions.Is(w, v1beta2.Finished) {
		return nil
	}
	before := w.DeepCopy()
	queueing.SpellPriorityClass(w)
	if class.Kind == v1beta2.WorkloadPriorityClassKind {
		found := &v1beta2.WorkloadPriorityClass{}
		if err := r.client.Get(ctx, client.ObjectKey{Name: class.Name}, found); err == nil {
			w.Spec.Priority = &found.Value
		} else if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading WorkloadPriorityClass %s: %w", class.Name, err)
		}
	}
	if apiequality.Semantic.DeepEqual(before.Spec, w.Spec) {
		return nil
	}
	if err := r.client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the priority of Workload %s: %w", w.Name, err)
	}
	return nil
}

// around reads what the life of a Workload depends on.
func (r *lives) around(ctx context.Context, w *v1beta2.Workload) (queueing.Lifecycle, error) {
	in := queueing.Lifecycle{Policy: r.state.policy(), Now: r.state.now()}
	if queueing.IsOrphan(w) && conditions.Is(w, v1beta2.QuotaReserved) {
		pods, err := r.podsOf(ctx, w)
		if in.HasPods = len(pods) > 0; err != nil {
			return in, err
		}
	}
	name := ""
	if w.Spec.QueueName != "" {
		object := &v1beta2.LocalQueue{}
		err := r.client.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: w.Spec.QueueName}, object)
		if err == nil {
			q := settings.OfLocalQueue(object)
			in.LocalQueue, name = &q, q.ClusterQueue
		} else if !apierrors.IsNotFound(err) {
			return in, fmt.Errorf("reading LocalQueue %s: %w", w.Spec.QueueName, err)
		}
	}
	if w.Status.Admission != nil {
		name = w.Status.Admission.ClusterQueue
	}
	if name == "" {
		return in, nil
	}
	object := &v1beta2.ClusterQueue{}
	err := r.client.Get(ctx, client.ObjectKey{Name: name}, object)
	if err == nil {
		q := settings.OfClusterQueue(object)
		in.ClusterQueue = &q
	} else if !apierrors.IsNotFound(err) {
		return in, fmt.Errorf("reading ClusterQueue %s: %w", name, err)
	}
	return in, nil
}

// podsOf are the pods of a Workload that hold its quota, see [holdsQuota]. The cache may be behind that of Workloads,
// as when a process has begun with the list of an API server that is behind itself. So if it has none the API server is
// asked, since the quota is given to others then.
func (r *lives) podsOf(ctx context.Context, w *v1beta2.Workload) (pods []*corev1.Pod, err error) {
	for _, from := range []client.Reader{r.client, r.reader} {
		list := &corev1.PodList{}
		if err := from.List(ctx, list, client.InNamespace(w.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing pods of Workload %s: %w", w.Name, err)
		}
		for i := range list.Items {
			if p := &list.Items[i]; holdsQuotaOf(p, w) {
				pods = append(pods, p)
			}
		}
		if len(pods) > 0 {
			break
		}
	}
	return pods, nil
}

// holdsQuotaOf reports whether a pod is one of a Workload, and holds its quota.
func holdsQuotaOf(p *corev1.Pod, w *v1beta2.Workload) bool {
	return p.Annotations[v1beta2.WorkloadAnnotation] == w.Name && holdsQuota(p)
}

// holdsQuota reports whether a pod runs, or may yet be bound: one without a node counts unless it is gated or being
// deleted. The cache may also be behind a binding.
func holdsQuota(p *corev1.Pod) bool {
	switch {
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
		return false
	case p.Spec.NodeName != "":
		return true
	}
	return p.DeletionTimestamp == nil && len(p.Spec.SchedulingGates) == 0
}

// keepOrphan looks after a Workload whose job is gone and has left its pods behind. They hold its quota, and that is
// said once. If it is evicted they are deleted, since no controller of a job stops them.
func (r *lives) keepOrphan(ctx context.Context, w *v1beta2.Workload) error {
	if _, isTold := r.told.Get(w.UID); !isTold {
		r.told.Add(w.UID, true, toldFor)
		recorder.Once(r.events, w, corev1.EventTypeWarning, reasonOrphaned, "Follow", "Its owner no longer exists, and has left pods behind: "+
			"they hold its quota until the last of them is gone")
	}
	if !conditions.Is(w, v1beta2.Evicted) {
		return nil
	}
	pods, err := r.podsOf(ctx, w)
	for _, p := range pods {
		if p.DeletionTimestamp == nil {
			err = errors.Join(err, client.IgnoreNotFound(r.client.Delete(ctx, p, client.Preconditions{UID: &p.UID})))
		}
	}
	return err
}

// finishDeletion lets a Workload go whose job and pods are gone. While the job is there, its controller does. No
// controller is there for a Workload without an owner, or of a kind that is not queued here.
func (r *lives) finishDeletion(ctx context.Context, w *v1beta2.Workload) (queueing.Outcome, error) {
	for _, owner := range w.OwnerReferences {
		if w.Annotations[v1beta2.GroupWorkloadAnnotation] == "true" && owner.Kind != "Pod" {
			continue // the controller of its pods
		}
		var job client.Object
		switch kind := queueing.KindOf(&owner); {
		case r.kinds.Of(kind) != nil:
			job = r.kinds.Of(kind).New().Object()
		case kind == corev1.SchemeGroupVersion.WithKind("Pod"):
			job = &corev1.Pod{}
		default:
			if !slices.Contains(r.state.policy().External, kind) {
				continue
			}
			// Its controller takes the finalizer away.
			end, is, err := r.owners.Ended(ctx, w.Namespace, &owner)
			if err != nil || !is || !end.IsGone {
				return queueing.Outcome{Again: recheckDeletion}, err
			}
			continue
		}
		err := r.reader.Get(ctx, client.ObjectKey{Namespace: w.Namespace, Name: owner.Name}, job)
		isPod := owner.Kind == "Pod" // a pod that is being deleted holds its node still
		if err == nil && job.GetUID() == owner.UID && (isPod || job.GetDeletionTimestamp() == nil) || client.IgnoreNotFound(err) != nil {
			return queueing.Outcome{Again: recheckDeletion}, err
		}
	}
	if conditions.Is(w, v1beta2.QuotaReserved) && !conditions.Is(w, v1beta2.Finished) {
		if pods, err := r.podsOf(ctx, w); err != nil || len(pods) > 0 {
			return queueing.Outcome{Again: recheckDeletion}, err
		}
	}
	return queueing.Outcome{}, removeFinalizer(ctx, r.client, w)
}
