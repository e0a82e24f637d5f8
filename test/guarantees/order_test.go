package guarantees

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
)

// isCheapest checks that no other pod should have left instead of a single victim (rule G8), where one pod is placed.
func (j *judge) isCheapest(pod *corev1.Pod, victims []*corev1.Pod, toQueue string, asked map[string]int, before map[string]map[string]int) error {
	for _, n := range j.nodes {
		isVacated := slices.ContainsFunc(victims, func(v *corev1.Pod) bool { return v.Spec.NodeName == n.Name })
		for at := range j.left {
			isVacated = isVacated || at.node == n.Name
		}
		if !isVacated && n.Name != j.at[pod.UID] && j.couldStand(pod, n.Name) && j.couldHold(toQueue, victims, nil) {
			return fmt.Errorf("S1: node %s has room without a victim", n.Name)
		}
	}
	if len(victims) > 1 || !j.isSingle(victims[0]) {
		return nil
	}
	v := victims[0]
	for _, w := range j.pods {
		if w == v || w == pod || j.at[w.UID] == "" || w.Spec.NodeName == "" || w.DeletionTimestamp != nil || !j.isSingle(w) || j.compareVictims(w, v, toQueue) >= 0 {
			continue
		}
		if w.Spec.NodeName != v.Spec.NodeName && j.isAskedInVain(w, pod, toQueue) {
			continue
		}
		if j.couldStandIn(pod, v, w, toQueue) && j.mayLeaveInstead(w, v, pod, toQueue, asked, before) {
			return fmt.Errorf("G8: pod %s on node %s should leave rather than %s on node %s", w.Name, w.Spec.NodeName, v.Name, v.Spec.NodeName)
		}
	}
	return nil
}

// isAskedInVain reports whether the pods that are asked before one may make enough room on its node: two small pods
// then leave, though one that is asked after them would do.
func (j *judge) isAskedInVain(w, pod *corev1.Pod, toQueue string) bool {
	for name, amount := range j.requests[nameOf(pod)] {
		free := j.free[w.Spec.NodeName][name]
		for _, before := range j.pods {
			if before != w && before != pod && before.Spec.NodeName == w.Spec.NodeName && j.at[before.UID] != "" && j.compareVictims(before, w, toQueue) <= 0 {
				free += j.requests[nameOf(before)][name]
			}
		}
		if free < amount {
			return false
		}
	}
	return true
}

// isSingle reports whether a pod is the only one of a job that could be asked to leave.
func (j *judge) isSingle(pod *corev1.Pod) bool {
	group := j.groupOf(pod)
	if group.Spec.MinMember > 1 || j.sparkOf(group.Name) != nil {
		return false
	}
	for _, other := range j.pods {
		if other != pod && j.groupOf(other) == group {
			return false
		}
	}
	return true
}

// couldStand reports whether a node has room for a pod that is placed elsewhere.
func (j *judge) couldStand(pod *corev1.Pod, node string) bool {
	if j.isCordoned[node] {
		return false
	}
	for name, amount := range j.requests[nameOf(pod)] {
		if amount > 0 && j.free[node][name] < amount {
			return false
		}
	}
	return j.free[node]["pods"] >= 1
}

// couldHold reports whether the queues above the pod that is placed may hold it when the victims stay, with the places
// of their gangs, and another leaves.
func (j *judge) couldHold(toQueue string, victims []*corev1.Pod, without *corev1.Pod) bool {
	for _, x := range j.way(toQueue, "") {
		most, ok := j.queues[x].Spec.Capability[corev1.ResourceCPU]
		if !ok {
			continue
		}
		held := j.held[x]["cpu"]
		for _, v := range victims {
			if j.isBelow(j.groupOf(v).Spec.Queue, x) {
				held += j.requests[nameOf(v)]["cpu"]
			}
		}
		for at, count := range j.left {
			if j.isBelow(at.queue, x) {
				held += at.cpu * count
			}
		}
		if without != nil && j.isBelow(j.groupOf(without).Spec.Queue, x) {
			held -= j.requests[nameOf(without)]["cpu"]
		}
		if held > int(most.Value()) {
			return false
		}
	}
	return true
}

// couldStandIn reports whether the plan would stand with w gone and v back.
func (j *judge) couldStandIn(pod, v, w *corev1.Pod, toQueue string) bool {
	node := j.at[pod.UID]
	j.move(pod, node, "")
	j.move(v, "", v.Spec.NodeName)
	j.move(w, w.Spec.NodeName, "")
	fits := j.couldStand(pod, w.Spec.NodeName)
	j.move(w, "", w.Spec.NodeName)
	j.move(v, v.Spec.NodeName, "")
	j.move(pod, "", node)
	return fits && j.couldHold(toQueue, []*corev1.Pod{v}, w)
}

// mayLeaveInstead reports whether the rules let w leave, and v stay.
func (j *judge) mayLeaveInstead(w, v, pod *corev1.Pod, toQueue string, asked map[string]int, before map[string]map[string]int) bool {
	j.move(v, "", v.Spec.NodeName)
	j.move(w, w.Spec.NodeName, "")
	err := j.victim(w, pod, toQueue, asked, before)
	j.move(w, "", w.Spec.NodeName)
	j.move(v, v.Spec.NodeName, "")
	return err == nil
}

// class is what counts first of a victim.
func (j *judge) class(pod *corev1.Pod) (class int) {
	allows := pod.Annotations[yunikorn.AllowPreemptionKey]
	if allows == "" {
		allows = j.optedOut[pod.Spec.PriorityClassName]
	}
	if allows == "false" {
		class += 2
	}
	if id := yunikorn.ApplicationID(pod.Labels, pod.Annotations); id != "" {
		isFirst := true
		for _, other := range j.pods {
			if j.application(other) == id && cmp.Or(other.CreationTimestamp.Compare(pod.CreationTimestamp.Time), cmp.Compare(other.UID, pod.UID)) < 0 {
				isFirst = false
			}
		}
		isFirst = isFirst && j.application(pod) == id
		if isFirst {
			class++
		}
	}
	return class
}

// compareVictims returns < 0 if pod w should leave rather than v. Where the standing of different queues would decide
// it returns 0.
func (j *judge) compareVictims(w, v *corev1.Pod, toQueue string) int {
	relative := func(pod *corev1.Pod) int {
		q := j.groupOf(pod).Spec.Queue
		return j.relative(q, j.common(toQueue, q), j.priority(pod))
	}
	if c := cmp.Or(cmp.Compare(j.class(w), j.class(v)), cmp.Compare(relative(w), relative(v))); c != 0 {
		return c
	}
	if j.groupOf(w).Spec.Queue != j.groupOf(v).Spec.Queue || j.isFresh(w) || j.isFresh(v) {
		return 0
	}
	if w.Spec.NodeName != v.Spec.NodeName && !maps.Equal(j.requests[nameOf(w)], j.requests[nameOf(v)]) {
		return 0 // how far above its guarantee the queue is after each plan is another
	}
	return v.Status.StartTime.Time.Compare(w.Status.StartTime.Time)
}

// isFresh reports whether a plan has placed a pod within the last minute, which then counts as the oldest.
func (j *judge) isFresh(pod *corev1.Pod) bool {
	return pod.Annotations[schedulingv1beta1.PromiseRecordKey] != "" && j.now.Sub(pod.Status.StartTime.Time) < time.Minute
}

// served checks that a pod that is bound to free room is not served before one that should have been (rule G14): one
// that waits by itself, and could have been placed there.
func (j *judge) served(b *corev1.Pod, node string) error {
	if b == nil || isOfDaemonSet(b) || len(of(j.places, func(group string) bool { return group == j.groupOf(b).Name })) > 0 {
		return nil // it takes a place that is held for it
	}
	// A job of which pods are to leave may lack pods by then, and wait for nothing: both are judged.
	waiting, steady := j.bestWaiting(func(*schedulingv1beta1.PodGroup) bool { return true }), j.bestWaiting(j.keepsItsPods)
	for _, a := range j.pods {
		if a == b || a.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] == b.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] || !j.asksByItself(a) {
			continue
		}
		if why := j.comesFirst(a, b, waiting); why != "" && j.comesFirst(a, b, steady) != "" && j.hasRoomFor(a, b, node) {
			return fmt.Errorf("G14: pod %s is bound to node %s before %s: %s", b.Name, node, a.Name, why)
		}
	}
	return nil
}

// waits reports whether a pod waits for a node.
func (j *judge) waits(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending && j.at[pod.UID] == ""
}

// asksByItself reports whether a pod waits that may be placed alone.
func (j *judge) asksByItself(pod *corev1.Pod) bool {
	group := j.groupOf(pod)
	if !j.waits(pod) || len(pod.Spec.ResourceClaims) > 0 || len(group.Spec.MinTaskMember) > 0 || isOfDaemonSet(pod) || j.sparkOf(group.Name) != nil || group.Name == "" {
		return false
	}
	if phase := group.Status.Phase; phase == "" || phase == schedulingv1beta1.PodGroupPending {
		return false
	}
	held := 0
	for uid, node := range j.at {
		if node == "" || j.groupOf(j.pods[uid]) != group {
			continue
		}
		pod := j.pods[uid]
		if held++; pod.Spec.NodeName == "" {
			return false // a plan of the job is in force, which comes first
		}
		if pod.Annotations[schedulingv1beta1.EvictionRecordKey] != "" {
			return false // a scheduler before has decided to evict it, and whether that stands is known only when its plan ends
		}
	}
	return held+1 >= int(group.Spec.MinMember)
}

// hasRoomFor reports whether a pod that waits could stand on a node that another pod is bound to. Pods that are to
// leave, or are leaving, still take the room of their nodes, and still count for what their queues may hold.
func (j *judge) hasRoomFor(a, b *corev1.Pod, node string) bool {
	for name, amount := range j.requests[nameOf(a)] {
		if free := j.free[node][name] - j.leaving(name, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == node }); amount > 0 && free < amount {
			return false
		}
	}
	for _, x := range j.way(j.groupOf(a).Spec.Queue, "") {
		below := func(pod *corev1.Pod) bool { return slices.Contains(j.way(j.groupOf(pod).Spec.Queue, ""), x) }
		if most, ok := j.queues[x].Spec.Capability[corev1.ResourceCPU]; ok && j.held[x]["cpu"]+j.leaving("cpu", below)+j.requests[nameOf(a)]["cpu"] > int(most.Value()) {
			return false
		}
	}
	return true
}

// leaving is what those of some pods request that have a node, and are leaving it or are to leave it.
func (j *judge) leaving(name string, is func(*corev1.Pod) bool) (sum int) {
	for _, pod := range j.pods {
		isOver := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		if pod.Spec.NodeName != "" && !isOver && j.at[pod.UID] == "" && is(pod) {
			sum += j.requests[nameOf(pod)][name]
		}
	}
	return sum
}

// keepsItsPods reports whether no pod of a job is leaving its node, or is to leave it.
func (j *judge) keepsItsPods(group *schedulingv1beta1.PodGroup) bool {
	for _, pod := range j.pods {
		if j.groupOf(pod) == group && pod.Spec.NodeName != "" && (j.at[pod.UID] == "" || pod.Annotations[schedulingv1beta1.EvictionRecordKey] != "") {
			return false
		}
	}
	return true
}

// bestWaiting returns the highest priority of the jobs that wait below each queue, as the queue above sees it, of those
// that count.
func (j *judge) bestWaiting(counts func(*schedulingv1beta1.PodGroup) bool) map[string]int {
	best := map[string]int{}
	for _, pod := range j.pods {
		if !j.waits(pod) || !counts(j.groupOf(pod)) {
			continue
		}
		q := j.groupOf(pod).Spec.Queue
		for x := q; x != "" && x != "root"; x = j.parent[x] {
			value := j.relative(q, j.parent[x], j.priority(pod))
			if known, ok := best[x]; !ok || value > known {
				best[x] = value
			}
		}
	}
	return best
}

// comesFirst says why pod a should be served before pod b, "" if it should not.
func (j *judge) comesFirst(a, b *corev1.Pod, waiting map[string]int) string {
	p, q := j.groupOf(a).Spec.Queue, j.groupOf(b).Spec.Queue
	if p == q {
		return j.jobComesFirst(a, b, p)
	}
	c := j.common(p, q)
	x, y := j.childOf(c, p), j.childOf(c, q)
	if j.countsPriorities(c) && waiting[x] != waiting[y] {
		if waiting[x] < waiting[y] {
			return ""
		}
		return fmt.Sprintf("in queue %s a job of priority %d waits, in %s one of %d", x, waiting[x], y, waiting[y])
	}
	if order := compareShares(j.share(x), j.share(y)); order != 0 {
		if order > 0 {
			return ""
		}
		return fmt.Sprintf("queue %s holds %v of its guarantee, %s holds %v", x, j.share(x), y, j.share(y))
	}
	if older := j.queues[x].CreationTimestamp.Compare(j.queues[y].CreationTimestamp.Time); cmp.Or(older, cmp.Compare(x, y)) < 0 {
		return fmt.Sprintf("queue %s is older than %s", x, y)
	}
	return ""
}

// jobComesFirst says why the job of a pod should be served before that of another of its queue, by priority and age.
func (j *judge) jobComesFirst(a, b *corev1.Pod, q string) string {
	if p, other := j.priority(a), j.priority(b); j.countsPriorities(q) && p != other {
		if p < other {
			return ""
		}
		return fmt.Sprintf("its priority is %d, that of the other %d", p, other)
	}
	if j.isFair(q) {
		return ""
	}
	if at, other := j.groupOf(a).CreationTimestamp, j.groupOf(b).CreationTimestamp; at.Before(&other) {
		return fmt.Sprintf("its job is of %s, the other of %s", at.UTC().Format(time.TimeOnly), other.UTC().Format(time.TimeOnly))
	}
	return ""
}

// childOf is the queue directly below c on the way of q.
func (j *judge) childOf(c, q string) string {
	for j.parent[q] != c {
		q = j.parent[q]
	}
	return q
}

func (j *judge) countsPriorities(q string) bool {
	for _, x := range j.way(q, "") {
		if set := j.set[x].PriorityOrder; set != nil {
			return *set
		}
	}
	return true
}

func (j *judge) isFair(q string) bool {
	for _, x := range j.way(q, "") {
		if set := j.set[x].FairOrder; set != nil {
			return *set
		}
	}
	return false
}

// share is the largest part of its guarantee that a queue holds. Of a resource that it does not name the lowest
// capability above it counts, and without one the cluster.
func (j *judge) share(q string) [2]int {
	most := [2]int{0, 1}
	for _, name := range []string{"cpu", "memory"} {
		held := j.held[q][name]
		if held <= 0 {
			continue
		}
		limit, isNamed := j.guaranteed[q][name]
		if !isNamed {
			for _, n := range j.nodes {
				if !j.isCordoned[n.Name] { // it is no part of the cluster to be shared (rule Q6)
					limit += roomOf(n)[name]
				}
			}
			for _, x := range j.way(q, "") {
				if ceiling, ok := j.queues[x].Spec.Capability[corev1.ResourceCPU]; ok && name == "cpu" {
					limit = min(limit, int(ceiling.Value()))
				}
			}
		}
		if of := [2]int{held, limit}; compareShares(of, most) > 0 {
			most = of
		}
	}
	return most
}

// compareShares compares two fractions. With a denominator of 0 they are larger than any other.
func compareShares(a, b [2]int) int {
	if a[1] == 0 || b[1] == 0 {
		return cmp.Compare(b[1], a[1])
	}
	return cmp.Compare(a[0]*b[1], b[0]*a[1])
}
