package queue

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// ReasonQueueError is the reason of the Event on a queue that could not be written.
const ReasonQueueError = "QueueError"

// Reconciler keeps one Queue at a time in order. Add puts it to work.
type Reconciler struct {
	client client.Client
	events events.EventRecorder
}

// Reconcile makes root and default when they are missing, gives the queue a parent, and writes state and counts if they
// differ.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	queue := &scheduling.Queue{}
	err := r.client.Get(ctx, request.NamespacedName, queue)
	if apierrors.IsNotFound(err) {
		return reconcile.Result{}, r.make(ctx, request.Name)
	}
	if err != nil || queue.DeletionTimestamp != nil {
		return reconcile.Result{}, err
	}
	if err := r.update(ctx, queue); err != nil && !apierrors.IsNotFound(err) {
		r.events.Eventf(queue, nil, corev1.EventTypeWarning, ReasonQueueError, "Sync", "%.1000s", err.Error())
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, nil
}

// make creates the queue if it is one that always exists.
func (r *Reconciler) make(ctx context.Context, name string) error {
	queue := builtIn(name)
	if queue == nil {
		return nil
	}
	if err := r.client.Create(ctx, queue); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating queue %s: %w", name, err)
	}
	return nil
}

// builtIn returns the queue of this name as it is made when it is missing, or nil for a name that only users use.
func builtIn(name string) *scheduling.Queue {
	reclaimable := name != scheduling.RootQueue
	queue := &scheduling.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       scheduling.QueueSpec{Weight: 1, Reclaimable: &reclaimable},
	}
	switch name {
	case scheduling.RootQueue:
	case scheduling.DefaultQueue:
		queue.Spec.Parent = scheduling.RootQueue
	default:
		return nil
	}
	return queue
}

func (r *Reconciler) update(ctx context.Context, queue *scheduling.Queue) error {
	if queue.Spec.Parent == "" && queue.Name != scheduling.RootQueue {
		before := queue.DeepCopy()
		queue.Spec.Parent = scheduling.RootQueue
		if err := r.client.Patch(ctx, queue, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("writing spec.parent %q: %w", scheduling.RootQueue, err)
		}
	}
	groups := &scheduling.PodGroupList{}
	err := r.client.List(ctx, groups, client.MatchingFields{groupsByQueue: queue.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing PodGroups: %w", err)
	}
	before := queue.DeepCopy()
	Count(&queue.Status, groups.Items)
	queue.Status.State = NextState(&queue.Status)
	if apiequality.Semantic.DeepEqual(before.Status, queue.Status) {
		return nil
	}
	state := queue.Status.State
	if err := r.client.Status().Patch(ctx, queue, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("writing status.state %s and counts: %w", state, err)
	}
	return nil
}
