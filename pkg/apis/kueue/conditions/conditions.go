package conditions

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// maxMessage is how long the message of a condition may be.
const maxMessage = 32768

// Is reports whether a condition of a workload is True.
func Is(w *v1beta2.Workload, kind string) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, kind)
}

// Of returns a condition, nil if the workload has it not.
func Of(w *v1beta2.Workload, kind string) *metav1.Condition {
	return meta.FindStatusCondition(w.Status.Conditions, kind)
}

// Set writes one condition.
func Set(w *v1beta2.Workload, kind string, is bool, reason, message string, now time.Time) (changed bool) {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	if len(message) > maxMessage {
		message = message[:maxMessage]
	}
	if old := Of(w, kind); old != nil && old.Status == status && old.Reason == reason && old.Message == message {
		return false
	}
	return meta.SetStatusCondition(&w.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now), ObservedGeneration: w.Generation,
	})
}

// Reserve says that the workload holds quota and nodes, which its status.admission names.
func Reserve(w *v1beta2.Workload, clusterQueue string, now time.Time) (changed bool) {
	changed = Set(w, v1beta2.QuotaReserved, true, v1beta2.ReasonQuotaReserved, "Quota reserved in ClusterQueue "+clusterQueue, now)
	for _, kind := range []string{v1beta2.Evicted, v1beta2.Preempted} {
		if old := Of(w, kind); old != nil && old.Status == metav1.ConditionTrue {
			changed = Set(w, kind, false, v1beta2.ReasonQuotaReserved, "Previously: "+old.Message, now) || changed
		}
	}
	return changed
}

// Admit says that the workload may start.
func Admit(w *v1beta2.Workload, now time.Time) (changed bool) {
	return Set(w, v1beta2.Admitted, true, v1beta2.ReasonAdmitted, "The workload is admitted", now)
}

// AwaitChecks says that the workload holds quota, and may not start before its checks are ready.
func AwaitChecks(w *v1beta2.Workload, now time.Time) (changed bool) {
	return Set(w, v1beta2.Admitted, false, v1beta2.ReasonUnsatisfiedAdmissionChecks, "The workload has not all checks ready", now)
}

// Pend says why the workload holds no quota.
func Pend(w *v1beta2.Workload, reason, message string, now time.Time) (changed bool) {
	return Set(w, v1beta2.QuotaReserved, false, reason, message, now)
}

// Evict says that the workload is to be stopped. The cause is what is behind the reason, "" if nothing is.
func Evict(w *v1beta2.Workload, reason, cause, message string, now time.Time) (changed bool) {
	if Is(w, v1beta2.Evicted) || Is(w, v1beta2.Finished) {
		return false
	}
	Set(w, v1beta2.Evicted, true, reason, message, now)
	resetChecks(w, now)
	count(w, reason, cause)
	return true
}

func resetChecks(w *v1beta2.Workload, now time.Time) {
	for i := range w.Status.AdmissionChecks {
		check := &w.Status.AdmissionChecks[i]
		if check.State == v1beta2.CheckPending {
			continue
		}
		check.Message = "Reset to Pending after eviction. Previously: " + string(check.State)
		check.State, check.LastTransitionTime = v1beta2.CheckPending, metav1.NewTime(now)
		check.PodSetUpdates, check.RequeueAfterSeconds = nil, nil
	}
}

// maxEvictionKinds is how many reasons and causes a status can count.
const maxEvictionKinds = 256

func count(w *v1beta2.Workload, reason, cause string) {
	if w.Status.SchedulingStats == nil {
		w.Status.SchedulingStats = &v1beta2.SchedulingStats{}
	}
	stats := w.Status.SchedulingStats
	for i := range stats.Evictions {
		if e := &stats.Evictions[i]; e.Reason == reason && e.UnderlyingCause == cause {
			e.Count++
			return
		}
	}
	if len(stats.Evictions) < maxEvictionKinds {
		stats.Evictions = append(stats.Evictions, v1beta2.WorkloadSchedulingStatsEviction{Reason: reason, UnderlyingCause: cause, Count: 1})
	}
}

// Release says that the workload holds nothing any more, since the last of its pods is gone. For how long it was
// admitted is added up.
func Release(w *v1beta2.Workload, now time.Time) (changed bool) {
	if w.Status.Admission == nil && !Is(w, v1beta2.QuotaReserved) && !Is(w, v1beta2.Admitted) {
		return false
	}
	if admitted := Of(w, v1beta2.Admitted); admitted != nil && admitted.Status == metav1.ConditionTrue {
		addTime(w, now.Sub(admitted.LastTransitionTime.Time))
		Set(w, v1beta2.Admitted, false, v1beta2.ReasonNoReservation, "The workload has no reservation", now)
	}
	w.Status.Admission = nil
	resetChecks(w, now) // what their controllers have answered since the eviction was about what has ended
	Pend(w, v1beta2.ReasonPendingEvaluation, PendingEvaluation, now)
	return true
}

// HeldUp is the message of a workload in a ClusterQueue with StrictFIFO while another workload comes first, and why
// that one waits.
func HeldUp(queue, first, reason string) string {
	return "ClusterQueue " + queue + " serves its Workloads strictly in order, and " + first + " comes first, which waits: " + reason
}

// IsTried reports whether the scheduler has tried to admit a pending workload, by the reason of its condition
// QuotaReserved.
func IsTried(reason string) bool {
	return reason != v1beta2.ReasonPendingEvaluation && reason != v1beta2.ReasonHeldUp
}

// PendingEvaluation is the message of a workload that the scheduler has not looked at yet.
const PendingEvaluation = "Workload is pending evaluation in the scheduling queue"

// addTime adds to the seconds for which the workload was admitted, in both spellings of the field.
func addTime(w *v1beta2.Workload, admitted time.Duration) {
	past := int32(0)
	if p := w.Status.AccumulatedPastExecutionTimeSeconds; p != nil {
		past = *p
	}
	past += int32(max(admitted, 0) / time.Second)
	again := past
	w.Status.AccumulatedPastExecutionTimeSeconds, w.Status.AccumulatedPastExexcutionTimeSeconds = &past, &again
}

// Requeue says whether the workload waits in its queue again, and why.
func Requeue(w *v1beta2.Workload, is bool, reason, message string, now time.Time) (changed bool) {
	return Set(w, v1beta2.Requeued, is, reason, message, now)
}

// Finish says that the workload has ended.
func Finish(w *v1beta2.Workload, reason, message string, now time.Time) (changed bool) {
	if Is(w, v1beta2.Finished) {
		return false
	}
	return Set(w, v1beta2.Finished, true, reason, message, now)
}

// Deactivate says why the workload is about to be made inactive. That it is, spec.active says.
func Deactivate(w *v1beta2.Workload, reason, message string, now time.Time) (changed bool) {
	return Set(w, v1beta2.DeactivationTarget, true, reason, message, now)
}

// Deactivated are the reason and the message of the eviction of a workload that is not active.
func Deactivated(w *v1beta2.Workload) (reason, cause, message string) {
	if target := Of(w, v1beta2.DeactivationTarget); target != nil && target.Status == metav1.ConditionTrue {
		return v1beta2.ReasonDeactivatedDueTo + target.Reason, target.Reason, fmt.Sprintf("The workload is deactivated due to %s", target.Message)
	}
	return v1beta2.ReasonDeactivated, "", "The workload is deactivated"
}
