package job

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/google/go-cmp/cmp"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

func TestVolumesAreMountedIntoEveryContainer(t *testing.T) {
	job := jobOf(task("a", 1, ""))
	job.UID = "1f2e3d4c-0000"
	job.Spec.Tasks[0].Template.Spec.Containers = []corev1.Container{{Name: "one"}, {Name: "two"}}
	job.Spec.Volumes = []batch.VolumeSpec{
		{MountPath: "/data", VolumeClaimName: "shared"},
		{MountPath: "/scratch", VolumeClaim: &corev1.PersistentVolumeClaimSpec{}},
		{MountPath: "/again", VolumeClaimName: "shared"},
		{MountPath: "/named", VolumeClaimName: "mine", VolumeClaim: &corev1.PersistentVolumeClaimSpec{}},
	}
	pod := BuildPod(job, &job.Spec.Tasks[0], 0)
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
