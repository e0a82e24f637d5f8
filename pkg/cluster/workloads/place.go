package workloads

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads/queues"
)

// condition is the reason and the message of a condition.
type condition struct{ reason, message string }

func sortEntries(entries []*Entry) {
	slices.SortFunc(entries, func(a, b *Entry) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
}

func (r *Reader) setWorkload(o *v1beta2.Workload) {
	key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	e := r.entries[key]
	if e != nil && e.Object.UID != o.UID {
		r.dropWorkload(key, e.Object.UID)
		e = nil
	}
	if e == nil {
		e = &Entry{}
		e.Namespace, e.Name, e.UID = o.Namespace, o.Name, string(o.UID)
		r.entries[key], r.byUID[o.UID] = e, e
	}
	r.read(e, o)
}

// read takes in an object. What it changes is settled later.
func (r *Reader) read(e *Entry, o *v1beta2.Workload) {
	if e.Object != nil && ptr.Deref(e.Object.Spec.Priority, 0) != ptr.Deref(o.Spec.Priority, 0) {
		r.plans.reprioritized(e)
		r.queues.Reprioritized(&e.Workload)
	}
	e.Object = o
	if key := (types.NamespacedName{Namespace: o.Namespace, Name: o.Spec.QueueName}); e.local == nil || e.local.Key != key {
		r.unlink(e)
		l := r.registry.LocalQueue(key)
		if r.named[l] == nil {
			r.named[l] = map[*Entry]bool{}
		}
		e.local, r.named[l][e] = l, true
	}
	r.later(e)
	r.changed(e)
}

// unlink takes a Workload out of its LocalQueue.
func (r *base) unlink(e *Entry) {
	if l := e.local; l != nil {
		if delete(r.named[l], e); len(r.named[l]) == 0 {
			delete(r.named, l)
			r.registry.ForgetLocalQueue(l)
		}
		e.local = nil
	}
}

func (r *Reader) dropWorkload(key types.NamespacedName, uid types.UID) {
	e := r.entries[key]
	if e == nil || e.Object.UID != uid {
		return
	}
	r.leave(e)
	r.plans.end(e)
	r.held.drop(e)
	r.unlink(e)
	r.shapes.Release(e.shape)
	e.shape = nil
	r.queues.Forget(&e.Workload)
	delete(r.entries, key)
	delete(r.byUID, uid)
	delete(r.backoffs, e)
	delete(r.writes.drifting, e)
}

// placeLater places all Workloads that are to be placed, in the order of their names. Those with a record of a plan
// come last: all that hold quota must be charged before it is known whether the plan still fits.
func (r *Reader) placeLater(now time.Time) {
	all := r.toPlace
	r.toPlace = nil
	sortEntries(all)
	var planned []*Entry
	for _, e := range all {
		switch {
		case r.entries[e.ID()] != e:
		case !e.isKnown && e.Object.Annotations[v1beta2.PlanAnnotation] != "" && !conditions.Is(e.Object, v1beta2.QuotaReserved):
			planned = append(planned, e)
		default:
			r.place(e, now)
		}
	}
	for _, e := range planned {
		r.place(e, now)
	}
}

// expire places the Workloads again whose time has come.
func (r *Reader) expire(now time.Time) {
	for e := range r.backoffs {
		if !now.Before(e.until) {
			delete(r.backoffs, e)
			r.later(e)
		}
	}
	for e := range r.writes.drifting {
		if !now.Before(e.refresh) {
			delete(r.writes.drifting, e)
			r.changed(e)
		}
	}
}

// place brings a Workload to where its object and its queues say that it belongs.
func (r *Reader) place(e *Entry, now time.Time) {
	e.isQueued = false
	delete(r.backoffs, e)
	defer func() { e.isKnown = true }()
	if conditions.Is(e.Object, v1beta2.Finished) {
		r.plans.end(e)
		r.withdraw(e, condition{})
		e.Phase = workload.PhaseFinished
		r.queues.Forget(&e.Workload)
		return
	}
	if !e.isKnown {
		r.recall(e)
	}
	if r.holdsStill(e, now) {
		return
	}
	w := settings.OfWorkload(e.Object)
	c, why, waiting := r.queueOf(e, &w, now)
	if !waiting {
		r.withdraw(e, why)
		if !w.IsActive {
			r.queues.Forget(&e.Workload)
		}
		return
	}
	r.wait(e, &w, c)
}

// holdsStill reports whether a Workload holds quota: by its object, or by a decision that its object does not show yet.
func (r *Reader) holdsStill(e *Entry, now time.Time) bool {
	o := e.Object
	if conditions.Is(o, v1beta2.QuotaReserved) && o.Status.Admission != nil {
		r.plans.end(e) // another client has admitted it
		r.held.confirm(e)
		return true
	}
	switch {
	case e.isAssumed && !e.write.isOver(e.Object):
		return true
	case e.plan != nil && r.mayKeepPlan(e, now):
		return true
	case e.plan != nil:
		r.plans.end(e)
		return false
	}
	return r.plans.restore(e, now)
}

// mayKeepPlan reports whether a Workload with a plan is what it was when the plan was made, and may still be admitted.
func (r *Reader) mayKeepPlan(e *Entry, now time.Time) bool {
	w := settings.OfWorkload(e.Object)
	c, _, isToWait := r.queueOf(e, &w, now)
	s := r.shapes.Of(&w)
	defer r.shapes.Release(s)
	return isToWait && c.Name == e.Held.ClusterQueue && s == e.shape && r.hasFlavors(e.Held)
}

// hasFlavors reports whether the flavors of what is held are as they were when it was given.
func (r *base) hasFlavors(held *Held) bool {
	for i := range held.PodSets {
		for _, f := range held.PodSets[i].Flavors {
			if r.registry.Flavor(f.Name) != f {
				return false
			}
		}
	}
	return true
}

// withdraw removes a Workload from its queue, and releases what it holds.
func (r *Reader) withdraw(e *Entry, why condition) {
	r.leave(e)
	r.held.drop(e)
	r.shapes.Release(e.shape)
	e.shape, e.PodSets, e.Shape = nil, nil, ""
	r.say(e, why)
}

// leave ends the waiting of a Workload.
func (r *base) leave(e *Entry) {
	if e.Phase == workload.PhaseWaiting {
		if r.first[e.Queue].head == e {
			delete(r.first, e.Queue)
		}
		r.queues.Remove(&e.Workload)
		e.Phase, e.Queue, e.Cursor = workload.PhaseOutside, nil, nil
	}
}

// wait puts a Workload in a queue. If it waits there already and nothing of it has changed that counts, its refusal
// stays.
func (r *Reader) wait(e *Entry, w *settings.Workload, c *queues.ClusterQueue) {
	before := e.shape
	e.shape = r.shapes.Of(w)
	r.shapes.Release(before)
	timestamp := r.timestamp(e.Object)
	if e.Phase == workload.PhaseWaiting && e.Queue == c.Queue && e.shape == before && e.Timestamp.Equal(timestamp) {
		return
	}
	r.leave(e)
	r.held.drop(e)
	e.Queue, e.Priority, e.Timestamp = c.Queue, w.Priority, timestamp
	e.PodSets, e.Shape, e.Phase = e.shape.Sets, e.shape.Key, workload.PhaseOutside
	if e.shape.Problem != "" {
		e.Queue = nil
		r.say(e, condition{v1beta2.ReasonMisconfigured, e.shape.Problem})
		return
	}
	e.Phase = workload.PhaseWaiting
	r.queues.Add(&e.Workload)
	if e.Queue.Strict {
		r.say(e, r.heldUp(e))
	} else {
		r.say(e, r.sharedRefusal(e))
	}
}

// queueOf is the ClusterQueue that a Workload waits in. Without one it reports false, and why. Nothing is said where
// the controllers do.
func (r *base) queueOf(e *Entry, w *settings.Workload, now time.Time) (c *queues.ClusterQueue, why condition, waits bool) {
	switch {
	case e.Object.DeletionTimestamp != nil, !w.IsActive, w.GatedBy != "", conditions.Is(e.Object, v1beta2.WaitingForReplacementPods):
		return nil, condition{}, false
	case slices.ContainsFunc(e.Object.Status.AdmissionChecks, func(s v1beta2.AdmissionCheckState) bool {
		return s.State == v1beta2.CheckRetry || s.State == v1beta2.CheckRejected
	}):
		return nil, condition{}, false
	}
	if owner := settings.NotStarted(e.Object, r.options.External); owner != nil {
		return nil, condition{v1beta2.ReasonMisconfigured, settings.NotStartedMessage(owner)}, false
	}
	l := e.local
	if l.Settings == nil {
		return nil, condition{v1beta2.ReasonMisconfigured, "LocalQueue " + w.Queue + " doesn't exist"}, false
	}
	c = r.registry.ClusterQueue(l.Settings.ClusterQueue)
	isStopped := func(s v1beta2.StopPolicy) bool { return s != v1beta2.StopNone }
	switch {
	case c.Settings == nil:
		return nil, condition{v1beta2.ReasonMisconfigured, "ClusterQueue " + c.Name + " not found"}, false
	case isStopped(c.Settings.Stop):
		return nil, condition{v1beta2.ReasonSuspended, "ClusterQueue " + c.Name + " is stopped"}, false
	case len(c.Causes) > 0:
		return nil, condition{v1beta2.ReasonSuspended, "ClusterQueue " + c.Name + " is inactive"}, false
	case isStopped(l.Settings.Stop):
		return nil, condition{v1beta2.ReasonSuspended, "LocalQueue " + w.Queue + " is stopped"}, false
	case l.Settings.Problem != "":
		return nil, condition{v1beta2.ReasonSuspended, "LocalQueue " + w.Queue + " is inactive"}, false
	case !r.registry.Matches(c, e.Namespace):
		return nil, condition{v1beta2.ReasonMisconfigured, "workload namespace doesn't match ClusterQueue selector"}, false
	case w.Problem != "":
		return nil, condition{v1beta2.ReasonMisconfigured, w.Problem}, false
	case !r.isBack(e, now):
		return nil, condition{}, false
	}
	return c, condition{}, true
}

// isBack reports whether a Workload that was evicted is to be tried again.
func (r *base) isBack(e *Entry, now time.Time) bool {
	if c := conditions.Of(e.Object, v1beta2.Requeued); c != nil && c.Status == metav1.ConditionFalse {
		return false // the controllers say when
	}
	e.until = e.notBefore
	if s := e.Object.Status.RequeueState; s != nil && s.RequeueAt != nil {
		e.until = maxTime(e.until, s.RequeueAt.Time)
	}
	if !now.Before(e.until) {
		return true
	}
	r.backoffs[e] = true
	return false
}

// timestamp is the time that counts in the order of a queue (rule C10).
func (r *base) timestamp(w *v1beta2.Workload) time.Time {
	is := func(kind, reason string) (time.Time, bool) {
		c := conditions.Of(w, kind)
		if c == nil || c.Status != metav1.ConditionTrue || c.Reason != reason {
			return time.Time{}, false
		}
		return c.LastTransitionTime.Time, true
	}
	if at, was := is(v1beta2.Evicted, v1beta2.ReasonPodsReadyTimeout); was && r.options.EvictionTimestamp {
		return at
	}
	if at, was := is(v1beta2.Evicted, v1beta2.ReasonAdmissionCheck); was {
		return at
	}
	if at, was := is(v1beta2.Preempted, v1beta2.ReasonInCohortReclaimWhileBorrowing); was && !r.options.ByPriority {
		return at.Add(time.Millisecond)
	}
	return w.CreationTimestamp.Time
}

// recall notes for whom a Workload was evicted last, as its condition Preempted says after a restart (rule C20). One
// that was admitted again says so still. Inside a ClusterQueue none is evicted for one of lower priority, so that
// either priority has changed since.
func (r *Reader) recall(e *Entry) {
	c := conditions.Of(e.Object, v1beta2.Preempted)
	if c == nil {
		return
	}
	told := conditions.PreemptionOf(c.Message)
	preemptor := r.byUID[types.UID(told.UID)]
	if preemptor == nil || preemptor == e || conditions.Is(preemptor.Object, v1beta2.Finished) {
		return
	}
	isWithin := told.Preemptor != "" && told.Preemptor == told.Preemptee
	if !isWithin || settings.OfWorkload(preemptor.Object).Priority >= settings.OfWorkload(e.Object).Priority {
		e.EvictedFor(&preemptor.Workload)
	}
}

// sharedRefusal is what was said to the Workload whose refusal this one shares, nothing if it shares none.
func (r *Reader) sharedRefusal(e *Entry) condition {
	if first := e.Workload.RefusedWith(); first != nil {
		if of := r.Of(first); of != nil {
			return of.why
		}
	}
	return condition{}
}
