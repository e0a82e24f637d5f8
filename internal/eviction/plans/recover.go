package plans

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
)

// Recover takes over the plans that an earlier process has recorded on the pods of the preemptors, with their nominated
// nodes, and on the victims. Evictions that were not sent are sent now. Plans that have become impossible, and
// nominated nodes that have no plan and no room, are taken back. It is called once, before the first action.
func Recover(s *framework.Session) {
	var recovered []recoveredPlan
	byID := map[string]int{}
	jobs := slices.DeleteFunc(s.Cluster.Jobs(), func(j *cluster.Job) bool { return j.IsForeign })
	for _, j := range jobs {
		if h, ok := readPlan(s, j); ok {
			if _, taken := byID[h.plan.ID]; taken {
				h.plan.ID = s.Cluster.Plans().NewID(s.Now) // pods were copied with their annotations
			}
			byID[h.plan.ID] = len(recovered)
			recovered = append(recovered, h)
		}
	}
	orphans := map[string][]*cluster.Task{} // victims of plans that have no preemptor any more
	for _, j := range jobs {
		for _, t := range j.Tasks() {
			r, ok := decision.EvictionOf(t.Pod)
			if i, inForce := byID[r.Plan]; ok && inForce {
				recovered[i].victims = append(recovered[i].victims, t)
			} else if ok && t.Status.Evictable() {
				orphans[r.Plan] = append(orphans[r.Plan], t)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(orphans)) {
		slices.SortFunc(orphans[id], cluster.CompareTasks)
		s.Cluster.Plans().Discard(&cluster.Plan{ID: id}, nil, orphans[id], "its plan is not in force any more")
	}
	// In the order in which they came into force, since a later plan may depend on an earlier one.
	slices.SortStableFunc(recovered, func(a, b recoveredPlan) int { return compareAge(a.plan, b.plan) })
	for i := range recovered {
		slices.SortFunc(recovered[i].victims, cluster.CompareTasks)
	}
	takeUpAll(s, recovered)
}

// takeUpAll puts plans in force again, the earliest first. A plan may have come to depend on a later one: if the later
// plan evicts the pod that attracts its tasks, and brings another such pod. So a plan that does not fit is tried again
// after others are in force. Only what does not fit then is taken up in part, or taken back.
func takeUpAll(s *framework.Session, recovered []recoveredPlan) {
	for again := true; again; {
		var left []recoveredPlan
		for _, h := range recovered {
			if !h.takeUpWhole(s) {
				left = append(left, h)
			} else {
				left = takeUpDependent(s, left)
			}
		}
		again = len(left) > 0 && len(left) < len(recovered)
		recovered = left
	}
	for i := range recovered {
		h := &recovered[i]
		s.LookAt(h.plan.Job, func() { h.takeUp(s, false) })
	}
}

// takeUpDependent puts in force those plans that depend on other pods and fit now, always the earliest, and returns
// the others. It is called after each plan that comes into force, since the next plans may bring pods that these were
// made without: with them their tasks would not be spread evenly.
func takeUpDependent(s *framework.Session, left []recoveredPlan) []recoveredPlan {
	for i := 0; i < len(left); i++ {
		if DependOnOthers(s.Cluster, left[i].promised) && left[i].takeUpWhole(s) {
			left = slices.Delete(left, i, i+1)
			i = -1
		}
	}
	return left
}

// recoveredPlan is a plan as it is recorded on the pods.
type recoveredPlan struct {
	plan     *cluster.Plan
	promised []*cluster.Task
	victims  []*cluster.Task
}

// readPlan reads the record of a job's plan.
func readPlan(s *framework.Session, j *cluster.Job) (recoveredPlan, bool) {
	var h recoveredPlan
	for _, t := range j.Pending(cluster.CompareTasks) {
		if t.Pod.Status.NominatedNodeName != "" {
			h.promised = append(h.promised, t)
		}
	}
	if len(h.promised) == 0 || j.Queue == nil {
		return recoveredPlan{}, false
	}
	h.plan = &cluster.Plan{Job: j, Since: s.Now}
	for _, t := range h.promised {
		r, ok := decision.PromiseOf(t.Pod)
		if !ok {
			continue
		}
		// An older nomination that was to be removed may still be there.
		p := cluster.Plan{ID: r.Plan, Job: j, Action: r.Action, Scope: decision.ParseScope(r.Scope), Since: r.Since.Time}
		if h.plan.ID == "" || compareAge(&p, h.plan) > 0 {
			h.plan = &p
		}
	}
	if h.plan.ID == "" {
		h.plan.ID = s.Cluster.Plans().NewID(s.Now)
	}
	return h, true
}

// compareAge is negative if p is older than q. Within one second the counter at the end of the ID decides.
func compareAge(p, q *cluster.Plan) int {
	return cmp.Or(p.Since.Compare(q.Since), cmp.Compare(len(p.ID), len(q.ID)), cmp.Compare(p.ID, q.ID))
}

// takeUpWhole puts the plan in force again if it fits as a whole, and reports whether it does.
func (h *recoveredPlan) takeUpWhole(s *framework.Session) (isWhole bool) {
	s.LookAt(h.plan.Job, func() { isWhole = h.takeUp(s, true) })
	return isWhole
}

// takeUp puts the plan in force again, or takes it back, and returns true. If it must be whole and does not fit, takeUp
// does nothing and returns false.
func (h *recoveredPlan) takeUp(s *framework.Session, whole bool) bool {
	p := h.plan
	p.Victims = nil
	x := s.Begin()
	planned := &framework.Planned{Plan: p}
	for _, t := range h.victims {
		if t.Evicts != nil {
			continue
		}
		switch {
		case t.Status.Evictable():
			x.Evict(t)
			planned.Evictions = append(planned.Evictions, h.eviction(t))
		case t.Status != cluster.Releasing:
			continue
		}
		p.Victims = append(p.Victims, t)
	}
	p.Evictions = len(p.Victims)
	p.Sequence = h.promise(s, x)
	if whole && len(p.Sequence) < len(h.promised) {
		x.Undo()
		return false
	}
	p.Deadline = Deadline(s, p, p.Promised())
	if p.Job.LacksPromises() > 0 || len(p.Promised()) == 0 {
		x.Undo()
		s.Cluster.Plans().Discard(p, h.promised, h.victims, "the room that was promised is not there any more")
		s.Cluster.Plans().NoteInterrupted(p) // its victims may be leaving, or be gone
		return true
	}
	if len(planned.Evictions) > 0 {
		p.Rule = planned.Evictions[0].Rule
	}
	x.Promise(planned)
	if p.Job.IsPendingAdmission() {
		s.Admit(p.Job) // its job was admitted, otherwise it would have no plan
	}
	if lost := slices.DeleteFunc(h.promised, func(t *cluster.Task) bool { return t.Status == cluster.Pipelined }); len(lost) > 0 {
		s.Cluster.Plans().Discard(&cluster.Plan{ID: s.Cluster.Plans().NewID(s.Now), Job: p.Job}, lost, nil, "the room that was promised is not there any more")
	}
	if _, why := actionOf(s, p); why != "" && len(p.Unsent()) > 0 {
		cancel(s, p, why)
		return true
	}
	ShowProgress(s, p)
	return true
}

// promise pipelines the tasks to their nominated nodes, in an order in which each fits once those before it are placed.
// The order in which they were nominated is not recorded. If no order is found, it pipelines those that fit.
func (h *recoveredPlan) promise(s *framework.Session, x framework.Transaction) []*cluster.Task {
	var promises []Promise
	for _, t := range BySubgroup(h.plan.Job, slices.SortedFunc(slices.Values(h.promised), s.CompareTasks)) {
		n := s.Cluster.Node(t.Pod.Status.NominatedNodeName)
		if n != nil && s.Outlook.CanOpen(t, n) {
			promises = append(promises, Promise{Task: t, Node: n})
		}
	}
	if order, ok := inOrder(s, x, promises); ok {
		return order
	}
	// A task may need one that comes after it.
	var order []*cluster.Task
	for again := true; again; {
		again = false
		for _, m := range promises {
			if m.Task.Status == cluster.Pending && s.Outlook.Fits(m.Task, m.Node) {
				x.Pipeline(m.Task, m.Node)
				order, again = append(order, m.Task), true
			}
		}
	}
	return order
}

// eviction repeats the record of a victim.
func (h *recoveredPlan) eviction(t *cluster.Task) decision.Eviction {
	r, _ := decision.EvictionOf(t.Pod)
	e := decision.Eviction{Pod: t.Key(), UID: t.UID(), Node: t.Node.Name, VictimJob: t.Job.ID, For: h.plan.Job.ID, Plan: h.plan.ID,
		Action: h.plan.Action, Rule: r.Rule, PastBudget: r.PastBudget,
		Allowance: time.Duration(r.Allowance) * time.Second}
	for i := range t.Pod.Status.Conditions {
		if c := &t.Pod.Status.Conditions[i]; c.Type == corev1.DisruptionTarget {
			e.Message = c.Message // the message that users have read
		}
	}
	return e
}
