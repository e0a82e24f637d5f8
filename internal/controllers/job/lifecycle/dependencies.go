package lifecycle

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/apis/batch/dependencies"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// HeldBack says for each task of a defaulted, valid Job what its pods still wait for, "" if they may be created. Pods
// that are to be replaced do not count.
func HeldBack(job *batch.Job, pods []*corev1.Pod) []string {
	return dependencies.HeldBack(job, slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool { return isOutdated(job, pod) }))
}

// deadEnd says which tasks of a Job wait in vain, because all tasks that are not held back have ended; "" if there are
// none.
func deadEnd(job *batch.Job, pods []*corev1.Pod) string {
	finished := map[string]int32{}
	for _, pod := range pods {
		if isOutdated(job, pod) || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			return ""
		}
		finished[pod.Annotations[batch.TaskSpecKey]]++
	}
	var waiting []string
	for t, why := range HeldBack(job, pods) {
		task := &job.Spec.Tasks[t]
		switch {
		case why == "" && finished[task.Name] < task.Replicas:
			return ""
		case why != "" && task.Replicas > 0:
			waiting = append(waiting, why)
		}
	}
	if len(pods) == 0 {
		return ""
	}
	return strings.Join(waiting, "; ")
}
