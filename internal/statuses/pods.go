package statuses

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/plugins/gang"
	"hekla.sh/hekla/pkg/verdict"
)

// writePods points from each waiting pod to why its job waits. Autoscalers add nodes for pods whose reason is Unschedulable,
// so that is said only where nodes would help, and not of pods that have a place unless the plugin gang is told to. The numbers are on the PodGroup: repeating them here would write every pod
// of a job again whenever one of them changes.
func (r *Reporter) writePods(j *cluster.Job, now time.Time, d *decision.Decisions) {
	if j.Count(cluster.Pending) == 0 {
		return
	}
	reason, message, note := forPods(j)
	if reason == "" {
		return
	}
	fitting := r.fitting(j, reason)
	for _, t := range j.Pending(cluster.CompareTasks) {
		// Of a pod with a gate the API server says so itself; a reason beside it would wake autoscalers.
		switch {
		case t.IsHeld():
		case fitting.Has(t.Pod.Name):
			message := fmt.Sprintf("the pod can possibly be assigned to a node, once minAvailable is satisfied; see the status of PodGroup %s", j.ID.Name)
			r.tellPod(t, gang.Schedulable, message, message, now, d)
		default:
			r.tellPod(t, reason, message, note, now, d)
		}
	}
}

// fitting returns the names of the pods that have a place while their gang has none, if they are to say so.
func (r *Reporter) fitting(j *cluster.Job, reason string) sets.Set[string] {
	if r.placedReason != gang.Schedulable || reason != corev1.PodReasonUnschedulable || !blocked(j) {
		return nil
	}
	return sets.New(j.Verdict.Fitting...)
}

// tellPod gives a pod a condition that says why it waits, unless it has it.
func (r *Reporter) tellPod(t *cluster.Task, reason, message, note string, now time.Time, d *decision.Decisions) {
	// What was decided last counts: the pod may not show it yet.
	last := r.memory.pods[t].message
	if last == message || last == "" && says(t.Pod, reason, message) {
		return
	}
	r.memory.tell(t, message)
	d.Pods = append(d.Pods, decision.PodCondition{Pod: t.Key(), UID: t.UID(), Note: note, Condition: corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}})
}

// Reasons of pods that wait for no room: their PodGroup does not exist, or this scheduler does not look at it.
const (
	reasonGroupNotFound  = "PodGroupNotFound"
	reasonGroupOfAnother = "PodGroupOfAnotherScheduler"
)

// forPods says why the pods of a job wait, nothing if there is nothing to be said. The note has the numbers as they are now: it is
// for an Event, which is not written again with each of them.
func forPods(j *cluster.Job) (reason, message, note string) {
	switch {
	case j.Group == nil:
		message = fmt.Sprintf("PodGroup %s, which annotation %s names, does not exist", j.ID, schedulingv1beta1.KubeGroupNameAnnotationKey)
		return reasonGroupNotFound, message, message
	case j.IsForeign:
		message = fmt.Sprintf("PodGroup %s belongs to scheduler %s, by its annotation %s or by its other pods",
			j.ID.Name, j.Scheduler(), schedulingv1beta1.SchedulerNameKey)
		return reasonGroupOfAnother, message, message
	case j.Verdict == nil:
		return "", "", ""
	}
	reason = string(j.Verdict.Code)
	if j.Verdict.Code == verdict.NotEnoughResources {
		reason = corev1.PodReasonUnschedulable
	}
	return reason, fmt.Sprintf("%s; see the status of PodGroup %s", j.Verdict.Code, j.ID.Name), j.Verdict.Sentence()
}

func says(pod *corev1.Pod, reason, message string) bool {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			return c.Status == corev1.ConditionFalse && c.Reason == reason && c.Message == message
		}
	}
	return false
}
