package lifecycle

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/batch/validation"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

func TestDefaultsAreFilledInWithoutTouchingTheStoredJob(t *testing.T) {
	stored := &batch.Job{Spec: batch.JobSpec{Tasks: []batch.TaskSpec{{Replicas: 2}}}}
	job := Defaulted(stored, "hekla")
	if job.Spec.SchedulerName != "hekla" || job.Spec.Queue != "default" || job.Spec.MinAvailable != 2 ||
		job.Spec.Tasks[0].Name != "default0" {
		t.Errorf("defaulted to %+v", job.Spec)
	}
	if stored.Spec.SchedulerName != "" || stored.Spec.Tasks[0].Name != "" || stored.Spec.Tasks[0].MinAvailable != nil {
		t.Errorf("the stored Job was changed: %+v", stored.Spec)
	}
}

func TestNoSpecHoweverBadStopsTheController(t *testing.T) {
	name := rapid.SampledFrom([]string{"", "a", "b", "B_", strings.Repeat("x", 70)})
	number := rapid.Int32Range(-3, 5)
	rapid.Check(t, func(t *rapid.T) {
		stored := &batch.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "sim", UID: "1f2e"}}
		stored.Spec.MinAvailable = number.Draw(t, "minAvailable")
		for range rapid.IntRange(0, 3).Draw(t, "tasks") {
			task := batch.TaskSpec{Name: name.Draw(t, "name"), Replicas: number.Draw(t, "replicas"), MaxRetry: number.Draw(t, "maxRetry")}
			if rapid.Bool().Draw(t, "has minimum") {
				task.MinAvailable = pointer(number.Draw(t, "minimum"))
			}
			if rapid.Bool().Draw(t, "depends") {
				task.DependsOn = &batch.DependsOn{Name: rapid.SliceOfN(name, 0, 3).Draw(t, "on")}
			}
			if rapid.Bool().Draw(t, "divided") {
				task.PartitionPolicy = &batch.PartitionPolicySpec{TotalPartitions: number.Draw(t, "total"), PartitionSize: number.Draw(t, "size"),
					MinPartitions: number.Draw(t, "minimum of partitions")}
			}
			stored.Spec.Tasks = append(stored.Spec.Tasks, task)
		}
		for range rapid.IntRange(0, 2).Draw(t, "volumes") {
			stored.Spec.Volumes = append(stored.Spec.Volumes, batch.VolumeSpec{MountPath: name.Draw(t, "path"), VolumeClaimName: name.Draw(t, "claim")})
		}
		stored.Status.State.Phase = rapid.SampledFrom(allPhases).Draw(t, "phase")
		job := Defaulted(stored, "volcano")
		if problems := validation.ValidateJob(job); len(problems) > 0 {
			Observe(job, nil, nil, Trouble{ReasonInvalidSpec, problems.ToAggregate().Error()}, noon)
			Observe(job, nil, nil, Trouble{}, noon)
			return
		}
		(&machine{job: job, group: groupIn("Inqueue", ""), now: noon}).reconcile(t, bus.AbortJobAction, false)
	})
}
