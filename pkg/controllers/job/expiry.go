package job

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// expiry returns when a Job that has ended is to be deleted, and whether it ever is. An aborted one has not ended: it
// may be resumed.
func expiry(job *batch.Job) (time.Time, bool) {
	state := &job.Status.State
	if job.Spec.TTLSecondsAfterFinished == nil || !isFinal(state.Phase) || state.LastTransitionTime.IsZero() {
		return time.Time{}, false
	}
	return state.LastTransitionTime.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second), true
}

// expire deletes the Job, and with it what belongs to it, unless somebody has changed it since: its user may have given
// it more time.
func (r *Reconciler) expire(ctx context.Context, job *batch.Job) (reconcile.Result, error) {
	err := r.client.Delete(ctx, job, client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: recheckAfter}, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("deleting the Job, whose spec.ttlSecondsAfterFinished is over: %w", err)
	}
	return reconcile.Result{}, nil
}
