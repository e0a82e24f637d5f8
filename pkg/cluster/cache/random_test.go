package cache

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"hekla.sh/hekla/pkg/cluster"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/test/fixture"
)

// chooser makes all random choices: it returns a number from 0 to n-1. Zero is the plainest choice.
type chooser func(n int) int

func (choose chooser) oneOf(words ...string) string { return words[choose(len(words))] }

// randomModel is a small simulated cluster, and the model that hears of it. What exists is kept, so that another model
// can be told of it afresh.
type randomModel struct {
	choose  chooser
	model   *Cache
	exists  map[string]runtime.Object // by kind and name
	heard   map[string][]Event        // all events, by kind and name
	uids    int
	shown   int // how many states of objects
	plans   int
	now     time.Time
	lastPod map[string]*corev1.Pod // by name, pods that are gone too
}

func newRandomModel(choose chooser) *randomModel {
	return &randomModel{choose: choose, model: New(Options{SchedulerNames: []string{"volcano"}}), exists: map[string]runtime.Object{},
		heard: map[string][]Event{}, now: birth, lastPod: map[string]*corev1.Pod{}}
}

// tell applies an object to the model.
func (w *randomModel) tell(id string, events ...Event) {
	w.heard[id] = append(w.heard[id], events...)
	w.model.Apply(events...)
}

// born gives an object a name, an identity, and an age that is its own.
func (w *randomModel) born(name string) metav1.ObjectMeta {
	w.uids++
	return metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprintf("%s-%d", name, w.uids)),
		CreationTimestamp: metav1.Time{Time: birth.Add(time.Duration(w.uids) * time.Second)}}
}

// set shows an object that exists or is new; make is told the metadata of its life so far.
func (w *randomModel) set(kind, name string, make func(metav1.ObjectMeta) runtime.Object) {
	id := kind + " " + name
	var object runtime.Object
	switch old := w.exists[id]; {
	case old == nil:
		object = make(w.born(name))
	case w.choose(6) == 5:
		// Deleted and created again; sometimes the watch does not deliver the deletion, or too late.
		object = make(w.born(name))
		switch w.choose(3) {
		case 0:
			w.tell(id, Delete{old})
		case 1:
			w.tell(id, Set{object}, Delete{old})
		}
	default:
		meta := *old.(metav1.ObjectMetaAccessor).GetObjectMeta().(*metav1.ObjectMeta)
		meta.Annotations, meta.Labels = nil, nil
		object = make(meta)
	}
	w.shown++
	object.(metav1.Object).SetResourceVersion(strconv.Itoa(w.shown))
	w.exists[id] = object
	w.tell(id, Set{object})
}

func (w *randomModel) drop(kind, name string) {
	id := kind + " " + name
	if object := w.exists[id]; object != nil {
		delete(w.exists, id)
		w.tell(id, Delete{object})
	}
}

var (
	podNames   = []string{"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"}
	nodeNames  = []string{"n0", "n1", "n2"}
	groupNames = []string{"g0", "g1", "g2"}
	queueNames = []string{"default", "q0", "q1", "q2", "root"}
	classNames = []string{"low", "high"}
	ruleNames  = []string{"r0", "r1"}

	hyperNodeNames = []string{"h0", "h1", "h2"}
)

func (w *randomModel) amounts() corev1.ResourceList {
	return list(w.choose.oneOf("cpu=1", "", "cpu=2 memory=1Gi", "memory=2Gi", "cpu=1 nvidia.com/gpu=1", "cpu=500m example.com/device=3"))
}

func (w *randomModel) setPod() { w.makePod(w.choose.oneOf(podNames...)) }

func (w *randomModel) makePod(name string) {
	w.set("pod", name, func(meta metav1.ObjectMeta) runtime.Object {
		meta.Namespace = namespace
		if before := w.lastPod[name]; before != nil && before.UID == meta.UID && w.choose(3) == 2 {
			p := w.restated(before)
			w.lastPod[name] = p
			return p
		}
		meta.Generation++
		p := &corev1.Pod{ObjectMeta: meta}
		p.Annotations, p.Labels = map[string]string{}, map[string]string{}
		p.Spec.SchedulerName = w.choose.oneOf("volcano", "volcano", "volcano", "other")
		p.Spec.Containers = []corev1.Container{{Name: "main"}}
		p.Spec.Containers[0].Resources.Requests = w.amounts()
		in(w.choose.oneOf("g0", "g1", "g2", "g3"))(p)
		role(w.choose.oneOf("worker", "master"))(p)
		labelled("app", w.choose.oneOf("a", "b"))(p)
		if key := w.choose.oneOf("", "", "a", "b", "all"); key == "all" {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		} else if key != "" {
			p.Spec.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
		}
		if before := w.lastPod[name]; before != nil && before.UID == p.UID {
			p.Spec.NodeName = before.Spec.NodeName // a pod never leaves its node
		}
		w.vary(p)
		w.lastPod[name] = p
		return p
	})
}

// restated changes what may change of a pod while its generation stays: its status, its node, its labels.
func (w *randomModel) restated(before *corev1.Pod) *corev1.Pod {
	p := before.DeepCopy()
	switch w.choose(8) {
	case 0:
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled})
	case 1:
		p.Status.Phase = []corev1.PodPhase{corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodUnknown}[w.choose(4)]
	case 2:
		if p.Spec.NodeName == "" {
			p.Spec.NodeName = w.choose.oneOf(nodeNames...)
		}
	case 3:
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main",
			Resources: &corev1.ResourceRequirements{Requests: list(w.choose.oneOf("cpu=3", "cpu=500m"))}}}
	case 4:
		labelled("app", w.choose.oneOf("a", "b"))(p)
	case 5:
		role(w.choose.oneOf("worker", "master"))(p)
	case 6:
		deleting(p)
	case 7:
		in(w.choose.oneOf("g0", "g1", "g2"))(p)
	}
	if p.Spec.SchedulerName == "other" && w.choose(3) == 0 {
		p.Status.NominatedNodeName = w.choose.oneOf("", "n0", "n1", "nowhere")
	}
	return p
}

// vary gives a pod, now and then, something that is not plain.
func (w *randomModel) vary(p *corev1.Pod) {
	for range w.choose(4) {
		switch w.choose(9) {
		case 0, 1:
			if p.Spec.NodeName == "" {
				p.Spec.NodeName = w.choose.oneOf("n0", "n1", "n2", "nowhere")
			}
		case 2:
			p.Status.Phase = corev1.PodRunning
		case 3:
			p.Status.Phase = []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown}[w.choose(3)]
		case 4:
			deleting(p)
		case 5:
			gated(p)
		case 6:
			keepsAwayFrom(w.choose.oneOf("app", "role"), w.choose.oneOf("a", "b"))(p)
		case 7:
			listensOn(8080)(p)
		case 8:
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main",
				Resources: &corev1.ResourceRequirements{Requests: list("cpu=3")}}}
		}
	}
}

// setPlanned shows a pod that is part of a plan, or on its way out.
func (w *randomModel) setPlanned() {
	if t := w.any(func(t *cluster.Task) bool {
		return t.Status == cluster.Pipelined || t.Status.Leaves() || t.Status == cluster.Lingering
	}); t != nil {
		w.makePod(t.Key().Name)
	}
}

// dropPlanned deletes such a pod.
func (w *randomModel) dropPlanned() {
	if t := w.any(func(t *cluster.Task) bool {
		return t.Status == cluster.Pipelined || t.Status.Leaves() || t.Status == cluster.Lingering
	}); t != nil {
		w.drop("pod", t.Key().Name)
	}
}

// run makes another program bind a pending pod, which then runs.
func (w *randomModel) run() {
	if t := w.any(func(t *cluster.Task) bool { return t.Status == cluster.Pending }); t != nil {
		name := t.Key().Name
		w.set("pod", name, func(meta metav1.ObjectMeta) runtime.Object {
			p := t.Pod.DeepCopy()
			p.UID, p.CreationTimestamp = meta.UID, meta.CreationTimestamp
			on(w.choose.oneOf(nodeNames...))(p)
			running(p)
			w.lastPod[name] = p
			return p
		})
	}
}

func (w *randomModel) dropPod() { w.drop("pod", w.choose.oneOf(podNames...)) }

func (w *randomModel) setNode() { w.makeNode(w.choose.oneOf(nodeNames...)) }

func (w *randomModel) makeNode(name string) {
	w.set("node", name, func(meta metav1.ObjectMeta) runtime.Object {
		n := &corev1.Node{ObjectMeta: meta}
		n.Status.Allocatable = list(w.choose.oneOf("cpu=4 memory=8Gi pods=10", "cpu=1", "cpu=8 nvidia.com/gpu=2", ""))
		if w.choose(4) == 3 {
			notReady(n)
		}
		n.Spec.Unschedulable = w.choose(4) == 3
		if key := w.choose.oneOf("", "", "a", "b"); key != "" {
			n.Spec.Taints = []corev1.Taint{{Key: key, Effect: corev1.TaintEffect(w.choose.oneOf("NoSchedule", "NoExecute", "PreferNoSchedule"))}}
		}
		n.Labels = map[string]string{"rack": w.choose.oneOf("a", "b")}
		return n
	})
}

func (w *randomModel) dropNode() { w.drop("node", w.choose.oneOf(nodeNames...)) }

func (w *randomModel) setGroup() { w.makeGroup(w.choose.oneOf(groupNames...)) }

func (w *randomModel) makeGroup(name string) {
	w.set("group", name, func(meta metav1.ObjectMeta) runtime.Object {
		meta.Namespace = namespace
		g := &schedulingv1beta1.PodGroup{ObjectMeta: meta}
		g.Spec.Queue = w.choose.oneOf("", "q0", "q1", "q2", "root", "nowhere")
		g.Spec.MinMember = int32(w.choose(4))
		g.Spec.PriorityClassName = w.choose.oneOf("", "low", "high", "unknown")
		if w.choose(2) == 1 {
			needed := w.amounts()
			g.Spec.MinResources = &needed
		}
		if w.choose(3) == 2 {
			g.Spec.MinTaskMember = map[string]int32{"worker": int32(w.choose(3)), "master": 1}
		}
		if w.choose(3) == 2 {
			g.Annotations = map[string]string{schedulingv1beta1.TaskTopologyAffinityKey: w.choose.oneOf("worker", "worker,master")}
		}
		if w.choose(4) == 3 {
			g.Annotations = map[string]string{schedulingv1beta1.SchedulerNameKey: w.choose.oneOf("volcano", "other")}
		}
		if w.choose(3) == 2 {
			size, minimum := int32(w.choose(2)+1), int32(w.choose(3))
			g.Spec.SubGroupPolicy = []schedulingv1beta1.SubGroupPolicySpec{{Name: "part", SubGroupSize: &size, MinSubGroups: &minimum,
				LabelSelector: &metav1.LabelSelector{}, MatchLabelKeys: []string{"app"}}}
		}
		return g
	})
}

func (w *randomModel) setHyperNode() {
	w.set("hypernode", w.choose.oneOf(hyperNodeNames...), func(meta metav1.ObjectMeta) runtime.Object {
		h := fixture.HyperNode(meta.Name, 1+w.choose(2), w.choose.oneOf("n0", "n1", "rack=a", "~n[12]"), w.choose.oneOf("@h0", "n2", "rack=b"))
		h.ObjectMeta = meta
		return h
	})
}

func (w *randomModel) dropHyperNode() { w.drop("hypernode", w.choose.oneOf(hyperNodeNames...)) }

func (w *randomModel) dropGroup() { w.drop("group", w.choose.oneOf(groupNames...)) }

func (w *randomModel) setQueue() { w.makeQueue(w.choose.oneOf(queueNames...)) }

func (w *randomModel) makeQueue(name string) {
	w.set("queue", name, func(meta metav1.ObjectMeta) runtime.Object {
		q := &schedulingv1beta1.Queue{ObjectMeta: meta}
		q.Generation++
		q.Spec.Parent = w.choose.oneOf("", "root", "q0", "q1", "q2", "default", "nowhere")
		q.Spec.Weight, q.Spec.Priority = int32(w.choose(3)), int32(w.choose(3))
		q.Spec.Capability, q.Spec.Deserved = w.amounts(), w.amounts()
		if w.choose(3) == 2 {
			q.Spec.Affinity = &schedulingv1beta1.Affinity{}
		}
		if w.choose(4) == 3 {
			q.Status.State = schedulingv1beta1.QueueStateClosed
		}
		return q
	})
}

func (w *randomModel) dropQueue() { w.drop("queue", w.choose.oneOf(queueNames...)) }

func (w *randomModel) setClass() { w.makeClass(w.choose.oneOf(classNames...)) }

func (w *randomModel) makeClass(name string) {
	w.set("class", name, func(meta metav1.ObjectMeta) runtime.Object {
		policy := []corev1.PreemptionPolicy{corev1.PreemptLowerPriority, corev1.PreemptNever}[w.choose(2)]
		return &schedulingv1.PriorityClass{ObjectMeta: meta, Value: int32(w.choose(5)) - 2, GlobalDefault: w.choose(3) == 2,
			PreemptionPolicy: &policy}
	})
}

func (w *randomModel) dropClass() { w.drop("class", w.choose.oneOf(classNames...)) }

func (w *randomModel) setBudget() {
	w.set("budget", w.choose.oneOf(ruleNames...), func(meta metav1.ObjectMeta) runtime.Object {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: meta}
		b.Namespace = namespace
		b.Spec.Selector = &metav1.LabelSelector{}
		if value := w.choose.oneOf("", "a", "b"); value != "" {
			b.Spec.Selector.MatchLabels = map[string]string{"app": value}
		}
		b.Status.DisruptionsAllowed = int32(w.choose(3))
		if w.choose(3) == 2 {
			b.Status.DisruptedPods = map[string]metav1.Time{w.choose.oneOf(podNames...): {Time: birth}}
		}
		return b
	})
}

func (w *randomModel) dropBudget() { w.drop("budget", w.choose.oneOf(ruleNames...)) }

func (w *randomModel) setQuota() {
	w.set("quota", w.choose.oneOf(ruleNames...), func(meta metav1.ObjectMeta) runtime.Object {
		q := &corev1.ResourceQuota{ObjectMeta: meta}
		q.Namespace = namespace
		q.Spec.Hard, q.Status.Used = w.amounts(), w.amounts()
		return q
	})
}

func (w *randomModel) dropQuota() { w.drop("quota", w.choose.oneOf(ruleNames...)) }

func (w *randomModel) settle() { w.model.Settle() }

// refuse lets a binding fail, if there is one; sometimes one that is of no concern any more.
func (w *randomModel) refuse() {
	w.now = w.now.Add(time.Duration(w.choose(5)) * time.Second)
	name := w.choose.oneOf(podNames...)
	if p := w.lastPod[name]; p != nil {
		w.model.Apply(BindFailed{Pod: key(name), UID: p.UID, At: w.now})
	}
}

// sorted returns the tasks that pass, by name.
func (w *randomModel) sorted(pass func(*cluster.Task) bool) []*cluster.Task {
	var tasks []*cluster.Task
	for _, t := range tasksOf(w.model) {
		if pass(t) {
			tasks = append(tasks, t)
		}
	}
	slices.SortFunc(tasks, func(a, b *cluster.Task) int { return cluster.CompareNames(a.Key(), b.Key()) })
	return tasks
}

// any chooses one of the tasks that pass, nil if none does.
func (w *randomModel) any(pass func(*cluster.Task) bool) *cluster.Task {
	tasks := w.sorted(pass)
	if len(tasks) == 0 {
		return nil
	}
	return tasks[w.choose(len(tasks))]
}

// try does one thing that an action may do, if there is anything to do. What is to stay leaves the plans in force
// alone, but for a promise that is kept or taken back.
func (w *randomModel) try(stays bool) {
	switch w.choose(8) {
	case 6, 7:
		tasks := w.sorted(func(t *cluster.Task) bool { return t.Status == cluster.Pending && t.Job != nil })
		if nodes := w.model.Nodes(); len(tasks) > 0 && len(nodes) > 0 {
			w.model.Place(tasks[w.choose(len(tasks))], nodes[w.choose(len(nodes))])
		}
	case 2:
		if tasks := w.sorted(func(t *cluster.Task) bool { return t.Status == cluster.Allocated }); len(tasks) > 0 {
			w.model.Commit(tasks[w.choose(len(tasks))])
		}
	case 3:
		jobs := slices.DeleteFunc(w.model.Jobs(), func(j *cluster.Job) bool { return !j.IsPendingAdmission() })
		if len(jobs) > 0 {
			w.model.Admit(jobs[w.choose(len(jobs))])
		}
	case 1:
		t := w.any(func(t *cluster.Task) bool {
			return t.Status == cluster.Pending && t.Job != nil && t.Job.Group != nil && !(stays && t.Job.Plan != nil)
		})
		nodes := slices.DeleteFunc(slices.Clone(w.model.Nodes()), func(n *cluster.Node) bool { return n.Object == nil })
		if t != nil && len(nodes) > 0 {
			w.model.Pipeline(t, nodes[w.choose(len(nodes))])
		}
	case 5:
		if t := w.any(isPromised); t != nil {
			w.model.Unpipeline(t)
		}
	case 0:
		if t := w.any(func(t *cluster.Task) bool { return t.Status == cluster.Bound || t.Status == cluster.Running }); t != nil {
			w.model.Evict(t)
		}
	case 4:
		if t := w.any(func(t *cluster.Task) bool { return t.Status == cluster.Evicting && !(stays && t.Evicts != nil) }); t != nil {
			w.model.Spare(t)
		}
	}
}

// keep does what a cycle does: some of it is tried and undone, the rest stays, all that was placed is committed, and
// all that was promised or evicted is part of a plan.
func (w *randomModel) keep() {
	w.settle()
	w.expire()
	for range 3 + w.choose(4) {
		w.try(true)
	}
	mark := w.model.Mark()
	for range w.choose(3) {
		w.try(false)
	}
	w.model.Undo(mark)
	for _, t := range w.sorted(func(t *cluster.Task) bool { return t.Status == cluster.Allocated }) {
		w.model.Commit(t)
	}
	w.model.Keep()
	w.adopt()
}

// isPromised reports whether a task is pipelined by a plan, and not by another scheduler.
func isPromised(t *cluster.Task) bool { return t.Status == cluster.Pipelined && t.Job != nil }

// adopt makes plans of what was promised and evicted: one for each job, the first of which has all the victims.
func (w *randomModel) adopt() {
	victims := w.sorted(func(t *cluster.Task) bool { return t.Status == cluster.Evicting && t.Evicts == nil })
	plan := func(j *cluster.Job) {
		w.plans++
		w.model.Plans().Adopt(&cluster.Plan{ID: strconv.Itoa(w.plans), Job: j, Victims: victims, Evictions: len(victims), Since: w.now,
			Deadline: w.now.Add(time.Hour)})
		victims = nil
	}
	for _, t := range w.sorted(isPromised) {
		if t.Job.Plan == nil {
			plan(t.Job)
		}
	}
	if len(victims) > 0 {
		plan(nil)
	}
}

// plan chooses a plan that is in force, nil if there is none.
func (w *randomModel) plan() *cluster.Plan {
	plans := w.model.Plans().All()
	if len(plans) == 0 {
		return nil
	}
	return plans[w.choose(len(plans))]
}

func (w *randomModel) cancel() {
	if p := w.plan(); p != nil {
		w.model.Plans().Cancel(p, "a test says so")
	}
}

// fulfil ends a plan of which nothing is promised any more.
func (w *randomModel) fulfil() {
	if p := w.plan(); p != nil && len(p.Promised()) == 0 {
		w.model.Plans().Fulfil(p)
	}
}

// failPlan lets a plan fail, or one that is no more.
func (w *randomModel) failPlan() {
	if p := w.plan(); p != nil {
		w.model.Apply(PlanFailed{Job: p.Preemptor(), Plan: w.choose.oneOf(p.ID, "another"), At: w.now, Reason: "a test says so"})
	}
}

// expire lets time pass, and stops counting on what should be gone.
func (w *randomModel) expire() {
	w.now = w.now.Add(time.Duration(w.choose(3)) * 20 * time.Minute)
	w.model.Expire(w.now)
}

// setPhase does what the end of a cycle does.
func (w *randomModel) setPhase() {
	if jobs := w.model.Jobs(); len(jobs) > 0 {
		phases := []schedulingv1beta1.PodGroupPhase{schedulingv1beta1.PodGroupPending, schedulingv1beta1.PodGroupRunning,
			schedulingv1beta1.PodGroupUnknown, schedulingv1beta1.PodGroupInqueue}
		w.model.SetPhase(jobs[w.choose(len(jobs))], phases[w.choose(len(phases))])
	}
}

// takeBack takes back a decision that was not handed out.
func (w *randomModel) takeBack() {
	if tasks := w.sorted(func(t *cluster.Task) bool { return t.Status == cluster.Binding }); len(tasks) > 0 {
		t := tasks[w.choose(len(tasks))]
		w.model.TakeBack([]decision.Bind{{Pod: t.Key(), UID: t.UID()}}, birth)
	}
}

// fill makes most of what there can be, so that what follows meets something.
func (w *randomModel) fill() {
	for _, name := range nodeNames {
		w.makeNode(name)
	}
	for _, name := range queueNames[:3] {
		w.makeQueue(name)
	}
	for _, name := range groupNames {
		w.makeGroup(name)
	}
	for _, name := range podNames {
		w.makePod(name)
	}
	for range len(podNames) / 2 {
		w.run()
	}
}

// actions are all that can happen, by name.
func (w *randomModel) actions() map[string]func() {
	return map[string]func(){
		"set pod": w.setPod, "set another pod": w.setPod, "set a third pod": w.setPod, "drop pod": w.dropPod,
		"set node": w.setNode, "drop node": w.dropNode, "set group": w.setGroup, "drop group": w.dropGroup,
		"set queue": w.setQueue, "drop queue": w.dropQueue, "set class": w.setClass, "drop class": w.dropClass,
		"settle": w.settle, "refuse": w.refuse, "keep": w.keep, "keep more": w.keep, "keep again": w.keep, "set phase": w.setPhase, "take back": w.takeBack,
		"run": w.run, "set planned": w.setPlanned, "set another planned": w.setPlanned, "drop planned": w.dropPlanned,
		"set budget": w.setBudget, "drop budget": w.dropBudget, "set quota": w.setQuota, "drop quota": w.dropQuota,
		"set hypernode": w.setHyperNode, "drop hypernode": w.dropHyperNode,
		"cancel": w.cancel, "fulfil": w.fulfil, "fail plan": w.failPlan, "expire": w.expire,
	}
}

// events are the actions that are told from outside, and may happen whatever the model decides.
func (w *randomModel) events() []func() {
	return []func(){w.setPod, w.setPod, w.setPod, w.setPod, w.dropPod, w.setNode, w.dropNode, w.setGroup, w.setGroup,
		w.dropGroup, w.setQueue, w.setQueue, w.dropQueue, w.setClass, w.dropClass, w.setBudget, w.dropBudget, w.setQuota,
		w.dropQuota, w.setHyperNode, w.setHyperNode, w.dropHyperNode}
}

// shuffled returns a model that hears all that this one heard, in another order, but of each object in the same.
func (w *randomModel) shuffled() *Cache {
	var turns []string
	for id, events := range w.heard {
		for range events {
			turns = append(turns, id)
		}
	}
	slices.Sort(turns)
	next := map[string]int{}
	c := New(w.model.options)
	for len(turns) > 0 {
		i := w.choose(len(turns))
		id := turns[i]
		turns = slices.Delete(turns, i, i+1)
		c.Apply(w.heard[id][next[id]])
		next[id]++
		if w.choose(5) == 4 {
			c.Settle()
		}
	}
	c.Settle()
	return c
}

// again returns a model that is told now, in some order, of all that exists, and what was decided here.
func (w *randomModel) again() *Cache {
	objects := make([]string, 0, len(w.exists))
	for id := range w.exists {
		objects = append(objects, id)
	}
	slices.Sort(objects)
	c := New(w.model.options)
	for len(objects) > 0 {
		i := w.choose(len(objects))
		c.Apply(Set{w.exists[objects[i]]})
		objects = slices.Delete(objects, i, i+1)
	}
	c.Settle()
	for _, t := range w.sorted(func(t *cluster.Task) bool { return t.Status == cluster.Binding }) {
		c.Place(c.Task(t.Key()), c.writer.Nodes.Named(t.Node.Name))
		c.Commit(c.Task(t.Key()))
	}
	for _, t := range w.sorted(isPromised) {
		c.Pipeline(c.Task(t.Key()), c.writer.Nodes.Named(t.Node.Name))
	}
	for _, t := range w.sorted(func(t *cluster.Task) bool { return t.Status == cluster.Evicting }) {
		t = c.Task(t.Key())
		c.writer.Tasks.Show(t, model.TaskState{Pod: t.Pod, Status: cluster.Evicting, Shown: t.Status, Node: t.Node}, func() {}) // perhaps its node has lost contact since, or it had when this model heard of it first
	}
	c.Keep()
	for _, p := range w.model.Plans().All() {
		p = &cluster.Plan{ID: p.ID, Since: p.Since, Deadline: p.Deadline, Evictions: p.Evictions, Job: c.Job(p.Preemptor()), Victims: slices.Clone(p.Victims)}
		for i, t := range p.Victims {
			p.Victims[i] = c.Task(t.Key())
		}
		c.Plans().Adopt(p)
	}
	c.Expire(w.now)
	for _, j := range w.model.Jobs() {
		c.Job(j.ID).Admission.Emptied = j.Admission.Emptied // no object says that all pods of a job have gone
		c.SetPhase(c.Job(j.ID), j.Phase)
	}
	c.Settle()
	return c
}
