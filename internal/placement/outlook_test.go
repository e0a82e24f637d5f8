package placement_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/placement"
	"hekla.sh/hekla/internal/placer"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
)

// twin is a cluster in which what leaves was never there, and what is placed or promised runs.
func (w *setup) twin() *setup {
	twin := newSetup(w.TB, w.plugins...)
	twin.set(fixture.Group("g", "default", 0))
	for _, n := range w.Cluster.Nodes() {
		if n.Object != nil {
			twin.set(n.Object)
		}
		for _, t := range n.Tasks() {
			if !t.Status.Leaves() && !t.Status.Finished() {
				p := t.Pod.DeepCopy()
				fixture.On(n.Name)(p)
				twin.set(p)
			}
		}
	}
	for _, t := range w.JobNamed("g").Tasks() {
		if t.Node == nil {
			twin.set(t.Pod)
		}
	}
	twin.open()
	return twin
}

// checkOutlook holds the outlook's answers for waiting tasks against the present's in a cluster where all has come
// true.
func (w *setup) checkOutlook(waiting []*cluster.Task) {
	w.Helper()
	if len(waiting) == 0 {
		return
	}
	twin := w.twin()
	for _, t := range waiting {
		other := twin.TaskNamed(t.Key().Name)
		// One node by one first, before the outlook has reason to look at all of them.
		for _, n := range w.Cluster.Nodes() {
			then := twin.Cluster.Node(n.Name)
			if want := then != nil && twin.Engine.Fits(other, then); w.Outlook.Fits(t, n) != want {
				w.Fatalf("that %s fits on %s is %t in the outlook, and %t once it is so", t.Key().Name, n.Name, !want, want)
			}
			if want := w.couldBeOn(t, n); w.Outlook.CanOpen(t, n) != want {
				w.Fatalf("that %s can be opened for %s is %t", n.Name, t.Key().Name, !want)
			}
		}
		got, want := w.Outlook.Best(t), twin.Engine.Best(other)
		if nameOf(got) != nameOf(want) {
			w.Fatalf("for %s the outlook says %s, and once it is so it is %s", t.Key().Name, nameOf(got), nameOf(want))
		}
		if got != nil {
			continue
		}
		if have, want := counted(w.Outlook, t), counted(twin.Engine, other); fmt.Sprint(have) != fmt.Sprint(want) {
			w.Fatalf("for %s the outlook counts %v, and once it is so it is %v", t.Key().Name, have, want)
		}
	}
}

// couldBeOn works out afresh whether a task could be on a node that were empty.
func (w *setup) couldBeOn(t *cluster.Task, n *cluster.Node) bool {
	return n.Object != nil && isReady(n.Object) && w.asksOf(t.Class).now.Refusal(n).Text == "" && t.Request().LessEqual(n.Allocatable)
}

// place names an engine's best node for a pod.
func (w *setup) place(e *placement.Engine, pod string) string {
	return nameOf(e.Best(w.TaskNamed(pod)))
}

// expect holds what both engines say of a pod against what is wanted.
func (w *setup) expect(pod, now, later string) {
	w.Helper()
	if got := w.place(w.Engine, pod); got != now {
		w.Errorf("%s can now go to %s, want %s", pod, got, now)
	}
	if got := w.place(w.Outlook, pod); got != later {
		w.Errorf("%s will be able to go to %s, want %s", pod, got, later)
	}
}

// full is a cluster of one node that a pod of the gang v fills, and a pod t of the gang g that waits.
func full(t *testing.T, options ...func(*corev1.Pod)) *setup {
	w := newSetup(t).set(fixture.Node("n0", "cpu=4"), fixture.Group("v", "default", 1), fixture.Group("g", "default", 1))
	victim := append([]func(*corev1.Pod){fixture.In("v"), fixture.On("n0"), fixture.Labelled("app", "a")}, options...)
	preemptor := append([]func(*corev1.Pod){fixture.In("g"), fixture.Labelled("app", "a")}, options...)
	w.set(fixture.Pod("victim", victim...), fixture.Pod("preemptor", preemptor...), fixture.Pod("third", preemptor...))
	w.open()
	return w
}

func TestWhatLeavesIsInTheWayUntilItIsGone(t *testing.T) {
	for name, option := range map[string]func(*corev1.Pod){
		"room": fixture.Asks("cpu=3"), "ports": fixture.OnPort(80), "distance": fixture.ApartFrom("app", "a"),
	} {
		t.Run(name, func(t *testing.T) {
			w := full(t, option)
			w.expect("preemptor", "none", "none")
			x := w.session.Begin()
			x.Evict(w.TaskNamed("victim"))
			w.expect("preemptor", "none", "n0")
			if !w.Outlook.Fits(w.TaskNamed("preemptor"), w.Cluster.Node("n0")) || w.Engine.Fits(w.TaskNamed("preemptor"), w.Cluster.Node("n0")) {
				t.Error("whether it fits is answered otherwise than which is best")
			}
			x.Undo()
			w.expect("preemptor", "none", "none")
			if w.Outlook.Fits(w.TaskNamed("preemptor"), w.Cluster.Node("n0")) {
				t.Error("it fits though nobody leaves")
			}
		})
	}
}

// Rule K5: no other pod gets the room of a nominated pod.
func TestWhatIsPromisedIsNoOtherPods(t *testing.T) {
	for name, option := range map[string]func(*corev1.Pod){
		"room": fixture.Asks("cpu=3"), "ports": fixture.OnPort(80), "distance": fixture.ApartFrom("app", "a"),
	} {
		t.Run(name, func(t *testing.T) {
			w := full(t, option)
			w.Remove(w.TaskNamed("victim").Pod)
			w.open()
			w.expect("third", "n0", "n0")
			x := w.session.Begin()
			x.Pipeline(w.TaskNamed("preemptor"), w.Cluster.Node("n0"))
			w.expect("third", "none", "none")
			x.Undo()
			w.expect("third", "n0", "n0")
		})
	}
}

// What another scheduler has nominated to a node may never come. It keeps others away, and neither affinity nor spread
// counts on it.
func TestANomineeKeepsOthersAwayAndHelpsNone(t *testing.T) {
	spread := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "zone", WhenUnsatisfiable: corev1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}}}
	}
	for name, test := range map[string]struct {
		waits func(*corev1.Pod)
		app   string // of the pod that runs on n1
	}{
		"affinity":      {fixture.Near("app", "a"), "b"},
		"anti-affinity": {fixture.ApartFrom("app", "a"), "a"},
		"spread":        {spread, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newSetup(t).set(fixture.Node("n0", "cpu=1", fixture.InZone("a")), fixture.Node("n1", "cpu=4", fixture.InZone("b")), fixture.Group("g", "default", 1))
			nominee := fixture.Pod("nominee", fixture.Labelled("app", "a"), fixture.Asks("cpu=500m"))
			nominee.Spec.SchedulerName, nominee.Status.NominatedNodeName = "other", "n0"
			w.set(nominee, fixture.Pod("runs", fixture.Labelled("app", test.app), fixture.On("n1")))
			waits := fixture.Pod("waits", fixture.In("g"), fixture.Asks("cpu=500m"), test.waits)
			if name == "spread" { // it counts itself, and there is no room next to the nominee
				fixture.Labelled("app", "a")(waits)
				fixture.Asks("cpu=1")(waits)
			}
			w.set(waits)
			w.open()
			w.expect("waits", "none", "none")
		})
	}
}

// Only what is there draws others to it: what is promised may never come.
func TestAPodFollowsAnotherWhenThatHasCome(t *testing.T) {
	w := newSetup(t).set(fixture.Node("n0", "cpu=4"), fixture.Node("n1", "cpu=4"), fixture.Group("g", "default", 1))
	w.set(fixture.Pod("first", fixture.In("g"), fixture.Labelled("app", "a")),
		fixture.Pod("second", fixture.In("g"), fixture.Labelled("app", "b"), fixture.Near("app", "a")))
	x := w.open().Begin()
	w.expect("second", "none", "none")
	x.Pipeline(w.TaskNamed("first"), w.Cluster.Node("n1"))
	w.expect("second", "none", "n1")
}

func TestAnOutlookSpreadsOverWhatWillBeThere(t *testing.T) {
	w := newSetup(t).set(fixture.Node("a0", "cpu=4", fixture.InZone("a")), fixture.Node("b0", "cpu=4", fixture.InZone("b")), fixture.Group("g", "default", 1))
	w.set(fixture.Pod("stays", fixture.In("g"), fixture.On("b0"), fixture.Labelled("app", "g")),
		fixture.Pod("leaves", fixture.In("g"), fixture.On("b0"), fixture.Labelled("app", "g")))
	w.set(fixture.Pod("comes", fixture.In("g"), fixture.Labelled("app", "g")))
	w.set(fixture.Pod("preemptor", fixture.In("g"), fixture.Labelled("app", "g"), fixture.Spreading("zone", "g")))
	x := w.open().Begin()
	w.expect("preemptor", "a0", "a0")
	x.Pipeline(w.TaskNamed("comes"), w.Cluster.Node("a0"))
	x.Evict(w.TaskNamed("leaves"))
	n := w.Cluster.Node("b0")
	if !w.Outlook.Fits(w.TaskNamed("preemptor"), n) || w.Engine.Fits(w.TaskNamed("preemptor"), n) {
		t.Errorf("on b0 it fits later: %t, now: %t", w.Outlook.Fits(w.TaskNamed("preemptor"), n), w.Engine.Fits(w.TaskNamed("preemptor"), n))
	}
}

func TestNoEvictionOpensANodeThatIsTooSmallOrRefusesThePod(t *testing.T) {
	w := newSetup(t).set(fixture.Node("big", "cpu=4"), fixture.Node("small", "cpu=2"), fixture.Node("taken", "cpu=8", tainted),
		fixture.Node("lost", "cpu=8", notReady), fixture.Group("g", "default", 1))
	w.set(fixture.Pod("fills", fixture.On("big"), fixture.Asks("cpu=4")), fixture.Pod("preemptor", fixture.In("g"), fixture.Asks("cpu=3")),
		fixture.Pod("astray", fixture.On("ghost")))
	w.open()
	for _, n := range w.Cluster.Nodes() {
		if got, want := w.Outlook.CanOpen(w.TaskNamed("preemptor"), n), n.Name == "big"; got != want {
			t.Errorf("that %s can be opened is %t", n.Name, got)
		}
	}
	// What was asked about single nodes must not keep changes of their objects from being heard of.
	w.Remove(w.TaskNamed("fills").Pod)
	w.set(fixture.Node("small", "cpu=8"))
	w.open()
	if !w.Outlook.CanOpen(w.TaskNamed("preemptor"), w.Cluster.Node("small")) {
		t.Error("a node that has grown cannot be opened")
	}
	w.expect("preemptor", "small", "small")
}

// shown is a plugin from outside the tree that remembers how it saw a node.
type shown struct{ last cluster.Node }

func (*shown) Name() string { return "shown" }

func (s *shown) RefuseNode(_ *cluster.Class, n *cluster.Node) string {
	s.last = *n
	return ""
}

func TestPluginsSeeTheTotalsThatWillBeInAnOutlook(t *testing.T) {
	w := full(t)
	s := &shown{}
	w.Policy.Filters = []framework.NodeFilter{s}
	var err error
	if w.Outlook, err = placer.NewOutlook(w.Cluster, w.Policy); err != nil {
		t.Fatal(err)
	}
	n := w.Cluster.Node("n0")
	x := w.session.Begin()
	w.set(fixture.Node("a0", "cpu=4"))
	x.Evict(w.TaskNamed("victim"))
	x.Pipeline(w.TaskNamed("third"), n)
	w.Outlook.Fits(w.TaskNamed("preemptor"), n)
	want := w.TaskNamed("third").Request()
	if !s.last.Used.Equal(want) || s.last.NonZero[0] != 1000 || !s.last.Releasing.IsZero() || !s.last.Promised.IsZero() {
		t.Errorf("a plugin sees %+v", s.last)
	}
	w.Settle()
	w.Outlook.Fits(w.TaskNamed("preemptor"), n)
	if s.last.Rank != n.Rank || n.Rank != 1 {
		t.Errorf("a plugin sees rank %d of a node that has %d", s.last.Rank, n.Rank)
	}
}
