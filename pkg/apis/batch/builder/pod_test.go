package builder

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

func TestAPodCarriesTheTemplateAndWhoItIs(t *testing.T) {
	worker := fixture.BatchTask("worker", 3, "1")
	worker.Template.Labels = map[string]string{"app": "sim", batch.JobNameKey: "forged"}
	worker.Template.Annotations = map[string]string{"note": "kept"}
	worker.TopologyPolicy = batch.NumaPolicyRestricted
	job := fixture.BatchJob(worker)
	job.Spec.Queue, job.Spec.PriorityClassName = "research", "urgent"
	job.Status.Version, job.Status.RetryCount = 2, 1
	job.Annotations = map[string]string{scheduling.PreemptableKey: "true", "other": "stays on the Job"}
	job.Labels = map[string]string{batch.JobTypeKey: "training", "team": "stays on the Job"}

	pod := Pod(job, &job.Spec.Tasks[0], 2)
	wantLabels := map[string]string{
		"app":                  "sim",
		"volcano.sh/job-name":  "sim",
		"volcano.sh/task-spec": "worker", "volcano.sh/task-index": "2",
		"volcano.sh/queue-name": "research", "volcano.sh/job-namespace": "lab", "volcano.sh/job-type": "training",
	}
	wantAnnotations := map[string]string{
		"note":                         "kept",
		"scheduling.k8s.io/group-name": "sim-1f2e",
		"volcano.sh/job-name":          "sim",
		"volcano.sh/task-spec":         "worker", "volcano.sh/task-index": "2",
		"volcano.sh/queue-name": "research", "volcano.sh/job-version": "2", "volcano.sh/job-retry-count": "1",
		"volcano.sh/template-uid": "sim-worker", "volcano.sh/preemptable": "true",
		"volcano.sh/numa-topology-policy": "restricted",
	}
	if pod.Name != "sim-worker-2" || pod.Namespace != "lab" {
		t.Errorf("the pod is %s/%s", pod.Namespace, pod.Name)
	}
	if diff := cmp.Diff(wantLabels, pod.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantAnnotations, pod.Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if !metav1.IsControlledBy(pod, job) || pod.OwnerReferences[0].APIVersion != "batch.volcano.sh/v1alpha1" {
		t.Errorf("owner references are %+v", pod.OwnerReferences)
	}
	if pod.Spec.SchedulerName != "volcano" || pod.Spec.PriorityClassName != "urgent" {
		t.Errorf("schedulerName is %q, priorityClassName %q", pod.Spec.SchedulerName, pod.Spec.PriorityClassName)
	}
	if worker.Template.Labels[batch.JobNameKey] != "forged" || job.Spec.Tasks[0].Template.Annotations[batch.JobNameKey] != "" {
		t.Error("building a pod changed the template")
	}
}

func TestATemplateKeepsTheSchedulerAndThePriorityClassItNames(t *testing.T) {
	worker := fixture.BatchTask("worker", 1, "1")
	worker.Template.Spec.SchedulerName, worker.Template.Spec.PriorityClassName = "default-scheduler", "low"
	job := fixture.BatchJob(worker)
	job.Spec.PriorityClassName = "urgent"
	if spec := Pod(job, &job.Spec.Tasks[0], 0).Spec; spec.SchedulerName != "default-scheduler" || spec.PriorityClassName != "low" {
		t.Errorf("schedulerName is %q, priorityClassName %q", spec.SchedulerName, spec.PriorityClassName)
	}
}

func TestVolumesAreMountedIntoEveryContainer(t *testing.T) {
	job := fixture.BatchJob(fixture.BatchTask("a", 1, ""))
	job.UID = "1f2e3d4c-0000"
	job.Spec.Tasks[0].Template.Spec.Containers = []corev1.Container{{Name: "one"}, {Name: "two"}}
	job.Spec.Volumes = []batch.VolumeSpec{
		{MountPath: "/data", VolumeClaimName: "shared"},
		{MountPath: "/scratch", VolumeClaim: &corev1.PersistentVolumeClaimSpec{}},
		{MountPath: "/again", VolumeClaimName: "shared"},
		{MountPath: "/named", VolumeClaimName: "mine", VolumeClaim: &corev1.PersistentVolumeClaimSpec{}},
	}
	pod := Pod(job, &job.Spec.Tasks[0], 0)
	claims := map[string]string{}
	for _, volume := range pod.Spec.Volumes {
		claims[volume.Name] = volume.PersistentVolumeClaim.ClaimName
	}
	if len(claims) != len(pod.Spec.Volumes) {
		t.Errorf("two volumes have one name: %v", pod.Spec.Volumes)
	}
	want := map[string]string{"/data": "shared", "/scratch": "sim-pvc-1f2e3d4c-1", "/again": "shared", "/named": "mine"}
	for _, container := range pod.Spec.Containers {
		mounted := map[string]string{}
		for _, mount := range container.VolumeMounts {
			mounted[mount.MountPath] = claims[mount.Name]
		}
		if diff := cmp.Diff(want, mounted); diff != "" {
			t.Errorf("container %s (-want +got):\n%s", container.Name, diff)
		}
	}
}
