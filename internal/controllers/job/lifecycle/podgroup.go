package lifecycle

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// UpdatePodGroup updates what follows from the Job in a copy of an existing PodGroup. That is all of its spec. So a
// user who may write PodGroups cannot move a Job to another queue, or change its priority, past the checks of Jobs.
// Labels and annotations are only added or changed, because other programs write theirs there too.
func UpdatePodGroup(current, wanted *scheduling.PodGroup) *scheduling.PodGroup {
	updated := current.DeepCopy()
	updated.Labels = overlay(updated.Labels, wanted.Labels)
	updated.Annotations = overlay(updated.Annotations, wanted.Annotations)
	updated.Spec = wanted.Spec
	return updated
}

func overlay(base, over map[string]string) map[string]string {
	if base == nil {
		return maps.Clone(over)
	}
	maps.Copy(base, over)
	return base
}

// waiting returns the scheduler's reason and message why the PodGroup is not placed, with its place in the queue, "" if
// there is none.
func waiting(group *scheduling.PodGroup) (reason, message string) {
	var unschedulable, scheduled, queued *scheduling.PodGroupCondition
	for i := range group.Status.Conditions {
		condition := &group.Status.Conditions[i]
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case scheduling.PodGroupUnschedulableType:
			unschedulable = condition
		case scheduling.PodGroupScheduledType:
			scheduled = condition
		case scheduling.PodGroupQueuedType:
			queued = condition
		}
	}
	if unschedulable == nil {
		return "", ""
	}
	if scheduled != nil && scheduled.LastTransitionTime.After(unschedulable.LastTransitionTime.Time) {
		return "", ""
	}
	if queued != nil {
		return unschedulable.Reason, unschedulable.Message + "; " + queued.Message
	}
	return unschedulable.Reason, unschedulable.Message
}

// lastEvictions returns the last evictions that the PodGroup names, and before them those that are known from before it
// was created: a PodGroup of the Job may be made again. Others that it does not name were cancelled.
func lastEvictions(group *scheduling.PodGroup, known []string) (all []string) {
	for i := range group.Status.Conditions {
		if c := &group.Status.Conditions[i]; c.Type == scheduling.PodGroupEvictedType && c.Status == corev1.ConditionTrue {
			all = strings.Split(c.Message, "\n")
		}
	}
	made := group.CreationTimestamp.UTC().Format(time.RFC3339)
	for _, line := range known {
		if line < made && !slices.Contains(all, line) { // a line begins with its time
			all = append(all, line)
		}
	}
	return all[:min(len(all), maxEvictions)]
}

// maxEvictions is how many evictions a status names.
const maxEvictions = 3

// IsSpent reports whether the PodGroup of a Job that has ended or was aborted can be deleted. With finished pods it
// stays, since its phase is Completed. Without pods it would be pending admission for ever, or hold quota.
func IsSpent(job *batch.Job, pods []*corev1.Pod) bool {
	var finished int32
	for _, pod := range pods {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			return false
		}
		finished++
	}
	phase := job.Status.State.Phase
	return (IsFinal(phase) || phase == batch.Aborted) && finished < job.Spec.MinAvailable
}

// Admitted reports whether the scheduler has admitted the PodGroup, so that its pods may be created.
func Admitted(group *scheduling.PodGroup) bool {
	return group.Status.Phase != "" && group.Status.Phase != scheduling.PodGroupPending
}

// Waiting stands for the PodGroup of a Job that has none because its Workload is not admitted. It says why.
func Waiting(why string) *scheduling.PodGroup {
	return &scheduling.PodGroup{Status: scheduling.PodGroupStatus{Phase: scheduling.PodGroupPending, Conditions: []scheduling.PodGroupCondition{{
		Type: scheduling.PodGroupUnschedulableType, Status: corev1.ConditionTrue, Reason: ReasonWaitsForWorkload, Message: why}}}}
}

// isSentBack reports whether a Job that has started waits for admission again, since its gang was evicted. No pods are
// made meanwhile, so without this it would count as running although nothing of it is there.
func isSentBack(job *batch.Job, status *batch.JobStatus, group *scheduling.PodGroup) bool {
	return group != nil && group.Status.Phase == scheduling.PodGroupPending && job.TotalReplicas() > 0 &&
		status.Running+status.Succeeded+status.Failed < job.Spec.MinAvailable
}

// isHeld reports whether a Job has no PodGroup because its Workload is not admitted.
func isHeld(group *scheduling.PodGroup) bool {
	reason := ""
	if group != nil {
		reason, _ = waiting(group)
	}
	return reason == ReasonWaitsForWorkload
}
