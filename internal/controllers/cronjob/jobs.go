package cronjob

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/timetable"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// kind is that of the owner of the Jobs.
var kind = batch.GroupVersion.WithKind("CronJob")

// Limits of the history of a CronJob that leaves them open. The API server fills them in; one that never passed it has
// them too.
const (
	defaultSuccessfulHistory int32 = 3
	defaultFailedHistory     int32 = 1
)

// JobName is the name of the Job of a run: that of the CronJob and the minutes since 1970. Runs of which there are
// several a minute go by the seconds.
func JobName(cronJob *batch.CronJob, times timetable.Timetable, due time.Time) string {
	number := due.Unix()
	if !times.IsDense() {
		number /= int64(time.Minute / time.Second)
	}
	return fmt.Sprintf("%s-%d", cronJob.Name, number)
}

// buildJob makes the Job of a run.
func buildJob(cronJob *batch.CronJob, times timetable.Timetable, due time.Time) *batch.Job {
	template := cronJob.Spec.JobTemplate.DeepCopy()
	zone := time.UTC
	if name := cronJob.Spec.TimeZone; name != nil {
		if known, err := time.LoadLocation(*name); err == nil {
			zone = known
		}
	}
	annotations := maps.Clone(template.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[batch.CronJobScheduledTimestampAnnotation] = due.In(zone).Format(time.RFC3339)
	return &batch.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       cronJob.Namespace,
			Name:            JobName(cronJob, times, due),
			Labels:          template.Labels,
			Annotations:     annotations,
			Finalizers:      template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(cronJob, kind)},
		},
		Spec: template.Spec,
	}
}

// Due returns when the run of a Job that a CronJob started was due. It is zero for any other Job, and if a user has
// removed the annotation.
func Due(job *batch.Job) time.Time {
	due, err := time.Parse(time.RFC3339, job.Annotations[batch.CronJobScheduledTimestampAnnotation])
	if err != nil {
		return time.Time{}
	}
	return due
}

// hasEnded says whether a Job is over for good. An aborted one is not: it may be resumed.
func hasEnded(job *batch.Job) bool {
	return hasSucceeded(job) || hasFailed(job)
}

func hasSucceeded(job *batch.Job) bool {
	return job.Status.State.Phase == batch.Completed
}

func hasFailed(job *batch.Job) bool {
	return job.Status.State.Phase == batch.Failed || job.Status.State.Phase == batch.Terminated
}

// notEnded returns the Jobs that are not over, in the order of their making.
func notEnded(jobs []*batch.Job) []*batch.Job {
	left := slices.DeleteFunc(slices.Clone(jobs), hasEnded)
	slices.SortFunc(left, byAge)
	return left
}

// byAge puts the oldest first.
func byAge(a, b *batch.Job) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// superfluous returns the ended Jobs beyond the limits of the history, the oldest first. A Job whose run, or whose end,
// is not on record yet stays, because with it would go what tells of them.
func superfluous(cronJob *batch.CronJob, jobs []*batch.Job) []*batch.Job {
	beyond := func(ended func(*batch.Job) bool, limit *int32, otherwise int32) []*batch.Job {
		var present []*batch.Job
		for _, job := range jobs {
			if ended(job) && job.DeletionTimestamp == nil {
				present = append(present, job)
			}
		}
		slices.SortFunc(present, byAge)
		if limit != nil {
			otherwise = *limit
		}
		present = present[:max(0, len(present)-int(otherwise))]
		return slices.DeleteFunc(present, func(job *batch.Job) bool {
			return !IsRecorded(cronJob, job) || slices.Contains(cronJob.Status.Active, reference(job))
		})
	}
	return append(beyond(hasSucceeded, cronJob.Spec.SuccessfulJobsHistoryLimit, defaultSuccessfulHistory),
		beyond(hasFailed, cronJob.Spec.FailedJobsHistoryLimit, defaultFailedHistory)...)
}

// IsRecorded says whether the status of the CronJob tells that the run of the Job has been started.
func IsRecorded(cronJob *batch.CronJob, job *batch.Job) bool {
	due, last := Due(job), cronJob.Status.LastScheduleTime
	return due.IsZero() || last != nil && !due.After(last.Time)
}

// observe returns the status of a CronJob with these Jobs, which are all that exist.
func observe(cronJob *batch.CronJob, jobs []*batch.Job, now time.Time) batch.CronJobStatus {
	status := *cronJob.Status.DeepCopy()
	status.Active = nil
	for _, job := range notEnded(jobs) {
		status.Active = append(status.Active, reference(job))
	}
	for _, job := range jobs {
		// A time that is to come can only have been written by a client, and would keep runs from being started.
		if due := Due(job); !due.After(now) {
			advance(&status.LastScheduleTime, due)
		}
		if hasSucceeded(job) {
			advance(&status.LastSuccessfulTime, job.Status.State.LastTransitionTime.Time)
		}
	}
	return status
}

// advance moves a time forward, never back.
func advance(to **metav1.Time, moment time.Time) {
	if !moment.IsZero() && (*to == nil || (*to).Time.Before(moment)) {
		*to = &metav1.Time{Time: moment}
	}
}

func reference(job *batch.Job) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: batch.GroupVersion.String(), Kind: "Job", Namespace: job.Namespace, Name: job.Name, UID: job.UID,
	}
}
