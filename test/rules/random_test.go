package rules

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

// randomCluster is a small cluster, mostly full, with jobs that wait.
func randomCluster(s setting, choose chooser) *testCluster {
	w := newTestCluster(s, choose)
	w.populate()
	return w
}

// populate makes nodes, queues and jobs.
func (w *testCluster) populate() {
	choose := w.choose
	w.makeClasses()
	nodes := 1 + choose(3)
	if choose.once(10) {
		nodes += 3
	}
	for i := range nodes {
		w.makeNode(fmt.Sprintf("n%d", i))
	}
	queues := 1 + choose(4)
	for i := range queues {
		w.makeQueue(fmt.Sprintf("q%d", i), i)
	}
	for i := range 2 + choose(4) {
		w.makeJob(fmt.Sprintf("j%d", i), queues, !choose.once(12))
	}
	for i := range 1 + choose(2) {
		w.makeJob(fmt.Sprintf("t%d", i), queues, false)
	}
	if choose.once(4) {
		w.makeBudget("b0")
	}
	if choose.once(8) {
		w.makeForeignPod()
	}
	w.recount()
}

func (w *testCluster) makeClasses() {
	w.set(fixture.PriorityClasses()...)
}

func (w *testCluster) makeNode(name string) {
	n := fixture.Node(name, w.choose.oneOf("cpu=2", "cpu=1", "cpu=3", "cpu=2 gpu=1", "cpu=3 pods=2", "cpu=4 memory=2"))
	n.Labels["zone"] = w.choose.oneOf("a", "b")
	if w.choose.once(12) {
		n.Spec.Taints = []corev1.Taint{{Key: "kept", Effect: corev1.TaintEffectNoSchedule}}
	}
	w.identify(n)
	w.set(n)
}

func (w *testCluster) makeQueue(name string, number int) {
	q := fixture.Queue(name, func(q *schedulingv1beta1.Queue) {
		q.Spec.Priority = int32(w.choose(3))
		q.Spec.Weight = int32(1 + w.choose(2))
		q.Spec.Deserved = fixture.List(w.choose.oneOf("cpu=1", "", "cpu=2", "cpu=1", "cpu=3", "cpu=1 memory=1", "cpu=2 gpu=1"))
		q.Spec.Guarantee.Resource = fixture.List(w.choose.oneOf("", "", "", "cpu=1", "cpu=2"))
		if w.setting.guarantees() || w.setting.subtrees {
			q.Spec.Guarantee.Resource = fixture.List(w.choose.oneOf("cpu=1", "cpu=2", "", "cpu=3", "cpu=1 memory=1", "gpu=1"))
		}
		q.Spec.Capability = fixture.List(w.choose.oneOf("", "", "", "cpu=2", "cpu=3", "cpu=4 gpu=1"))
		if w.choose.once(6) {
			no := false
			q.Spec.Reclaimable = &no
		}
		if w.choose.once(10) {
			q.Status.State = schedulingv1beta1.QueueState(w.choose.oneOf("Closed", "Closing"))
		}
		if w.setting.tree && number > 0 {
			q.Spec.Parent = w.choose.oneOf("", "above")
		}
		w.widenQueue(q)
	})
	w.identify(q)
	if w.setting.tree && number == 0 {
		above := fixture.Queue("above", func(q *schedulingv1beta1.Queue) {
			q.Spec.Deserved = fixture.List(w.choose.oneOf("", "cpu=2", "cpu=4"))
			q.Spec.Capability = fixture.List(w.choose.oneOf("", "", "cpu=3"))
			q.Spec.Guarantee.Resource = fixture.List(w.choose.oneOf("", "", "cpu=1"))
		})
		w.identify(above)
		w.set(above)
	}
	w.set(q)
}

// makeJob makes a gang with its pods. If it is to run, its pods do as far as there is room.
func (w *testCluster) makeJob(name string, queues int, runs bool) {
	choose := w.choose
	size := 1 + choose(4)
	g := fixture.Group(name, fmt.Sprintf("q%d", choose(queues)), int32(w.minimum(size, runs)))
	g.CreationTimestamp = metav1.NewTime(fixture.Birth.Add(time.Duration(choose(3)) * time.Second))
	if runs {
		g.Spec.PriorityClassName = choose.oneOf("", "low", "", "middle", "high")
	} else {
		g.Spec.PriorityClassName = choose.oneOf("high", "middle", "high", "")
		if choose.once(12) {
			g.Spec.PriorityClassName = "polite"
		}
	}
	if choose.once(6) {
		fixture.NeedingOf("master", 1)(g)
	}
	if choose.once(6) {
		size, g.Spec.MinMember = 1, 1
		yes := true
		g.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name + "-0", UID: "owner", Controller: &yes}}
	}
	spot := choose.oneOf("pods", "group", "pods", "labels", "group", "group label", "pods", "some", "none", "no")
	switch spot {
	case "group":
		g.Annotations[schedulingv1beta1.PreemptableKey] = "true"
	case "group label":
		g.Labels[schedulingv1beta1.PreemptableKey] = "true"
	}
	if !runs && choose.once(3) {
		fixture.PendingAdmission(g)
		if choose.once(2) {
			fixture.Wanting(choose.oneOf("cpu=1", "cpu=2", "cpu=4"))(g)
		}
	}
	w.identify(g)
	asks := choose.oneOf("cpu=1", "cpu=1", "cpu=2", "cpu=1", "cpu=1 memory=1", "cpu=1", "gpu=1", "cpu=1 gpu=1", "")
	var pods []*corev1.Pod
	for i := range size {
		p := fixture.Pod(fmt.Sprintf("%s-%d", name, i), fixture.In(name), fixture.As(choose.oneOf("worker", "worker", "master"), i))
		if choose.once(5) {
			asks = choose.oneOf("cpu=1", "cpu=2", "")
		}
		fixture.Asks(asks)(p)
		if choose.once(3) {
			p.Annotations[schedulingv1beta1.TaskPriorityAnnotationKey] = choose.oneOf("1", "2", "what")
		}
		switch {
		case spot == "pods", spot == "some" && i%2 == 0:
			p.Annotations[schedulingv1beta1.PreemptableKey] = "true"
		case spot == "labels":
			p.Labels[schedulingv1beta1.PreemptableKey] = "true"
		case spot == "no":
			p.Annotations[schedulingv1beta1.PreemptableKey] = choose.oneOf("false", "yes", "1")
		}
		p.Labels["app"] = choose.oneOf("x", "y")
		if choose.once(12) {
			fixture.Selecting("zone", choose.oneOf("a", "b"))(p)
		}
		if choose.once(16) {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		}
		if choose.once(20) {
			p.Spec.PriorityClassName = "system-cluster-critical"
		}
		w.identify(p)
		pods = append(pods, p)
	}
	w.bindTerms(g, pods)
	w.widenJob(g, pods, runs)
	w.set(g)
	for _, p := range pods {
		if runs && !choose.once(6) {
			w.settle(p)
		}
		w.set(p)
		if p.Spec.NodeName != "" && choose.once(20) {
			w.end(p)
		}
	}
}

// minimum is how many pods of a gang must start together: mostly few where they run, so that they have some to give.
func (w *testCluster) minimum(size int, runs bool) int {
	if runs {
		return w.choose.minimum(size)
	}
	return max(size-w.choose(size+1), 0)
}

func (choose chooser) minimum(size int) int {
	switch choose(4) {
	case 0:
		return 1
	case 1:
		return size
	}
	return choose(size + 1)
}

// settle makes a pod run where there is room, if there is.
func (w *testCluster) settle(p *corev1.Pod) {
	names := slices.Sorted(maps.Keys(w.nodes))
	first := w.choose(len(names))
	for i := range names {
		n := w.nodes[names[(first+i)%len(names)]]
		room := amountsOf(n.Status.Allocatable)
		for _, other := range w.pods {
			if other.Spec.NodeName == n.Name {
				room.add(amountsOf(other.Spec.Containers[0].Resources.Requests), -1)
				room[corev1.ResourcePods] -= 1000
			}
		}
		room.add(amountsOf(p.Spec.Containers[0].Resources.Requests), -1)
		room[corev1.ResourcePods] -= 1000
		fits := admits(n, p)
		for name := range amountsOf(p.Spec.Containers[0].Resources.Requests) {
			fits = fits && room[name] >= 0
		}
		if fits && room[corev1.ResourcePods] >= 0 {
			p.Spec.NodeName, p.Status.Phase = n.Name, corev1.PodRunning
			p.Status.StartTime = &metav1.Time{Time: fixture.Birth.Add(time.Duration(w.choose(4)) * time.Minute)}
			return
		}
	}
}

func (w *testCluster) makeBudget(name string) {
	least := w.choose(3)
	b := fixture.BudgetKeeping(name, w.choose.oneOf("x", "y"), least)
	b.Generation = 1
	w.identify(b)
	w.set(b)
}

// makeForeignPod makes a pod of another scheduler run, which says of itself that it may be evicted.
func (w *testCluster) makeForeignPod() {
	p := fixture.Pod("foreign", fixture.Annotated(schedulingv1beta1.PreemptableKey, "true"))
	p.Spec.SchedulerName = "other"
	w.identify(p)
	if w.settle(p); p.Spec.NodeName != "" {
		w.set(p)
	}
}

// disturb makes something happen that the scheduler did not decide.
func (w *testCluster) disturb() {
	choose := w.choose
	w.forget()
	switch choose(11) {
	case 0, 1:
		w.makeJob(fmt.Sprintf("k%d", w.births), len(w.queues)-w.treeQueues(), false)
	case 2:
		w.changePod(func(p *corev1.Pod) {
			if p.Spec.NodeName != "" {
				p.Status.Phase = corev1.PodPhase(choose.oneOf("Succeeded", "Failed"))
			}
		})
	case 3:
		if p := w.anyPod(); p != nil && p.DeletionTimestamp == nil {
			if p.Spec.NodeName == "" {
				w.drop(p)
			} else {
				w.end(p)
			}
		}
	case 4:
		if name := anyOf(choose, w.nodes); name != "" {
			n := w.nodes[name].DeepCopy()
			n.Spec.Unschedulable = !n.Spec.Unschedulable
			w.set(n)
		}
	case 5:
		w.dropNode()
	case 6:
		if name := anyOf(choose, w.groups); name != "" {
			w.dropGroup(name)
		}
	case 7:
		w.changeQueue()
	case 8:
		w.makeNode(fmt.Sprintf("m%d", w.births))
	case 10:
		w.changeClass()
	case 9:
		w.changePod(func(p *corev1.Pod) {
			p.Annotations[schedulingv1beta1.PreemptableKey] = choose.oneOf("true", "false")
		})
	}
}

func (w *testCluster) treeQueues() int {
	if w.setting.tree {
		return 1
	}
	return 0
}

// anyOf returns the name of one of them, "" if there is none.
func anyOf[T any](choose chooser, all map[string]T) string {
	if len(all) == 0 {
		return ""
	}
	return choose.oneOf(slices.Sorted(maps.Keys(all))...)
}

func (w *testCluster) anyPod() *corev1.Pod { return w.pods[anyOf(w.choose, w.pods)] }

func (w *testCluster) changePod(how func(*corev1.Pod)) {
	if p := w.anyPod(); p != nil {
		p = p.DeepCopy()
		how(p)
		w.set(p)
	}
}

// dropNode removes a node, and the pods that were on it.
func (w *testCluster) dropNode() {
	name := anyOf(w.choose, w.nodes)
	if name == "" || len(w.nodes) == 1 {
		return
	}
	w.drop(w.nodes[name])
	for _, pod := range slices.Sorted(maps.Keys(w.pods)) {
		if p := w.pods[pod]; p.Spec.NodeName == name {
			w.drop(p)
			if w.groups[groupOf(p)] != nil && p.Spec.SchedulerName == "volcano" && p.Status.Phase != corev1.PodSucceeded {
				w.set(w.again(p))
			}
		}
	}
}

// dropGroup removes a gang with its pods.
func (w *testCluster) dropGroup(name string) {
	w.drop(w.groups[name])
	for _, pod := range slices.Sorted(maps.Keys(w.pods)) {
		if p := w.pods[pod]; groupOf(p) == name {
			w.drop(p)
		}
	}
}

func (w *testCluster) changeQueue() {
	name := anyOf(w.choose, w.queues)
	if name == "" || name == "above" {
		return
	}
	q := w.queues[name].DeepCopy()
	q.Generation++
	switch w.choose(4) {
	case 0:
		q.Spec.Priority = int32(w.choose(3))
	case 1:
		q.Spec.Deserved = fixture.List(w.choose.oneOf("cpu=1", "cpu=2", "cpu=3"))
	case 2:
		q.Status.State = schedulingv1beta1.QueueState(w.choose.oneOf("Open", "Closed"))
	case 3:
		q.Spec.Guarantee.Resource = fixture.List(w.choose.oneOf("", "cpu=1"))
	}
	w.set(q)
}

// changeClass gives a class another value.
func (w *testCluster) changeClass() {
	name := w.choose.oneOf("low", "middle", "high")
	class := &schedulingv1.PriorityClass{}
	w.classes[name].DeepCopyInto(class)
	class.Value = int32(5 * w.choose(5))
	w.set(class)
}
