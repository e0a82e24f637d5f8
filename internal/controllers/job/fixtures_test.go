package job

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

func pointer[T any](value T) *T { return &value }

// jobOf returns a defaulted Job named sim with the given tasks.
func jobOf(tasks ...batch.TaskSpec) *batch.Job {
	return defaulted(&batch.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "sim", UID: "1f2e"},
		Spec:       batch.JobSpec{Tasks: tasks},
	}, "volcano")
}

// task returns a task of pods that request the given CPU.
func task(name string, replicas int32, cpu string) batch.TaskSpec {
	container := corev1.Container{Name: "main", Image: "busybox"}
	if cpu != "" {
		container.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	return batch.TaskSpec{
		Name:     name,
		Replicas: replicas,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}},
	}
}

// withMin gives the task a minimum of its own.
func withMin(task batch.TaskSpec, minAvailable int32) batch.TaskSpec {
	task.MinAvailable = &minAvailable
	return task
}

// podsOf returns pods of one task in the given phases; terminating stands for a running pod that is being deleted.
func podsOf(job *batch.Job, taskIndex int, phases ...corev1.PodPhase) []*corev1.Pod {
	var pods []*corev1.Pod
	for index, phase := range phases {
		pod := BuildPod(job, &job.Spec.Tasks[taskIndex], index)
		pod.Status.Phase = phase
		if phase == terminating {
			pod.Status.Phase = corev1.PodRunning
			pod.DeletionTimestamp = &metav1.Time{}
		}
		pods = append(pods, pod)
	}
	return pods
}

const (
	pending     = corev1.PodPending
	running     = corev1.PodRunning
	succeeded   = corev1.PodSucceeded
	failed      = corev1.PodFailed
	unknown     = corev1.PodUnknown
	terminating = corev1.PodPhase("terminating")
)
