package cronjob

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"hekla.sh/hekla/internal/controllers/internal/work"
	"hekla.sh/hekla/internal/timetable"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/batch/validation"
)

// Reasons of the Events on a CronJob.
const (
	// ReasonUnparseableSchedule: the schedule cannot be read, or never comes.
	ReasonUnparseableSchedule = "UnParseableCronJobSchedule"

	// ReasonScheduleTooFrequent: the schedule asks for runs more often than the controllers start them.
	ReasonScheduleTooFrequent = "ScheduleTooFrequent"

	// ReasonInvalidTimeZone: the time zone is not known.
	ReasonInvalidTimeZone = "InvalidTimeZone"

	// ReasonInvalidName: the name leaves no room for those of the Jobs.
	ReasonInvalidName = "InvalidName"

	// ReasonTooManyMissedTimes: more than a hundred runs have become due since the last one that was started.
	ReasonTooManyMissedTimes = "TooManyMissedTimes"

	// ReasonMissSchedule: a run is left out, because it could not be started within startingDeadlineSeconds.
	ReasonMissSchedule = "MissSchedule"

	// ReasonForbidConcurrent: a run waits for the end of an earlier one.
	ReasonForbidConcurrent = "ForbidConcurrent"

	// ReasonReplaceConcurrent: Jobs are deleted because the next run is due.
	ReasonReplaceConcurrent = "ReplaceConcurrent"

	// ReasonSuccessfulCreate: a run was started.
	ReasonSuccessfulCreate = "SuccessfulCreate"

	// ReasonFailedCreate: the Job of a run was refused.
	ReasonFailedCreate = "FailedCreate"

	// ReasonForeignJob: a Job that is not the CronJob's has the name that the Job of a run would have.
	ReasonForeignJob = "ForeignJob"

	// ReasonSawCompletedJob: a Job has ended.
	ReasonSawCompletedJob = "SawCompletedJob"

	// ReasonStaleReference: a Job that had not ended is gone.
	ReasonStaleReference = "StaleReference"

	// ReasonSuccessfulDelete: a Job was deleted.
	ReasonSuccessfulDelete = "SuccessfulDelete"

	// ReasonFailedDelete: a Job could not be deleted.
	ReasonFailedDelete = "FailedDelete"
)

const (
	// recheckAfter is how long to wait for a watch to catch up with what is known to have been written. The event
	// itself wakes the CronJob sooner; this is for the event that never comes.
	recheckAfter = 100 * time.Millisecond

	// longestSleep bounds how long a change of the machine's clock goes unnoticed: timers do not follow it.
	longestSleep = 5 * time.Minute
)

// Reconciler brings one CronJob at a time up to date. Add puts it to work.
type Reconciler struct {
	client client.Client
	live   client.Reader
	events events.EventRecorder
	clock  clock.PassiveClock

	// shortestInterval is how close together runs may be.
	shortestInterval time.Duration

	// unrecorded holds, by the name of their CronJob, the Jobs that were made and may not be on record yet: the cache
	// may show them later than the next run is due.
	unrecorded sync.Map
}

// unrecordedJob is a Job that was made for the CronJob of a UID.
type unrecordedJob struct {
	owner types.UID
	job   corev1.ObjectReference
}

// Reconcile starts the run of a CronJob that is due, forgets what is beyond its history, and writes the status if it
// differs. An error means that a request failed and that the CronJob is to be tried again.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	cronJob := &batch.CronJob{}
	err := r.client.Get(ctx, request.NamespacedName, cronJob)
	if apierrors.IsNotFound(err) || err == nil && cronJob.DeletionTimestamp != nil {
		// The garbage collector takes the Jobs along.
		r.unrecorded.Delete(request.NamespacedName)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if work.LeavesAlone(r.events, cronJob) {
		return reconcile.Result{}, nil
	}
	jobs, err := r.jobsOf(ctx, cronJob)
	if err != nil {
		return reconcile.Result{}, err
	}
	now := r.clock.Now()
	updated := cronJob.DeepCopy()
	updated.Status = observe(cronJob, jobs, now)
	trimErr := r.trim(ctx, cronJob, jobs)
	wake, runErr := r.follow(ctx, cronJob, updated, jobs, now)
	recordErr := r.record(ctx, cronJob, updated, jobs)
	switch {
	case apierrors.IsConflict(recordErr):
		// It was changed since; the event of that wakes it.
		wake, recordErr = recheckAfter, nil
	case apierrors.HasStatusCause(runErr, corev1.NamespaceTerminatingCause):
		runErr = nil
	}
	return reconcile.Result{RequeueAfter: wake}, errors.Join(trimErr, runErr, recordErr)
}

// jobsOf returns the Jobs that the CronJob controls: those in the cache, and those that are on record, or remembered,
// and that the API server has. They are the cache's own and not to be changed.
func (r *Reconciler) jobsOf(ctx context.Context, cronJob *batch.CronJob) ([]*batch.Job, error) {
	list := &batch.JobList{}
	err := r.client.List(ctx, list, client.InNamespace(cronJob.Namespace),
		client.MatchingFields{jobsByCronJob: string(cronJob.UID)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, err
	}
	jobs := make([]*batch.Job, len(list.Items))
	known := sets.New[types.UID]()
	for i := range list.Items {
		jobs[i] = &list.Items[i]
		known.Insert(jobs[i].UID)
	}
	expected := cronJob.Status.Active
	if made, found := r.unrecorded.Load(client.ObjectKeyFromObject(cronJob)); found && made.(unrecordedJob).owner == cronJob.UID {
		expected = append(expected[:len(expected):len(expected)], made.(unrecordedJob).job)
	}
	for _, expected := range expected {
		if known.Has(expected.UID) {
			continue
		}
		known.Insert(expected.UID)
		job := &batch.Job{}
		err := r.live.Get(ctx, client.ObjectKey{Namespace: cronJob.Namespace, Name: expected.Name}, job)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("looking for Job %s: %w", expected.Name, err)
		}
		if err == nil && job.UID == expected.UID && metav1.IsControlledBy(job, cronJob) {
			jobs = append(jobs, job)
		} else if cronJob.Spec.ConcurrencyPolicy != batch.ReplaceConcurrent {
			r.tell(cronJob, corev1.EventTypeWarning, ReasonStaleReference, "Job %s is gone before it has ended", expected.Name)
		}
	}
	return jobs, nil
}

// trim deletes the ended Jobs that the history has no room for.
func (r *Reconciler) trim(ctx context.Context, cronJob *batch.CronJob, jobs []*batch.Job) error {
	var errs []error
	for _, job := range superfluous(cronJob, jobs) {
		errs = append(errs, r.delete(ctx, cronJob, job))
	}
	return errors.Join(errs...)
}

// delete deletes a Job with all that belongs to it. One that is gone, or was replaced under its name, counts as
// deleted.
func (r *Reconciler) delete(ctx context.Context, cronJob *batch.CronJob, job *batch.Job) error {
	target := &batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}}
	err := r.client.Delete(ctx, target, client.Preconditions{UID: &job.UID},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err != nil {
		r.tell(cronJob, corev1.EventTypeWarning, ReasonFailedDelete, "deleting Job %s: %s", job.Name, err)
		return fmt.Errorf("deleting Job %s: %w", job.Name, err)
	}
	r.tell(cronJob, corev1.EventTypeNormal, ReasonSuccessfulDelete, "Deleted job %s", job.Name)
	return nil
}

// follow does what the schedule asks for now, notes in the updated status what was started, and says when to ask again;
// never, if it returns 0.
func (r *Reconciler) follow(ctx context.Context, cronJob, updated *batch.CronJob, jobs []*batch.Job, now time.Time) (time.Duration, error) {
	if suspend := cronJob.Spec.Suspend; suspend != nil && *suspend {
		return 0, nil
	}
	times, problems := validation.ReadCronJob(cronJob)
	if len(problems) > 0 {
		for _, problem := range problems {
			r.tell(cronJob, corev1.EventTypeWarning, reasonOf(problem.Field), "%s", problem)
		}
		return 0, nil
	}
	times, isLimited := times.AtLeast(r.shortestInterval)
	if isLimited {
		r.tell(cronJob, corev1.EventTypeWarning, ReasonScheduleTooFrequent,
			"spec.schedule: %q asks for runs closer together than %s; one is started every %s", cronJob.Spec.Schedule, r.shortestInterval, r.shortestInterval)
	}
	active := notEnded(jobs)
	made := decide(updated, times, len(active), now)
	sleep := min(max(made.next.Sub(now), time.Millisecond), longestSleep)
	due := made.due.Format(time.RFC3339)
	switch made.course {
	case miss:
		r.tell(cronJob, corev1.EventTypeWarning, ReasonMissSchedule,
			"the run of %s is left out: it could not be started within %d seconds", due, *cronJob.Spec.StartingDeadlineSeconds)
	case hold:
		r.tell(cronJob, corev1.EventTypeWarning, ReasonForbidConcurrent,
			"the run of %s waits: Job %s has not ended", due, active[0].Name)
	case replace:
		return sleep, r.clear(ctx, cronJob, active)
	case start:
		if behind, err := r.isBehind(ctx, cronJob); err != nil || behind {
			return recheckAfter, err
		}
		if made.passed > timetable.MaxCounted {
			r.tell(cronJob, corev1.EventTypeWarning, ReasonTooManyMissedTimes,
				"more than %d runs have become due since the last one that was started; only that of %s is. "+
					"Set or shorten startingDeadlineSeconds, or look whether a clock is wrong", timetable.MaxCounted, due)
		}
		job, err := r.start(ctx, cronJob, times, made.due)
		if err != nil || job == nil {
			return sleep, err
		}
		r.unrecorded.Store(client.ObjectKeyFromObject(cronJob), unrecordedJob{cronJob.UID, reference(job)})
		updated.Status = observe(updated, append(jobs[:len(jobs):len(jobs)], job), now)
	}
	return sleep, nil
}

// reasonOf is the reason of the Event about a field.
func reasonOf(path string) string {
	switch path {
	case "spec.schedule":
		return ReasonUnparseableSchedule
	case "spec.timeZone":
		return ReasonInvalidTimeZone
	}
	return ReasonInvalidName
}

// clear deletes the Jobs that are in the way of the next run, unless they are going already. That they are gone wakes
// the CronJob.
func (r *Reconciler) clear(ctx context.Context, cronJob *batch.CronJob, active []*batch.Job) error {
	var errs []error
	for _, job := range active {
		if job.DeletionTimestamp == nil {
			r.tell(cronJob, corev1.EventTypeWarning, ReasonReplaceConcurrent,
				"Job %s has not ended and is deleted, because the next run is due", job.Name)
			errs = append(errs, r.delete(ctx, cronJob, job))
		}
	}
	return errors.Join(errs...)
}

// isBehind asks the API server whether it has a later version of the CronJob: one that tells of a Job that was started,
// or that does not want one any more. It has to be asked once per run.
func (r *Reconciler) isBehind(ctx context.Context, cronJob *batch.CronJob) (bool, error) {
	current := &batch.CronJob{}
	err := r.live.Get(ctx, client.ObjectKeyFromObject(cronJob), current)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return current.ResourceVersion != cronJob.ResourceVersion, err
}

// start makes the Job of a run and returns it, or the one that was made for it before. It returns none if a Job of
// another owner has its name.
func (r *Reconciler) start(ctx context.Context, cronJob *batch.CronJob, times timetable.Timetable, due time.Time) (*batch.Job, error) {
	job := buildJob(cronJob, times, due)
	err := r.client.Create(ctx, job)
	if err == nil {
		r.tell(cronJob, corev1.EventTypeNormal, ReasonSuccessfulCreate, "Created job %s", job.Name)
		return job, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			r.tell(cronJob, corev1.EventTypeWarning, ReasonFailedCreate, "creating Job %s: %s", job.Name, err)
		}
		return nil, fmt.Errorf("creating Job %s: %w", job.Name, err)
	}
	present := &batch.Job{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(job), present); err != nil {
		return nil, fmt.Errorf("reading Job %s, which exists: %w", job.Name, err)
	}
	if metav1.IsControlledBy(present, cronJob) {
		return present, nil
	}
	r.tell(cronJob, corev1.EventTypeWarning, ReasonForeignJob,
		"the run of %s is left out: there is a Job %s, and it is not of this CronJob", due.Format(time.RFC3339), job.Name)
	return nil, nil
}

// record writes the status if it differs, and tells of the Jobs that have ended. It fails if the CronJob has changed.
func (r *Reconciler) record(ctx context.Context, stored, updated *batch.CronJob, jobs []*batch.Job) error {
	if !apiequality.Semantic.DeepEqual(stored.Status, updated.Status) {
		patch := client.MergeFromWithOptions(stored, client.MergeFromWithOptimisticLock{})
		if err := r.client.Status().Patch(ctx, updated, patch); err != nil {
			return client.IgnoreNotFound(err)
		}
	}
	r.unrecorded.Delete(client.ObjectKeyFromObject(stored))
	active := sets.New[types.UID]()
	for _, reference := range stored.Status.Active {
		active.Insert(reference.UID)
	}
	for _, job := range jobs {
		if active.Has(job.UID) && hasEnded(job) {
			r.tell(stored, corev1.EventTypeNormal, ReasonSawCompletedJob, "Job %s is %s", job.Name, job.Status.State.Phase)
		}
	}
	return nil
}

// maxNote is the longest note that the events API accepts, in bytes.
const maxNote = 1024

// tell sends an Event.
func (r *Reconciler) tell(cronJob *batch.CronJob, kind, reason, format string, values ...any) {
	note := fmt.Sprintf(format, values...)
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote-len("…")], "") + "…"
	}
	r.events.Eventf(cronJob, nil, kind, reason, "Sync", "%s", note)
}
