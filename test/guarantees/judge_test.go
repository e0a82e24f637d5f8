package guarantees

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/scheduling/properties"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// judge checks each plan of a cycle against the rules of guaranteed shares, by the objects before the cycle. It works them out
// from the text of the rules, and shares no code with the scheduler but the reading of annotations.
type judge struct {
	*story
	now    time.Time
	pods   map[types.UID]*corev1.Pod
	groups map[string]*schedulingv1beta1.PodGroup
	queues map[string]*schedulingv1beta1.Queue
	set    map[string]properties.Properties
	// held and free are what queues hold and what nodes have free, as they are after what was judged so far. Promises count in both.
	held map[string]map[string]int
	free map[string]map[string]int
}

// look returns a judge of what is decided next.
func (s *story) look(objects []runtime.Object) *judge {
	j := &judge{story: s, now: s.led.Now(), pods: map[types.UID]*corev1.Pod{}, groups: map[string]*schedulingv1beta1.PodGroup{},
		queues: map[string]*schedulingv1beta1.Queue{}, set: map[string]properties.Properties{}, held: s.held(objects), free: map[string]map[string]int{}}
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.Pod:
			j.pods[o.UID] = o
		case *schedulingv1beta1.PodGroup:
			j.groups[o.Name] = o
		case *schedulingv1beta1.Queue:
			j.queues[o.Name] = o
			j.set[o.Name], _ = properties.Read(o.Annotations)
		case *corev1.Node:
			all := o.Status.Allocatable
			j.free[o.Name] = map[string]int{"cpu": int(all.Cpu().Value()), "memory": int(all.Memory().Value() >> 30), "pods": int(all.Pods().Value())}
		}
	}
	for _, pod := range j.pods {
		if node := nodeOf(pod); node != "" {
			j.occupy(node, pod, -1)
		}
	}
	return j
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
	at := map[types.UID]string{}
	for uid, pod := range j.pods {
		if pod.DeletionTimestamp == nil {
			at[uid] = nodeOf(pod)
		}
	}
	put := func(uid types.UID, node string) {
		if pod := j.pods[uid]; pod != nil {
			j.move(pod, at[uid], node)
			at[uid] = node
		}
	}
	for _, e := range d.Ended {
		for _, n := range e.Nominations {
			put(n.UID, "")
		}
	}
	for _, b := range d.Binds {
		put(b.UID, b.Node)
	}
	for i := range d.Plans {
		p := &d.Plans[i]
		before := map[string]map[string]int{}
		for q, amounts := range j.held {
			before[q] = maps.Clone(amounts)
		}
		var placed, victims []*corev1.Pod
		for _, n := range p.Nominations {
			if at[n.UID] != n.Node {
				placed = append(placed, j.pods[n.UID])
			}
			put(n.UID, n.Node)
		}
		for _, e := range p.Evictions {
			victims = append(victims, j.pods[e.UID])
			put(e.UID, "")
		}
		if len(placed) == 0 {
			continue // the plan of a scheduler before goes on
		}
		if len(victims) == 0 || p.Job == (types.NamespacedName{}) {
			continue
		}
		if slices.Contains(placed, nil) || slices.Contains(victims, nil) {
			return fmt.Errorf("plan %s names pods that are not there", p.ID)
		}
		if err := j.plan(p, placed, victims, before); err != nil {
			return fmt.Errorf("plan %s for %s: %w", p.ID, p.Job, err)
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

func (j *judge) plan(p *decision.PlanStart, placed, victims []*corev1.Pod, before map[string]map[string]int) error {
	toQueue := j.groupOf(placed[0]).Spec.Queue
	asked := map[string]int{}
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
	for _, x := range j.way(toQueue, "") {
		if most, ok := j.queues[x].Spec.Capability[corev1.ResourceCPU]; ok && j.held[x]["cpu"] > int(most.Value()) {
			return fmt.Errorf("Q4: queue %s holds cpu %d and may hold %s", x, j.held[x]["cpu"], most.String())
		}
	}
	for _, v := range victims {
		if err := j.victim(v, placed[0], toQueue, asked, before); err != nil {
			return fmt.Errorf("victim %s: %w", v.Name, err)
		}
	}
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

// isNeeded says why a victim of a job without a minimum could stay (K2): its node has the room, and so have the capabilities above
// the job.
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
