package placement_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/placer"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

func dim(d int) resources.Dim { return resources.Dim(d) }

// randomSetup is a setup in which things happen.
type randomSetup struct {
	*setup
	t      *rapid.T
	births int
	nodes  map[string]*corev1.Node
	pods   map[string]*corev1.Pod
	open   []framework.Transaction
	plans  bool // what is open evicts or promises
}

func (l *randomSetup) one(what string, words ...string) string {
	return rapid.SampledFrom(words).Draw(l.t, what)
}

func (l *randomSetup) uid(name string) types.UID {
	l.births++
	return types.UID(fmt.Sprintf("%s-%d", name, l.births))
}

// outside takes back what is tried: events come between cycles only.
func (l *randomSetup) outside() {
	if len(l.open) > 0 {
		l.open[0].Undo()
		l.open, l.plans = nil, false
	}
}

func (l *randomSetup) setNode(*rapid.T) {
	l.outside()
	name := l.one("node", "n0", "n1", "n2", "n3", "n4")
	n := fixture.Node(name, l.one("room", "cpu=4 memory=8Gi", "cpu=2 memory=4Gi pods=3", "cpu=8 memory=2Gi nvidia.com/gpu=1"),
		fixture.InZone(l.one("zone", "a", "b")))
	if old := l.nodes[name]; old != nil {
		n.UID = old.UID
	} else {
		n.UID = l.uid(name)
	}
	switch l.one("state", "fine", "fine", "fine", "cordoned", "tainted", "tainted softly", "lost", "image") {
	case "cordoned":
		n.Spec.Unschedulable = true
	case "tainted":
		tainted(n)
	case "tainted softly":
		n.Spec.Taints = []corev1.Taint{{Key: "kept", Value: "busy", Effect: corev1.TaintEffectPreferNoSchedule}}
	case "lost":
		notReady(n)
	case "image":
		n.Status.Images = []corev1.ContainerImage{{Names: []string{"busybox:latest"}, SizeBytes: 500 << 20}}
	}
	l.nodes[name] = n
	l.set(n)
}

func (l *randomSetup) dropNode(*rapid.T) {
	l.outside()
	name := l.one("node", "n0", "n1", "n2", "n3", "n4")
	if n := l.nodes[name]; n != nil {
		delete(l.nodes, name)
		l.Remove(n)
	}
}

func (l *randomSetup) setPod(*rapid.T) {
	l.outside()
	name := l.one("pod", "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7")
	if l.pods[name] != nil {
		return
	}
	p := fixture.Pod(name, fixture.In("g"), fixture.As("worker", 0), fixture.Asks(l.one("asks", "cpu=1", "cpu=1", "cpu=2 memory=1Gi", "", "nvidia.com/gpu=1")),
		fixture.Labelled("app", l.one("app", "a", "b")))
	shape := l.one("shape", "plain", "plain", "selector", "port", "apart", "near", "rather apart", "spread", "rather spread",
		"tolerant", "tolerates free", "tolerates busy")
	switch shape {
	case "selector":
		fixture.Selecting("zone", "a")(p)
	case "port":
		fixture.OnPort(8080)(p)
	case "apart":
		fixture.ApartFrom("app", l.one("from", "a", "b"))(p)
	case "near":
		fixture.ApartFrom("app", "a")(p)
		p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 50, PodAffinityTerm: p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]}}}
		p.Spec.Affinity.PodAntiAffinity = nil
	case "spread":
		fixture.Spreading("zone", "a")(p)
	case "rather apart":
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 50, PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}}}}}
	case "rather spread":
		fixture.Spreading(l.one("over", "zone", corev1.LabelHostname), "a")(p)
		p.Spec.TopologySpreadConstraints[0].WhenUnsatisfiable = corev1.ScheduleAnyway
	case "tolerates free", "tolerates busy":
		value := strings.TrimPrefix(shape, "tolerates ")
		p.Spec.Tolerations = []corev1.Toleration{{Key: "kept", Operator: corev1.TolerationOpEqual, Value: value}}
	case "tolerant":
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	if where := l.one("where", "", "", "", "n0", "n1", "n2"); where != "" {
		fixture.On(where)(p)
		if l.one("whose", "ours", "ours", "another's") != "ours" {
			p.Spec.SchedulerName = "another"
		}
	}
	p.UID = l.uid(name)
	l.pods[name] = p
	l.set(p)
}

func (l *randomSetup) dropPod(*rapid.T) {
	l.outside()
	name := l.one("pod", "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7")
	if p := l.pods[name]; p != nil {
		delete(l.pods, name)
		l.Remove(p)
	}
}

// deletePod begins to delete a pod, which may be ours or another scheduler's.
func (l *randomSetup) deletePod(*rapid.T) {
	l.outside()
	name := l.one("pod", "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7")
	if p := l.pods[name]; p != nil && p.Spec.NodeName != "" {
		p = p.DeepCopy()
		ends := metav1.NewTime(fixture.Birth.Add(2 * time.Hour))
		p.DeletionTimestamp = &ends
		l.pods[name] = p
		l.set(p)
	}
}

// evict decides that a pod leaves.
func (l *randomSetup) evict(*rapid.T) {
	l.pending()
	name := l.one("pod", "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7")
	if task := l.Cluster.Task(fixture.Key(name)); task != nil && task.Status == cluster.Running {
		x := l.session.Begin()
		x.Evict(task)
		l.open, l.plans = append(l.open, x), true
	}
}

// promise promises a pod the node that will be best.
func (l *randomSetup) promise(*rapid.T) {
	for _, task := range l.pending() {
		if n := l.Outlook.Best(task); n != nil {
			x := l.session.Begin()
			x.Pipeline(task, n)
			l.open, l.plans = append(l.open, x), true
			return
		}
	}
}

// try places a pod where the engine says, in a transaction of its own.
func (l *randomSetup) try(t *rapid.T) {
	for _, task := range l.pending() {
		if n := l.Engine.Best(task); n != nil {
			x := l.session.Begin()
			x.Place(task, n)
			l.open = append(l.open, x)
			return
		}
	}
}

func (l *randomSetup) undo(*rapid.T) {
	if last := len(l.open) - 1; last >= 0 {
		l.open[last].Undo()
		l.open = l.open[:last]
		l.plans = l.plans && last > 0
	}
}

func (l *randomSetup) commit(*rapid.T) {
	if len(l.open) > 0 && !l.plans {
		l.open[0].Commit()
		l.open = nil
	}
}

func (l *randomSetup) pending() []*cluster.Task {
	if len(l.open) == 0 {
		l.session = l.setup.open()
	}
	j := l.JobNamed("g")
	return l.session.Pending(j)
}

// Whatever happens, and whatever was asked before, the engine answers as one that works out everything for this
// question.
func TestTheEngineAnswersAsIfItRememberedNothing(t *testing.T) {
	for _, plugins := range [][]string{
		{"predicates", "nodeorder"}, {"predicates", "binpack"}, {"predicates", "nodeorder", "at-most"}, {"binpack"}, {"predicates"},
		{"predicates", "nodeorder", "picky"},
	} {
		t.Run(fmt.Sprint(plugins), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				l := &randomSetup{setup: newSetup(t, plugins...), t: t, nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}}
				l.set(fixture.Group("g", "default", 0))
				for range 3 {
					l.setNode(t)
				}
				t.Repeat(map[string]func(*rapid.T){
					"set node": l.setNode, "drop node": l.dropNode, "set pod": l.setPod, "set another pod": l.setPod, "drop pod": l.dropPod,
					"delete pod": l.deletePod, "try": l.try, "try more": l.try, "undo": l.undo, "commit": l.commit, "evict": l.evict,
					"promise": l.promise, "promise more": l.promise,
					"": func(t *rapid.T) {
						waiting := l.pending()
						for _, task := range waiting {
							l.check(task)
						}
						l.checkOutlook(waiting)
					},
				})
			})
		})
	}
}

// With more shapes of pods than answers are kept for, some are worked out again, and none is wrong.
func TestMoreClassesThanAreRememberedAreAnsweredRightly(t *testing.T) {
	const classes = 300
	w := newSetup(t)
	for i := range 5 {
		w.set(fixture.Node(fmt.Sprintf("n%d", i), "cpu=8 memory=16Gi"))
	}
	w.set(fixture.Group("g", "default", 0))
	for i := range classes {
		w.set(fixture.Pod(fmt.Sprintf("p-%03d", i), fixture.In("g"), fixture.Asks(fmt.Sprintf("cpu=%dm", 10+i))))
	}
	s := w.open()
	x := s.Begin()
	for round := range 2 {
		for i := range classes {
			task := w.TaskNamed(fmt.Sprintf("p-%03d", i))
			if task.Status != cluster.Pending {
				continue
			}
			w.check(task)
			if i%7 == round {
				x.Place(task, w.Engine.Best(task))
			}
		}
	}
	x.Undo()
	w.check(w.TaskNamed("p-000"))
}

// counts is a plugin from outside the tree that has something else to say each time.
type counts struct{ asked int }

func (*counts) Name() string { return "counts" }

func (c *counts) RefuseNode(*cluster.Class, *cluster.Node) string {
	c.asked++
	return fmt.Sprintf("node(s) were refused for the %dth time", c.asked)
}

// Reasons are numbered. However many there are, none may be taken for another, above all not for none.
func TestAFilterThatNeverSaysTheSameTwiceIsHeard(t *testing.T) {
	w := newSetup(t, "binpack")
	w.Policy.Filters = []framework.NodeFilter{&counts{}}
	var err error
	if w.Engine, err = placer.New(w.Cluster, w.Policy); err != nil {
		t.Fatal(err)
	}
	w.set(gangOf("g", 1))
	for round := range 70 {
		for i := range 1000 {
			w.set(fixture.Node(fmt.Sprintf("n%d", i), fmt.Sprintf("cpu=%d", 1+round)))
		}
		w.open()
		if n := w.Engine.Best(w.TaskNamed("g-0")); n != nil {
			t.Fatalf("placed on %s, which is refused", n.Name)
		}
	}
}

func TestOfEquallyGoodNodesTheFirstByNameIsChosen(t *testing.T) {
	w := newSetup(t).set(fixture.Node("n2", "cpu=4"), fixture.Node("n0", "cpu=4"), fixture.Node("n1", "cpu=4"))
	w.set(gangOf("g", 1))
	w.open()
	if n := w.Engine.Best(w.TaskNamed("g-0")); n == nil || n.Name != "n0" {
		t.Errorf("it is %s", nameOf(n))
	}
}

// A slot whose node has gone is given to the next one. The order of the others must not suffer.
func TestNodesThatGoAndComeLeaveTheOrderRight(t *testing.T) {
	w := newSetup(t)
	for i := range 9 {
		w.set(fixture.Node(fmt.Sprintf("n%d", i), "cpu=4 memory=8Gi"))
	}
	w.set(gangOf("g", 1))
	w.open()
	w.check(w.TaskNamed("g-0"))
	for _, gone := range []string{"n0", "n3", "n4"} {
		w.Remove(fixture.Node(gone, ""))
	}
	w.open()
	w.check(w.TaskNamed("g-0"))
	w.set(fixture.Node("z0", "cpu=4 memory=8Gi"), fixture.Node("a0", "cpu=4 memory=8Gi"), fixture.Node("n1", "cpu=2 memory=8Gi"))
	w.open()
	w.check(w.TaskNamed("g-0"))
	if n := w.Engine.Best(w.TaskNamed("g-0")); n.Name != "a0" {
		t.Errorf("it is %s, want the new node that is first by name", n.Name)
	}
}

// A pod may be on a node that is not known yet. Its name changes the ranks of the nodes after it, and nothing else.
func TestANodeWithoutAnObjectLeavesTheOrderRight(t *testing.T) {
	w := newSetup(t, "predicates", "binpack")
	for i := 1; i < 32; i++ {
		w.set(fixture.Node(fmt.Sprintf("n%02d", i), "cpu=4"))
	}
	w.set(gangOf("g", 2, fixture.Asks("")))
	for _, node := range []string{"", "n00", "n01"} {
		if node != "" {
			w.set(fixture.Pod("on-"+node, fixture.On(node), fixture.Asks("")))
		}
		w.open()
		w.check(w.TaskNamed("g-0"))
	}
}

func TestExplainCountsEveryNodeOnceAndSaysWhatIsShort(t *testing.T) {
	w := newSetup(t).set(
		fixture.Node("a", "cpu=2 memory=4Gi"), fixture.Node("b", "cpu=3 memory=1Gi"), fixture.Node("c", "cpu=16 memory=64Gi", tainted),
		fixture.Node("d", "cpu=16 memory=64Gi", notReady), fixture.Node("e", "cpu=16 memory=64Gi", func(n *corev1.Node) { n.Spec.Unschedulable = true }))
	w.set(fixture.Pod("other", fixture.On("b"), fixture.Asks("cpu=500m")))
	w.set(gangOf("g", 1, fixture.Asks("cpu=4 memory=2Gi")))
	w.open()
	reasons, shortages := w.Engine.Explain(w.TaskNamed("g-0"))
	want := []verdict.NodeReason{
		{Kind: verdict.NodeRoom, Reason: "Insufficient cpu", Nodes: 2, Example: "a"},
		{Kind: verdict.NodeTaint, Reason: "node(s) had untolerated taint(s)", Nodes: 1, Example: "c"},
		{Kind: verdict.NodeState, Reason: "node(s) were not ready", Nodes: 1, Example: "d"},
		{Kind: verdict.NodeState, Reason: "node(s) were unschedulable", Nodes: 1, Example: "e"},
	}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("the reasons differ (-want +got):\n%s", diff)
	}
	// Of the nodes of the right kind the best has 2,500 thousandths; the tainted one would have enough and does not
	// count.
	if diff := cmp.Diff([]verdict.Shortage{{Resource: "cpu", Need: 4000, Have: 2500}}, shortages); diff != "" {
		t.Errorf("the shortages differ (-want +got):\n%s", diff)
	}
}
