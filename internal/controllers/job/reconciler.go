package job

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	"hekla.sh/hekla/internal/controllers/metrics"
	"hekla.sh/hekla/internal/controllers/workload"
	"hekla.sh/hekla/pkg/apis/batch/builder"
	"hekla.sh/hekla/pkg/apis/batch/dependencies"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/batch/validation"
	"hekla.sh/hekla/pkg/apis/bounds"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// recheckAfter is how long to wait for a watch to deliver what was written. The event itself wakes the Job sooner. This
// is for an event that never comes.
const recheckAfter = time.Second

// firstStatusAfter is how long a new Job has no status while there is nothing to say but that the scheduler has not
// answered. Most answers come within moments. Then the first status has the counts of the pods, and a write is saved,
// which costs the API server as much as two pods.
const firstStatusAfter = time.Second

// atOnce makes a Job be reconciled again after the Jobs that wait.
const atOnce = time.Millisecond

// Reconciler brings one Job at a time closer to its spec. Add registers it.
type Reconciler struct {
	client        client.Client
	live          client.Reader
	events        events.EventRecorder
	memory        *memory
	metrics       *metrics.Metrics
	schedulerName string
	queues        *workload.Holder
}

// Reconcile follows what a Command or lifecycle policy asks for, or else brings PodGroup, volumes and pods in line with
// the phase, and writes the status if it differs. An error means that a request failed and that the Job is to be tried
// again; the status is written all the same, because it says what went wrong.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	stored := &batch.Job{}
	if err := r.client.Get(ctx, request.NamespacedName, stored); err != nil {
		if apierrors.IsNotFound(err) {
			r.memory.forget(request.NamespacedName)
			r.metrics.JobGone(request.NamespacedName)
			return work.UnlessConflict(errors.Join(r.dropGroups(ctx, request.NamespacedName, ""), r.dropVoid(ctx, request.NamespacedName)))
		}
		return reconcile.Result{}, err
	}
	r.metrics.Job(stored, stored.Status.State.Phase)
	if work.LeavesAlone(r.events, stored) {
		return reconcile.Result{}, nil
	}
	if err := r.dropGroups(ctx, request.NamespacedName, stored.UID); err != nil {
		return work.UnlessConflict(err)
	}
	if stored.DeletionTimestamp != nil {
		r.metrics.Ungrouped(stored, "")
		if !slices.Contains(stored.Finalizers, metav1.FinalizerDeleteDependents) {
			return reconcile.Result{}, nil // A finalizer may need its objects to stay.
		}
		// The garbage collector deletes the pods too.
		return reconcile.Result{}, r.deletePodGroup(ctx, stored)
	}
	now := time.Now()
	if r.memory.outdated(request.NamespacedName, stored.UID, stored.ResourceVersion, now) {
		return reconcile.Result{RequeueAfter: recheckAfter}, nil
	}
	job := lifecycle.Defaulted(stored, r.schedulerName)
	r.memory.wants(request.NamespacedName, job.UID, job.TotalReplicas())
	pods, unseen, unseenWait, err := r.podsOf(ctx, job, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	problems := validation.ValidateJob(job)
	standing, err := r.queues.Stand(ctx, job)
	if err != nil {
		return reconcile.Result{}, err
	}
	command, asked, err := r.commanded(ctx, job)
	if err != nil {
		return reconcile.Result{}, err
	}
	var wait time.Duration
	if len(asked) == 0 && len(problems) == 0 && standing.Waits == "" { // to be stopped is no failure
		if asked, wait, err = r.asked(ctx, job, pods, unseen, now); err != nil {
			return reconcile.Result{}, err
		}
	}
	if len(asked) > 0 {
		return r.executeDemands(ctx, stored, job, pods, command, asked, now)
	}
	pods, refused, isPart, err := r.replaceRefused(ctx, job, pods, now)
	if err != nil {
		return reconcile.Result{}, err
	}
	outcome, err := r.advance(ctx, job, pods, unseen, problems, standing)
	outcome.isPart = outcome.isPart || isPart
	if outcome.trouble.Reason == "" {
		outcome.trouble = refused.Trouble
	}
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return reconcile.Result{}, nil
	}
	status := lifecycle.Observe(job, outcome.pods, outcome.group, outcome.trouble, time.Now())
	r.metrics.Ungrouped(stored, r.whyUngrouped(ctx, job, status, outcome.group, standing))
	if err == nil && lifecycle.OnlySaysItWaits(&stored.Status, status) {
		if left := r.memory.newSince(request.NamespacedName, job.UID, now).Add(firstStatusAfter).Sub(now); left > 0 {
			return reconcile.Result{RequeueAfter: left}, nil // an answer of the scheduler wakes the Job sooner
		}
	}
	result, _, err := r.record(ctx, stored, status, outcome.trouble, err)
	switch {
	case result.RequeueAfter > 0:
	case outcome.isPart:
		result.RequeueAfter = atOnce
	default:
		// Events of created pods wake the Job, but it does not wait for them for ever.
		for _, left := range []time.Duration{unseenWait, wait, refused.Wait, lifecycle.PauseLeft(status, now), lifecycle.EstimateLeft(job, status, now),
			lifecycle.OverdueLeft(status, outcome.pods, now)} {
			result.RequeueAfter = sooner(result.RequeueAfter, left)
		}
	}
	return result, err
}

// whyUngrouped is the reason in the status of a Job that waits and has no PodGroup, "" of any other. A Job with an
// admitted Workload needs none.
func (r *Reconciler) whyUngrouped(ctx context.Context, job *batch.Job, status *batch.JobStatus, group *scheduling.PodGroup, standing workload.Standing) string {
	switch {
	case !lifecycle.MakesPods(status.State.Phase), group != nil && group.UID != "", standing.IsQueued && standing.Waits == "":
		return ""
	case r.client.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: builder.PodGroupName(job)}, &scheduling.PodGroup{}) == nil:
		return "" // there is one, which could not be brought up to date
	}
	return status.State.Reason
}

// sooner returns the shorter one of two waits, of which those that are not positive are none.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// asked returns what the policies of a valid Job ask for now, and when they are to be asked again.
func (r *Reconciler) asked(
	ctx context.Context, job *batch.Job, pods []*corev1.Pod, unseen sets.Set[string], now time.Time,
) ([]lifecycle.Demand, time.Duration, error) {
	if !lifecycle.HasPolicies(job) || !lifecycle.MakesPods(job.Status.State.Phase) {
		return nil, 0, nil
	}
	name := client.ObjectKeyFromObject(job)
	if asked := r.memory.asked(name, job.UID); len(asked) > 0 {
		return asked, 0, nil
	}
	group := &scheduling.PodGroup{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: builder.PodGroupName(job)}, group)
	if client.IgnoreNotFound(err) != nil {
		return nil, 0, err
	}
	found := r.lasting(job, pods, lifecycle.Occurrences(job, pods, unseen, group))
	due, wait := lifecycle.Demands(job, found, func(o *lifecycle.Occurrence) time.Time {
		if !o.Since.IsZero() {
			return o.Since
		}
		return r.memory.since(name, job.UID, beginning{o.Event, o.Task, o.Index}, now)
	}, now)
	return lifecycle.Chosen(job.Status.State.Phase, due), wait, nil
}

// lasting adds to what was found the evictions that have a delayed answer and whose tasks are not whole again. The
// status shows an eviction only until the pods that are left have been counted.
func (r *Reconciler) lasting(job *batch.Job, pods []*corev1.Pod, found []lifecycle.Occurrence) []lifecycle.Occurrence {
	present := sets.New[beginning]()
	for i := range found {
		present.Insert(beginning{found[i].Event, found[i].Task, found[i].Index})
	}
	members := lifecycle.MembersByTask(job, pods)
	begun := r.memory.begun(client.ObjectKeyFromObject(job), job.UID, func(which beginning) bool {
		return present.Has(which) || which.event == bus.PodEvictedEvent && which.task < len(members) &&
			which.index < int(job.Spec.Tasks[which.task].Replicas) && !lifecycle.IsBack(members[which.task], which.index)
	})
	for _, which := range begun {
		if !present.Has(which) {
			found = append(found, lifecycle.Eviction(job, which.task, which.index))
		}
	}
	return found
}

// executeDemands carries out demands and records them, then deletes their Command, if any. Demands for the whole Job
// are only recorded: that makes its pods outdated, so that the next reconcile deletes them. The pods of parts of it are
// deleted first, because the record could not tell later which they were.
func (r *Reconciler) executeDemands(ctx context.Context, stored, job *batch.Job, pods []*corev1.Pod, command *bus.Command, asked []lifecycle.Demand, now time.Time) (reconcile.Result, error) {
	name := client.ObjectKeyFromObject(job)
	if lifecycle.IsPartial(asked[0].Action) && job.Status.RetryCount+1 < job.Spec.MaxRetry {
		r.memory.ask(name, job.UID, asked)
		left := lifecycle.Targets(job, pods, asked)
		deleted, err := r.deletePods(ctx, left)
		pods = replaced(pods, deleted)
		if err != nil {
			return reconcile.Result{}, err
		}
		if len(deleted) < len(left) {
			return reconcile.Result{RequeueAfter: atOnce}, nil
		}
	}
	result, written, err := r.record(ctx, stored, lifecycle.Follow(job, pods, asked, now), lifecycle.Trouble{}, nil)
	if !written {
		return result, err
	}
	r.announceActions(stored, asked)
	r.memory.ask(name, job.UID, nil)
	r.memory.begun(name, job.UID, func(beginning) bool { return false })
	if command == nil {
		return result, err
	}
	return result, errors.Join(err, r.drop(ctx, name, command))
}

// outcome is the result of advance: the pods, the PodGroup if the Job needs one, and what went wrong.
type outcome struct {
	pods    []*corev1.Pod
	group   *scheduling.PodGroup
	trouble lifecycle.Trouble

	// isPart says that the next reconcile has to create or delete more pods.
	isPart bool
}

// advance carries out what the phase of a defaulted Job needs. The outcome can be counted in any case.
func (r *Reconciler) advance(
	ctx context.Context, job *batch.Job, pods []*corev1.Pod, unseen sets.Set[string], problems field.ErrorList, standing workload.Standing,
) (outcome, error) {
	if !lifecycle.MakesPods(job.Status.State.Phase) {
		return r.clear(ctx, job, pods)
	}
	result := outcome{pods: pods}
	if len(problems) > 0 {
		result.trouble = lifecycle.Trouble{Reason: lifecycle.ReasonInvalidSpec, Message: bounds.Told(problems).ToAggregate().Error()}
		return result, nil
	}
	if standing.Waits != "" {
		return r.hold(ctx, job, pods, standing.Waits)
	}
	var err error
	if len(pods) == 0 {
		if err = r.ensureClaims(ctx, job); err != nil {
			result.trouble = lifecycle.Trouble{Reason: batch.PVCErrorReason, Message: err.Error()}
			return result, err
		}
	}
	held := lifecycle.HeldBack(job, pods)
	if standing.IsQueued {
		result.group = &scheduling.PodGroup{Status: scheduling.PodGroupStatus{Phase: scheduling.PodGroupInqueue}} // its Workload is in its place
		err = r.deletePodGroup(ctx, job)
	} else {
		result.group, err = r.ensurePodGroup(ctx, job, pods, held)
	}
	if err != nil {
		result.trouble = lifecycle.Trouble{Reason: batch.PodGroupErrorReason, Message: err.Error()}
		return result, err
	}
	missing, isPart, surplus := lifecycle.MissingAndSurplus(job, pods, unseen, held, min(maxAtATime, max(maxUnseen-unseen.Len(), 0)))
	if lifecycle.Admitted(result.group) {
		// Before any pod is deleted, so that the others get the new list of their peers first.
		if err := r.ensureResources(ctx, job); err != nil {
			result.trouble = lifecycle.Trouble{Reason: batch.PluginErrorReason, Message: err.Error()}
			return result, err
		}
	}
	deleted, deleteErr := r.deletePods(ctx, surplus)
	result.pods, result.isPart = replaced(pods, deleted), len(deleted) < len(surplus)
	if deleteErr != nil {
		result.trouble = lifecycle.Trouble{Reason: lifecycle.ReasonFailedDelete, Message: deleteErr.Error()}
	}
	if !lifecycle.Admitted(result.group) {
		return result, deleteErr
	}
	created, isLeft, createErr := r.createPods(ctx, job, missing, unseen)
	result.pods = append(result.pods, created...)
	// If the watch is behind, the events of the pods wake the Job.
	result.isPart = result.isPart || isLeft || isPart && len(missing) > 0
	if createErr != nil {
		result.trouble = lifecycle.Trouble{Reason: lifecycle.ReasonFailedCreate, Message: createErr.Error()}
	}
	var noteErr error
	if !standing.IsQueued {
		noteErr = noteRefusal(ctx, r.client, result.group, createErr)
	}
	return result, errors.Join(deleteErr, createErr, noteErr)
}

// hold stops a Job whose Workload is not admitted: all of its pods are deleted, and it has no PodGroup.
func (r *Reconciler) hold(ctx context.Context, job *batch.Job, pods []*corev1.Pod, why string) (outcome, error) {
	result := outcome{pods: pods, group: lifecycle.Waiting(why)}
	left := slices.DeleteFunc(slices.Clone(pods), func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil })
	deleted, err := r.deletePods(ctx, left)
	result.pods, result.isPart = replaced(pods, deleted), len(deleted) < len(left)
	if err == nil {
		err = r.deletePodGroup(ctx, job)
	}
	if err != nil {
		result.trouble = lifecycle.Trouble{Reason: lifecycle.ReasonFailedDelete, Message: err.Error()}
	}
	return result, err
}

// clear deletes what a Job that makes no pods leaves over.
func (r *Reconciler) clear(ctx context.Context, job *batch.Job, pods []*corev1.Pod) (outcome, error) {
	result := outcome{pods: pods}
	left := lifecycle.Leftovers(job, pods)
	deleted, err := r.deletePods(ctx, left)
	result.pods, result.isPart = replaced(pods, deleted), len(deleted) < len(left)
	if err == nil && (lifecycle.IsSpent(job, result.pods) || len(result.pods) == 0 && lifecycle.PauseLeft(&job.Status, time.Now()) > 0) {
		err = r.deletePodGroup(ctx, job)
	}
	if err != nil {
		result.trouble = lifecycle.Trouble{Reason: lifecycle.ReasonFailedDelete, Message: err.Error()}
		return result, err
	}
	if err := r.removeResources(ctx, job); err != nil {
		result.trouble = lifecycle.Trouble{Reason: batch.PluginErrorReason, Message: err.Error()}
		return result, err
	}
	return result, nil
}

// podsOf returns the pods that the Job controls, which belong to the cache and must not be changed. It also returns the
// names of created pods that the cache does not show yet, with how long they are still awaited. These are read first,
// so that a pod that appears in between is in both lists. In neither, it would be created again, or count as deleted.
func (r *Reconciler) podsOf(
	ctx context.Context, job *batch.Job, now time.Time,
) (pods []*corev1.Pod, unseen sets.Set[string], wait time.Duration, err error) {
	unseen, wait = r.memory.unseen(client.ObjectKeyFromObject(job), job.UID, now)
	list := &corev1.PodList{}
	err = r.client.List(ctx, list, client.InNamespace(job.Namespace),
		client.MatchingFields{podsByJob: string(job.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, nil, 0, err
	}
	pods = make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
		unseen.Delete(pods[i].Name)
	}
	return pods, unseen, wait, nil
}

// ensurePodGroup makes the PodGroup of the Job, or brings it up to date.
func (r *Reconciler) ensurePodGroup(ctx context.Context, job *batch.Job, pods []*corev1.Pod, held []string) (*scheduling.PodGroup, error) {
	specOf, err := given(ctx, r.client, job.Namespace)
	if err != nil {
		return nil, err
	}
	wanted := builder.PodGroup(job, func(class string) int32 { return r.priority(ctx, class) }, specOf)
	dependencies.HoldBack(wanted, job, held)
	current := &scheduling.PodGroup{}
	err = r.client.Get(ctx, client.ObjectKeyFromObject(wanted), current)
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
	if why, is := bounds.Unreadable(current); is {
		return nil, errors.New("PodGroup " + current.Namespace + "/" + current.Name + " was stored in a form that cannot be read: " + why)
	}
	if wanted.Spec.Queue, err = r.queueOf(ctx, job, current); err != nil {
		return nil, err
	}
	if len(pods) > 0 && wanted.Spec.MinMember == current.Spec.MinMember && maps.Equal(wanted.Spec.MinTaskMember, current.Spec.MinTaskMember) {
		wanted.Spec.MinResources = current.Spec.MinResources // pods that exist keep what the API server has given them
	}
	updated := lifecycle.UpdatePodGroup(current, wanted)
	if apiequality.Semantic.DeepEqual(current, updated) {
		return current, nil
	}
	if err := r.client.Patch(ctx, updated, client.MergeFrom(current)); err != nil {
		return nil, err
	}
	return updated, nil
}

// queueOf is the queue of a Job's PodGroup. It is the Job's queue. A Job in the default queue may be in the queue of
// its namespace, if that has one and the webhook has put the PodGroup there.
func (r *Reconciler) queueOf(ctx context.Context, job *batch.Job, group *scheduling.PodGroup) (string, error) {
	if job.Spec.Queue != scheduling.DefaultQueue || group.Spec.Queue == job.Spec.Queue {
		return job.Spec.Queue, nil
	}
	namespace := &corev1.Namespace{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: job.Namespace}, namespace); err != nil {
		return "", err
	}
	return cmp.Or(namespace.Annotations[scheduling.QueueNameAnnotationKey], job.Spec.Queue), nil
}

// deletePodGroup deletes the PodGroup of the Job if there is one.
func (r *Reconciler) deletePodGroup(ctx context.Context, job *batch.Job) error {
	group := &scheduling.PodGroup{}
	err := r.client.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: builder.PodGroupName(job)}, group)
	if err != nil || group.DeletionTimestamp != nil || !metav1.IsControlledBy(group, job) {
		return client.IgnoreNotFound(err)
	}
	return client.IgnoreNotFound(r.client.Delete(ctx, group, client.Preconditions{UID: &group.UID}))
}

// priority is the value of a PriorityClass, 0 if it does not exist. The API server then refuses the pods.
func (r *Reconciler) priority(ctx context.Context, class string) int32 {
	found := &schedulingv1.PriorityClass{}
	if class == "" || r.client.Get(ctx, client.ObjectKey{Name: class}, found) != nil {
		return 0
	}
	return found.Value
}

// record writes the status if it differs, sends Events about changes, and reports whether the status is written. It
// returns an earlier error, so that the Job is tried again.
func (r *Reconciler) record(ctx context.Context, stored *batch.Job, status *batch.JobStatus, trouble lifecycle.Trouble, cause error) (reconcile.Result, bool, error) {
	if apiequality.Semantic.DeepEqual(&stored.Status, status) {
		return reconcile.Result{}, true, cause
	}
	updated := stored.DeepCopy()
	updated.Status = *status
	err := r.client.Status().Patch(ctx, updated, client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: recheckAfter}, false, nil
	case err != nil:
		return reconcile.Result{}, false, errors.Join(cause, client.IgnoreNotFound(err))
	}
	r.memory.wrote(client.ObjectKeyFromObject(stored), stored.UID, updated.ResourceVersion, time.Now())
	r.metrics.Job(stored, status.State.Phase)
	r.announce(stored, status, trouble)
	return reconcile.Result{}, true, cause
}
