package workloads

import (
	"cmp"
	"maps"
	"math/bits"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads/queues"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// confirm makes a Workload hold what its object says.
func (r *holding) confirm(e *Entry) {
	o := e.Object
	held, isEvicted := r.stillMoved(e, r.heldOf(o.Status.Admission)), conditions.Is(o, v1beta2.Evicted)
	isOutdated, moved := r.add(e, held) || e.isOutdated, e.moved
	if isEvicted {
		e.evict = nil
	}
	evict := e.evict
	if e.Held != nil && e.plan == nil && e.Held.isAs(held) {
		e.Held = held
		r.recharge(e)
	} else {
		r.leave(e)
		r.drop(e)
		r.hold(e, held, r.charges(o, o.Status.Admission))
	}
	if e.moved, e.isOutdated = moved, isOutdated; isOutdated || !slices.Equal(e.reclaimed, o.Status.ReclaimablePods) {
		r.moves(e)
	}
	e.reclaimed = o.Status.ReclaimablePods
	e.isAssumed, e.given, e.failures = false, nil, 0
	if e.evict = evict; isEvicted || evict != nil {
		e.Phase = workload.PhaseEvicting
	} else {
		e.stay()
	}
	e.Timestamp = r.timestamp(o)
	if o.Spec.Priority != nil {
		e.Priority = *o.Spec.Priority
	}
	e.Reserved = conditions.Of(o, v1beta2.QuotaReserved).LastTransitionTime.Time
	r.say(e, condition{})
	r.changed(e) // other checks may be needed
}

// heldOf is what an admission gives.
func (r *holding) heldOf(a *v1beta2.Admission) *Held {
	held := &Held{ClusterQueue: a.ClusterQueue, PodSets: make([]HeldPodSet, len(a.PodSetAssignments))}
	for i := range a.PodSetAssignments {
		p, set := &a.PodSetAssignments[i], &held.PodSets[i]
		set.Name = p.Name
		if p.Count != nil {
			set.Count = *p.Count
		}
		for _, name := range slices.Sorted(maps.Keys(p.Flavors)) {
			if f := r.registry.Flavor(p.Flavors[name]); !slices.Contains(set.Flavors, f) {
				set.Flavors = append(set.Flavors, f)
			}
		}
		// An assignment that cannot be read names no nodes: the pods that exist say where they are.
		set.Nodes, _ = settings.Nodes(p.TopologyAssignment)
	}
	return held
}

// isAs reports whether two Workloads hold the same, whatever the flavors of these names are.
func (h *Held) isAs(other *Held) bool { return h.isAsBut(other, true) }

// isAsBut is isAs, whatever the nodes are unless they are asked for.
func (h *Held) isAsBut(other *Held, withNodes bool) bool {
	return h.ClusterQueue == other.ClusterQueue && slices.EqualFunc(h.PodSets, other.PodSets, func(a, b HeldPodSet) bool {
		return a.Name == b.Name && a.Count == b.Count && (!withNodes || slices.Equal(a.Nodes, b.Nodes)) &&
			slices.EqualFunc(a.Flavors, b.Flavors, func(a, b *workload.Flavor) bool { return a.Name == b.Name })
	})
}

// charges are what an admission takes of the quota, without pods that have ended.
func (r *holding) charges(o *v1beta2.Workload, a *v1beta2.Admission) []cohort.Amount {
	sums := map[resources.FR]int64{}
	for i := range a.PodSetAssignments {
		p := &a.PodSetAssignments[i]
		all, left := settings.PodsLeft(o, p)
		for _, name := range slices.Sorted(maps.Keys(p.Flavors)) {
			fr := r.index.OfFlavor(p.Flavors[name], name)
			sums[fr] = plus(sums[fr], part(resources.Saturated(name, p.ResourceUsage[name]), int64(left), int64(all)))
		}
	}
	return amounts(sums)
}

// part is so many parts of a value that has as many as all says.
func part(value, left, all int64) int64 {
	if left == all || all <= 0 {
		return value
	}
	high, low := bits.Mul64(uint64(value), uint64(left))
	quotient, _ := bits.Div64(high, low, uint64(all)) // left is less than all, so it fits
	return int64(quotient)
}

// product is a value so many times, at most what fits.
func product(value, count int64) int64 {
	if count > 0 && value > cohort.Unlimited/count {
		return cohort.Unlimited
	}
	return value * count
}

func plus(a, b int64) int64 {
	if a > cohort.Unlimited-b {
		return cohort.Unlimited
	}
	return a + b
}

func amounts(sums map[resources.FR]int64) (v []cohort.Amount) {
	for _, fr := range slices.Sorted(maps.Keys(sums)) {
		if sums[fr] > 0 {
			v = append(v, cohort.Amount{FR: fr, Value: sums[fr]})
		}
	}
	return v
}

// hold makes a Workload hold quota and nodes. The caller says in which phase.
func (r *holding) hold(e *Entry, held *Held, charge []cohort.Amount) {
	w := settings.OfWorkload(e.Object)
	before := e.shape
	e.shape = r.shapes.Of(&w)
	r.shapes.Release(before)
	e.PodSets, e.Shape, e.Priority, e.Timestamp = e.shape.Sets, e.shape.Key, w.Priority, r.timestamp(e.Object)
	e.Held = held
	c := r.registry.ClusterQueue(held.ClusterQueue)
	r.holders(c)[e] = true
	r.chargeTo(e, c, charge)
	r.moves(e)
}

// chargeTo books what a Workload takes, if its ClusterQueue exists.
func (r *holding) chargeTo(e *Entry, c *queues.ClusterQueue, charge []cohort.Amount) {
	if e.Queue = c.Queue; e.Queue != nil {
		r.queues.Charge(&e.Workload, charge)
	}
}

// recharge books what has changed: pods have ended, or the ClusterQueue was made or deleted.
func (r *holding) recharge(e *Entry) {
	c := r.registry.ClusterQueue(e.Held.ClusterQueue)
	charge := r.charges(e.Object, e.Object.Status.Admission)
	if e.Queue == c.Queue && slices.Equal(e.Charge, charge) {
		return
	}
	r.queues.Release(&e.Workload)
	r.chargeTo(e, c, charge)
}

// holders are the Workloads that hold quota of a ClusterQueue.
func (r *holding) holders(c *queues.ClusterQueue) map[*Entry]bool {
	all := r.inside[c]
	if all == nil {
		all = map[*Entry]bool{}
		r.inside[c] = all
	}
	return all
}

// drop ends what a Workload holds.
func (r *holding) drop(e *Entry) {
	if e.Held == nil {
		return
	}
	r.queues.Release(&e.Workload)
	c := r.registry.ClusterQueue(e.Held.ClusterQueue)
	delete(r.holders(c), e)
	r.registry.ForgetClusterQueue(c)
	r.dropPlan(e)
	e.Held, e.Queue, e.given, e.moved, e.isAssumed, e.isOutdated, e.evict = nil, nil, nil, nil, false, false, nil
	e.Phase, e.Reserved, e.vacant = workload.PhaseOutside, time.Time{}, nil
	r.moves(e)
}

// moves makes [Reader.TakeMoved] return a Workload.
func (r *holding) moves(e *Entry) {
	if !e.isMoved {
		e.isMoved = true
		r.moved = append(r.moved, e)
	}
}

// admission is what a nomination gives, as the API has it. nodes are those of each pod set, in the order of the
// Workload's.
func (r *holding) admission(n *workload.Nomination, nodes [][]settings.NodeCount) *v1beta2.Admission {
	a := &v1beta2.Admission{ClusterQueue: n.Queue.Name}
	for i := range n.Assignment.PodSets {
		p := &n.Assignment.PodSets[i]
		count := p.Count
		assigned := v1beta2.PodSetAssignment{Name: p.Name, Count: &count}
		if len(p.Flavors) > 0 {
			assigned.Flavors = make(map[corev1.ResourceName]string, len(p.Flavors))
		}
		for _, f := range p.Flavors {
			assigned.Flavors[r.index.Name(f.Resource)] = f.Flavor.Name
		}
		assigned.ResourceUsage = r.usage(p)
		if i < len(nodes) {
			assigned.TopologyAssignment = settings.Topology(sortedNodes(nodes[i]))
		}
		a.PodSetAssignments = append(a.PodSetAssignments, assigned)
	}
	return a
}

// usage is how much all pods of a pod set take of each resource that has a flavor.
func (r *holding) usage(p *workload.PodSetAssignment) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, f := range p.Flavors {
		name := r.index.Name(f.Resource)
		list[name] = resources.Quantity(name, f.Value)
	}
	return list
}

func sortedNodes(nodes []settings.NodeCount) []settings.NodeCount {
	return slices.SortedFunc(slices.Values(nodes), func(a, b settings.NodeCount) int { return cmp.Compare(a.Node, b.Node) })
}

// mayStart reports whether a Workload has passed all checks that it needs, and its nodes do for its pods. Which checks
// these are, its ClusterQueue says. So nothing of a ClusterQueue that is gone may start.
func (r *base) mayStart(e *Entry) bool {
	switch {
	case e.isOutdated:
		return false
	case e.isAssumed && slices.ContainsFunc(e.Object.Status.AdmissionChecks, func(s v1beta2.AdmissionCheckState) bool { return len(s.PodSetUpdates) > 0 }):
		return false // its pods are placed as the checks say when it shows that it holds quota
	}
	return r.isChecked(e.Object, e.Held)
}

// isChecked reports whether a Workload has passed all checks that it needs for what it holds.
func (r *base) isChecked(o *v1beta2.Workload, held *Held) bool {
	c := r.registry.ClusterQueue(held.ClusterQueue)
	if c.Settings == nil {
		return false
	}
	var flavors []string
	for i := range held.PodSets {
		for _, f := range held.PodSets[i].Flavors {
			flavors = append(flavors, f.Name)
		}
	}
	for _, check := range c.Settings.Checks {
		if check.Needed(flavors) && !slices.ContainsFunc(o.Status.AdmissionChecks, func(s v1beta2.AdmissionCheckState) bool {
			return s.Name == check.Name && s.State == v1beta2.CheckReady
		}) {
			return false
		}
	}
	return true
}

// since is when a condition became what it is, zero if the Workload has it not.
func since(o *v1beta2.Workload, kind string) time.Time {
	if c := conditions.Of(o, kind); c != nil && c.Status == metav1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}
