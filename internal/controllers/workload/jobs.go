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
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/internal/queueing/builder"
	"hekla.sh/hekla/internal/queueing/integration"
	"hekla.sh/hekla/internal/queueing/lifecycle"
	"hekla.sh/hekla/internal/queueing/vcjob"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Reasons of the Events of jobs. They are Kueue's.
const (
	reasonCreatedWorkload  = "CreatedWorkload"
	reasonUpdatedWorkload  = "UpdatedWorkload"
	reasonDeletedWorkload  = "DeletedWorkload"
	reasonFinishedWorkload = "FinishedWorkload"
	reasonStarted          = "Started"
	reasonStopped          = "Stopped"
	reasonFailedToStart    = builder.FailedToStart
	reasonNotSupported     = "NotSupported"
	reasonError            = "ErrorWorkloadCompose"
)

// pendingAfter is how long a new Workload has no condition. A scheduler with room has admitted it by then, so that most Workloads
// cost one write less.
const pendingAfter = time.Second

// writer makes Workloads, and writes what becomes of them.
type writer struct {
	client  client.Client
	events  events.EventRecorder
	state   *state
	metrics *metrics.Metrics
	// schedulers are the names of ours.
	schedulers []string
}

// jobs keeps the jobs of one kind and their Workloads in step.
type jobs struct {
	writer
	wrap func() integration.Job // an empty job of the kind
}

// resetter is a job whose status has to be edited between being suspended and being restored.
type resetter interface {
	// ResetStatus edits the status in memory, and reports whether that has changed it.
	ResetStatus() bool
}

// Reconcile makes the Workload of a job, starts the job when the Workload is admitted, stops it when it is not any more, and says in
// the Workload how the job fares.
func (r *jobs) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.state.isOn() {
		return reconcile.Result{}, nil
	}
	job := r.wrap()
	object := job.Object()
	err := r.client.Get(ctx, request.NamespacedName, object)
	if err != nil || object.GetDeletionTimestamp() != nil || object.GetLabels()[v1beta2.QueueNameLabel] == "" {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if volcano, is := job.(vcjob.Job); is {
		if _, why := vcjob.IsQueued(volcano.Job); why != "" {
			if volcano.Status.State.Phase == "" {
				r.events.Eventf(object, nil, corev1.EventTypeWarning, reasonNotSupported, "Sync", "it runs unmanaged by LocalQueue %s: %s",
					object.GetLabels()[v1beta2.QueueNameLabel], why)
			}
			return reconcile.Result{}, nil
		}
	}
	again, err := r.step(ctx, job)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: rereadAfter}, nil // another client has written since it was read
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil // the event of what is gone has it looked at again
	case err != nil && ctx.Err() == nil:
		r.events.Eventf(object, nil, corev1.EventTypeWarning, reasonError, "Sync", "%.1000s", err.Error())
	}
	return reconcile.Result{RequeueAfter: again}, err
}

func (r *jobs) step(ctx context.Context, job integration.Job) (again time.Duration, err error) {
	w, err := r.workloadOf(ctx, job)
	if err != nil {
		return 0, err
	}
	message, succeeded, isFinished := job.Finished()
	switch {
	case w == nil && isFinished:
		return 0, nil
	case w == nil && !job.IsSuspended():
		return 0, r.stop(ctx, job, nil, "it is not admitted")
	case w == nil:
		return 0, r.create(ctx, job)
	case w.DeletionTimestamp != nil:
		return 0, r.letGo(ctx, job, w)
	case isFinished:
		return 0, r.finish(ctx, job, w, message, succeeded)
	case conditions.Is(w, v1beta2.Finished):
		return 0, nil
	}
	if differs, err := r.adapt(ctx, job, w); differs || err != nil {
		return 0, err
	}
	if conditions.Is(w, v1beta2.Admitted) && !conditions.Is(w, v1beta2.Evicted) {
		if job.IsSuspended() {
			return 0, r.start(ctx, job, w)
		}
		if !isStopping(job) {
			return 0, r.observe(ctx, job, w)
		}
	}
	if !job.IsSuspended() {
		return 0, r.stop(ctx, job, w, stopMessage(w))
	}
	if conditions.Is(w, v1beta2.Evicted) && conditions.Is(w, v1beta2.QuotaReserved) {
		if job.IsActive() {
			return 0, nil // the job changes when its last pod is gone
		}
		return 0, r.release(ctx, w)
	}
	return r.greet(ctx, w)
}

func stopMessage(w *v1beta2.Workload) string {
	if evicted := conditions.Of(w, v1beta2.Evicted); evicted != nil && evicted.Status == metav1.ConditionTrue {
		return evicted.Message
	}
	return "its workload is not admitted"
}

// isStopping reports whether a stop of the job is under way.
func isStopping(job integration.Job) bool {
	stopping, is := job.(interface{ IsStopping() bool })
	return is && stopping.IsStopping()
}

// workloadOf is the Workload of a job: the one it names, or the one that was made for it; nil if there is none.
func (r *jobs) workloadOf(ctx context.Context, job integration.Job) (*v1beta2.Workload, error) {
	object := job.Object()
	name, isPrebuilt := object.GetLabels()[v1beta2.PrebuiltWorkloadLabel], true
	if name == "" {
		name, isPrebuilt = builder.Name(job.Kind(), object.GetName(), object.GetUID()), false
	}
	w := &v1beta2.Workload{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: name}, w)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Workload %s: %w", name, err)
	}
	if owner := metav1.GetControllerOf(w); owner != nil && owner.UID != object.GetUID() {
		return nil, fmt.Errorf("its Workload %s belongs to %s %s", name, owner.Kind, owner.Name)
	} else if owner == nil && isPrebuilt {
		return w, r.adopt(ctx, job, w)
	}
	return w, nil
}

// adopt makes a job the owner of the Workload that was made for it beforehand.
func (r *jobs) adopt(ctx context.Context, job integration.Job, w *v1beta2.Workload) error {
	before := w.DeepCopy()
	w.OwnerReferences = append(w.OwnerReferences, *metav1.NewControllerRef(job.Object(), job.Kind()))
	metav1.SetMetaDataLabel(&w.ObjectMeta, v1beta2.JobUIDLabel, string(job.Object().GetUID()))
	controllerutil.AddFinalizer(w, v1beta2.ResourceInUseFinalizer)
	if err := r.client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("taking over Workload %s: %w", w.Name, err)
	}
	return nil
}

// create makes the Workload of a job that waits.
func (r *jobs) create(ctx context.Context, job integration.Job) error {
	if job.Object().GetLabels()[v1beta2.PrebuiltWorkloadLabel] != "" {
		return nil // the Workload that it names is still to come
	}
	w, err := builder.Workload(job, r.lookup(ctx))
	if err != nil {
		return err
	}
	if err := r.client.Create(ctx, w); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil // the cache is behind, and its event comes
		}
		return fmt.Errorf("creating Workload %s: %w", w.Name, err)
	}
	r.events.Eventf(job.Object(), nil, corev1.EventTypeNormal, reasonCreatedWorkload, "Create", "Created Workload: %s/%s", w.Namespace, w.Name)
	return nil
}

// adapt has the Workload follow a job that was changed. One that holds quota cannot be changed: it goes, and the job gets another.
func (r *jobs) adapt(ctx context.Context, job integration.Job, w *v1beta2.Workload) (differs bool, err error) {
	object, isHeld := job.Object(), conditions.Is(w, v1beta2.QuotaReserved)
	queue := object.GetLabels()[v1beta2.QueueNameLabel]
	if !job.IsSuspended() {
		if isHeld && growsBeyond(job, w) {
			return true, r.discard(ctx, job, w, "the job has more pods than were admitted")
		}
		return false, nil
	}
	sets := job.PodSets()
	if w.Spec.QueueName == queue && sameSets(sets, w.Spec.PodSets) {
		return false, nil
	}
	if isHeld {
		return true, r.discard(ctx, job, w, "the job was changed")
	}
	before := w.DeepCopy()
	w.Spec.PodSets, w.Spec.QueueName = sets, queue
	if err := r.client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return true, fmt.Errorf("changing Workload %s: %w", w.Name, err)
	}
	r.events.Eventf(object, nil, corev1.EventTypeNormal, reasonUpdatedWorkload, "Update", "Updated Workload: %s/%s", w.Namespace, w.Name)
	return true, nil
}

// sameSets reports whether podsets say the same. What the API server adds to a template of a job it adds to that of a Workload, too.
func sameSets(a, b []v1beta2.PodSet) bool {
	return slices.EqualFunc(a, b, func(a, b v1beta2.PodSet) bool {
		return a.Name == b.Name && a.Count == b.Count && apiequality.Semantic.DeepEqual(a.MinCount, b.MinCount) &&
			apiequality.Semantic.DeepEqual(a.Template.Spec, b.Template.Spec) &&
			apiequality.Semantic.DeepEqual(a.Template.Labels, b.Template.Labels) && apiequality.Semantic.DeepEqual(a.Template.Annotations, b.Template.Annotations)
	})
}

// growsBeyond reports whether a running job has become larger than what it was admitted with.
func growsBeyond(job integration.Job, w *v1beta2.Workload) bool {
	if w.Status.Admission == nil {
		return false
	}
	_, keepsCounts := job.(interface{ KeepsCounts() bool })
	for _, set := range job.PodSets() {
		for i, p := range w.Status.Admission.PodSetAssignments {
			if p.Name != set.Name || p.Count == nil {
				continue
			}
			most := *p.Count
			if keepsCounts && i < len(w.Spec.PodSets) { // fewer may be admitted than it says
				most = max(most, w.Spec.PodSets[i].Count)
			}
			if set.Count > most {
				return true
			}
		}
	}
	return false
}

func (r *jobs) discard(ctx context.Context, job integration.Job, w *v1beta2.Workload, why string) error {
	if err := r.client.Delete(ctx, w, client.Preconditions{UID: &w.UID}); err != nil {
		return fmt.Errorf("deleting Workload %s: %w", w.Name, err)
	}
	r.events.Eventf(job.Object(), nil, corev1.EventTypeNormal, reasonDeletedWorkload, "Delete", "Deleted Workload %s/%s: %s", w.Namespace, w.Name, why)
	return nil
}

// letGo stops the job of a Workload that is being deleted, and then lets the Workload go.
func (r *jobs) letGo(ctx context.Context, job integration.Job, w *v1beta2.Workload) error {
	if _, _, isFinished := job.Finished(); !isFinished {
		if !job.IsSuspended() {
			return r.stop(ctx, job, w, "its workload was deleted")
		}
		if job.IsActive() {
			return nil
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

// finish says in the Workload that the job has ended.
func (r *jobs) finish(ctx context.Context, job integration.Job, w *v1beta2.Workload, message string, succeeded bool) error {
	reason := v1beta2.ReasonFailed
	if succeeded {
		reason = v1beta2.ReasonSucceeded
	}
	if conditions.Is(w, v1beta2.Finished) {
		return removeFinalizer(ctx, r.client, w)
	}
	if err := r.end(ctx, w, reason, message); err != nil {
		return err
	}
	r.events.Eventf(job.Object(), nil, corev1.EventTypeNormal, reasonFinishedWorkload, "Finish", "Workload '%s/%s' is declared finished", w.Namespace, w.Name)
	return removeFinalizer(ctx, r.client, w)
}

// start has the job of an admitted Workload make its pods.
func (r *jobs) start(ctx context.Context, job integration.Job, w *v1beta2.Workload) error {
	object := job.Object()
	if w.Status.Admission == nil {
		return fmt.Errorf("its Workload %s is admitted and has no admission", w.Name)
	}
	before := object.DeepCopyObject().(client.Object)
	infos, err := builder.Infos(w, r.schedulers, r.lookup(ctx))
	if err == nil && len(infos) != len(w.Spec.PodSets) {
		err = builder.Contradict(fmt.Errorf("%d podsets are admitted, and the workload has %d", len(infos), len(w.Spec.PodSets)))
	}
	if err == nil {
		if problem := job.Run(infos); problem != nil {
			err = builder.Contradict(problem)
		}
	}
	if cannot, is := errors.AsType[builder.Contradiction](err); is {
		r.events.Eventf(object, nil, corev1.EventTypeWarning, reasonFailedToStart, "Start", "%.1000s", cannot.Error())
		return r.end(ctx, w, reasonFailedToStart, cannot.Error())
	}
	if err != nil {
		return err
	}
	if apiequality.Semantic.DeepEqual(before, object) {
		return nil // the controller of the job starts it
	}
	if err := r.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	r.events.Eventf(object, nil, corev1.EventTypeNormal, reasonStarted, "Start", "Admitted by clusterQueue %s", w.Status.Admission.ClusterQueue)
	return nil
}

// stop has a job end its pods, and makes its template what was queued. It is done in up to three writes, since the API server
// refuses changes of the template of a Job that is not suspended, or has a start time. Each is repeated until it is done.
func (r *jobs) stop(ctx context.Context, job integration.Job, w *v1beta2.Workload, why string) error {
	object := job.Object()
	lock := client.MergeFromWithOptimisticLock{}
	if !isStopping(job) {
		before := object.DeepCopyObject().(client.Object)
		job.Suspend()
		if apiequality.Semantic.DeepEqual(before, object) {
			return nil // the controller of the job stops it
		}
		if err := r.client.Patch(ctx, object, client.MergeFromWithOptions(before, lock)); err != nil {
			return fmt.Errorf("stopping: %w", err)
		}
		r.events.Eventf(object, nil, corev1.EventTypeNormal, reasonStopped, "Stop", "%.1000s", why)
	}
	before := object.DeepCopyObject().(client.Object)
	if s, is := job.(resetter); is && s.ResetStatus() {
		if err := r.client.Status().Patch(ctx, object, client.MergeFromWithOptions(before, lock)); err != nil {
			return fmt.Errorf("resetting the status: %w", err)
		}
		before = object.DeepCopyObject().(client.Object)
	}
	var sets []v1beta2.PodSet
	if w != nil {
		sets = w.Spec.PodSets
	}
	job.Restore(sets)
	if err := r.client.Patch(ctx, object, client.MergeFromWithOptions(before, lock)); err != nil {
		return fmt.Errorf("restoring the template: %w", err)
	}
	return nil
}

// observe says in the Workload how its running job fares.
func (r *jobs) observe(ctx context.Context, job integration.Job, w *v1beta2.Workload) error {
	return r.patchStatus(ctx, w, func() {
		if pods := job.Reclaimable(); len(pods) > 0 {
			w.Status.ReclaimablePods = pods
		}
		if r.state.policy().PodsReady == nil || w.Status.Admission == nil {
			return
		}
		count := int32(0)
		for i, p := range w.Status.Admission.PodSetAssignments {
			if p.Count != nil {
				count += *p.Count
			} else if i < len(w.Spec.PodSets) {
				count += w.Spec.PodSets[i].Count
			}
		}
		lifecycle.Observe(w, job.PodsReady(count), r.state.now())
	})
}

// release says that the job of an evicted Workload has stopped.
func (r *writer) release(ctx context.Context, w *v1beta2.Workload) error {
	queue, reason := heldIn(w), conditions.Of(w, v1beta2.Evicted).Reason
	if err := r.patchStatus(ctx, w, func() { lifecycle.Release(w, r.state.now()) }); err != nil {
		return err
	}
	r.metrics.WorkloadEvicted(queue, reason)
	return nil
}

// end says that a Workload has ended.
func (r *writer) end(ctx context.Context, w *v1beta2.Workload, reason, message string) error {
	if err := r.patchStatus(ctx, w, func() { conditions.Finish(w, reason, message, r.state.now()) }); err != nil {
		return err
	}
	r.metrics.WorkloadFinished(heldIn(w))
	return nil
}

// heldIn is the ClusterQueue whose quota a Workload holds, "" if it holds none.
func heldIn(w *v1beta2.Workload) string {
	if w.Status.Admission == nil {
		return ""
	}
	return w.Status.Admission.ClusterQueue
}

// greet says of a Workload that the scheduler has not looked at it yet.
func (r *writer) greet(ctx context.Context, w *v1beta2.Workload) (again time.Duration, err error) {
	if conditions.Of(w, v1beta2.QuotaReserved) != nil {
		return 0, nil
	}
	if age := r.state.now().Sub(w.CreationTimestamp.Time); age < pendingAfter {
		return pendingAfter - age, nil
	}
	return 0, r.patchStatus(ctx, w, func() {
		conditions.Pend(w, v1beta2.ReasonPendingEvaluation, conditions.PendingEvaluation, r.state.now())
	})
}

// patchStatus writes what an edit changes in the status of a Workload, over the version that it was decided on.
func (r *writer) patchStatus(ctx context.Context, w *v1beta2.Workload, edit func()) error {
	return patchStatus(ctx, r.client, w, edit)
}

func patchStatus(ctx context.Context, api client.Client, w *v1beta2.Workload, edit func()) error {
	before := w.DeepCopy()
	edit()
	if apiequality.Semantic.DeepEqual(before.Status, w.Status) {
		return nil
	}
	if err := api.Status().Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("writing the status of Workload %s: %w", w.Name, err)
	}
	return nil
}
