package cronjob

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/timetable"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// midnight is when the CronJobs of these tests were made.
var midnight = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// newCronJob returns a CronJob of every full hour, made at midnight.
func newCronJob(edit ...func(*batch.CronJob)) *batch.CronJob {
	cronJob := &batch.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "hourly", UID: "c-1", CreationTimestamp: metav1.NewTime(midnight)},
		Spec:       batch.CronJobSpec{Schedule: "0 * * * *", ConcurrencyPolicy: batch.AllowConcurrent},
	}
	for _, edit := range edit {
		edit(cronJob)
	}
	return cronJob
}

func lastRun(after time.Duration) func(*batch.CronJob) {
	return func(c *batch.CronJob) { c.Status.LastScheduleTime = &metav1.Time{Time: midnight.Add(after)} }
}

func policy(policy batch.ConcurrencyPolicy) func(*batch.CronJob) {
	return func(c *batch.CronJob) { c.Spec.ConcurrencyPolicy = policy }
}

func deadline(seconds int64) func(*batch.CronJob) {
	return func(c *batch.CronJob) { c.Spec.StartingDeadlineSeconds = &seconds }
}

func TestWhatToDoFollowsFromPolicyAndDeadline(t *testing.T) {
	const never = time.Duration(-1)
	for _, test := range []struct {
		name    string
		cronJob *batch.CronJob
		active  int
		now     time.Duration
		course  course
		due     time.Duration
		passed  int
		next    time.Duration
	}{
		{"new, nothing due", newCronJob(), 0, 59 * time.Minute, wait, never, 0, time.Hour},
		{"new, due", newCronJob(), 0, time.Hour, start, time.Hour, 1, 2 * time.Hour},
		{"run before, nothing due", newCronJob(lastRun(time.Hour)), 0, 90 * time.Minute, wait, never, 0, 2 * time.Hour},
		{"the latest of several", newCronJob(lastRun(time.Hour)), 0, 270 * time.Minute, start, 4 * time.Hour, 3, 5 * time.Hour},
		{"the clock was set back", newCronJob(lastRun(5 * time.Hour)), 0, time.Hour, wait, never, 0, 6 * time.Hour},

		{"in time", newCronJob(deadline(10)), 0, time.Hour + 10*time.Second, start, time.Hour, 1, 2 * time.Hour},
		{"in time, by whole seconds", newCronJob(deadline(10)), 0, time.Hour + 10999*time.Millisecond, start, time.Hour, 1, 2 * time.Hour},
		{"too late", newCronJob(deadline(10)), 0, time.Hour + 11*time.Second, miss, time.Hour, 1, 2 * time.Hour},
		{"at once or never, at once", newCronJob(deadline(0)), 0, time.Hour + 20*time.Millisecond, start, time.Hour, 1, 2 * time.Hour},
		{"at once or never, too late", newCronJob(deadline(0)), 0, time.Hour + time.Second, miss, time.Hour, 1, 2 * time.Hour},
		{"the latest is in time, those before are not", newCronJob(deadline(10)), 0, 5*time.Hour + time.Second, start, 5 * time.Hour, 5, 6 * time.Hour},

		{"along with others", newCronJob(), 7, time.Hour, start, time.Hour, 1, 2 * time.Hour},
		{"not along with others", newCronJob(policy(batch.ForbidConcurrent)), 1, time.Hour, hold, time.Hour, 1, 2 * time.Hour},
		{"alone", newCronJob(policy(batch.ForbidConcurrent)), 0, time.Hour, start, time.Hour, 1, 2 * time.Hour},
		{"held until it is too late", newCronJob(policy(batch.ForbidConcurrent), deadline(10)), 1, 90 * time.Minute, miss, time.Hour, 1, 2 * time.Hour},
		{"instead of others", newCronJob(policy(batch.ReplaceConcurrent)), 2, time.Hour, replace, time.Hour, 1, 2 * time.Hour},
		{"instead of none", newCronJob(policy(batch.ReplaceConcurrent)), 0, time.Hour, start, time.Hour, 1, 2 * time.Hour},
		{"others are not replaced when it is too late", newCronJob(policy(batch.ReplaceConcurrent), deadline(10)), 1, 90 * time.Minute, miss, time.Hour, 1, 2 * time.Hour},
		{"nothing is replaced when nothing is due", newCronJob(policy(batch.ReplaceConcurrent)), 1, time.Minute, wait, never, 0, time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			times := mustParse(t, test.cronJob.Spec.Schedule, "UTC")
			want := decision{course: test.course, passed: test.passed, next: midnight.Add(test.next)}
			if test.due != never {
				want.due = midnight.Add(test.due)
			}
			got := decide(test.cronJob, times, test.active, midnight.Add(test.now))
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(decision{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// run returns a Job of a run, due so long after midnight.
func run(due time.Duration, phase batch.JobPhase) *batch.Job {
	cronJob := newCronJob()
	job := buildJob(cronJob, timetable.Timetable{}, midnight.Add(due))
	job.UID = types.UID(job.Name)
	job.CreationTimestamp = metav1.NewTime(midnight.Add(due))
	job.Status.State = batch.JobState{Phase: phase, LastTransitionTime: metav1.NewTime(midnight.Add(due + time.Minute))}
	return job
}

func TestTheJobOfARunIsNamedAndMarkedByItsTime(t *testing.T) {
	zone := "America/New_York"
	cronJob := newCronJob(func(c *batch.CronJob) {
		c.Spec.TimeZone = &zone
		c.Spec.JobTemplate = batch.JobTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{
				Name: "not this", Namespace: "nor this",
				Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"}, Finalizers: []string{"e/f"},
			},
			Spec: batch.JobSpec{Queue: "q"},
		}
	})
	got := buildJob(cronJob, mustParse(t, "0 * * * *", zone), midnight.Add(5*time.Hour))
	yes := true
	want := &batch.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name: "hourly-29539020", Namespace: "lab", Labels: map[string]string{"a": "b"}, Finalizers: []string{"e/f"},
			Annotations: map[string]string{"c": "d", "volcano.sh/cronjob-scheduled-timestamp": "2026-03-01T00:00:00-05:00"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "batch.volcano.sh/v1alpha1", Kind: "CronJob", Name: "hourly", UID: "c-1", Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: batch.JobSpec{Queue: "q"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !Due(got).Equal(midnight.Add(5 * time.Hour)) {
		t.Errorf("read back as %s", Due(got))
	}
	if _, found := cronJob.Spec.JobTemplate.Annotations[batch.CronJobScheduledTimestampAnnotation]; found {
		t.Error("the template was changed")
	}
	if name := JobName(cronJob, mustParse(t, "@every 30s", ""), midnight.Add(90*time.Second)); name != "hourly-1772323290" {
		t.Errorf("of several runs a minute one is named %s", name)
	}
}

func TestTheStatusFollowsFromTheJobs(t *testing.T) {
	tampered := run(48*time.Hour, batch.Completed)
	bare := run(6*time.Hour, batch.Failed)
	bare.Annotations = nil
	running, aborted := run(3*time.Hour, batch.Running), run(4*time.Hour, batch.Aborted)
	jobs := []*batch.Job{aborted, running, run(time.Hour, batch.Completed), run(2*time.Hour, batch.Completed), bare, tampered}
	tampered.Status.State.LastTransitionTime = metav1.Time{}
	got := observe(newCronJob(lastRun(2*time.Hour)), jobs, midnight.Add(7*time.Hour))
	want := batch.CronJobStatus{
		Active:             []corev1.ObjectReference{reference(running), reference(aborted)},
		LastScheduleTime:   &metav1.Time{Time: midnight.Add(4 * time.Hour)},
		LastSuccessfulTime: &metav1.Time{Time: midnight.Add(2*time.Hour + time.Minute)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	later := newCronJob(lastRun(9 * time.Hour))
	later.Status.LastSuccessfulTime = &metav1.Time{Time: midnight.Add(8 * time.Hour)}
	got = observe(later, jobs, midnight.Add(10*time.Hour))
	if !got.LastScheduleTime.Equal(later.Status.LastScheduleTime) || !got.LastSuccessfulTime.Equal(later.Status.LastSuccessfulTime) {
		t.Errorf("times went back: %+v", got)
	}
}

func TestTheOldestEndedJobsBeyondTheHistoryGo(t *testing.T) {
	going := run(time.Hour, batch.Failed)
	going.DeletionTimestamp = &metav1.Time{Time: midnight}
	jobs := []*batch.Job{
		run(8*time.Hour, batch.Completed), run(2*time.Hour, batch.Completed), run(3*time.Hour, batch.Running), run(4*time.Hour, batch.Completed),
		run(6*time.Hour, batch.Failed), run(5*time.Hour, batch.Terminated), run(7*time.Hour, batch.Aborted), going,
	}
	limits := func(successful, failed int32) func(*batch.CronJob) {
		return func(c *batch.CronJob) {
			c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit = &successful, &failed
		}
	}
	ofEight := jobs[0]
	for _, test := range []struct {
		name string
		edit []func(*batch.CronJob)
		want []time.Duration
	}{
		{"the limits that hold when none is set", []func(*batch.CronJob){lastRun(8 * time.Hour)}, []time.Duration{5 * time.Hour}},
		{"one of each", []func(*batch.CronJob){lastRun(8 * time.Hour), limits(1, 1)}, []time.Duration{2 * time.Hour, 4 * time.Hour, 5 * time.Hour}},
		{"none at all", []func(*batch.CronJob){lastRun(8 * time.Hour), limits(0, 0)},
			[]time.Duration{2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 5 * time.Hour, 6 * time.Hour}},
		{"more than there are", []func(*batch.CronJob){lastRun(8 * time.Hour), limits(9, 9)}, nil},
		{"a run that is not on record stays", []func(*batch.CronJob){lastRun(7 * time.Hour), limits(0, 9)}, []time.Duration{2 * time.Hour, 4 * time.Hour}},
		{"an end that is not on record stays", []func(*batch.CronJob){lastRun(8 * time.Hour), limits(0, 9), func(c *batch.CronJob) {
			c.Status.Active = []corev1.ObjectReference{reference(ofEight)}
		}}, []time.Duration{2 * time.Hour, 4 * time.Hour}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []time.Duration
			for _, job := range superfluous(newCronJob(test.edit...), jobs) {
				got = append(got, job.CreationTimestamp.Sub(midnight))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func mustParse(t interface{ Fatal(...any) }, schedule, zone string) timetable.Timetable {
	var name *string
	if zone != "" {
		name = &zone
	}
	times, err := timetable.Parse(schedule, name)
	if err != nil {
		t.Fatal(err)
	}
	return times
}
