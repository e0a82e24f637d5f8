package queueing

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Lifecycle decides how the life of a Workload goes on, by what it depends on besides itself. Queues that do not exist
// are nil.
type Lifecycle struct {
	ClusterQueue *settings.ClusterQueue
	LocalQueue   *settings.LocalQueue
	Policy       Policy
	// HasPods says that pods of the Workload run or may yet be bound. It is asked of one that its job has left behind,
	// see [IsOrphan].
	HasPods bool
	Now     time.Time
}

// Outcome is what is to be done with a Workload in addition to writing its status.
type Outcome struct {
	Deactivates bool          // spec.active becomes false
	Deletes     bool          // it is kept no longer
	Again       time.Duration // when to look again, 0 for not before something happens
}

// soon queues a Workload again for a time, unless it is looked at before.
func (o *Outcome) soon(wait time.Duration) {
	if wait = max(wait, time.Millisecond); o.Again == 0 || wait < o.Again {
		o.Again = wait
	}
}

// Advance moves a Workload on: it edits the status, and returns what else is to be done. It does not stop jobs: an
// eviction is a condition, on which the controller of the job acts.
func (l *Lifecycle) Advance(w *v1beta2.Workload) Outcome {
	var o Outcome
	if conditions.Is(w, v1beta2.Finished) {
		o.retain(conditions.Of(w, v1beta2.Finished).LastTransitionTime.Time, l.Policy.AfterFinished, l.Now)
		return o
	}
	if IsOrphan(w) {
		if !l.HasPods {
			conditions.Finish(w, v1beta2.ReasonOwnerNotFound, "The workload's owner no longer exists", l.Now)
			return o
		}
		o.soon(orphanInterval) // its pods were left behind, too: they hold its quota until the last one is gone
	}
	isActive := w.Spec.Active == nil || *w.Spec.Active
	if conditions.Is(w, v1beta2.DeactivationTarget) && isActive {
		o.Deactivates = true
		return o
	}
	if !isActive {
		l.deactivated(w, &o)
		return o
	}
	reactivate(w, l.Now)
	if gates := w.Annotations[v1beta2.AdmissionGatedByAnnotation]; gates != "" && !conditions.Is(w, v1beta2.QuotaReserved) {
		conditions.Pend(w, v1beta2.ReasonAdmissionGated, "Admission is gated by: "+gates, l.Now)
		return o
	}
	switch {
	case !conditions.Is(w, v1beta2.QuotaReserved):
		l.requeue(w, &o)
		if conditions.Is(w, v1beta2.WaitingForReplacementPods) {
			conditions.Pend(w, v1beta2.ReasonAdmissionGated, awaitsPods, l.Now)
		}
	case !conditions.Is(w, v1beta2.Evicted): // an evicted one waits for its job to stop
		l.reserved(w, &o)
	}
	return o
}

// awaitsPods is said of a group of which pods are missing: no quota is held for pods that may never come.
const awaitsPods = "The group has fewer pods than it says: others have to replace those that are gone or have failed"

// orphanInterval is how often is looked whether the pods of an orphan are gone.
const orphanInterval = 2 * time.Second

// IsOrphan reports whether the job for which a Workload was made is gone and has left it behind, as a deletion that
// spares dependents does. It had an owner if it has the finalizer that came with it; a Workload that a user labels with
// the UID of a job is none.
func IsOrphan(w *v1beta2.Workload) bool {
	return w.Labels[v1beta2.JobUIDLabel] != "" && len(w.OwnerReferences) == 0 && slices.Contains(w.Finalizers, v1beta2.ResourceInUseFinalizer)
}

// retain deletes what is kept no longer.
func (o *Outcome) retain(since time.Time, keeps *time.Duration, now time.Time) {
	switch {
	case keeps == nil:
	case now.Sub(since) >= *keeps:
		o.Deletes = true
	default:
		o.soon(*keeps - now.Sub(since))
	}
}

// deactivated evicts a Workload that is not active, or says that it waits for being active. What made it inactive has
// been followed then, so it begins again when a user makes it active again.
func (l *Lifecycle) deactivated(w *v1beta2.Workload, o *Outcome) {
	reason, cause, message := conditions.Deactivated(w)
	if target := conditions.Of(w, v1beta2.DeactivationTarget); target != nil {
		conditions.Set(w, v1beta2.DeactivationTarget, false, target.Reason, target.Message, l.Now)
	}
	if conditions.Is(w, v1beta2.QuotaReserved) {
		conditions.Evict(w, reason, cause, message, l.Now)
		return
	}
	conditions.Pend(w, v1beta2.ReasonDeactivated, "The workload is deactivated", l.Now)
	if !isDeactivated(w) {
		conditions.Requeue(w, false, reason, message, l.Now)
	}
	if requeued := conditions.Of(w, v1beta2.Requeued); strings.HasPrefix(requeued.Reason, v1beta2.ReasonDeactivatedDueTo) {
		o.retain(requeued.LastTransitionTime.Time, l.Policy.AfterDeactivated, l.Now)
	}
}

// isDeactivated reports whether a Workload waits for being active.
func isDeactivated(w *v1beta2.Workload) bool {
	requeued := conditions.Of(w, v1beta2.Requeued)
	return requeued != nil && requeued.Status == metav1.ConditionFalse && strings.HasPrefix(requeued.Reason, v1beta2.ReasonDeactivated)
}

// reactivate restarts a Workload that was not active and is again.
func reactivate(w *v1beta2.Workload, now time.Time) {
	if !isDeactivated(w) {
		return
	}
	w.Status.RequeueState = nil
	w.Status.AccumulatedPastExecutionTimeSeconds, w.Status.AccumulatedPastExexcutionTimeSeconds = nil, nil
	conditions.Requeue(w, true, v1beta2.ReasonReactivated, "The workload was reactivated", now)
	conditions.Pend(w, v1beta2.ReasonPendingEvaluation, conditions.PendingEvaluation, now)
}

// reserved looks after a Workload that holds quota: its checks, its queues, its pods and its time.
func (l *Lifecycle) reserved(w *v1beta2.Workload, o *Outcome) {
	if l.stopped(w) || l.checked(w) {
		return
	}
	admitted := conditions.Of(w, v1beta2.Admitted)
	if admitted == nil || admitted.Status != metav1.ConditionTrue {
		return
	}
	since := admitted.LastTransitionTime.Time
	if seconds := w.Spec.MaximumExecutionTimeSeconds; seconds != nil {
		left := time.Duration(*seconds)*time.Second - time.Duration(settings.OfWorkload(w).PastSeconds)*time.Second - l.Now.Sub(since)
		if left <= 0 {
			conditions.Deactivate(w, v1beta2.ReasonMaximumExecutionTimeExceeded, "exceeding the maximum execution time", l.Now)
			o.Deactivates = true
			return
		}
		o.soon(left)
	}
	if l.Policy.PodsReady != nil {
		l.unready(w, o, since)
	}
}

// stopped evicts a Workload whose queue is stopped. What is admitted stays unless the queue is drained.
func (l *Lifecycle) stopped(w *v1beta2.Workload) bool {
	isAdmitted := conditions.Is(w, v1beta2.Admitted)
	evicts := func(stop v1beta2.StopPolicy) bool {
		return stop == v1beta2.HoldAndDrain || stop == v1beta2.Hold && !isAdmitted
	}
	if l.ClusterQueue != nil && evicts(l.ClusterQueue.Stop) {
		return conditions.Evict(w, v1beta2.ReasonClusterQueueStopped, "", "The ClusterQueue is stopped", l.Now)
	}
	if l.LocalQueue != nil && evicts(l.LocalQueue.Stop) {
		return conditions.Evict(w, v1beta2.ReasonLocalQueueStopped, "", "The LocalQueue is stopped", l.Now)
	}
	return false
}

// checked keeps the list of checks that the Workload needs, and acts on those that ask for a retry or reject it. The
// list stays as it is when the ClusterQueue is gone.
func (l *Lifecycle) checked(w *v1beta2.Workload) bool {
	if l.ClusterQueue != nil {
		listChecks(w, required(l.ClusterQueue, w.Status.Admission), l.Now)
	}
	var retries, rejections []string
	wait := int32(0)
	for i := range w.Status.AdmissionChecks {
		c := &w.Status.AdmissionChecks[i]
		switch told := fmt.Sprintf("%q (%s)", c.Name, c.Message); c.State {
		case v1beta2.CheckRetry:
			retries = append(retries, told)
			if c.RequeueAfterSeconds != nil {
				wait = max(wait, *c.RequeueAfterSeconds)
			}
		case v1beta2.CheckRejected:
			rejections = append(rejections, told)
		}
	}
	if len(rejections) > 0 {
		conditions.Deactivate(w, v1beta2.ReasonAdmissionCheck, "Admission check(s): "+strings.Join(rejections, ", ")+", were rejected", l.Now)
		return true
	}
	if len(retries) == 0 {
		return false
	}
	name := "AdmissionCheck"
	if len(retries) > 1 {
		name = "AdmissionChecks"
	}
	if wait > 0 {
		w.Status.RequeueState = delayed(w.Status.RequeueState, l.Now.Add(time.Duration(wait)*time.Second))
	}
	return conditions.Evict(w, v1beta2.ReasonAdmissionCheck, "", "Evicted due to "+name+" in Retry state: "+strings.Join(retries, ", "), l.Now)
}

// required are the checks that a Workload with these flavors needs, in the order of the queue.
func required(q *settings.ClusterQueue, admission *v1beta2.Admission) []string {
	var flavors, names []string
	if admission != nil {
		for _, p := range admission.PodSetAssignments {
			for _, flavor := range p.Flavors {
				flavors = append(flavors, flavor)
			}
		}
	}
	for _, check := range q.Checks {
		if check.Needed(flavors) {
			names = append(names, check.Name)
		}
	}
	return names
}

// listChecks makes the status list exactly these checks. New ones are Pending.
func listChecks(w *v1beta2.Workload, names []string, now time.Time) {
	has := func(name string) bool {
		return slices.ContainsFunc(w.Status.AdmissionChecks, func(c v1beta2.AdmissionCheckState) bool { return c.Name == name })
	}
	w.Status.AdmissionChecks = slices.DeleteFunc(w.Status.AdmissionChecks, func(c v1beta2.AdmissionCheckState) bool { return !slices.Contains(names, c.Name) })
	for _, name := range names {
		if !has(name) {
			w.Status.AdmissionChecks = append(w.Status.AdmissionChecks,
				v1beta2.AdmissionCheckState{Name: name, State: v1beta2.CheckPending, LastTransitionTime: metav1.NewTime(now)})
		}
	}
}

// delayed is a RequeueState with another time.
func delayed(state *v1beta2.RequeueState, at time.Time) *v1beta2.RequeueState {
	until := metav1.NewTime(at)
	if state == nil {
		return &v1beta2.RequeueState{RequeueAt: &until}
	}
	return &v1beta2.RequeueState{Count: state.Count, RequeueAt: &until}
}

// unready evicts a Workload whose pods are not ready in time.
func (l *Lifecycle) unready(w *v1beta2.Workload, o *Outcome, admitted time.Time) {
	ready := conditions.Of(w, v1beta2.PodsReady)
	if ready != nil && ready.Status == metav1.ConditionTrue {
		return
	}
	since, timeout := admitted, l.Policy.PodsReady.Timeout
	if ready != nil && ready.Reason == v1beta2.ReasonWaitForRecovery {
		since, timeout = ready.LastTransitionTime.Time, l.Policy.PodsReady.RecoveryTimeout
	}
	if left := timeout - l.Now.Sub(since); left > 0 {
		o.soon(left)
		return
	}
	count := int32(1)
	if state := w.Status.RequeueState; state != nil && state.Count != nil {
		count = *state.Count + 1
	}
	if limit := l.Policy.PodsReady.BackoffLimit; limit != nil && count > *limit {
		conditions.Deactivate(w, v1beta2.ReasonRequeuingLimitExceeded, "exceeding the maximum number of re-queuing retries", l.Now)
		o.Deactivates = true
		return
	}
	at := metav1.NewTime(l.Now.Add(l.Policy.PodsReady.Backoff(count, w.UID)))
	w.Status.RequeueState = &v1beta2.RequeueState{Count: &count, RequeueAt: &at}
	conditions.Evict(w, v1beta2.ReasonPodsReadyTimeout, "", fmt.Sprintf("Exceeded the PodsReady timeout %s/%s", w.Namespace, w.Name), l.Now)
}

// requeue brings a Workload that was evicted back to its queue when what it waits for has come.
func (l *Lifecycle) requeue(w *v1beta2.Workload, o *Outcome) {
	before := conditions.Of(w, v1beta2.Requeued)
	if before == nil || before.Status == metav1.ConditionTrue {
		return
	}
	switch before.Reason {
	case v1beta2.ReasonClusterQueueStopped:
		if l.ClusterQueue != nil && l.ClusterQueue.Stop == v1beta2.StopNone {
			conditions.Requeue(w, true, v1beta2.ReasonClusterQueueRestarted, "The ClusterQueue was restarted after being stopped", l.Now)
		}
	case v1beta2.ReasonLocalQueueStopped:
		if l.LocalQueue != nil && l.LocalQueue.Stop == v1beta2.StopNone {
			conditions.Requeue(w, true, v1beta2.ReasonLocalQueueRestarted, "The LocalQueue was restarted after being stopped", l.Now)
		}
	default:
		state := w.Status.RequeueState
		if state != nil && state.RequeueAt != nil && l.Now.Before(state.RequeueAt.Time) {
			o.soon(state.RequeueAt.Sub(l.Now))
			return
		}
		if state != nil {
			w.Status.RequeueState = &v1beta2.RequeueState{Count: state.Count}
		}
		conditions.Requeue(w, true, v1beta2.ReasonBackoffFinished, "The workload backoff was finished", l.Now)
	}
}

// Release says that the job of a Workload is stopped: it holds nothing any more, and waits again or for something.
func Release(w *v1beta2.Workload, now time.Time) {
	evicted := conditions.Of(w, v1beta2.Evicted)
	conditions.Release(w, now)
	if ready := conditions.Of(w, v1beta2.PodsReady); ready != nil {
		conditions.Set(w, v1beta2.PodsReady, false, v1beta2.ReasonWaitForStart, messageNotReady, now)
	}
	if evicted == nil || evicted.Status != metav1.ConditionTrue {
		return
	}
	// The others wait for a time, a queue or a user; see requeue.
	isAtOnce := evicted.Reason == v1beta2.ReasonPreempted || evicted.Reason == v1beta2.ReasonNodeFailures
	conditions.Requeue(w, isAtOnce, evicted.Reason, evicted.Message, now)
}

const (
	messageNotReady = "Not all pods are ready or succeeded"
	messageReady    = "All pods reached readiness and the workload is running"
)

// ObservePods says whether the pods of an admitted Workload are ready.
func ObservePods(w *v1beta2.Workload, is bool, now time.Time) {
	before := conditions.Of(w, v1beta2.PodsReady)
	hadStarted := before != nil && (before.Status == metav1.ConditionTrue || before.Reason == v1beta2.ReasonWaitForRecovery)
	reason := map[bool]map[bool]string{
		true:  {false: v1beta2.ReasonStarted, true: v1beta2.ReasonRecovered},
		false: {false: v1beta2.ReasonWaitForStart, true: v1beta2.ReasonWaitForRecovery},
	}[is][hadStarted]
	if is && before != nil && before.Status == metav1.ConditionTrue {
		return
	}
	message := messageNotReady
	if is {
		message = messageReady
	}
	conditions.Set(w, v1beta2.PodsReady, is, reason, message, now)
}
