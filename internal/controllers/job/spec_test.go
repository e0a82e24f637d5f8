package job

import (
	"slices"
	"strings"
	"testing"
	"time"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

func TestDefaultsAreFilledInWithoutTouchingTheStoredJob(t *testing.T) {
	stored := &batch.Job{Spec: batch.JobSpec{Tasks: []batch.TaskSpec{{Replicas: 2}}}}
	job := defaulted(stored, "hekla")
	if job.Spec.SchedulerName != "hekla" || job.Spec.Queue != "default" || job.Spec.MinAvailable != 2 ||
		job.Spec.Tasks[0].Name != "default0" {
		t.Errorf("defaulted to %+v", job.Spec)
	}
	if stored.Spec.SchedulerName != "" || stored.Spec.Tasks[0].Name != "" || stored.Spec.Tasks[0].MinAvailable != nil {
		t.Errorf("the stored Job was changed: %+v", stored.Spec)
	}
}

func TestASpecThatCannotRunIsRefusedByFieldAndValue(t *testing.T) {
	change := func(edit func(*batch.Job), tasks ...batch.TaskSpec) *batch.Job {
		job := jobOf(tasks...)
		edit(job)
		return job
	}
	keep := func(*batch.Job) {}
	for _, test := range []struct {
		name string
		job  *batch.Job
		want []string
	}{
		{"a plain Job is fine", jobOf(task("a", 2, "1")), nil},
		{"a Job of nothing yet is fine", jobOf(task("a", 0, "1")), nil},
		{"no task", jobOf(), []string{"spec.tasks: Required"}},
		{"two tasks of one name", jobOf(task("a", 1, ""), task("a", 1, "")), []string{`spec.tasks[1].name: Duplicate value: "a"`}},
		{"negative replicas", change(keep, withMin(task("a", -1, ""), 0)), []string{"spec.tasks[0].replicas: Invalid value: -1"}},
		{"a task's minimum above its replicas", jobOf(withMin(task("a", 2, ""), 3), task("b", 1, "")),
			[]string{"spec.tasks[0].minAvailable: Invalid value: 3: 'minAvailable' is greater than 'replicas' in task: a, job: sim: it has only 2"}},
		{"a negative minimum of a task", jobOf(withMin(task("a", 2, ""), -3), task("b", 4, "")),
			[]string{"spec.tasks[0].minAvailable: Invalid value: -3"}},
		{"a minimum above all replicas", change(func(job *batch.Job) { job.Spec.MinAvailable = 9 }, task("a", 2, ""), task("b", 1, "")),
			[]string{"spec.minAvailable: Invalid value: 9: job 'minAvailable' should not be greater than total replicas in tasks, which is 3"}},
		{"a negative minimum", change(func(job *batch.Job) { job.Spec.MinAvailable = -1 }, task("a", 2, "")),
			[]string{"spec.minAvailable: Invalid value: -1"}},
		{"a task name that is no label", jobOf(task("A_b", 1, "")), []string{"spec.tasks[0].name: Invalid value"}},
		{"a Job name too long for a label", change(func(job *batch.Job) { job.Name = strings.Repeat("x", 64) }, task("a", 1, "")),
			[]string{"metadata.name: Invalid value"}},
		{"a queue name too long for a label", change(func(job *batch.Job) { job.Spec.Queue = strings.Repeat("q", 64) }, task("a", 1, "")),
			[]string{"spec.queue: Invalid value"}},
		{"a Job name no pod can have", change(func(job *batch.Job) { job.Name = "a..b" }, task("a", 3, "")),
			[]string{"spec.tasks[0].name: Invalid value: \"a\": create pod with name a..b-a-2 validate failed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			problems := Validate(test.job)
			if len(problems) != len(test.want) {
				t.Fatalf("got %d problems, want %d: %v", len(problems), len(test.want), problems)
			}
			for i, want := range test.want {
				if got := problems[i].Error(); !strings.HasPrefix(got, want) {
					t.Errorf("problem %d is %q, want it to start with %q", i, got, want)
				}
			}
		})
	}
}

func TestEveryFieldThatIsNotHonouredIsNamed(t *testing.T) {
	job := &batch.Job{Spec: batch.JobSpec{
		Policies: batch.LifecyclePolicies{{Action: bus.AbortJobAction}, {Action: bus.ResumeJobAction}, onEvent(bus.RestartJobAction, bus.PodPendingEvent),
			after(time.Minute, onEvent(bus.RestartJobAction, bus.PodPendingEvent))},
		TTLSecondsAfterFinished: pointer[int32](60),
		NetworkTopology:         &batch.NetworkTopologySpec{},
		Tasks: []batch.TaskSpec{
			{TopologyPolicy: batch.NumaPolicyNone, MaxRetry: 3,
				PartitionPolicy: &batch.PartitionPolicySpec{TotalPartitions: 2, PartitionSize: 2, MinPartitions: 2}},
			{
				Policies:       batch.LifecyclePolicies{{Action: bus.ResumeJobAction}},
				TopologyPolicy: batch.NumaPolicyRestricted,
				PartitionPolicy: &batch.PartitionPolicySpec{TotalPartitions: 2, PartitionSize: 2, MinPartitions: 1,
					NetworkTopology: &batch.NetworkTopologySpec{}},
			},
		},
	}}
	want := []string{
		"spec.policies[1].action", "spec.policies[2].event (PodPending without a timeout)", "spec.tasks[1].policies[0].action", "spec.tasks[1].topologyPolicy",
	}
	if got := NotHonoured(job); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := NotHonoured(jobOf(task("a", 1, "1"))); got != nil {
		t.Errorf("a plain Job was said to use %v", got)
	}
}
