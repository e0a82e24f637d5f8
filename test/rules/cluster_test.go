package rules

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
)

// chooser makes all random choices: it returns a number from 0 to n-1. Zero is the plainest choice.
type chooser func(n int) int

func (choose chooser) oneOf(words ...string) string { return words[choose(len(words))] }

// once reports true once in so many times, and not in the plainest choice.
func (choose chooser) once(in int) bool { return choose(in) == in-1 }

// testCluster is a virtual cluster that goes on between the cycles of a scheduler.
type testCluster struct {
	objects
	choose    chooser
	setting   setting
	scheduler *scheduler.Scheduler
	judge     *judge
	now       time.Time
	births    int

	events  []cache.Event   // that the scheduler has not heard yet
	letters []*letter       // plans that are being carried out
	binds   []decision.Bind // that are under way
	deaths  map[types.UID]time.Time

	// willing is set if nothing is refused and every pod dies that is told to; calm, if moreover everything is done at
	// once.
	willing, calm bool
	hasTerms      bool   // pods have terms about each other; see bindTerms
	wide          *wider // nil in most clusters
	// isFrozen says that no time passes from cycle to cycle.
	isFrozen bool
	// immortal are pods that do not die though they are told to.
	immortal map[types.UID]bool

	turns []turn
	wake  time.Time
	// isTried says that the last cycle tried to place pods and found no node for some.
	isTried bool
}

// turn is all that one cycle hears and decides.
type turn struct {
	now     time.Time
	events  []cache.Event
	crash   bool // a new scheduler begins with it
	decided string
	story   *decision.Decisions
}

// letter is a plan that is being carried out: how far.
type letter struct {
	plan     decision.PlanStart
	step     int                 // 0 nothing, 1 recorded, 2 nominated, 3 marked
	unsent   []decision.Eviction // in the order in which they are sent
	finished bool
}

func newTestCluster(s setting, choose chooser) *testCluster {
	w := &testCluster{choose: choose, setting: s, scheduler: s.start(), now: fixture.Birth.Add(time.Hour), deaths: map[types.UID]time.Time{},
		immortal: map[types.UID]bool{}}
	w.objects = objects{nodes: map[string]*corev1.Node{}, queues: map[string]*schedulingv1beta1.Queue{},
		groups: map[string]*schedulingv1beta1.PodGroup{}, pods: map[string]*corev1.Pod{},
		classes: map[string]*schedulingv1.PriorityClass{}, budgets: map[string]*policyv1.PodDisruptionBudget{}}
	w.judge = &judge{setting: s, objects: &w.objects, memory: newMemory()}
	return w
}

// identify gives a new object an identity and an age.
func (w *testCluster) identify(o metav1.Object) {
	w.births++
	o.SetUID(types.UID(fmt.Sprintf("%s-%d", o.GetName(), w.births)))
}

// set shows objects that are new or have changed.
func (w *testCluster) set(all ...runtime.Object) {
	for _, object := range all {
		switch o := object.(type) {
		case *corev1.Node:
			w.nodes[o.Name] = o
		case *corev1.Pod:
			w.pods[o.Name] = o
		case *schedulingv1beta1.Queue:
			w.queues[o.Name] = o
		case *schedulingv1beta1.PodGroup:
			w.groups[o.Name] = o
		case *schedulingv1.PriorityClass:
			w.classes[o.Name] = o
		case *policyv1.PodDisruptionBudget:
			w.budgets[o.Name] = o
		}
		w.events = append(w.events, cache.Set{Object: object})
	}
}

func (w *testCluster) drop(object runtime.Object) {
	switch o := object.(type) {
	case *corev1.Node:
		delete(w.nodes, o.Name)
	case *corev1.Pod:
		delete(w.pods, o.Name)
	case *schedulingv1beta1.PodGroup:
		delete(w.groups, o.Name)
	}
	w.events = append(w.events, cache.Delete{Object: object})
}

// change shows a pod as it is after a change, if it is still the one that is meant.
func (w *testCluster) change(key types.NamespacedName, uid types.UID, how func(*corev1.Pod)) bool {
	p := w.pods[key.Name]
	if p == nil || p.UID != uid {
		return false
	}
	p = p.DeepCopy()
	how(p)
	w.set(p)
	return true
}

// cycle runs one cycle on all that the scheduler does not know yet, checks it by the judge, and begins to carry out
// what was decided.
func (w *testCluster) cycle() *decision.Decisions {
	if !w.isFrozen {
		w.now = w.now.Add(time.Second)
	}
	t := turn{now: w.now, events: w.events}
	w.events = nil
	at := take(w.setting, &w.objects, w.judge.memory, w.now)
	result := w.scheduler.Cycle(t.now, t.events)
	w.wake, w.isTried = result.Wake, result.Unplaced > 0
	d := &result.Decisions
	t.decided, t.story = text(d), d
	w.turns = append(w.turns, t)
	if result.Panic != "" {
		w.judge.breach("S5", "the scheduler failed: %s", result.Panic)
	}
	for _, problem := range w.scheduler.Cache().Audit() {
		w.judge.breach("S5", "audit: %s", problem)
	}
	w.judge.cycle(d, at)
	w.watch(d)
	if most := 2*len(w.groups) + 10; len(d.Ended) > most {
		w.judge.breach("S2", "one cycle ends %d plans, of %d jobs", len(d.Ended), len(w.groups))
	}
	w.heed(d)
	return d
}

// text is what was decided, byte for byte.
func text(d *decision.Decisions) string {
	decided, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return string(decided)
}

// heed takes in what was decided. Plans that end come first, as in an outbox that never sends what was taken back.
func (w *testCluster) heed(d *decision.Decisions) {
	for _, e := range d.Ended {
		w.letters = slices.DeleteFunc(w.letters, func(l *letter) bool { return l.plan.ID == e.ID })
		for _, n := range e.Nominations {
			w.change(n.Pod, n.UID, func(p *corev1.Pod) {
				p.Status.NominatedNodeName = ""
				record(p, schedulingv1beta1.PromiseRecordKey, "")
			})
		}
		for _, s := range e.Spared {
			w.change(s.Pod, s.UID, func(p *corev1.Pod) { disrupt(p, corev1.ConditionFalse, "", s.Record()) })
		}
	}
	w.binds = append(w.binds, d.Binds...)
	for _, g := range d.Groups {
		w.setStatus(g)
	}
	for _, s := range d.Plans {
		l := &letter{plan: s, unsent: slices.Clone(s.Evictions)}
		for i := len(l.unsent) - 1; i > 0; i-- {
			other := i - w.choose(i+1)
			l.unsent[i], l.unsent[other] = l.unsent[other], l.unsent[i]
		}
		w.letters = append(w.letters, l)
	}
}

func (w *testCluster) setStatus(g decision.GroupStatus) {
	if object := w.groups[g.Job.Name]; object != nil && object.UID == g.UID {
		object = object.DeepCopy()
		object.Status = g.Status
		w.set(object)
	}
}

// record writes a record on a pod, or takes it off if it is "".
func record(p *corev1.Pod, key, value string) {
	delete(p.Annotations, key)
	if value != "" {
		metav1.SetMetaDataAnnotation(&p.ObjectMeta, key, value)
	}
}

// disrupt writes the condition of a pod that is to leave, and records it.
func disrupt(p *corev1.Pod, status corev1.ConditionStatus, message, value string) {
	record(p, schedulingv1beta1.EvictionRecordKey, value)
	p.Status.Conditions = slices.DeleteFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget })
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: status,
		Reason: corev1.PodReasonPreemptionByScheduler, Message: message})
}

// goOn lets the API server and the kubelets do some of what is under way.
func (w *testCluster) goOn() {
	w.binds = slices.DeleteFunc(w.binds, func(b decision.Bind) bool {
		if !w.calm && w.choose.once(4) {
			return false // takes longer
		}
		if !w.willing && w.choose.once(12) {
			w.refuseBind(b)
			return true
		}
		w.land(b)
		return true
	})
	for _, l := range w.letters {
		for !l.finished && (w.calm || !w.choose.once(3)) {
			w.carryOn(l)
		}
	}
	w.letters = slices.DeleteFunc(w.letters, func(l *letter) bool { return l.finished })
	w.cordon()
	w.die()
	w.recount()
	w.judge.memory.remember(&w.objects)
}

// refuseBind lets a binding fail.
func (w *testCluster) refuseBind(b decision.Bind) {
	w.events = append(w.events, cache.BindFailed{Pod: b.Pod, UID: b.UID, At: w.now, Reason: "somebody said no"})
	w.forget()
	delete(w.judge.memory.bound, b.UID)
}

// land lets a binding succeed.
func (w *testCluster) land(b decision.Bind) {
	ok := w.pods[b.Pod.Name] != nil && w.pods[b.Pod.Name].DeletionTimestamp == nil && w.nodes[b.Node] != nil
	landed := ok && w.change(b.Pod, b.UID, func(p *corev1.Pod) {
		p.Spec.NodeName, p.Status.Phase = b.Node, corev1.PodRunning
		p.Status.StartTime = &metav1.Time{Time: w.now}
		p.Status.NominatedNodeName = ""
	})
	if !landed {
		w.events = append(w.events, cache.BindFailed{Pod: b.Pod, UID: b.UID, At: w.now, Reason: "it is gone"})
		w.forget()
		delete(w.judge.memory.bound, b.UID)
	}
}

// carryOn does the next step of a plan: it is recorded, nominations and victims are marked, and then each victim is
// evicted.
func (w *testCluster) carryOn(l *letter) {
	switch {
	case l.step == 0:
		w.setStatus(l.plan.Group)
	case l.step == 1:
		for _, n := range l.plan.Nominations {
			w.change(n.Pod, n.UID, func(p *corev1.Pod) {
				p.Status.NominatedNodeName = n.Node
				record(p, schedulingv1beta1.PromiseRecordKey, l.plan.PromiseRecord())
			})
		}
	case l.step == 2:
		for _, e := range l.unsent {
			w.change(e.Pod, e.UID, func(p *corev1.Pod) { disrupt(p, corev1.ConditionTrue, e.Message, e.Record()) })
		}
	case len(l.unsent) == 0:
		l.finished = true
		return
	default:
		e := l.unsent[0]
		l.unsent = l.unsent[1:]
		if !w.evict(e) {
			w.refuseEviction(l)
		}
		return
	}
	l.step++
}

// refuseEviction lets an eviction of a plan fail, and with it the plan.
func (w *testCluster) refuseEviction(l *letter) {
	l.finished = true
	w.forget()
	w.events = append(w.events, cache.PlanFailed{Job: l.plan.Job, Plan: l.plan.ID, At: w.now, Reason: "an eviction was refused"})
}

// evict terminates a pod, unless a budget forbids it or the API server refuses.
func (w *testCluster) evict(e decision.Eviction) bool {
	p := w.pods[e.Pod.Name]
	if p == nil || p.UID != e.UID || p.DeletionTimestamp != nil {
		return true // gone already
	}
	if !w.willing && w.choose.once(16) {
		return false
	}
	if !e.PastBudget {
		for _, b := range w.budgets {
			if covers(b, p) && b.Status.DisruptionsAllowed <= 0 {
				return false
			}
		}
	}
	w.end(p)
	w.restart(p, e)
	w.recount()
	return true
}

// end begins the deletion of a pod, which takes its time.
func (w *testCluster) end(p *corev1.Pod) {
	grace := w.graceOf()
	w.change(types.NamespacedName{Namespace: p.Namespace, Name: p.Name}, p.UID, func(p *corev1.Pod) {
		seconds := int64(grace / time.Second)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: w.now.Add(grace)}, &seconds
	})
	if !w.willing && w.choose.once(20) {
		w.immortal[p.UID] = true
	}
	w.deaths[p.UID] = w.now.Add(time.Duration(w.choose(1+int(grace/time.Second))) * time.Second)
}

// die removes pods whose time is over; those of a job come back.
func (w *testCluster) die() {
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		p := w.pods[name]
		if p.DeletionTimestamp == nil || w.immortal[p.UID] || w.now.Before(w.deaths[p.UID]) {
			continue
		}
		w.remove(p)
	}
}

// remove removes a pod. One of a job comes back.
func (w *testCluster) remove(p *corev1.Pod) {
	w.drop(p)
	if w.groups[groupOf(p)] != nil && p.Spec.SchedulerName == "volcano" {
		w.set(w.again(p))
	}
}

func groupOf(p *corev1.Pod) string {
	return p.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]
}

// again is the pod that a controller makes in place of one that is gone.
func (w *testCluster) again(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	w.identify(p)
	p.CreationTimestamp, p.DeletionTimestamp, p.DeletionGracePeriodSeconds = metav1.NewTime(w.now), nil, nil
	p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	return p
}

func covers(b *policyv1.PodDisruptionBudget, p *corev1.Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && selector.Matches(labels.Set(p.Labels))
}

// recount writes into the budgets what they allow.
func (w *testCluster) recount() {
	for _, name := range slices.Sorted(maps.Keys(w.budgets)) {
		b, healthy := w.budgets[name], 0
		for _, p := range w.pods {
			if covers(b, p) && p.Spec.NodeName != "" && p.DeletionTimestamp == nil {
				healthy++
			}
		}
		allowed := int32(max(healthy-b.Spec.MinAvailable.IntValue(), 0))
		if allowed != b.Status.DisruptionsAllowed {
			b = b.DeepCopy()
			b.Status.DisruptionsAllowed = allowed
			w.set(b)
		}
	}
}

// crash throws the scheduler away. What was not written is lost; bindings have succeeded or never will.
func (w *testCluster) crash() {
	for _, b := range w.binds {
		if w.choose(2) == 1 {
			w.land(b)
		}
	}
	w.binds, w.letters = nil, nil
	w.forget()
	w.scheduler = w.setting.start()
	w.judge.memory = w.written()
	w.events = w.all()
	w.turns = append(w.turns, turn{now: w.now, crash: true})
}

// all are the objects there are, as a scheduler hears of them that starts now.
func (w *testCluster) all() []cache.Event {
	var events []cache.Event
	list(&events, w.classes)
	list(&events, w.queues)
	list(&events, w.nodes)
	list(&events, w.groups)
	list(&events, w.pods)
	list(&events, w.budgets)
	return events
}

func list[T runtime.Object](events *[]cache.Event, all map[string]T) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		*events = append(*events, cache.Set{Object: all[name]})
	}
}

// written is what a new scheduler can know of the plans of the last: pods that are promised nodes.
func (w *testCluster) written() *memory {
	m := newMemory()
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		p := w.pods[name]
		if p.Spec.NodeName != "" || p.Status.NominatedNodeName == "" || p.DeletionTimestamp != nil || w.groups[groupOf(p)] == nil {
			continue
		}
		id := "written for " + groupOf(p)
		if m.plans[id] == nil {
			m.plans[id] = &plan{id: id, preemptor: groupOf(p), victims: map[types.UID]string{}, nominated: map[types.UID]string{}}
		}
		m.plans[id].nominated[p.UID] = p.Status.NominatedNodeName
	}
	return m
}

// acts reports whether anything is under way, apart from what the scheduler has not heard yet.
func (w *testCluster) acts() bool {
	for _, p := range w.pods {
		if p.DeletionTimestamp != nil && !w.immortal[p.UID] {
			return true
		}
	}
	return len(w.binds)+len(w.letters) > 0 || w.isCordoning()
}

// hearsOnlyStatuses reports whether all that the scheduler has not heard yet is what it wrote about jobs itself.
func (w *testCluster) hearsOnlyStatuses() bool {
	return !slices.ContainsFunc(w.events, func(e cache.Event) bool {
		set, ok := e.(cache.Set)
		if !ok {
			return true
		}
		_, isGroup := set.Object.(*schedulingv1beta1.PodGroup)
		return !isGroup
	})
}
