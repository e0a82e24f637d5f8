package queueing

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

func jobOf(minAvailable int32, tasks ...batch.TaskSpec) VolcanoJob {
	return VolcanoJob{Job: &batch.Job{Spec: batch.JobSpec{MinAvailable: minAvailable, Tasks: tasks}}}
}

func task(name string, replicas int32, least *int32) batch.TaskSpec {
	return batch.TaskSpec{Name: name, Replicas: replicas, MinAvailable: least}
}

func TestTheOnlyTaskThatCanShrinkIsAdmittedInPart(t *testing.T) {
	partitioned := task("worker", 4, ptr.To(int32(2)))
	partitioned.PartitionPolicy = &batch.PartitionPolicySpec{TotalPartitions: 2, PartitionSize: 2, MinPartitions: 1}
	for name, tt := range map[string]struct {
		job  VolcanoJob
		want map[string]int32 // the least of each podset that can shrink
	}{
		"no task":                               {jobOf(0, task("worker", 4, nil)), map[string]int32{}},
		"one task":                              {jobOf(0, task("master", 1, nil), task("worker", 4, ptr.To(int32(2)))), map[string]int32{"worker": 2}},
		"the Job needs more than its tasks":     {jobOf(4, task("master", 1, nil), task("worker", 4, ptr.To(int32(2)))), map[string]int32{"worker": 3}},
		"the Job needs all":                     {jobOf(5, task("master", 1, nil), task("worker", 4, ptr.To(int32(2)))), map[string]int32{}},
		"the Job needs fewer than its tasks":    {jobOf(1, task("master", 1, nil), task("worker", 4, ptr.To(int32(2)))), map[string]int32{"worker": 2}},
		"the Job needs fewer, and no task says": {jobOf(1, task("master", 1, nil), task("worker", 4, nil)), map[string]int32{}},
		"a task that could have no pods":        {jobOf(0, task("master", 1, nil), task("worker", 4, ptr.To(int32(0)))), map[string]int32{"worker": 1}},
		"two tasks":                             {jobOf(0, task("a", 2, ptr.To(int32(1))), task("b", 2, ptr.To(int32(1)))), map[string]int32{}},
		"partitions":                            {jobOf(0, partitioned), map[string]int32{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]int32{}
			for _, set := range tt.job.PodSets() {
				if set.MinCount != nil {
					got[set.Name] = *set.MinCount
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the least (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAJobHasAsManyPodsAsAreAdmitted(t *testing.T) {
	job := jobOf(0, task("master", 1, nil), task("worker", 4, ptr.To(int32(2))))
	batch.SetDefaults(job.Job)
	if err := job.Run([]PodSetInfo{{Name: "worker", Count: 3}}); err != nil || job.Spec.Tasks[1].Replicas != 4 {
		t.Errorf("to look whether it can run changes it to %+v: %v", job.Spec.Tasks, err)
	}
	if err := job.Give([]PodSetInfo{{Name: "master", Count: 1}, {Name: "worker", Count: 3}}); err != nil {
		t.Fatal(err)
	}
	if master, workers := job.Spec.Tasks[0].Replicas, job.Spec.Tasks[1].Replicas; master != 1 || workers != 3 {
		t.Errorf("it has %d masters and %d workers", master, workers)
	}
}

func TestWhatATaskDemands(t *testing.T) {
	status := func(task string, pending, running, succeeded, failed int32) batch.JobStatus {
		return batch.JobStatus{State: batch.JobState{Phase: batch.Running}, TaskStatusCount: map[string]batch.TaskState{task: {Phase: map[corev1.PodPhase]int32{
			corev1.PodPending: pending, corev1.PodRunning: running, corev1.PodSucceeded: succeeded, corev1.PodFailed: failed}}}}
	}
	policies := func(action bus.Action) batch.LifecyclePolicies {
		return batch.LifecyclePolicies{{Action: action, Event: bus.PodFailedEvent}}
	}
	for name, tt := range map[string]struct {
		edit   func(*batch.Job)
		ended  int32
		worker int32 // that have not ended
	}{
		"pods that have ended are not made again":    {func(j *batch.Job) {}, 2, 2},
		"the Job may restart":                        {func(j *batch.Job) { j.Spec.Policies = policies(bus.RestartJobAction) }, 0, 2},
		"a policy of the Job may restart the task":   {func(j *batch.Job) { j.Spec.Policies = policies(bus.RestartTaskAction) }, 0, 2},
		"a policy of the task may restart it":        {func(j *batch.Job) { j.Spec.Tasks[1].Policies = policies(bus.RestartPodAction) }, 0, 2},
		"another task may restart":                   {func(j *batch.Job) { j.Spec.Tasks[0].Policies = policies(bus.RestartTaskAction) }, 2, 2},
		"another task may restart the Job":           {func(j *batch.Job) { j.Spec.Tasks[0].Policies = policies(bus.RestartJobAction) }, 0, 2},
		"a policy that ends the Job restarts no pod": {func(j *batch.Job) { j.Spec.Policies = policies(bus.CompleteJobAction) }, 2, 2},
		"the Job is aborted":                         {func(j *batch.Job) { j.Status.State.Phase = batch.Aborted }, 4, 2},
		"the Job restarts": {func(j *batch.Job) {
			j.Status = batch.JobStatus{State: batch.JobState{Phase: batch.Restarting}, Terminating: 4}
		}, 0, 4},
		"pods that leave are there": {func(j *batch.Job) { j.Status.Terminating = 1 }, 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			job := jobOf(1, task("master", 1, nil), task("worker", 4, nil))
			job.Status = status("worker", 1, 1, 1, 1)
			tt.edit(job.Job)
			want := Demand{Name: "worker", Count: 4, Ended: tt.ended, Has: tt.worker}
			if got := job.Demand(); len(got) != 2 || got[1] != want {
				t.Errorf("it demands %+v, want %+v", got, want)
			}
		})
	}
}
