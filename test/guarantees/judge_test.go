package guarantees

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/scheduling/properties"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// judge checks each plan of a cycle against the rules of guaranteed shares, by the objects before the cycle. It works
// them out from the text of the rules, and shares no code with the scheduler but the reading of annotations.
type judge struct {
	*story
	now    time.Time
	pods   map[types.UID]*corev1.Pod
	groups map[string]*schedulingv1beta1.PodGroup
	queues map[string]*schedulingv1beta1.Queue
	set    map[string]properties.Properties
	// held and free are what queues hold and what nodes have free, as they are after what was judged so far. Promises
	// count in both.
	held  map[string]map[string]int
	free  map[string]map[string]int
	nodes []*corev1.Node
	// isCordoned are the nodes that take no pods.
	isCordoned map[string]bool
	// optedOut is the annotation allow-preemption of each PriorityClass.
	optedOut map[string]string
	places   map[standIn]int      // that are held for pods that do not exist yet, before the cycle
	at       map[types.UID]string // the nodes that pods have or are promised, as they are after what was judged so far
	left     map[standIn]int      // places that the gangs of the plan's victims give up
}

// look returns a judge of what is decided next, by the objects and the places that are held before it.
func (s *story) look(objects []runtime.Object, places map[standIn]int) *judge {
	j := &judge{story: s, now: s.led.Now(), pods: map[types.UID]*corev1.Pod{}, groups: map[string]*schedulingv1beta1.PodGroup{},
		queues: map[string]*schedulingv1beta1.Queue{}, set: map[string]properties.Properties{}, held: s.held(objects), free: map[string]map[string]int{}, optedOut: map[string]string{},
		isCordoned: map[string]bool{}}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Pod:
			j.pods[o.UID] = o
		case *schedulingv1.PriorityClass:
			j.optedOut[o.Name] = o.Annotations[yunikorn.AllowPreemptionKey]
		case *schedulingv1beta1.PodGroup:
			j.groups[o.Name] = o
		case *schedulingv1beta1.Queue:
			j.queues[o.Name] = o
			j.set[o.Name], _ = properties.Read(o.Annotations)
		case *corev1.Node:
			j.free[o.Name], j.nodes, j.isCordoned[o.Name] = roomOf(o), append(j.nodes, o), o.Spec.Unschedulable
		}
	}
	for _, pod := range j.pods {
		if node := nodeOf(pod); node != "" {
			j.occupy(node, pod, -1)
		}
	}
	j.places = places
	j.put(j.places, +1)
	return j
}

// put takes the room of places that are held for pods that do not exist yet, or with -1 gives it back.
func (j *judge) put(places map[standIn]int, sign int) {
	j.bookPlaces(j.held, places, sign)
	for at, count := range places {
		if j.free[at.node] == nil {
			j.free[at.node] = map[string]int{}
		}
		j.free[at.node]["pods"] -= sign * count
		j.free[at.node]["cpu"] -= sign * count * at.cpu
	}
}

// roomOf is what a node can hold.
func roomOf(n *corev1.Node) map[string]int {
	all := n.Status.Allocatable
	return map[string]int{"cpu": int(all.Cpu().Value()), "memory": int(all.Memory().Value() >> 30), "pods": int(all.Pods().Value())}
}

// nodeOf is the node that a pod has or is promised.
func nodeOf(pod *corev1.Pod) string {
	if pod.Spec.NodeName != "" {
		return pod.Spec.NodeName
	}
	return pod.Status.NominatedNodeName
}

func nameOf(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

// occupy takes the room of a pod on a node, or with +1 gives it back.
func (j *judge) occupy(node string, pod *corev1.Pod, sign int) {
	if j.free[node] == nil {
		j.free[node] = map[string]int{}
	}
	j.free[node]["pods"] += sign
	for resource, amount := range j.requests[nameOf(pod)] {
		j.free[node][resource] += sign * amount
	}
}

// move takes a pod off the node that it has or is promised, and onto another; "" is none.
func (j *judge) move(pod *corev1.Pod, from, to string) {
	if from != "" {
		j.occupy(from, pod, +1)
		j.book(j.held, nameOf(pod), -1)
	}
	if to != "" {
		j.occupy(to, pod, -1)
		j.book(j.held, nameOf(pod), +1)
	}
}

// cycle judges the decisions of a cycle, in their order: what ends, what is bound, and plan after plan.
func (j *judge) cycle(d *decision.Decisions) error {
	j.at = map[types.UID]string{}
	for uid, pod := range j.pods {
		if pod.DeletionTimestamp == nil {
			j.at[uid] = nodeOf(pod)
		}
	}
	if err := j.gangs(d, j.standIns(cluster.Awaited)); err != nil {
		return err
	}
	given, taken, started := j.changedPlaces(d)
	for _, e := range d.Ended {
		for _, n := range e.Nominations {
			if !slices.ContainsFunc(d.Binds, func(b decision.Bind) bool { return b.UID == n.UID }) { // a pod that is bound keeps what it holds
				j.settle(n.UID, "")
			}
		}
	}
	for i := range d.Plans {
		if p := &d.Plans[i]; j.wasMade(p) {
			for _, e := range p.Evictions {
				j.settle(e.UID, "") // the plan is in force from the beginning of the cycle
			}
		}
	}
	last := ""
	for _, b := range d.Binds {
		if b.Job.Name != last && j.at[b.UID] == "" {
			if err := j.served(j.pods[b.UID], b.Node); err != nil {
				return fmt.Errorf("%w; %s", err, outlineOf(d))
			}
		}
		if b.Job.Name != last { // the places of its gang come with its first pod
			j.put(of(started, func(group string) bool { return group == b.Job.Name }), +1)
			started = of(started, func(group string) bool { return group != b.Job.Name })
		}
		last = b.Job.Name
		j.settle(b.UID, b.Node)
	}
	for i := range d.Plans {
		if err := j.planned(&d.Plans[i], given, taken); err != nil {
			return fmt.Errorf("plan %s for %s: %w", d.Plans[i].ID, d.Plans[i].Job, err)
		}
	}
	return nil
}

// wasMade reports whether a plan is that of a scheduler before, which has nominated its pods already. Plans that place
// no pods (rule G12) are made again.
func (j *judge) wasMade(p *decision.PlanStart) bool {
	return len(p.Nominations) > 0 && !slices.ContainsFunc(p.Nominations, func(n decision.Nomination) bool { return j.at[n.UID] != n.Node })
}

// outlineOf lists the decisions of a cycle in their order.
func outlineOf(d *decision.Decisions) string {
	var parts []string
	for _, e := range d.Ended {
		parts = append(parts, fmt.Sprintf("plan %s for %s ends", e.ID, e.Job.Name))
	}
	for _, b := range d.Binds {
		parts = append(parts, fmt.Sprintf("%s of %s is bound to %s", b.Pod, b.Job.Name, b.Node))
	}
	for _, p := range d.Plans {
		parts = append(parts, fmt.Sprintf("plan %s for %s with %d evictions and %d nominations", p.ID, p.Job.Name, len(p.Evictions), len(p.Nominations)))
	}
	return strings.Join(parts, "; ")
}

// settle notes on which node a pod is from now on, "" for none.
func (j *judge) settle(uid types.UID, node string) {
	if pod := j.pods[uid]; pod != nil {
		j.move(pod, j.at[uid], node)
		j.at[uid] = node
	}
}

// changedPlaces notes the places that are held from this cycle on, and those that are no more. It returns those that
// come and go with plans: of the jobs for which they are made, and of victims; and those that come with the first pod
// of a gang.
func (j *judge) changedPlaces(d *decision.Decisions) (given, taken, started map[standIn]int) {
	isPlanned, isVictim := map[string]bool{}, map[string]bool{}
	for _, p := range d.Plans {
		isPlanned[p.Job.Name] = true // with evictions, or for room that others leave
		for _, e := range p.Evictions {
			isVictim[e.VictimJob.Name] = true
		}
	}
	now := j.allPlaces()
	come, gone := missing(now, j.places), missing(j.places, now)
	// Places whose time is over are given up at the end of a cycle. Those of applications that have ended, or that pods
	// take, go before.
	isBound := map[string]bool{}
	for _, b := range d.Binds {
		isBound[b.Job.Name] = true
	}
	j.put(of(gone, func(group string) bool { return !isVictim[group] && (isBound[group] || !j.isAlive(group)) }), -1)
	j.put(of(come, func(group string) bool { return !isPlanned[group] && !isBound[group] }), +1)
	return of(come, func(group string) bool { return isPlanned[group] }), of(gone, func(group string) bool { return isVictim[group] }),
		of(come, func(group string) bool { return !isPlanned[group] && isBound[group] })
}

// isAlive reports whether a PodGroup has pods that are not being deleted.
func (j *judge) isAlive(group string) bool {
	for _, pod := range j.pods {
		if pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] == group && pod.DeletionTimestamp == nil {
			return true
		}
	}
	return false
}

// planned judges one plan.
func (j *judge) planned(p *decision.PlanStart, given, taken map[standIn]int) error {
	before := map[string]map[string]int{}
	for q, amounts := range j.held {
		before[q] = maps.Clone(amounts)
	}
	var placed, victims []*corev1.Pod
	for _, n := range p.Nominations {
		if j.at[n.UID] != n.Node {
			placed = append(placed, j.pods[n.UID])
		}
		j.settle(n.UID, n.Node)
	}
	given = of(given, func(group string) bool { return group == p.Job.Name })
	j.put(given, +1)
	leaves := map[string]bool{}
	j.left = map[standIn]int{}
	for _, e := range p.Evictions {
		victims = append(victims, j.pods[e.UID])
		j.settle(e.UID, "")
		if !leaves[e.VictimJob.Name] {
			leaves[e.VictimJob.Name] = true
			places := of(taken, func(group string) bool { return group == e.VictimJob.Name })
			j.put(places, -1)
			maps.Copy(j.left, places)
		}
	}
	if p.Job == (decision.JobID{}) { // it brings queues within their capability (rule G12)
		return j.wholeGangs(victims)
	}
	if len(placed) == 0 || len(victims) == 0 {
		return nil // without pods that are placed, the plan of a scheduler before goes on
	}
	if slices.Contains(placed, nil) || slices.Contains(victims, nil) {
		return fmt.Errorf("it names pods that are not there")
	}
	if err := j.wholeGangs(victims); err != nil {
		return err
	}
	if p.Evictions[0].Rule == "G10" {
		return j.daemonPlan(placed, victims)
	}
	return j.plan(placed, given, victims, before)
}

// wholeGangs checks that no gang is left below its minimum (rule J2). Those with task groups may be, when their pods
// have ended.
func (j *judge) wholeGangs(victims []*corev1.Pod) error {
	for _, v := range victims {
		group, stay := j.groupOf(v), 0
		if j.sparkOf(group.Name) != nil {
			continue
		}
		for uid, node := range j.at {
			if node != "" && j.groupOf(j.pods[uid]) == group {
				stay++
			}
		}
		if stay > 0 && stay < int(group.Spec.MinMember) {
			return fmt.Errorf("J2: %d pods of job %s stay, and it needs %d", stay, group.Name, group.Spec.MinMember)
		}
	}
	return nil
}

// way are a queue and those above it, up to but without another.
func (j *judge) way(q, without string) (way []string) {
	for ; q != without && q != ""; q = j.parent[q] {
		way = append(way, q)
	}
	return way
}

func (j *judge) common(a, b string) string {
	above := append(j.way(a, ""), "root")
	for _, q := range append(j.way(b, ""), "root") {
		if slices.Contains(above, q) {
			return q
		}
	}
	return "root"
}

func (j *judge) priority(pod *corev1.Pod) int {
	value := 0
	_, _ = fmt.Sscanf(j.groupOf(pod).Spec.PriorityClassName, "p%d", &value)
	return value
}

func (j *judge) groupOf(pod *corev1.Pod) *schedulingv1beta1.PodGroup {
	if group := j.groups[pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]]; group != nil {
		return group
	}
	return &schedulingv1beta1.PodGroup{}
}

// relative is the priority of a job of a queue as a queue above it sees it (G6).
func (j *judge) relative(q, at string, priority int) int {
	for _, x := range j.way(q, at) {
		if j.set[x].PriorityFence {
			priority = 0
		}
		priority += int(j.set[x].PriorityOffset)
	}
	return priority
}

func (j *judge) plan(placed []*corev1.Pod, given map[standIn]int, victims []*corev1.Pod, before map[string]map[string]int) error {
	toQueue := j.groupOf(placed[0]).Spec.Queue
	asked := map[string]int{}
	for at, count := range given {
		asked["cpu"] += count * at.cpu
	}
	youngest := time.Time{}
	for _, pod := range placed {
		for resource, amount := range j.requests[nameOf(pod)] {
			asked[resource] += amount
		}
		if created := pod.CreationTimestamp.Time; created.After(youngest) {
			youngest = created
		}
	}
	if due := youngest.Add(j.delay(toQueue)); j.now.Before(due) {
		return fmt.Errorf("G9: pods may be evicted from %s on, and it is %s", due, j.now)
	}
	if err := j.isWithinCapabilities(toQueue); err != nil {
		return err
	}
	for _, v := range victims {
		if err := j.victim(v, placed[0], toQueue, asked, before); err != nil {
			return fmt.Errorf("victim %s: %w", v.Name, err)
		}
	}
	if err := j.areNeeded(victims, toQueue); err != nil || len(placed) > 1 || len(given) > 0 {
		return err
	}
	return j.isCheapest(placed[0], victims, toQueue, asked, before)
}

func (j *judge) isWithinCapabilities(q string) error {
	for _, x := range j.way(q, "") {
		if most, ok := j.queues[x].Spec.Capability[corev1.ResourceCPU]; ok && j.held[x]["cpu"] > int(most.Value()) {
			return fmt.Errorf("Q4: queue %s holds cpu %d and may hold %s", x, j.held[x]["cpu"], most.String())
		}
	}
	return nil
}

func (j *judge) areNeeded(victims []*corev1.Pod, toQueue string) error {
	for _, v := range victims {
		if why := j.isNeeded(v, toQueue, victims); why != "" {
			return fmt.Errorf("K2: victim %s could stay: %s", v.Name, why)
		}
	}
	return nil
}

func (j *judge) delay(q string) time.Duration {
	for _, x := range j.way(q, "") {
		if d := j.set[x].PreemptionDelay; d != nil {
			return *d
		}
	}
	return 30 * time.Second
}

// victim checks G2 to G7 for one victim of a plan that is carried out.
func (j *judge) victim(v, first *corev1.Pod, toQueue string, asked map[string]int, before map[string]map[string]int) error {
	fromQueue := j.groupOf(v).Spec.Queue
	if fromQueue == toQueue {
		return fmt.Errorf("G3: it is of the same queue %s", toQueue)
	}
	if isOfDaemonSet(v) {
		return fmt.Errorf("G5: it is of a DaemonSet")
	}
	if id := yunikorn.ApplicationID(v.Labels, v.Annotations); id != "" && id == j.application(first) {
		return fmt.Errorf("G3: it is of the same application %s", id)
	}
	c := j.common(toQueue, fromQueue)
	for _, x := range j.way(toQueue, c) {
		if j.set[x].TakesFence {
			return fmt.Errorf("G7: it is outside the fence of queue %s", x)
		}
	}
	for _, x := range j.way(fromQueue, "") {
		if j.set[x].GivesNothing {
			return fmt.Errorf("G7: queue %s is disabled", x)
		}
	}
	if theirs, own := j.relative(fromQueue, c, j.priority(v)), j.relative(toQueue, c, j.priority(first)); theirs > own {
		return fmt.Errorf("G6: its priority at %s is %d, that of the job %d", c, theirs, own)
	}
	holdsAsked := false
	for resource, amount := range j.requests[nameOf(v)] {
		holdsAsked = holdsAsked || amount > 0 && asked[resource] > 0
		for _, x := range append(j.way(fromQueue, ""), "root") {
			floor, isNamed := j.guaranteed[x][resource]
			if !isNamed || amount == 0 {
				continue
			}
			if !slices.Contains(j.way(fromQueue, c), x) {
				floor = min(floor, before[x][resource])
			}
			if j.held[x][resource] < floor {
				return fmt.Errorf("G2: queue %s held %s %d, and holds %d of %d", x, resource, before[x][resource], j.held[x][resource], j.guaranteed[x][resource])
			}
		}
	}
	if !holdsAsked {
		return fmt.Errorf("G5: it holds nothing that is asked for")
	}
	return j.entitled(toQueue, c, asked)
}

// application is that of the job of a pod: the least that any of its pods names.
func (j *judge) application(of *corev1.Pod) (id string) {
	for _, pod := range j.pods {
		if named := yunikorn.ApplicationID(pod.Labels, pod.Annotations); j.groupOf(pod) == j.groupOf(of) && named != "" && (id == "" || named < id) {
			id = named
		}
	}
	return id
}

// entitled checks G4 for all that a plan places.
func (j *judge) entitled(toQueue, c string, asked map[string]int) error {
	isNamed := false
	for resource, amount := range asked {
		if amount == 0 {
			continue
		}
		for _, x := range j.way(toQueue, c) {
			guaranteed, names := j.guaranteed[x][resource]
			if !names {
				continue
			}
			if isNamed = true; j.held[x][resource] > guaranteed {
				return fmt.Errorf("G4: queue %s holds %s %d with the plan, and is guaranteed %d", x, resource, j.held[x][resource], guaranteed)
			}
			break
		}
	}
	if !isNamed {
		return fmt.Errorf("G4: no queue from %s up to %s is guaranteed what is asked for", toQueue, c)
	}
	return nil
}

// isNeeded says why a victim of a job without a minimum could stay (K2): its node has the room, and so have the
// capabilities above the job.
func (j *judge) isNeeded(v *corev1.Pod, toQueue string, victims []*corev1.Pod) (why string) {
	group := j.groupOf(v)
	if group.Spec.MinMember > 1 || v.Spec.NodeName == "" {
		return ""
	}
	for resource, amount := range j.requests[nameOf(v)] {
		if amount > 0 && j.free[v.Spec.NodeName][resource] < amount {
			return ""
		}
	}
	if j.free[v.Spec.NodeName]["pods"] < 1 {
		return ""
	}
	fromQueue := group.Spec.Queue
	for _, x := range j.way(toQueue, "") {
		most, ok := j.queues[x].Spec.Capability[corev1.ResourceCPU]
		if ok && slices.Contains(j.way(fromQueue, ""), x) && j.held[x]["cpu"]+j.requests[nameOf(v)]["cpu"] > int(most.Value()) {
			return ""
		}
	}
	return fmt.Sprintf("node %s has %v free with %d victims", v.Spec.NodeName, j.free[v.Spec.NodeName], len(victims))
}
