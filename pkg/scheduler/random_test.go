package scheduler_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
	"hekla.sh/hekla/test/harness/loop"
)

// chooser makes all random choices: it returns a number from 0 to n-1. Zero is the plainest choice.
type chooser func(n int) int

func (choose chooser) oneOf(words ...string) string { return words[choose(len(words))] }

// randomCluster is a small simulated cluster that goes on between the cycles of a scheduler. The events of the
// scheduler are recorded, so that they can be replayed to another.
type randomCluster struct {
	choose    chooser
	scheduler *scheduler.Scheduler
	// configuration is the name of the one that the next cycle runs under.
	configuration string

	now    time.Time
	births int
	nodes  map[string]*corev1.Node
	queues map[string]*schedulingv1beta1.Queue
	groups map[string]*schedulingv1beta1.PodGroup
	pods   map[string]*corev1.Pod
	ranks  map[string]*schedulingv1.PriorityClass

	underway []decision.Bind // bindings that were decided and whose outcome is open
	events   []cache.Event   // what the scheduler has not heard yet
	turns    []turn
	wake     time.Time // when the scheduler wants its next cycle, if nothing happens
}

// turn is all that one cycle hears and decides.
type turn struct {
	now           time.Time
	configuration string
	events        []cache.Event
	decided       string // the decisions as JSON
}

// configurations are those that a randomCluster may be led under. Together they hold every action and plugin there is.
var configurations = map[string]string{
	"default": conf.DefaultYAML,
	"capacity": `{actions: "enqueue, allocate, backfill", tiers: [{plugins: [{name: priority}, {name: gang}, {name: conformance}]},
		{plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]}]}`,
	"capacity tree": `{actions: "enqueue, allocate, backfill", tiers: [{plugins: [{name: priority}, {name: gang}]},
		{plugins: [{name: overcommit}, {name: predicates}, {name: capacity, enableHierarchy: true}, {name: binpack}]}]}`,
	"drf tree": `{actions: "enqueue, allocate, backfill", tiers: [{plugins: [{name: priority}, {name: gang}]},
		{plugins: [{name: drf, enableHierarchy: true}, {name: predicates}, {name: nodeorder}]}]}`,
	"no enqueue": `{actions: "allocate, backfill", tiers: [{plugins: [{name: priority}, {name: gang}]},
		{plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]}]}`,
	"no gang": `{actions: "enqueue, allocate, backfill", tiers: [{plugins: [{name: priority}, {name: overcommit}, {name: drf},
		{name: predicates}, {name: proportion}, {name: binpack}]}]}`,
}

var (
	nodeNames  = []string{"n0", "n1", "n2", "n3"}
	queueNames = []string{"default", "q0", "q1", "q2", "q3"}
	groupNames = []string{"g0", "g1", "g2", "g3", "g4"}
)

// newRandomCluster begins under a configuration.
func newRandomCluster(choose chooser, configuration string) *randomCluster {
	l := &randomCluster{choose: choose, scheduler: newScheduler(), configuration: configuration, now: fixture.Birth.Add(time.Hour), nodes: map[string]*corev1.Node{},
		queues: map[string]*schedulingv1beta1.Queue{}, groups: map[string]*schedulingv1beta1.PodGroup{},
		pods: map[string]*corev1.Pod{}, ranks: map[string]*schedulingv1.PriorityClass{}}
	for _, name := range nodeNames[:3] {
		l.makeNode(name)
	}
	for _, name := range queueNames {
		l.makeQueue(name)
	}
	for _, name := range groupNames[:3] {
		l.makeGroup(name)
	}
	return l
}

func newScheduler() *scheduler.Scheduler {
	return scheduler.New(scheduler.Options{Cluster: harness.ClusterOptions()})
}

// use puts a configuration in force; those in this file can be read.
func use(s *scheduler.Scheduler, name string) {
	policy, err := loop.Policy(configurations[name])
	if err != nil {
		panic(err)
	}
	if err := s.Use(policy); err != nil {
		panic(err)
	}
}

// identify gives a new object an identity and an age, which it may share with others.
func (l *randomCluster) identify(o metav1.Object) {
	l.births++
	o.SetUID(types.UID(fmt.Sprintf("%s-%d", o.GetName(), l.births)))
	o.SetCreationTimestamp(metav1.NewTime(fixture.Birth.Add(time.Duration(l.choose(3)) * time.Second)))
}

func (l *randomCluster) hear(events ...cache.Event) { l.events = append(l.events, events...) }

// set shows an object that is new or has changed.
func set[T runtime.Object](l *randomCluster, all map[string]T, name string, object T) {
	all[name] = object
	l.hear(cache.Set{Object: object})
}

// change shows an object as it is after a change.
func change[T interface {
	runtime.Object
	DeepCopy() T
}](l *randomCluster, all map[string]T, name string, how func(T)) {
	if object, ok := all[name]; ok {
		object = object.DeepCopy()
		how(object)
		set(l, all, name, object)
	}
}

func drop[T runtime.Object](l *randomCluster, all map[string]T, name string) {
	if object, ok := all[name]; ok {
		delete(all, name)
		l.hear(cache.Delete{Object: object})
	}
}

func names[T any](all map[string]T) []string { return slices.Sorted(maps.Keys(all)) }

// anyOf returns the name of one of them, "" if there is none.
func anyOf[T any](l *randomCluster, all map[string]T) string {
	if len(all) == 0 {
		return ""
	}
	return l.choose.oneOf(names(all)...)
}

func (l *randomCluster) reconfigure() { l.configuration = anyOf(l, configurations) }

func (l *randomCluster) makeNode(name string) {
	if l.nodes[name] != nil {
		return
	}
	n := fixture.Node(name, l.choose.oneOf("cpu=4 memory=8Gi", "cpu=2 memory=2Gi pods=3", "cpu=8 memory=4Gi nvidia.com/gpu=2", "memory=1Gi"))
	n.Labels["zone"] = l.choose.oneOf("a", "b")
	l.identify(n)
	set(l, l.nodes, name, n)
}

// changeNode makes a node shrink, grow, lose contact or find it again, or cordons, taints or opens it.
func (l *randomCluster) changeNode() {
	change(l, l.nodes, anyOf(l, l.nodes), func(n *corev1.Node) {
		switch l.choose(5) {
		case 0:
			n.Status.Allocatable = fixture.List(l.choose.oneOf("cpu=1 memory=8Gi pods=5", "cpu=8 memory=16Gi pods=20", "cpu=3 memory=3Gi pods=2"))
		case 1:
			status := corev1.ConditionStatus(l.choose.oneOf("True", "False", "Unknown"))
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
		case 2:
			n.Spec.Unschedulable = !n.Spec.Unschedulable
		case 3:
			n.Spec.Taints = []corev1.Taint{{Key: "kept", Value: "free", Effect: corev1.TaintEffectNoSchedule}}
		case 4:
			n.Spec.Unschedulable, n.Spec.Taints, n.Status.Conditions = false, nil, nil
		}
	})
}

func (l *randomCluster) dropNode() { drop(l, l.nodes, anyOf(l, l.nodes)) }

func (l *randomCluster) makeQueue(name string) {
	if l.queues[name] != nil {
		return
	}
	q := fixture.Queue(name)
	l.identify(q)
	l.vary(q)
	set(l, l.queues, name, q)
}

// vary gives a queue its place, its weight and its limits.
func (l *randomCluster) vary(q *schedulingv1beta1.Queue) {
	q.Generation++
	q.Spec.Weight = int32(1 + l.choose(3))
	q.Spec.Parent = l.choose.oneOf("", "root", "q0", "q1", "nowhere")
	q.Spec.Priority = int32(l.choose(2))
	q.Spec.Capability = fixture.List(l.choose.oneOf("", "cpu=3", "cpu=6 memory=4Gi", "pods=3"))
	q.Spec.Deserved = fixture.List(l.choose.oneOf("", "cpu=2", "cpu=4 memory=2Gi"))
	q.Spec.Guarantee.Resource = fixture.List(l.choose.oneOf("", "", "cpu=1"))
	q.Annotations = nil
	if path := l.choose.oneOf("", "", "root/a", "root/b", "root//"); path != "" {
		q.Annotations = map[string]string{"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": "1/2"}
	}
}

func (l *randomCluster) changeQueue() {
	change(l, l.queues, anyOf(l, l.queues), func(q *schedulingv1beta1.Queue) {
		if l.choose(2) == 0 {
			l.vary(q)
			return
		}
		q.Status.State = schedulingv1beta1.QueueState(l.choose.oneOf("Open", "Closed", "Closing", "Open"))
	})
}

func (l *randomCluster) dropQueue() { drop(l, l.queues, anyOf(l, l.queues)) }

func (l *randomCluster) changeRank() {
	name := l.choose.oneOf("low", "high")
	if l.choose(4) == 3 {
		drop(l, l.ranks, name)
		return
	}
	rank := fixture.PriorityClass(name, int32(l.choose(4)))
	rank.UID = types.UID(name)
	set(l, l.ranks, name, rank)
}

// makeGroup makes a gang with its pods. Before it is admitted its pods may be there already, or come afterwards.
func (l *randomCluster) makeGroup(name string) {
	if l.groups[name] != nil {
		return
	}
	size := 1 + l.choose(4)
	g := fixture.Group(name, l.choose.oneOf("default", "q0", "q1", "q2", "q3", "nowhere"), int32(max(size-l.choose(2), 0)))
	l.identify(g)
	g.Spec.PriorityClassName = l.choose.oneOf("", "low", "high")
	if l.choose(3) == 2 {
		fixture.NeedingOf("master", 1)(g)
	}
	if l.choose(2) == 1 {
		fixture.PendingAdmission(g)
		if l.choose(2) == 1 {
			fixture.Wanting(l.choose.oneOf("cpu=1", "cpu=3 memory=1Gi", "cpu=20"))(g)
		}
	}
	set(l, l.groups, name, g)
	if g.Status.Phase == schedulingv1beta1.PodGroupPending && l.choose(2) == 1 {
		return
	}
	for i := range size {
		l.makePod(fmt.Sprintf("%s-%d", name, i), name)
	}
}

func (l *randomCluster) changeGroup() {
	change(l, l.groups, anyOf(l, l.groups), func(g *schedulingv1beta1.PodGroup) {
		switch l.choose(3) {
		case 0:
			g.Spec.MinMember = int32(l.choose(4))
		case 1:
			g.Spec.Queue = l.choose.oneOf(queueNames...)
		case 2:
			g.Spec.MinTaskMember = nil
		}
	})
}

func (l *randomCluster) dropGroup() { drop(l, l.groups, anyOf(l, l.groups)) }

// morePods makes a gang grow, or gives back what it lost, under the old names.
func (l *randomCluster) morePods() {
	if name := anyOf(l, l.groups); name != "" {
		l.makePod(fmt.Sprintf("%s-%d", name, l.choose(6)), name)
	}
}

func (l *randomCluster) makePod(name, group string) {
	if l.pods[name] != nil {
		return
	}
	p := fixture.Pod(name, fixture.In(group), fixture.As(l.choose.oneOf("worker", "worker", "master"), l.choose(3)),
		fixture.Asks(l.choose.oneOf("cpu=1", "cpu=1", "cpu=2 memory=1Gi", "", "memory=2Gi", "nvidia.com/gpu=1")),
		fixture.WithPriority(int32(l.choose(2))), fixture.Labelled("app", group))
	l.identify(p)
	switch l.choose(12) {
	case 6:
		fixture.Selecting("zone", l.choose.oneOf("a", "b"))(p)
	case 7:
		fixture.OnPort(8080)(p)
	case 8:
		fixture.ApartFrom("app", group)(p)
	case 9:
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}}
	case 10:
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	case 11:
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone",
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": group}}}}
	}
	set(l, l.pods, name, p)
}

// changePod removes gates of a pod, ends it well or badly, or deletes it.
func (l *randomCluster) changePod() {
	change(l, l.pods, anyOf(l, l.pods), func(p *corev1.Pod) {
		switch l.choose(4) {
		case 0:
			p.Spec.SchedulingGates = nil
		case 1:
			now := metav1.NewTime(l.now)
			p.DeletionTimestamp = &now
		case 2:
			if p.Spec.NodeName != "" {
				p.Status.Phase = corev1.PodPhase(l.choose.oneOf("Running", "Succeeded", "Failed"))
			}
		case 3:
			p.Labels = map[string]string{"app": l.choose.oneOf(groupNames...)}
		}
	})
}

func (l *randomCluster) dropPod() { drop(l, l.pods, anyOf(l, l.pods)) }

// foreign is a pod of another scheduler that takes room, or is to have it.
func (l *randomCluster) foreign() {
	name, node := l.choose.oneOf("s0", "s1"), anyOf(l, l.nodes)
	if node == "" {
		return
	}
	if l.pods[name] != nil {
		change(l, l.pods, name, func(p *corev1.Pod) {
			if p.Spec.NodeName == "" {
				p.Spec.NodeName, p.Status.NominatedNodeName = node, ""
			}
		})
		return
	}
	p := fixture.Pod(name)
	if p.Spec.SchedulerName = "other"; l.choose(3) == 2 {
		p.Status.NominatedNodeName = node
	} else {
		fixture.On(node)(p)
	}
	l.identify(p)
	set(l, l.pods, name, p)
}

// answer lets the API server answer some of the bindings that are under way.
func (l *randomCluster) answer() {
	l.underway = slices.DeleteFunc(l.underway, func(b decision.Bind) bool {
		switch l.choose(4) {
		case 0, 1:
			l.bind(b)
		case 2:
			l.hear(cache.BindFailed{Pod: b.Pod, UID: b.UID, At: l.now})
		case 3:
			return false
		}
		return true
	})
}

// bind lets a binding succeed, if the pod is still the one that was meant and is not being deleted.
func (l *randomCluster) bind(b decision.Bind) {
	if p := l.pods[b.Pod.Name]; p != nil && p.UID == b.UID && p.DeletionTimestamp == nil {
		change(l, l.pods, b.Pod.Name, func(p *corev1.Pod) {
			p.Spec.NodeName = b.Node
			if l.choose(2) == 1 {
				p.Status.Phase = corev1.PodRunning
			}
		})
	}
}

// pass lets time go by.
func (l *randomCluster) pass() { l.now = l.now.Add(time.Duration(l.choose(20)) * time.Second) }

// cycle runs one cycle, on all that was not heard yet, and carries out what it decides except the bindings, which are
// then under way.
func (l *randomCluster) cycle() scheduler.Result {
	l.now = l.now.Add(time.Second)
	t := turn{now: l.now, configuration: l.configuration, events: l.events}
	l.events = nil
	result := t.run(l.scheduler, l.turns)
	t.decided, l.wake = text(&result.Decisions), result.Wake
	l.turns = append(l.turns, t)
	l.underway = append(l.underway, result.Decisions.Binds...)
	for _, d := range result.Decisions.Groups {
		change(l, l.groups, d.Job.Name, func(g *schedulingv1beta1.PodGroup) { g.Status = d.Status })
	}
	for _, d := range result.Decisions.Pods {
		change(l, l.pods, d.Pod.Name, func(p *corev1.Pod) { p.Status.Conditions = []corev1.PodCondition{d.Condition} })
	}
	for _, d := range result.Decisions.Queues {
		change(l, l.queues, d.Queue, func(q *schedulingv1beta1.Queue) { q.Status.Allocated = d.Allocated })
	}
	return result
}

// run tells a scheduler of a turn after others, and lets it decide.
func (t turn) run(s *scheduler.Scheduler, before []turn) scheduler.Result {
	if len(before) == 0 || before[len(before)-1].configuration != t.configuration {
		use(s, t.configuration)
	}
	return s.Cycle(t.now, t.events)
}

// text is what was decided, byte for byte.
func text(d *decision.Decisions) string {
	decided, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return string(decided)
}

// steps are all that can happen, by name.
func (l *randomCluster) steps() map[string]func() {
	return map[string]func(){
		"make node": func() { l.makeNode(l.choose.oneOf(nodeNames...)) }, "change node": l.changeNode, "drop node": l.dropNode,
		"make queue": func() { l.makeQueue(l.choose.oneOf(queueNames...)) }, "change queue": l.changeQueue, "drop queue": l.dropQueue,
		"make group": func() { l.makeGroup(l.choose.oneOf(groupNames...)) }, "make another group": func() { l.makeGroup(l.choose.oneOf(groupNames...)) },
		"change group": l.changeGroup, "drop group": l.dropGroup, "more pods": l.morePods, "change pod": l.changePod,
		"change another pod": l.changePod, "drop pod": l.dropPod, "foreign": l.foreign, "change rank": l.changeRank,
		"answer": l.answer, "answer more": l.answer, "pass": l.pass, "reconfigure": l.reconfigure,
	}
}
