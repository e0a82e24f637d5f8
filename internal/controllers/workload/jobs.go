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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/internal/recorder"
	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/internal/controllers/workload/protection"
	"hekla.sh/hekla/internal/queueing"
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
	reasonFailedToStart    = queueing.FailedToStart
	reasonNotSupported     = "NotSupported"
	reasonError            = "ErrorWorkloadCompose"
	reasonNotFollowed      = "NotFollowed" // ours: a change that takes effect later
)

// pendingAfter is how long a new Workload has no condition. A scheduler with room has admitted it by then, so that most
// Workloads cost one write less.
const pendingAfter = time.Second

// writer makes Workloads, and writes what becomes of them.
type writer struct {
	client  client.Client
	events  events.EventRecorder
	state   *state
	metrics *metrics.Metrics
	// schedulers are the names of ours.
	schedulers []string
	owners     *queueing.OwnerFinder
	told       *cache.LRUExpireCache // by UID, the owners of which was said that they are not served
}

// jobs keeps the jobs of one kind and their Workloads in step.
type jobs struct {
	writer
	kind *queueing.Kind
}

// Reconcile makes the Workload of a job, starts the job when the Workload is admitted, stops it when it is not any
// more, and says in the Workload how the job fares.
func (r *jobs) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if !r.state.isOn() {
		return reconcile.Result{}, r.tellOff(ctx, request)
	}
	job := r.kind.New()
	object := job.Object()
	err := r.client.Get(ctx, request.NamespacedName, object)
	if err != nil || object.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if s, is := job.(queueing.Selective); is {
		if isQueued, why := s.IsQueued(); !isQueued {
			if why != "" {
				r.events.Eventf(object, nil, corev1.EventTypeWarning, reasonNotSupported, "Sync", "it runs unmanaged by LocalQueue %s: %s",
					object.GetLabels()[v1beta2.QueueNameLabel], why)
			}
			return reconcile.Result{}, nil
		}
	}
	again, err := time.Duration(0), error(nil)
	if is, problem := r.isManaged(ctx, job); problem != nil {
		err = problem
	} else if is {
		again, err = r.step(ctx, job)
	}
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: work.RereadAfter}, nil // another client has written since it was read
	case isGone(err):
		return reconcile.Result{}, nil // the event of what is gone queues it again
	case err != nil && ctx.Err() == nil:
		r.events.Eventf(object, nil, corev1.EventTypeWarning, reasonError, "Sync", "%.1000s", err.Error())
	}
	return reconcile.Result{RequeueAfter: again}, err
}

// tellOff says once of a Job which was queued and is suspended that no Workload is admitted, if the scheduler's
// configuration has it so. Volcano's Jobs are not suspended then.
func (r *jobs) tellOff(ctx context.Context, request reconcile.Request) error {
	if r.kind == queueing.VolcanoJobs || r.state.serving() != protection.NotServed {
		return nil
	}
	job := r.kind.New()
	object := job.Object()
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if _, _, isFinished := job.Finished(); object.GetLabels()[v1beta2.QueueNameLabel] == "" || !job.IsSuspended() || isFinished || object.GetDeletionTimestamp() != nil {
		return nil
	}
	recorder.Once(r.events, object, corev1.EventTypeWarning, conditions.WorkloadsOff, "Sync", "it stays suspended: %s", conditions.WorkloadsOffMessage)
	return nil
}

// isGone reports whether an error says that an object does not exist, as opposed to its kind. The end of an object is
// an event, so that nothing has to be tried again. Of a kind that comes back there is none.
func isGone(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && apierrors.IsNotFound(err) && status.Status().Details != nil && status.Status().Details.Name != ""
}

// step brings a job and its Workload one step on. Where they are follows from the two objects alone, never from what
// was written last: another client may have written anything in between.
func (r *jobs) step(ctx context.Context, job queueing.Job) (again time.Duration, err error) {
	w, err := r.workloadOf(ctx, job)
	if err != nil {
		return 0, err
	}
	message, succeeded, isFinished := job.Finished()
	if job.IsSuspended() && !isFinished && (w == nil || !conditions.Is(w, v1beta2.Finished)) {
		if why := queueing.NotServed(job); why != "" {
			r.events.Eventf(job.Object(), nil, corev1.EventTypeWarning, reasonNotSupported, "Sync", "it stays suspended: %s", why)
			if w != nil && w.DeletionTimestamp == nil && !isPrebuilt(job) {
				return 0, r.part(ctx, job, w, why)
			}
			if w == nil || w.DeletionTimestamp == nil {
				return 0, nil
			}
		}
	}
	switch {
	case w == nil && isFinished:
		return 0, nil
	case w == nil && !job.IsSuspended():
		return 0, r.suspend(ctx, job, "it is not admitted")
	case w == nil && job.Object().GetDeletionTimestamp() != nil:
		return 0, nil // it waits for what it owns to be gone, and a new Workload would be of those
	case w == nil:
		return 0, r.create(ctx, job)
	case w.DeletionTimestamp != nil:
		return 0, r.releaseDeleted(ctx, job, w)
	case isFinished:
		return 0, r.finish(ctx, job, w, message, succeeded)
	case conditions.Is(w, v1beta2.Finished) && !job.IsSuspended():
		return 0, r.suspend(ctx, job, "its workload has ended")
	case conditions.Is(w, v1beta2.Finished):
		return 0, nil
	}
	isEvicted := conditions.Is(w, v1beta2.Evicted)
	isAdmitted := conditions.Is(w, v1beta2.Admitted) && !isEvicted
	isEnding := isEvicted && conditions.Is(w, v1beta2.QuotaReserved)
	if !isAdmitted && (isEnding || !job.IsSuspended() || queueing.IsStarted(job)) {
		if hasStopped, err := r.stop(ctx, job, w, stopMessage(w)); !hasStopped || err != nil {
			return 0, err
		}
	}
	if isEnding {
		return 0, r.release(ctx, w, func() { queueing.Reclaim(w, job.Demand(), job.KeepsCounts()) })
	}
	if differs, err := r.adapt(ctx, job, w); differs || err != nil {
		return 0, err
	}
	switch {
	case !isAdmitted:
		if !conditions.Is(w, v1beta2.QuotaReserved) {
			if err := r.patchStatus(ctx, w, func() { queueing.Reclaim(w, job.Demand(), job.KeepsCounts()) }); err != nil {
				return 0, err
			}
		}
		return r.markPending(ctx, w)
	case !job.IsSuspended() && !isStarted(job, w):
		return 0, r.suspend(ctx, job, "it was resumed without what its workload was admitted with")
	case !job.IsSuspended():
		return 0, r.observe(ctx, job, w)
	case job.IsActive():
		return 0, nil // pods of before are still there, and the job changes when the last is gone
	}
	if has, err := r.hasPodsOfBefore(ctx, job); has || err != nil {
		return 0, err // its controller ends them, and tells of them
	}
	// A job that does not say itself that it is suspended may have no pods because it is over, or paused.
	if err := r.start(ctx, job, w); err != nil || !job.KeepsCounts() || conditions.Is(w, v1beta2.Finished) {
		return 0, err
	}
	return 0, r.observe(ctx, job, w)
}

// isStarted reports whether a job that runs was started with what its Workload was admitted with. One that Kueue has
// started has no nodes in its admission, and maybe no marks.
func isStarted(job queueing.Job, w *v1beta2.Workload) bool {
	_, is := job.(queueing.Marked)
	return !is || queueing.IsStarted(job) || w.Status.Admission == nil ||
		!slices.ContainsFunc(w.Status.Admission.PodSetAssignments, func(p v1beta2.PodSetAssignment) bool { return p.TopologyAssignment != nil })
}

func stopMessage(w *v1beta2.Workload) string {
	if evicted := conditions.Of(w, v1beta2.Evicted); evicted != nil && evicted.Status == metav1.ConditionTrue {
		return evicted.Message
	}
	return "its workload is not admitted"
}

// workloadOf is the Workload of a job: the one it names, or the one that was made for it; nil if there is none.
func (r *jobs) workloadOf(ctx context.Context, job queueing.Job) (*v1beta2.Workload, error) {
	object := job.Object()
	name, w := r.kind.WorkloadOf(object), &v1beta2.Workload{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: object.GetNamespace(), Name: name}, w)
	if apierrors.IsNotFound(err) {
		return r.ownedBy(ctx, object)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Workload %s: %w", name, err)
	}
	if owner := metav1.GetControllerOf(w); owner != nil && owner.UID != object.GetUID() {
		return nil, fmt.Errorf("its Workload %s belongs to %s %s", name, owner.Kind, owner.Name)
	} else if owner == nil && isPrebuilt(job) && w.DeletionTimestamp == nil {
		return w, r.adopt(ctx, job, w)
	}
	return w, nil
}

// ownedBy is the Workload that a job owns although it does not name it, as after another client has taken away the
// label by which it did.
func (r *jobs) ownedBy(ctx context.Context, object client.Object) (*v1beta2.Workload, error) {
	owned := &v1beta2.WorkloadList{}
	err := r.client.List(ctx, owned, client.InNamespace(object.GetNamespace()), client.MatchingFields{workloadsByOwner: string(object.GetUID())})
	if err != nil {
		return nil, fmt.Errorf("listing its Workloads: %w", err)
	}
	for i := range owned.Items {
		if !conditions.Is(&owned.Items[i], v1beta2.Finished) {
			return &owned.Items[i], nil
		}
	}
	return nil, nil
}

// adopt makes a job the owner of the Workload that was made for it beforehand.
func (r *jobs) adopt(ctx context.Context, job queueing.Job, w *v1beta2.Workload) error {
	before := w.DeepCopy()
	w.OwnerReferences = append(w.OwnerReferences, *metav1.NewControllerRef(job.Object(), r.kind.GroupVersionKind))
	metav1.SetMetaDataLabel(&w.ObjectMeta, v1beta2.JobUIDLabel, string(job.Object().GetUID()))
	controllerutil.AddFinalizer(w, v1beta2.ResourceInUseFinalizer)
	if err := r.client.Patch(ctx, w, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("taking over Workload %s: %w", w.Name, err)
	}
	return nil
}

// create makes the Workload of a job that waits.
func (r *jobs) create(ctx context.Context, job queueing.Job) error {
	if isPrebuilt(job) {
		return nil // the Workload that it names is still to come
	}
	w, err := queueing.NewWorkload(job, r.lookup(ctx))
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

// finish says in the Workload that the job has ended.
func (r *jobs) finish(ctx context.Context, job queueing.Job, w *v1beta2.Workload, message string, succeeded bool) error {
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

// start lets the job of an admitted Workload make its pods.
func (r *jobs) start(ctx context.Context, job queueing.Job, w *v1beta2.Workload) error {
	object := job.Object()
	if w.Status.Admission == nil {
		return fmt.Errorf("its Workload %s is admitted and has no admission", w.Name)
	}
	before := object.DeepCopyObject().(client.Object)
	queued := job.PodSets()
	infos, err := queueing.PodSetInfos(w, queued, r.schedulers, r.lookup(ctx))
	if err == nil && len(infos) != len(w.Spec.PodSets) {
		err = queueing.Contradict(fmt.Errorf("%d podsets are admitted, and the workload has %d", len(infos), len(w.Spec.PodSets)))
	}
	if err == nil {
		if problem := job.Run(infos); problem != nil {
			err = queueing.Contradict(problem)
		}
	}
	if cannot, is := errors.AsType[queueing.Contradiction](err); is {
		r.events.Eventf(object, nil, corev1.EventTypeWarning, reasonFailedToStart, "Start", "%.1000s", cannot.Error())
		return r.end(ctx, w, reasonFailedToStart, cannot.Error())
	}
	if err != nil {
		return err
	}
	if apiequality.Semantic.DeepEqual(before, object) {
		return nil // the controller of the job starts it
	}
	if isPrebuilt(job) {
		queueing.Record(object, queued)
	}
	if err := r.client.Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("starting: %w", err)
	}
	r.events.Eventf(object, nil, corev1.EventTypeNormal, reasonStarted, "Start", "Admitted by clusterQueue %s", w.Status.Admission.ClusterQueue)
	return nil
}

// observe says in the Workload how its running job fares.
func (r *jobs) observe(ctx context.Context, job queueing.Job, w *v1beta2.Workload) error {
	return r.patchStatus(ctx, w, func() {
		queueing.Reclaim(w, job.Demand(), job.KeepsCounts())
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
		queueing.ObservePods(w, job.PodsReady(count), r.state.now())
	})
}

// release says that the job of an evicted Workload has stopped. also is edited in the same write.
func (r *writer) release(ctx context.Context, w *v1beta2.Workload, also func()) error {
	queue, reason := heldIn(w), conditions.Of(w, v1beta2.Evicted).Reason
	if err := r.patchStatus(ctx, w, func() {
		queueing.Release(w, r.state.now())
		also()
	}); err != nil {
		return err
	}
	r.metrics.WorkloadEvicted(queue, localQueueOf(w), reason)
	return nil
}

// end says that a Workload has ended.
func (r *writer) end(ctx context.Context, w *v1beta2.Workload, reason, message string) error {
	if err := r.patchStatus(ctx, w, func() { conditions.Finish(w, reason, message, r.state.now()) }); err != nil {
		return err
	}
	r.metrics.WorkloadFinished(heldIn(w), localQueueOf(w))
	return nil
}

// localQueueOf names the LocalQueue of a Workload.
func localQueueOf(w *v1beta2.Workload) types.NamespacedName {
	return types.NamespacedName{Namespace: w.Namespace, Name: w.Spec.QueueName}
}

// heldIn is the ClusterQueue whose quota a Workload holds, "" if it holds none.
func heldIn(w *v1beta2.Workload) string {
	if w.Status.Admission == nil {
		return ""
	}
	return w.Status.Admission.ClusterQueue
}

// markPending says of a Workload that the scheduler has not looked at it yet.
func (r *writer) markPending(ctx context.Context, w *v1beta2.Workload) (again time.Duration, err error) {
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

// patchStatus writes what an edit changes in the status of a Workload, over the version that it was decided on. After
// an error the Workload is as it is stored.
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
		*w = *before
		return fmt.Errorf("writing the status of Workload %s: %w", w.Name, err)
	}
	return nil
}
