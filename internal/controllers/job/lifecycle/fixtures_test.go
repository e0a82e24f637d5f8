package lifecycle

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/batch/builder"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/test/fixture"
)

var (
	jobOf   = fixture.BatchJob
	task    = fixture.BatchTask
	withMin = fixture.WithMinAvailable
)

func pointer[T any](value T) *T { return &value }

// podsOf returns pods of one task in the given phases; terminating stands for a running pod that is being deleted.
func podsOf(job *batch.Job, taskIndex int, phases ...corev1.PodPhase) []*corev1.Pod {
	var pods []*corev1.Pod
	for index, phase := range phases {
		pod := builder.Pod(job, &job.Spec.Tasks[taskIndex], index)
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
