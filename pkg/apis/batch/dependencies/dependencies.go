// Package dependencies says which tasks of a Job of batch.volcano.sh wait for others, as their dependsOn says, and what
// its PodGroup is meanwhile. The Job controller and the simulator make pods by it.
//
// Invariants:
//
//  1. A task with pods is no longer held back, whatever happens to the tasks that it waited for.
//  2. The gang has no pod that waits for the gang to start.
//
// It must not know how pods are made.
package dependencies

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// HeldBack says for each task of a defaulted, valid Job what its pods still wait for, "" if they may be created. The
// pods are those of the Job, without those that were made before all of them were last replaced.
func HeldBack(job *batch.Job, pods []*corev1.Pod) []string {
	held := make([]string, len(job.Spec.Tasks))
	started := map[string]int32{}
	present := map[string]bool{}
	for _, pod := range pods {
		task := pod.Annotations[batch.TaskSpecKey]
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
		held[t] = missing(job, task, started)
	}
	return held
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

// missing says which tasks have started too few pods: less than their minAvailable, or none.
func missing(job *batch.Job, task *batch.TaskSpec, started map[string]int32) string {
	var lacks []string
	for _, name := range task.DependsOn.Name {
		other := job.Task(name)
		if other == nil {
			lacks = append(lacks, fmt.Sprintf("task %s, which does not exist", name))
			continue
		}
		if needed := min(max(*other.MinAvailable, 1), other.Replicas); started[name] < needed {
			lacks = append(lacks, fmt.Sprintf("task %s, of which %d of %d pods are ready", name, started[name], needed))
		}
	}
	if len(lacks) == 0 || task.DependsOn.Iteration == batch.IterationAny && len(lacks) < len(task.DependsOn.Name) {
		return ""
	}
	conjunction := " and "
	if task.DependsOn.Iteration == batch.IterationAny {
		conjunction = " or "
	}
	return fmt.Sprintf("task %s waits for %s", task.Name, strings.Join(lacks, conjunction))
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
