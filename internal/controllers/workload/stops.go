package workload

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// suspend makes a job end its pods, if it is not to end them already.
func (r *jobs) suspend(ctx context.Context, job queueing.Job, why string) error {
	object := job.Object()
	before := object.DeepCopyObject().(client.Object)
	job.Suspend()
	if apiequality.Semantic.DeepEqual(before, object) {
		return nil // the controller of the job stops it
	}
	if err := r.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("stopping: %w", err)
	}
	r.events.Eventf(object, nil, corev1.EventTypeNormal, reasonStopped, "Stop", "%.1000s", why)
	return nil
}

// stop brings a job one step nearer to having stopped, and reports whether it has: it is suspended, its pods are gone,
// and its template is what was queued. The steps are one write each, and which is next follows from the job: another
// client may undo any of them. The API server refuses changes of the template before the pods are gone, so none is
// tried before.
func (r *jobs) stop(ctx context.Context, job queueing.Job, w *v1beta2.Workload, why string) (hasStopped bool, err error) {
	switch {
	case !job.IsSuspended():
		return false, r.suspend(ctx, job, why)
	case job.IsActive():
		return false, nil // it changes when its last pod is gone
	}
	if is, err := r.hasUntold(ctx, job, w); is || err != nil {
		return false, err // it changes when its controller tells of them
	}
	object, lock := job.Object(), client.MergeFromWithOptimisticLock{}
	before := object.DeepCopyObject().(client.Object)
	restore(job, w)
	if apiequality.Semantic.DeepEqual(before, object) {
		return true, nil
	}
	if s, is := job.(queueing.StatusResetter); is && s.ResetStatus() {
		// The answer has the template as it was: nothing but the status is changed by this.
		if err := r.client.Status().Patch(ctx, object, client.MergeFromWithOptions(before, lock)); err != nil {
			return false, fmt.Errorf("resetting the status: %w", err)
		}
		before = object.DeepCopyObject().(client.Object)
		restore(job, w)
	}
	if err := r.client.Patch(ctx, object, client.MergeFromWithOptions(before, lock)); err != nil {
		return false, fmt.Errorf("restoring the template: %w", err)
	}
	return true, nil
}

// hasUntold reports whether a job that says it has no pods has some nevertheless that hold the quota of its Workload:
// its controller has made them after the start, and not told of them yet. The API server is asked only if the job may
// have been started since its controller has said last that it is suspended.
func (r *jobs) hasUntold(ctx context.Context, job queueing.Job, w *v1beta2.Workload) (bool, error) {
	if m, is := job.(queueing.Marked); is && !m.IsMarked() {
		return false, nil
	}
	admitted := conditions.Of(w, v1beta2.Admitted)
	if s, is := job.(queueing.Suspending); is && admitted != nil && s.SuspendedAt().After(admitted.LastTransitionTime.Time) {
		return false, nil
	}
	return r.hasPod(ctx, job, func(p *corev1.Pod) bool { return holdsQuotaOf(p, w) })
}

// hasPodsOfBefore reports whether a job that is to start has pods of which its controller has not told yet, as when a
// user resumes it for a moment. After the start they would be taken for pods of the Workload, which they do not name.
// One whose spec was never changed was never resumed.
func (r *jobs) hasPodsOfBefore(ctx context.Context, job queueing.Job) (bool, error) {
	object := job.Object()
	if _, is := job.(queueing.Suspending); !is || object.GetGeneration() <= 1 {
		return false, nil
	}
	return r.hasPod(ctx, job, func(p *corev1.Pod) bool {
		return metav1.IsControlledBy(p, object) && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
	})
}

// hasPod asks the API server whether there is such a pod among those that the labels of a job's pods select.
func (r *jobs) hasPod(ctx context.Context, job queueing.Job, isSuch func(*corev1.Pod) bool) (bool, error) {
	list, object := &corev1.PodList{}, job.Object()
	selected := client.MatchingLabelsSelector{Selector: queueing.PodSelector(job)}
	if err := r.state.live.List(ctx, list, client.InNamespace(object.GetNamespace()), selected); err != nil {
		return false, fmt.Errorf("listing pods of %s: %w", object.GetName(), err)
	}
	return slices.ContainsFunc(list.Items, func(p corev1.Pod) bool { return isSuch(&p) }), nil
}

// restore makes a job in memory what it was before its start: as was noted then, else as its Workload says. One that
// found its Workload, and was not started with it, stays as it is.
func restore(job queueing.Job, w *v1beta2.Workload) {
	sets := queueing.TakeRecord(job.Object())
	if sets == nil && (queueing.IsStarted(job) || !isPrebuilt(job)) {
		sets = w.Spec.PodSets
	}
	job.Restore(sets)
}

// releaseDeleted stops the job of a Workload that is being deleted, and then lets the Workload go. A job that waits and
// was changed stays as it is.
func (r *jobs) releaseDeleted(ctx context.Context, job queueing.Job, w *v1beta2.Workload) error {
	if _, _, isFinished := job.Finished(); !isFinished {
		if job.IsActive() && job.IsSuspended() {
			return nil
		}
		if !job.IsSuspended() || queueing.IsStarted(job) {
			if hasStopped, err := r.stop(ctx, job, w, "its workload was deleted"); !hasStopped || err != nil {
				return err
			}
		}
	}
	return removeFinalizer(ctx, r.client, w)
}

func removeFinalizer(ctx context.Context, api client.Client, w *v1beta2.Workload) error {
	before := w.DeepCopy()
	if !controllerutil.RemoveFinalizer(w, v1beta2.ResourceInUseFinalizer) {
		return nil
	}
	if err := api.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("letting Workload %s go: %w", w.Name, err)
	}
	return nil
}
