package workload

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// outOfSync is what is said of a Workload that was made beforehand for another job. The words are Kueue's.
const outOfSync = "The prebuilt workload is out of sync with its user job"

// isPrebuilt reports whether a job names a Workload that another client makes. It is that client's: it is not deleted,
// and its podsets stay as they are.
func isPrebuilt(job queueing.Job) bool {
	return job.Object().GetLabels()[v1beta2.PrebuiltWorkloadLabel] != ""
}

// adapt makes the Workload follow a job that was changed. One that holds quota cannot be changed: it goes, and the job
// gets another. A Workload that was made beforehand, and not for this job, ends instead.
func (r *jobs) adapt(ctx context.Context, job queueing.Job, w *v1beta2.Workload) (differs bool, err error) {
	object, isHeld := job.Object(), conditions.Is(w, v1beta2.QuotaReserved)
	queue := cmp.Or(object.GetLabels()[v1beta2.QueueNameLabel], w.Spec.QueueName)
	if isHeld && (!job.IsSuspended() || job.KeepsCounts()) && queueing.Outgrows(w, job.Demand(), job.KeepsCounts()) {
		return true, r.part(ctx, job, w, "the job has more pods than were admitted")
	}
	if !job.IsSuspended() {
		return r.follow(ctx, object, w, nil)
	}
	sets := job.PodSets()
	if m, is := job.(queueing.Marked); is && isHeld && m.IsMarked() { // another client has suspended it
		sets = m.QueuedAs(w.Spec.PodSets)
	}
	switch {
	case !isPrebuilt(job):
		if isHeld && (w.Spec.QueueName != queue || !sameSets(sets, w.Spec.PodSets)) {
			return true, r.part(ctx, job, w, "the job was changed")
		}
	case !queueing.ArePodSetsEqual(sets, w.Spec.PodSets):
		return true, r.part(ctx, job, w, outOfSync)
	case isHeld && w.Spec.QueueName != queue:
		r.postpone(object, w, v1beta2.QueueNameLabel)
		return false, nil
	default:
		sets = w.Spec.PodSets
	}
	return r.follow(ctx, object, w, func() error {
		w.Spec.QueueName = queue
		if sameSets(sets, w.Spec.PodSets) {
			return nil
		}
		w.Spec.PodSets = sets
		return queueing.Reprioritize(w, object, r.lookup(ctx))
	})
}

// follow makes a Workload that is not made beforehand follow the labels and annotations of its job, or of its pods,
// after an edit. It reports whether the Workload was written. After an error the Workload is as it is stored.
func (r *writer) follow(ctx context.Context, object client.Object, w *v1beta2.Workload, edit func() error) (changed bool, err error) {
	before, later := w.DeepCopy(), ""
	defer func() {
		if err != nil {
			*w = *before
		}
	}()
	if edit != nil {
		if err := edit(); err != nil {
			return false, err
		}
	}
	if labels := object.GetLabels(); labels[v1beta2.PrebuiltWorkloadLabel] == "" {
		if later, err = queueing.Follow(w, object, conditions.Is(w, v1beta2.QuotaReserved), r.lookup(ctx)); err != nil {
			return false, err
		}
	}
	if later != "" {
		r.postpone(object, w, later)
	}
	isSame := apiequality.Semantic.DeepEqual(before.Spec, w.Spec) && apiequality.Semantic.DeepEqual(before.Annotations, w.Annotations)
	if isSame && len(before.OwnerReferences) == len(w.OwnerReferences) {
		return false, nil
	}
	if err := r.client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return true, fmt.Errorf("changing Workload %s: %w", w.Name, err)
	}
	if isSame {
		return false, nil // it has another owner, and says the same
	}
	what := "Updated Workload: %s/%s"
	if settings.PriorityClass(&before.Spec) != settings.PriorityClass(&w.Spec) {
		what = "Updated workload priority class: %s/%s"
	}
	r.events.Eventf(object, nil, corev1.EventTypeNormal, reasonUpdatedWorkload, "Update", what, w.Namespace, w.Name)
	return true, nil
}

// postpone says that a label of a job has no effect while its Workload holds quota.
func (r *writer) postpone(object client.Object, w *v1beta2.Workload, label string) {
	r.events.Eventf(object, nil, corev1.EventTypeWarning, reasonNotFollowed, "Update",
		"the label %s is %q, and takes effect when Workload %s waits again: it has quota reserved", label, object.GetLabels()[label], w.Name)
}

// sameSets reports whether podsets say the same. What the API server adds to a template of a job it adds to that of a
// Workload, too.
func sameSets(a, b []v1beta2.PodSet) bool {
	return slices.EqualFunc(a, b, func(a, b v1beta2.PodSet) bool {
		return a.Name == b.Name && a.Count == b.Count && apiequality.Semantic.DeepEqual(a.MinCount, b.MinCount) &&
			apiequality.Semantic.DeepEqual(a.TopologyRequest, b.TopologyRequest) &&
			apiequality.Semantic.DeepEqual(a.Template.Spec, b.Template.Spec) &&
			apiequality.Semantic.DeepEqual(a.Template.Labels, b.Template.Labels) && apiequality.Semantic.DeepEqual(a.Template.Annotations, b.Template.Annotations)
	})
}

// part ends what a job and a Workload that is not for it any more have in common: the Workload that was made for the
// job is deleted, and one that the job found ends.
func (r *jobs) part(ctx context.Context, job queueing.Job, w *v1beta2.Workload, why string) error {
	if isPrebuilt(job) {
		r.events.Eventf(job.Object(), nil, corev1.EventTypeWarning, v1beta2.ReasonOutOfSync, "Update", "Workload %s/%s: %s", w.Namespace, w.Name, why)
		return r.end(ctx, w, v1beta2.ReasonOutOfSync, outOfSync)
	}
	if err := r.client.Delete(ctx, w, client.Preconditions{UID: &w.UID}); err != nil {
		return fmt.Errorf("deleting Workload %s: %w", w.Name, err)
	}
	r.events.Eventf(job.Object(), nil, corev1.EventTypeNormal, reasonDeletedWorkload, "Delete", "Deleted Workload %s/%s: %s", w.Namespace, w.Name, why)
	return nil
}
