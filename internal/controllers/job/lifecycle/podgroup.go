package lifecycle

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// UpdatePodGroup updates what follows from the Job in a copy of an existing PodGroup. That is all of its spec. So a user
// who may write PodGroups cannot move a Job to another queue, or change its priority, past the checks of Jobs. Labels and
// annotations are only added or changed, because others put theirs there too.
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

// waiting says, in the scheduler's words, why the PodGroup is not placed; empty strings when it does not say so, or no
// longer.
func waiting(group *scheduling.PodGroup) (reason, message string) {
	var unschedulable, scheduled *scheduling.PodGroupCondition
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
		}
	}
	if unschedulable == nil {
		return "", ""
	}
	if scheduled != nil && scheduled.LastTransitionTime.After(unschedulable.LastTransitionTime.Time) {
		return "", ""
	}
	return unschedulable.Reason, unschedulable.Message
}

// IsSpent says whether the PodGroup of a Job that has ended, or was aborted, is of no use any more. One whose pods have
// finished is complete and keeps telling so; without them it would wait to be admitted for ever, in room that its queue
// holds for it.
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

// Admitted says whether the scheduler lets the pods of the PodGroup be made.
func Admitted(group *scheduling.PodGroup) bool {
	return group.Status.Phase != "" && group.Status.Phase != scheduling.PodGroupPending
}
