package workloads

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/workload"
)

// Numbers in messages that only drift are written again after refreshPause. What could not be written is tried again
// after a second, doubled by each failure in a row, at most a minute.
const (
	refreshPause = 10 * time.Second
	firstRetry   = time.Second
	mostDoubling = 6
)

// write is how far the last decision about the status of a Workload has come.
type write struct {
	wanted  wanted // what was decided last
	number  int64  // of the decision; the first is 1
	at      time.Time
	isSent  bool   // the answer has not come
	version string // of the object after it
}

// wanted is what the status of a Workload is to say and does not. It is comparable.
type wanted struct {
	reserve *v1beta2.Admission
	moved   *v1beta2.Admission
	admits  bool
	evict   *eviction
	pend    condition
}

// isOver reports whether an object shows the state after the last write.
func (w *write) isOver(o *v1beta2.Workload) bool {
	if w.isSent || w.version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(o.ResourceVersion, w.version)
	return err == nil && order >= 0
}

// changed notes that what is to be written about a Workload has to be determined again.
func (r *base) changed(e *Entry) {
	if !e.isDirty {
		e.isDirty = true
		r.dirty = append(r.dirty, e)
	}
}

// say notes why a Workload holds no quota, nothing if there is nothing to say.
func (r *base) say(e *Entry, why condition) {
	if e.why != why {
		e.why = why
		r.changed(e)
	}
}

// Written says that the decision with a number was written. version is that of the object after it, "" if Set has told
// of it already. An answer to an earlier decision than the last says nothing of that.
func (r *Reader) Written(key types.NamespacedName, uid types.UID, number int64, version string) {
	e := r.entries[key]
	if e == nil || e.Object.UID != uid || !e.write.isSent || e.write.number != number {
		return
	}
	e.write.isSent, e.write.version, e.failures = false, version, 0
	r.plans.told(e, false)
	r.changed(e)
	if e.isAssumed && e.write.isOver(e.Object) {
		r.later(e) // it was released again before its reservation was seen
	}
}

// Failed says that the decision with a number cannot be written, or with the number 0 the record of a plan: the
// Workload has changed, or the API server refuses it. It is tried again as it is then, later with each failure in a
// row.
func (r *Reader) Failed(key types.NamespacedName, uid types.UID, number int64, at time.Time) {
	e := r.entries[key]
	if e == nil || e.Object.UID != uid || !e.awaits(number) {
		return
	}
	if number != 0 {
		e.write.isSent, e.write.wanted = false, wanted{}
	}
	// Without a pause a refusal that stays, such as a missing permission, would be asked for as fast as it is answered.
	again := at.Add(firstRetry << min(e.failures, mostDoubling))
	e.failures++
	e.refresh, r.writes.drifting[e] = again, true
	if e.isAssumed || e.plan != nil {
		e.notBefore = again
		r.plans.end(e)
		r.held.drop(e)
		r.later(e)
	}
	r.plans.told(e, true)
}

// awaits reports whether the answer to a decision, or to the record of a plan, is that to the last one.
func (e *Entry) awaits(number int64) bool {
	if number == 0 {
		return e.plan != nil && !e.plan.isRecorded
	}
	return e.write.isSent && e.write.number == number
}

// TakeDecisions adds to decisions what is to be written now.
func (r *Reader) TakeDecisions(now time.Time, to *decision.Decisions) {
	for len(r.dirty) > 0 { // a plan that is recorded lets its victims be told
		dirty := r.dirty
		r.dirty = nil
		sortEntries(dirty)
		for _, e := range dirty {
			e.isDirty = false
			if r.entries[e.ID()] == e {
				r.plans.record(e, to)
				r.writes.decide(e, now, to)
			}
		}
	}
}

func (r *writing) decide(e *Entry, now time.Time, to *decision.Decisions) {
	want := r.want(e)
	if want == (wanted{}) {
		e.write.wanted, e.write.isSent = want, false // the object says it all
		return
	}
	last := &e.write
	if want == last.wanted && (last.isSent || last.version != "" && !last.isOver(e.Object)) {
		return // it is under way
	}
	status := decision.WorkloadStatus{Workload: e.ID(), UID: e.Object.UID, Read: e.Object, At: now, Reserve: want.reserve, Move: want.moved, Admit: want.admits}
	if v := want.evict; v != nil {
		status.Evict = &decision.WorkloadEviction{Reason: v.reason, Message: v.message, Preempted: v.preempted}
		if v.by != nil {
			status.Evict.By = v.by.ID()
		}
	}
	if want.pend != (condition{}) {
		status.Pend = &decision.WorkloadRefusal{Reason: want.pend.reason, Message: want.pend.message}
		if status.IsRefresh = r.isRefresh(e, want); status.IsRefresh {
			if again := last.at.Add(refreshPause); now.Before(again) {
				e.refresh = again
				r.drifting[e] = true
				return
			}
		}
	}
	status.Events = r.events(e, &want, now)
	status.Number = last.number + 1
	e.write = write{wanted: want, number: status.Number, at: now, isSent: true}
	to.Workloads = append(to.Workloads, status)
}

// want is what the status of a Workload is to say and does not.
func (r *writing) want(e *Entry) (w wanted) {
	o := e.Object
	if conditions.Is(o, v1beta2.Finished) {
		return w
	}
	if e.Held != nil && e.plan == nil {
		if e.isAssumed {
			w.reserve = e.given
		} else if e.Phase != workload.PhaseEvicting && o.DeletionTimestamp == nil {
			w.moved = e.moved // no pods come to one that is being deleted, and its nodes are not kept up to date
		}
		if e.evict != nil && !conditions.Is(o, v1beta2.Evicted) && e.evict.isRecorded() {
			w.evict = e.evict
		}
		w.admits = (e.isAssumed || !conditions.Is(o, v1beta2.Evicted)) && e.Phase != workload.PhaseEvicting && !conditions.Is(o, v1beta2.Admitted) && r.mayStart(e)
		return w
	}
	if e.why != (condition{}) && e.why != shown(o) {
		w.pend = e.why
	}
	return w
}

// shown is why a Workload holds no quota, as its object says.
func shown(o *v1beta2.Workload) condition {
	if c := conditions.Of(o, v1beta2.QuotaReserved); c != nil && c.Status == metav1.ConditionFalse {
		return condition{c.Reason, c.Message}
	}
	return condition{}
}

// isRefresh reports whether a message differs from what the object shows in numbers only, or in which Workload comes
// first.
func (r *writing) isRefresh(e *Entry, w wanted) bool {
	before := shown(e.Object)
	return w.pend.reason == before.reason &&
		(w.pend.reason == v1beta2.ReasonHeldUp || withoutNumbers(w.pend.message) == withoutNumbers(before.message))
}

func withoutNumbers(message string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' || c == '.' {
			return -1
		}
		return c
	}, message)
}

// events are what users are told of a decision.
func (r *writing) events(e *Entry, w *wanted, now time.Time) (events []decision.Notice) {
	regarding := corev1.ObjectReference{APIVersion: v1beta2.SchemeGroupVersion.String(), Kind: "Workload", Namespace: e.Namespace, Name: e.Name, UID: e.Object.UID}
	tell := func(kind, reason, format string, arguments ...any) {
		events = append(events, decision.Notice{Regarding: regarding, Type: kind, Reason: reason, Message: fmt.Sprintf(format, arguments...)})
	}
	if w.reserve != nil {
		tell(corev1.EventTypeNormal, v1beta2.ReasonQuotaReserved, "Quota reserved in ClusterQueue %s, wait time since queued was %.0fs",
			e.Held.ClusterQueue, max(now.Sub(queued(e.Object)), 0).Seconds())
	}
	if w.admits {
		reserved := since(e.Object, v1beta2.QuotaReserved)
		if w.reserve != nil || reserved.IsZero() {
			reserved = now
		}
		tell(corev1.EventTypeNormal, v1beta2.ReasonAdmitted, "Admitted by ClusterQueue %s, wait time since reservation was %.0fs",
			e.Held.ClusterQueue, max(now.Sub(reserved), 0).Seconds())
	}
	if v := w.evict; v != nil {
		tell(corev1.EventTypeNormal, "EvictedDueTo"+v.reason, "%s", v.message)
		if v.preempted != "" {
			tell(corev1.EventTypeNormal, v1beta2.ReasonPreempted, "%s", v.message)
			regarding = corev1.ObjectReference{APIVersion: regarding.APIVersion, Kind: regarding.Kind, Namespace: v.by.Namespace, Name: v.by.Name, UID: v.by.Object.UID}
			tell(corev1.EventTypeNormal, "PreemptedWorkload", "Preempted workload %s/%s in ClusterQueue %s: %s", e.Namespace, e.Name, e.Held.ClusterQueue, v.preempted)
		}
	}
	if conditions.IsTried(w.pend.reason) && w.pend.reason != "" && w.pend.reason != shown(e.Object).reason && w.pend.reason != e.write.wanted.pend.reason {
		tell(corev1.EventTypeWarning, w.pend.reason, "%s", w.pend.message)
	}
	return events
}

// queued is since when a Workload waits in its queue.
func queued(o *v1beta2.Workload) time.Time {
	if at := since(o, v1beta2.Requeued); !at.IsZero() {
		return at
	}
	return o.CreationTimestamp.Time
}
