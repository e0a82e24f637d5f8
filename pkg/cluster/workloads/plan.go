package workloads

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/resources"
)

// A victim has its grace period and departure to leave. Then the plan ends, so that a pod that is stuck blocks no
// queue.
const (
	departure    = 60 * time.Second
	defaultGrace = 30 * time.Second
)

// plan is what a Workload waits for that is charged and promised nodes already (rules C18 and C19).
type plan struct {
	record     string
	isRecorded bool // the object has the record
	isSent     bool // the record is on its way
	waitsFor   []*Entry
	victims    []*Entry // those of waitsFor that are evicted for this one
	why        string   // why it does not fit with them there, "" if they are evicted for others only
	count      int      // of the victims that were chosen, those that leave anyway among them
	until      time.Time
}

// planRecord is a plan as the annotation has it.
type planRecord struct {
	ID        string             `json:"id"`
	Since     time.Time          `json:"since,omitzero"`
	Until     time.Time          `json:"until"`
	Admission *v1beta2.Admission `json:"admission"`
	WaitsFor  []planVictim       `json:"waitsFor,omitempty"`
	// Flavors are digests of the flavors, by name: with others the plan has no ground.
	Flavors map[string]string `json:"flavors,omitempty"`
}

type planVictim struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid"`
}

// isRecorded reports whether the plan is recorded for which a victim leaves.
func (v *eviction) isRecorded() bool {
	return v.by == nil || v.by.plan == nil || v.by.plan.isRecorded
}

// flavorDigests tells the flavors of what is held from others of their names.
func (h *Held) flavorDigests() map[string]string {
	digests := map[string]string{}
	for i := range h.PodSets {
		for _, f := range h.PodSets[i].Flavors {
			text, _ := json.Marshal(f) // of strings
			sum := fnv.New64a()
			_, _ = sum.Write(text)
			digests[f.Name] = strconv.FormatUint(sum.Sum64(), 36)
		}
	}
	return digests
}

// begin makes the plan of a nomination whose victims must leave first.
func (r *planning) begin(e *Entry, n *workload.Nomination, now time.Time) {
	p := &plan{until: now.Add(defaultGrace + departure)}
	record := planRecord{ID: fmt.Sprintf("%s-%d", e.UID, now.UnixMilli()), Since: now, Admission: e.given, Flavors: e.Held.flavorDigests()}
	for _, w := range n.WaitsFor {
		if victim := r.Of(w); victim != nil {
			p.waitsFor = append(p.waitsFor, victim)
			record.WaitsFor = append(record.WaitsFor, planVictim{victim.Namespace, victim.Name, victim.Object.UID})
			p.until = maxTime(p.until, now.Add(victim.grace()+departure))
		}
	}
	for _, v := range n.Victims {
		victim := r.Of(v.Workload)
		if victim == nil || victim.evict != nil || !victim.isAssumed && conditions.Is(victim.Object, v1beta2.Evicted) {
			continue // it leaves already
		}
		p.victims = append(p.victims, victim)
		victim.evict, victim.Phase = preemption(victim, e, v.Why), workload.PhaseEvicting
	}
	record.Until = p.until
	text, _ := json.Marshal(&record) // of strings, numbers and times
	p.record = string(text)
	e.plan, r.planned[e] = p, true
	_, p.why = n.Assignment.Refusal()
	p.count = len(n.Victims)
	r.explain(e)
}

// explain says what a Workload with a plan waits for.
func (r *planning) explain(e *Entry) {
	p, failed := e.plan, 0
	for _, victim := range p.victims {
		if v := victim.evict; v != nil && v.by == e && v.hasFailed {
			failed++
		}
	}
	message := "Workload has overlapping preemption targets with another workload, but will fit after these preemptions complete"
	switch {
	case failed > 0:
		message = fmt.Sprintf("%s. Preempting %d workload(s) failed, will retry.", p.why, failed)
	case p.why != "":
		message = fmt.Sprintf("%s. Pending the preemption of %d workload(s)", p.why, p.count)
	}
	r.say(e, condition{v1beta2.ReasonWaitingForPreemptedWorkloads, message})
}

// told says that a victim was told to leave, or could not be. It is then told again as long as the plan waits for it.
func (r *planning) told(victim *Entry, hasFailed bool) {
	v := victim.evict
	switch {
	case v == nil:
	case v.by != nil && v.by.plan != nil:
		if v.hasFailed != hasFailed {
			v.hasFailed = hasFailed
			r.explain(v.by)
		}
	case hasFailed:
		victim.evict = nil
		victim.stay()
		r.moves(victim) // it keeps its nodes
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// grace is the longest time that pods of a Workload may take to end.
func (e *Entry) grace() time.Duration {
	longest := time.Duration(0)
	for i := range e.Object.Spec.PodSets {
		period := defaultGrace
		if s := e.Object.Spec.PodSets[i].Template.Spec.TerminationGracePeriodSeconds; s != nil {
			period = time.Duration(min(*s, int64(24*time.Hour/time.Second))) * time.Second
		}
		longest = max(longest, period)
	}
	return longest
}

func sortedPlans(plans map[*Entry]bool) []*Entry {
	all := make([]*Entry, 0, len(plans))
	for e := range plans {
		all = append(all, e)
	}
	sortEntries(all)
	return all
}

// start reserves what was promised to a Workload, now that the others have left.
func (r *planning) start(e *Entry, now time.Time) {
	r.dropPlan(e)
	e.Phase, e.isAssumed, e.Reserved = workload.PhaseReserved, true, now
	r.say(e, condition{})
	r.moves(e)
	r.changed(e)
}

// end gives up what was promised to a Workload. It is tried again. Victims that were not told to leave stay.
func (r *planning) end(e *Entry) {
	if e.plan == nil {
		return
	}
	for _, victim := range e.plan.victims {
		if r.isUntold(victim, e) {
			victim.evict = nil
			victim.stay()
			r.changed(victim) // its nodes may be others by now
			r.moves(victim)   // or be gone
		}
	}
	r.drop(e)
	r.later(e)
	r.areUnsure = true // others may have counted on its victims
}

// reprioritized ends the plans that a Workload takes part in, now that it has another priority, if they have victims
// that were not told to leave: these may be protected now.
func (r *planning) reprioritized(e *Entry) {
	if v := e.evict; v != nil && v.by != nil && r.isUntold(e, v.by) {
		r.end(v.by)
	}
	if p := e.plan; p != nil && slices.ContainsFunc(p.victims, func(victim *Entry) bool { return r.isUntold(victim, e) }) {
		r.end(e)
	}
}

// isUntold reports whether a Workload is to be evicted for another by a plan, and was not told to leave.
func (*planning) isUntold(victim, by *Entry) bool {
	return victim.evict != nil && victim.evict.by == by && by.plan != nil && !victim.write.isSent
}

// dropPlan forgets a plan.
func (r *holding) dropPlan(e *Entry) {
	if e.plan != nil {
		e.plan = nil
		delete(r.planned, e)
		r.changed(e)
	}
}

// record decides to write the record of a plan, or to remove it after the plan.
func (r *planning) record(e *Entry, to *decision.Decisions) {
	recorded := e.Object.Annotations[v1beta2.PlanAnnotation]
	switch p := e.plan; {
	case p == nil && recorded != "" && !e.isAssumed && e.unrecorded != recorded:
		e.unrecorded = recorded
		to.WorkloadPlans = append(to.WorkloadPlans, decision.WorkloadPlan{Workload: e.ID(), UID: e.Object.UID})
	case p == nil:
	case recorded == p.record && !p.isRecorded:
		p.isRecorded = true
		for _, victim := range p.victims {
			r.changed(victim)
		}
	case recorded != p.record && !p.isSent:
		p.isSent = true
		to.WorkloadPlans = append(to.WorkloadPlans, decision.WorkloadPlan{Workload: e.ID(), UID: e.Object.UID, Record: p.record})
	}
}

// restore takes up a plan that an earlier process has recorded. It does so only if every victim was told to leave, and
// if the Workload fits when they have: an annotation alone evicts no Workload, and gives no more than free quota.
func (r *planning) restore(e *Entry, now time.Time) bool {
	text := e.Object.Annotations[v1beta2.PlanAnnotation]
	if text == "" || e.isKnown || shown(e.Object).reason != v1beta2.ReasonWaitingForPreemptedWorkloads {
		return false
	}
	var record planRecord
	if err := bounds.UnmarshalJSON([]byte(text), &record); err != nil || record.Admission == nil || !now.Before(record.Until) {
		return false
	}
	w := settings.OfWorkload(e.Object)
	c, _, waiting := r.queueOf(e, &w, now)
	if !waiting || c.Name != record.Admission.ClusterQueue || !r.requests(&w, record.Admission) {
		return false
	}
	p := &plan{record: text, isRecorded: true, until: record.Until}
	for _, of := range record.WaitsFor {
		victim := r.byUID[of.UID]
		if victim == nil || victim.Held == nil {
			continue // it has left
		}
		if !conditions.Is(victim.Object, v1beta2.Evicted) {
			if conditions.Of(victim.Object, v1beta2.Evicted) == nil || !since(victim.Object, v1beta2.QuotaReserved).After(record.Since) {
				return false // it was not told
			}
			continue // it has left, and was admitted again
		}
		p.waitsFor = append(p.waitsFor, victim)
		victim.EvictedFor(&e.Workload)
	}
	charge := r.charges(e.Object, record.Admission)
	held := r.heldOf(record.Admission)
	if !fitsWithout(c.Queue, charge, p.waitsFor) || record.Flavors != nil && !maps.Equal(record.Flavors, held.flavorDigests()) {
		return false
	}
	r.leave(e)
	r.hold(e, held, charge)
	e.Phase = workload.PhasePlanned
	e.given, e.plan, r.planned[e] = record.Admission, p, true
	e.why = shown(e.Object)
	return true
}

// requests reports whether an admission takes what the Workload requests, and names its pod sets.
func (r *planning) requests(w *settings.Workload, a *v1beta2.Admission) bool {
	s := r.shapes.Of(w)
	defer r.shapes.Release(s)
	if len(a.PodSetAssignments) != len(s.Sets) {
		return false
	}
	for i := range s.Sets {
		p, set := &a.PodSetAssignments[i], &s.Sets[i]
		if p.Name != set.Name || p.Count == nil || *p.Count > set.Count || *p.Count < set.MinCount {
			return false
		}
		for _, asked := range set.Requests {
			name := r.index.Name(asked.Dim)
			if _, has := p.Flavors[name]; has && resources.Saturated(name, p.ResourceUsage[name]) < product(asked.Value, int64(*p.Count)) {
				return false
			}
		}
	}
	return true
}
