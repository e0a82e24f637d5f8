package job

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// recheckAfter is how long to wait for a watch to catch up with what is known to have been written. The event itself
// wakes the Job sooner; this is for the event that never comes.
const recheckAfter = time.Second

// Reconciler brings one Job at a time closer to what its spec asks for. Add puts it to work.
type Reconciler struct {
	client        client.Client
	live          client.Reader
	events        events.EventRecorder
	memory        *memory
	schedulerName string
}

// Reconcile makes or updates the PodGroup, makes or deletes pods as the phase wants it, and writes the status if it
// differs. An error means that a request failed and that the Job is to be tried again; the status is written all the
// same, because it says what went wrong.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored := &batch.Job{}
	if err := r.client.Get(ctx, request.NamespacedName, stored); err != nil {
		if apierrors.IsNotFound(err) {
			r.memory.forget(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if stored.DeletionTimestamp != nil {
		// The garbage collector takes pods and PodGroup along.
		return reconcile.Result{}, nil
	}
	if r.memory.outdated(request.NamespacedName, stored.UID, stored.ResourceVersion, time.Now()) {
		return reconcile.Result{RequeueAfter: recheckAfter}, nil
	}
	job := defaulted(stored, r.schedulerName)
	pods, err := r.podsOf(ctx, job)
	if err != nil {
		return reconcile.Result{}, err
	}
	outcome, err := r.advance(ctx, job, pods)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return reconcile.Result{}, nil
	}
	status := observe(job, outcome.pods, outcome.group, outcome.trouble, time.Now())
	return r.record(ctx, stored, status, outcome.trouble, err)
}

// outcome is how the world looks after advance: the pods, the PodGroup if the Job needs one, and what went wrong.
type outcome struct {
	pods    []*corev1.Pod
	group   *scheduling.PodGroup
	trouble trouble
}

// advance carries out what the phase of a defaulted Job wants. The outcome is good to be counted in any case.
func (r *Reconciler) advance(ctx context.Context, job *batch.Job, pods []*corev1.Pod) (outcome, error) {
	result := outcome{pods: pods}
	if phase := job.Status.State.Phase; !makesPods(phase) {
		deleted, err := r.deletePods(ctx, leftovers(phase, pods))
		result.pods = replaced(pods, deleted)
		if err != nil {
			result.trouble = trouble{ReasonFailedDelete, err.Error()}
			return result, err
		}
		if err := r.removeResources(ctx, job); err != nil {
			result.trouble = trouble{batch.PluginErrorReason, err.Error()}
			return result, err
		}
		return result, nil
	}
	if problems := Validate(job); len(problems) > 0 {
		result.trouble = trouble{ReasonInvalidSpec, problems.ToAggregate().Error()}
		return result, nil
	}
	group, err := r.ensurePodGroup(ctx, job)
	if err != nil {
		result.trouble = trouble{batch.PodGroupErrorReason, err.Error()}
		return result, err
	}
	result.group = group
	missing, surplus := missingAndSurplus(job, pods)
	deleted, deleteErr := r.deletePods(ctx, surplus)
	result.pods = replaced(pods, deleted)
	if deleteErr != nil {
		result.trouble = trouble{ReasonFailedDelete, deleteErr.Error()}
	}
	if !admitted(group) {
		return result, deleteErr
	}
	if err := r.ensureResources(ctx, job); err != nil {
		result.trouble = trouble{batch.PluginErrorReason, err.Error()}
		return result, errors.Join(deleteErr, err)
	}
	created, createErr := r.createPods(ctx, job, missing)
	result.pods = append(result.pods, created...)
	if createErr != nil {
		result.trouble = trouble{ReasonFailedCreate, createErr.Error()}
	}
	return result, errors.Join(deleteErr, createErr)
}

// podsOf returns the pods the Job controls. They are the cache's own and not to be changed.
func (r *Reconciler) podsOf(ctx context.Context, job *batch.Job) ([]*corev1.Pod, error) {
	list := &corev1.PodList{}
	err := r.client.List(ctx, list, client.InNamespace(job.Namespace),
		client.MatchingFields{podsByJob: string(job.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}

// ensurePodGroup makes the PodGroup of the Job, or brings it up to date.
func (r *Reconciler) ensurePodGroup(ctx context.Context, job *batch.Job) (*scheduling.PodGroup, error) {
	wanted := BuildPodGroup(job, func(class string) int32 { return r.priority(ctx, class) })
	current := &scheduling.PodGroup{}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(wanted), current)
	if apierrors.IsNotFound(err) {
		err := r.client.Create(ctx, wanted)
		if !apierrors.IsAlreadyExists(err) {
			return wanted, err
		}
		err = r.live.Get(ctx, client.ObjectKeyFromObject(wanted), current)
		if err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	if !metav1.IsControlledBy(current, job) {
		return nil, errors.New("PodGroup " + current.Namespace + "/" + current.Name + " exists and does not belong to the Job")
	}
	updated := updatePodGroup(current, wanted)
	if apiequality.Semantic.DeepEqual(current, updated) {
		return current, nil
	}
	if err := r.client.Patch(ctx, updated, client.MergeFrom(current)); err != nil {
		return nil, err
	}
	return updated, nil
}

// priority is the value of a PriorityClass. Of a class that does not exist the pods themselves will complain.
func (r *Reconciler) priority(ctx context.Context, class string) int32 {
	found := &schedulingv1.PriorityClass{}
	if class == "" || r.client.Get(ctx, client.ObjectKey{Name: class}, found) != nil {
		return 0
	}
	return found.Value
}

// record writes the status if it differs and tells in Events what is new in it. It passes on the error that advance
// ended with, so that the Job is tried again.
func (r *Reconciler) record(ctx context.Context, stored *batch.Job, status *batch.JobStatus, trouble trouble, cause error) (reconcile.Result, error) {
	if apiequality.Semantic.DeepEqual(&stored.Status, status) {
		return reconcile.Result{}, cause
	}
	updated := stored.DeepCopy()
	updated.Status = *status
	err := r.client.Status().Patch(ctx, updated, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: recheckAfter}, nil
	case err != nil:
		return reconcile.Result{}, errors.Join(cause, client.IgnoreNotFound(err))
	}
	r.memory.wrote(client.ObjectKeyFromObject(stored), stored.UID, updated.ResourceVersion, time.Now())
	r.announce(stored, status, trouble)
	return reconcile.Result{}, cause
}
