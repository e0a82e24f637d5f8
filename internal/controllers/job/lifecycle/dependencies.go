package lifecycle

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// HeldBack says for each task of a defaulted, valid Job what its pods still wait for, "" if they may be created. A task
// with pods is no longer held back, whatever happens to the tasks that it waited for.
func HeldBack(job *batch.Job, pods []*corev1.Pod) []string {
	held := make([]string, len(job.Spec.Tasks))
	started := map[string]int32{}
	present := map[string]bool{}
	for _, pod := range pods {
		task := pod.Annotations[batch.TaskSpecKey]
		if isOutdated(job, pod) {
			continue
		}
		present[task] = true
		if pod.DeletionTimestamp == nil && HasStarted(pod) {
			started[task]++
		}
	}
	for t := range job.Spec.Tasks {
		task := &job.Spec.Tasks[t]
		if task.DependsOn == nil || present[task.Name] {
			continue
		}
		held[t] = missingDependencies(job, task, started)
	}
	return held
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

// HasStarted reports whether tasks that depend on a pod may start: all of its containers are ready, or it has
// succeeded.
func HasStarted(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return true
	case corev1.PodRunning:
		return !slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool { return !status.Ready })
	}
	return false
}

// missingDependencies says which tasks have started too few pods: less than their minAvailable, or none.
func missingDependencies(job *batch.Job, task *batch.TaskSpec, started map[string]int32) string {
	var missing []string
	for _, name := range task.DependsOn.Name {
		other := job.Task(name)
		if other == nil {
			missing = append(missing, fmt.Sprintf("task %s, which does not exist", name))
			continue
		}
		if needed := min(max(*other.MinAvailable, 1), other.Replicas); started[name] < needed {
			missing = append(missing, fmt.Sprintf("task %s, of which %d of %d pods are ready", name, started[name], needed))
		}
	}
	if len(missing) == 0 || task.DependsOn.Iteration == batch.IterationAny && len(missing) < len(task.DependsOn.Name) {
		return ""
	}
	conjunction := " and "
	if task.DependsOn.Iteration == batch.IterationAny {
		conjunction = " or "
	}
	return fmt.Sprintf("task %s waits for %s", task.Name, strings.Join(missing, conjunction))
}

// HoldBack removes the tasks that are held back from the minimum of the gang, which could never start if it had to wait
// for pods that wait for it. The minResources stay those of the whole Job, so that the queue keeps quota for the rest.
func HoldBack(group *scheduling.PodGroup, job *batch.Job, held []string) {
	var minAvailable, replicas int32
	for t := range job.Spec.Tasks {
		task := &job.Spec.Tasks[t]
		if held[t] == "" {
			replicas += task.Replicas
			continue
		}
		minAvailable += *task.MinAvailable
		delete(group.Spec.MinTaskMember, task.Name)
	}
	if job.Spec.MinAvailable >= job.TotalMinAvailable() {
		group.Spec.MinMember -= minAvailable
	}
	group.Spec.MinMember = min(group.Spec.MinMember, replicas)
}
