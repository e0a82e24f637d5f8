package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/pkg/apis/bounds"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// ReasonQueueError is the reason of the Event on a queue that could not be written.
const ReasonQueueError = "QueueError"

// Reconciler maintains one Queue at a time. Add registers it.
type Reconciler struct {
	client  client.Client
	live    client.Reader
	events  events.EventRecorder
	metrics *metrics.Metrics

	counted counted

	// allowsUnchecked follows Commands whose author was not checked.
	allowsUnchecked bool
}

// Reconcile makes root and default when they are missing, gives the queue a parent, follows the oldest Command for it,
// and writes state, mark and counts if they differ.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	command, err := r.commandFor(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	queue := &scheduling.Queue{}
	// A Command is carried out once, so it must not be judged by an old state in the cache.
	var from client.Reader = r.client
	if command != nil {
		from = r.live
	}
	err = from.Get(ctx, request.NamespacedName, queue)
	if apierrors.IsNotFound(err) {
		r.metrics.QueueGone(request.Name)
		r.counted.forget(request.Name)
		return reconcile.Result{}, errors.Join(r.drop(ctx, command), r.make(ctx, request.Name))
	}
	if err != nil || queue.DeletionTimestamp != nil {
		return reconcile.Result{}, err
	}
	if work.LeavesAlone(r.events, queue) {
		return reconcile.Result{}, nil
	}
	err = r.update(ctx, queue, command)
	switch {
	case apierrors.IsConflict(err):
		// Another client has written the queue since it was read, which may change what to do.
		return reconcile.Result{RequeueAfter: work.RereadAfter}, nil
	case err != nil && !apierrors.IsNotFound(err):
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

func (r *Reconciler) update(ctx context.Context, queue *scheduling.Queue, command *bus.Command) error {
	if queue.Spec.Parent == "" && queue.Name != scheduling.RootQueue {
		before := queue.DeepCopy()
		queue.Spec.Parent = scheduling.RootQueue
		if err := r.client.Patch(ctx, queue, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("writing spec.parent %q: %w", scheduling.RootQueue, err)
		}
	}
	underClosed, err := r.isUnderClosed(ctx, queue)
	if err != nil {
		return err
	}
	groups := &scheduling.PodGroupList{}
	err = r.client.List(ctx, groups, client.MatchingFields{groupsByQueue: queue.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing PodGroups: %w", err)
	}
	unchecked, err := r.whyUnchecked(ctx, command)
	if err != nil {
		return err
	}
	order, told := orderOf(command, queue, underClosed, unchecked)
	status := queue.Status.DeepCopy()
	Count(status, groups.Items)
	r.metrics.Queue(queue.Name, status)
	var marked bool
	status.State, marked = NextState(status, order, isMarked(queue), underClosed)
	r.counted.note(queue.Name, time.Now())
	if err := r.write(ctx, queue, status, marked); err != nil {
		return err
	}
	if err := r.drop(ctx, command); err != nil {
		return err
	}
	if told.reason != "" {
		// The action tells the Events apart: the events API folds those with equal reason and action into one.
		r.events.Eventf(queue, nil, corev1.EventTypeWarning, told.reason, command.Name, "%.1000s", told.message)
	}
	return nil
}

// isUnderClosed reports whether the parent of the queue is closed or closing. A parent that does not exist is not.
func (r *Reconciler) isUnderClosed(ctx context.Context, queue *scheduling.Queue) (bool, error) {
	if queue.Name == scheduling.RootQueue || queue.Spec.Parent == scheduling.RootQueue || queue.Spec.Parent == queue.Name {
		return false, nil
	}
	parent := &scheduling.Queue{}
	err := r.client.Get(ctx, client.ObjectKey{Name: queue.Spec.Parent}, parent)
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return isClosed(parent.Status.State), nil
}

// write puts mark and status on record where they differ. A mark is set before the queue closes and removed after it
// has opened: were it the other way round, a crash in between would leave a queue that is never opened again.
func (r *Reconciler) write(ctx context.Context, queue *scheduling.Queue, status *scheduling.QueueStatus, marked bool) error {
	if marked {
		if err := r.writeMark(ctx, queue, true); err != nil {
			return err
		}
	}
	if !apiequality.Semantic.DeepEqual(&queue.Status, status) {
		before := queue.DeepCopy()
		queue.Status = *status
		options := client.MergeFromWithOptions(before)
		if before.Status.State != status.State {
			// Counts may be written over whatever is there, a state only over the one it follows from.
			options = client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		}
		err := r.client.Status().Patch(ctx, queue, options)
		if apierrors.IsNotFound(err) {
			err = r.writeInto(ctx, queue, before, options)
		}
		if err != nil {
			return fmt.Errorf("writing status.state %s and counts: %w", status.State, err)
		}
	}
	if !marked {
		return r.writeMark(ctx, queue, false)
	}
	return nil
}

// writeInto writes the status of a queue where it is no subresource: a definition of another's answers a write of the
// status as if there were no queue. One that is gone is gone for this, too.
func (r *Reconciler) writeInto(ctx context.Context, queue, stored *scheduling.Queue, change client.Patch) error {
	data, err := change.Data(queue)
	if err != nil {
		return err
	}
	var body map[string]any
	if err := bounds.UnmarshalJSON(data, &body); err != nil {
		return err
	}
	metadata, _ := body["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["uid"], body["metadata"] = stored.UID, metadata // not a namesake's
	if data, err = json.Marshal(body); err != nil {
		return err
	}
	return r.client.Patch(ctx, queue, client.RawPatch(types.MergePatchType, data))
}

func (r *Reconciler) writeMark(ctx context.Context, queue *scheduling.Queue, marked bool) error {
	if isMarked(queue) == marked {
		return nil
	}
	before := queue.DeepCopy()
	if marked {
		metav1.SetMetaDataAnnotation(&queue.ObjectMeta, scheduling.ClosedByParentAnnotationKey, markValue)
	} else {
		delete(queue.Annotations, scheduling.ClosedByParentAnnotationKey)
	}
	err := r.client.Patch(ctx, queue, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("writing annotation %s: %w", scheduling.ClosedByParentAnnotationKey, err)
	}
	return nil
}
