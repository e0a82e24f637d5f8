package cluster

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Reasons of pods that wait, in addition to those of jobs: their PodGroup does not exist, or belongs to another
// scheduler.
const (
	ReasonGroupNotFound  = "PodGroupNotFound"
	ReasonGroupOfAnother = "PodGroupOfAnotherScheduler"
)

// GroupingPause is how long the controllers may take to make a PodGroup for a pod without one.
const GroupingPause = 10 * time.Second

// WhyPodsWait returns reason and message of the condition PodScheduled of the job's pods that wait, "" if there is no
// reason. Autoscalers add nodes for pods with the reason Unschedulable, so pods have it only if nodes would help. The
// sentence has the current numbers, and takes time to build. It is for an Event, which is not written again when they
// change.
func (j *Job) WhyPodsWait() (reason, message string, sentence func() string) {
	switch {
	case j.Group == nil:
		message = fmt.Sprintf("PodGroup %s, which annotation %s names, does not exist", j.ID, schedulingv1beta1.KubeGroupNameAnnotationKey)
		return ReasonGroupNotFound, message, func() string { return message }
	case j.IsForeign:
		message = fmt.Sprintf("PodGroup %s belongs to scheduler %s, by its annotation %s or by its other pods",
			j.ID.Name, j.Scheduler(), schedulingv1beta1.SchedulerNameKey)
		return ReasonGroupOfAnother, message, func() string { return message }
	case j.Verdict == nil:
		return "", "", nil
	}
	code, sentence := j.Reason()
	reason = string(code)
	if j.Verdict.IsHelpedByNodes() {
		reason = corev1.PodReasonUnschedulable
	}
	return reason, fmt.Sprintf("%s; see the status of PodGroup %s", code, j.ID.Name), sentence
}

// LacksGroup reports whether pods wait that name a PodGroup which does not exist.
func (j *Job) LacksGroup() bool {
	return j.Group == nil && !j.IsOfWorkload() && j.Count(Pending) > 0
}

// IsBlocked reports whether the job cannot start. A job that has started and waits for more pods is not blocked, nor is
// one that has ended.
func (j *Job) IsBlocked() bool {
	return j.Verdict != nil && (j.IsPendingAdmission() || j.Lacks() > 0) && !j.Over()
}

// FittingPods are the names of the pods that fit although their gang does not, as far as these have another reason than
// Unschedulable.
func (j *Job) FittingPods() []string {
	if reason, _, _ := j.WhyPodsWait(); reason != corev1.PodReasonUnschedulable || !j.IsBlocked() {
		return nil
	}
	return j.Verdict.Fitting
}

// WhyFittingWaits is the message of [Job.FittingPods].
func (j *Job) WhyFittingWaits() string {
	return fmt.Sprintf("the pod can possibly be assigned to a node, once minAvailable is satisfied; see the status of PodGroup %s", j.ID.Name)
}

// WhyPodWaits returns reason and message of the condition PodScheduled of a pod that waits, "" if the scheduler has
// none to say at a time. placed is the reason of a pod that fits although its gang does not.
func (t *Task) WhyPodWaits(now time.Time, placed string) (reason, message string) {
	switch j := t.Job; {
	case t.Status != Pending || t.IsHeld() || t.IsStandIn: // the API server itself says that a gate holds a pod
		return "", ""
	case j == nil && now.Sub(t.Created()) < GroupingPause:
		return "", ""
	case j == nil:
		return ReasonGroupNotFound, WhyUngroupedWaits()
	case placed != corev1.PodReasonUnschedulable && slices.Contains(j.FittingPods(), t.Pod.Name):
		return placed, j.WhyFittingWaits()
	default:
		reason, message, _ = j.WhyPodsWait()
		return reason, message
	}
}

// WhyUngroupedWaits is the message of a pod that names no PodGroup, and for which none was made in [GroupingPause].
func WhyUngroupedWaits() string {
	return fmt.Sprintf("the pod has no annotation %s, and no PodGroup was made for it in %s; do the controllers run?",
		schedulingv1beta1.KubeGroupNameAnnotationKey, GroupingPause)
}
