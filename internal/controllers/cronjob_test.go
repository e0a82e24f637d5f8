package controllers_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func newCronJob(namespace, schedule string, policy batch.ConcurrencyPolicy) *batch.CronJob {
	return &batch.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tick"},
		Spec: batch.CronJobSpec{
			Schedule: schedule, ConcurrencyPolicy: policy,
			JobTemplate: batch.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "ice"}},
				Spec:       batch.JobSpec{Tasks: []batch.TaskSpec{task("a", 1)}},
			},
		},
	}
}

// jobsIn returns the Jobs of a namespace by name.
func jobsIn(ctx context.Context, namespace string) (map[string]*batch.Job, error) {
	list := &batch.JobList{}
	if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	jobs := map[string]*batch.Job{}
	for i := range list.Items {
		jobs[list.Items[i].Name] = &list.Items[i]
	}
	return jobs, nil
}

// awaitCronJob waits until the CronJob, and the Jobs in its namespace, are as the condition wants them.
func awaitCronJob(t *testing.T, cronJob *batch.CronJob, condition func(*batch.CronJobStatus, map[string]*batch.Job) bool) map[string]*batch.Job {
	t.Helper()
	var jobs map[string]*batch.Job
	apitest.Eventually(t, func(ctx context.Context) (err error) {
		if err := api.Get(ctx, client.ObjectKeyFromObject(cronJob), cronJob); err != nil {
			return err
		}
		if jobs, err = jobsIn(ctx, cronJob.Namespace); err == nil && !condition(&cronJob.Status, jobs) {
			err = fmt.Errorf("the status is %+v, and there are Jobs %v", cronJob.Status, slices.Sorted(maps.Keys(jobs)))
		}
		return err
	})
	return jobs
}

// end lets the Job run and all its pods come to their end.
func end(t *testing.T, job *batch.Job, phase corev1.PodPhase) {
	t.Helper()
	setPhase(t, podGroupOf(job), scheduling.PodGroupInqueue)
	name := job.Name + "-a-0"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: name}}
	finish(t, phase, pod)
	awaitJob(t, job, func(status *batch.JobStatus) bool {
		return status.State.Phase == batch.Completed || status.State.Phase == batch.Failed
	})
}

func TestRunsAreHeldUntilTheEarlierOneHasEndedAndThenForgotten(t *testing.T) {
	namespace := namespaceFor(t, "forbid")
	cronJob := newCronJob(namespace, "@every 1s", batch.ForbidConcurrent)
	none := int32(0)
	cronJob.Spec.SuccessfulJobsHistoryLimit = &none
	create(t, cronJob)
	var last *batch.Job
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		jobs := awaitCronJob(t, cronJob, func(status *batch.CronJobStatus, _ map[string]*batch.Job) bool {
			return len(status.Active) == 1 && (last == nil || status.Active[0].UID != last.UID)
		})
		last = jobs[cronJob.Status.Active[0].Name]
		if last == nil || !metav1.IsControlledBy(last, cronJob) || last.Labels["team"] != "ice" {
			t.Fatalf("%v is active, the Jobs are %v", cronJob.Status.Active, jobs)
		}
		due, err := time.Parse(time.RFC3339, last.Annotations["volcano.sh/cronjob-scheduled-timestamp"])
		if err != nil || last.Name != fmt.Sprintf("tick-%d", due.Unix()) || !cronJob.Status.LastScheduleTime.Time.Equal(due) {
			t.Errorf("Job %s is due at %s (%v), last scheduled at %s", last.Name, due, err, cronJob.Status.LastScheduleTime)
		}
		awaitEvent(t, cronJob, "SuccessfulCreate", last.Name)
		awaitEvent(t, cronJob, "ForbidConcurrent", last.Name+" has not ended")
		end(t, last, phase)
	}
	awaitEvent(t, cronJob, "SawCompletedJob", "is Completed")
	awaitEvent(t, cronJob, "SuccessfulDelete", "Deleted job tick-")
	awaitCronJob(t, cronJob, func(status *batch.CronJobStatus, jobs map[string]*batch.Job) bool {
		phases := map[batch.JobPhase]int{}
		for _, job := range jobs {
			phases[job.Status.State.Phase]++
		}
		return status.LastSuccessfulTime != nil && phases[batch.Completed] == 0 && phases[batch.Failed] == 1 && phases[batch.Pending] == 1
	})
}

func TestARunReplacesTheEarlierOne(t *testing.T) {
	namespace := namespaceFor(t, "replace")
	cronJob := newCronJob(namespace, "@every 1s", batch.ReplaceConcurrent)
	create(t, cronJob)
	seen := map[string]bool{}
	apitest.Eventually(t, func(ctx context.Context) error {
		jobs, err := jobsIn(ctx, namespace)
		if err != nil {
			return err
		}
		if len(jobs) > 1 {
			t.Fatalf("there are Jobs %v at a time", slices.Sorted(maps.Keys(jobs)))
		}
		for name := range jobs {
			seen[name] = true
		}
		if len(seen) < 3 {
			err = fmt.Errorf("seen %v so far", seen)
		}
		return err
	})
	awaitEvent(t, cronJob, "ReplaceConcurrent", "because the next run is due")
	change(t, cronJob, func(cronJob *batch.CronJob) { suspend := true; cronJob.Spec.Suspend = &suspend })
	awaitCronJob(t, cronJob, func(status *batch.CronJobStatus, jobs map[string]*batch.Job) bool {
		return len(jobs) == 1 && len(status.Active) == 1 && jobs[status.Active[0].Name] != nil
	})
	left := cronJob.Status.Active[0]
	stays(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKeyFromObject(cronJob), cronJob)
		if err == nil && (len(cronJob.Status.Active) != 1 || cronJob.Status.Active[0] != left) {
			err = fmt.Errorf("suspended, it has started %v", cronJob.Status.Active)
		}
		return err
	})
}

func TestAControllerThatIsKilledStartsNoRunTwice(t *testing.T) {
	namespace := namespaceFor(t, "killed")
	cronJob := newCronJob(namespace, "@every 1s", batch.AllowConcurrent)
	create(t, cronJob)
	for count := range 3 {
		awaitCronJob(t, cronJob, func(_ *batch.CronJobStatus, jobs map[string]*batch.Job) bool { return len(jobs) > 2*count })
		if err := process.Kill(); err != nil {
			t.Fatal(err)
		}
		if count == 1 {
			// As if it had died between making a Job and saying so.
			jobs, err := jobsIn(apitest.Context(t), namespace)
			if err != nil {
				t.Fatal(err)
			}
			latest := slices.Max(slices.Collect(maps.Keys(jobs)))
			changeStatus(t, cronJob, func(cronJob *batch.CronJob) {
				cronJob.Status.LastScheduleTime = nil
				cronJob.Status.Active = slices.DeleteFunc(cronJob.Status.Active, func(r corev1.ObjectReference) bool { return r.Name == latest })
			})
		}
		var err error
		if process, err = cluster.Run(context.Background(), program); err != nil {
			t.Fatal(err)
		}
	}
	change(t, cronJob, func(cronJob *batch.CronJob) { suspend := true; cronJob.Spec.Suspend = &suspend })
	jobs := awaitCronJob(t, cronJob, func(status *batch.CronJobStatus, jobs map[string]*batch.Job) bool {
		return len(status.Active) == len(jobs) && jobs[fmt.Sprintf("tick-%d", status.LastScheduleTime.Unix())] != nil
	})
	// Of requests that were on their way when the process died the log cannot tell how they ended.
	if made := requestsIn(t, namespace)[request{"create", "jobs", 201}]; made > len(jobs) {
		t.Errorf("%d Jobs were made, and there are %d", made, len(jobs))
	}
}

func TestWhatACronJobCannotMeanIsTold(t *testing.T) {
	namespace := namespaceFor(t, "nonsense")
	cronJob := newCronJob(namespace, "61 * * * *", batch.AllowConcurrent)
	mars := "Mars/Olympus"
	cronJob.Spec.TimeZone = &mars
	create(t, cronJob)
	awaitEvent(t, cronJob, "UnParseableCronJobSchedule", `spec.schedule: Invalid value: "61 * * * *"`)
	awaitEvent(t, cronJob, "InvalidTimeZone", `spec.timeZone: Invalid value: "Mars/Olympus"`)

	// A Job that the API server refuses is told of, and tried again.
	change(t, cronJob, func(cronJob *batch.CronJob) {
		cronJob.Spec.Schedule, cronJob.Spec.TimeZone = "@every 1s", nil
		cronJob.Spec.JobTemplate.Labels = map[string]string{"a b": "c"}
	})
	awaitEvent(t, cronJob, "FailedCreate", "metadata.labels: Invalid value")
	change(t, cronJob, func(cronJob *batch.CronJob) { cronJob.Spec.JobTemplate.Labels = nil })
	awaitCronJob(t, cronJob, func(status *batch.CronJobStatus, jobs map[string]*batch.Job) bool { return len(jobs) > 0 })
}

func TestRunsComeNoCloserTogetherThanTheControllersAllow(t *testing.T) {
	namespace := namespaceFor(t, "frequent")
	cronJob := newCronJob(namespace, "@every 1s", batch.AllowConcurrent)
	create(t, cronJob)
	awaitEvent(t, cronJob, "ScheduleTooFrequent", `spec.schedule: "@every 1s" asks for runs closer together than 2s; one is started every 2s`)
	jobs := awaitCronJob(t, cronJob, func(_ *batch.CronJobStatus, jobs map[string]*batch.Job) bool { return len(jobs) == 3 })
	change(t, cronJob, func(cronJob *batch.CronJob) { suspend := true; cronJob.Spec.Suspend = &suspend })
	names := slices.Sorted(maps.Keys(jobs))
	for i := 1; i < len(names); i++ {
		var before, after int64
		if _, err := fmt.Sscanf(names[i-1]+" "+names[i], "tick-%d tick-%d", &before, &after); err != nil || after-before < 2 {
			t.Errorf("the runs are %v (%v)", names, err)
		}
	}
}
