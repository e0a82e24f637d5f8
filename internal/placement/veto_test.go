package placement_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/placer"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

// extender is a plugin from outside the tree that refuses nodes by name, and notes about which it was asked.
type extender struct{ refuses, asked []string }

func (*extender) Name() string { return "extender" }

func (e *extender) VetoNode(_ *cluster.Task, n *cluster.Node) string {
	e.asked = append(e.asked, n.Name)
	if slices.Contains(e.refuses, n.Name) {
		return "node(s) were refused by the extender"
	}
	return ""
}

// vetoed is a cluster with a vetoer. Its nodes n0, n1 and n2 are each better than the next.
func vetoed(t *testing.T, refuses ...string) (*setup, *extender) {
	w := newSetup(t)
	e := &extender{refuses: refuses}
	w.Policy.Vetoers = []framework.NodeVetoer{e}
	var err error
	if w.Engine, err = placer.New(w.Cluster, w.Policy); err != nil {
		t.Fatal(err)
	}
	w.set(fixture.Node("n0", "cpu=4"), fixture.Node("n1", "cpu=4"), fixture.Node("n2", "cpu=4"))
	w.open()
	return w, e
}

func TestTheNextBestNodeIsTakenWhereTheBestIsVetoed(t *testing.T) {
	for name, pods := range map[string][]func(*corev1.Pod){"alone": nil, "kept apart": {fixture.ApartFrom("app", "g")}} {
		t.Run(name, func(t *testing.T) {
			w, e := vetoed(t, "n0", "n1")
			w.set(gangOf("g", 1, pods...))
			w.open()
			for range 2 {
				if n := w.Engine.Best(w.TaskNamed("g-0")); nameOf(n) != "n2" {
					t.Errorf("it is %s", nameOf(n))
				}
			}
			if diff := cmp.Diff([]string{"n0", "n1", "n2"}, e.asked); diff != "" {
				t.Errorf("asked about (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAVetoStandsUntilTheNodeChanges(t *testing.T) {
	w, e := vetoed(t, "n0")
	w.set(gangOf("g", 1))
	w.open()
	task := w.TaskNamed("g-0")
	w.Engine.Best(task)
	e.refuses = nil
	if n := w.Engine.Best(task); nameOf(n) != "n1" {
		t.Errorf("though nothing has changed it is %s", nameOf(n))
	}
	w.set(fixture.Node("n0", "cpu=6"))
	w.open()
	if n := w.Engine.Best(task); nameOf(n) != "n0" {
		t.Errorf("after the node has changed it is %s", nameOf(n))
	}
}

func TestVetoesAreExplained(t *testing.T) {
	w, _ := vetoed(t, "n0", "n2")
	w.set(fixture.Pod("other", fixture.On("n1"), fixture.Asks("cpu=4")))
	w.set(gangOf("g", 1))
	w.open()
	reasons, _ := w.Engine.Explain(w.TaskNamed("g-0"))
	want := []verdict.NodeReason{{Kind: verdict.NodePlugin, Reason: "node(s) were refused by the extender", Nodes: 2, Example: "n0"},
		{Kind: verdict.NodeRoom, Reason: "Insufficient cpu", Nodes: 1, Example: "n1"}}
	if diff := cmp.Diff(want, reasons); diff != "" {
		t.Errorf("the reasons differ (-want +got):\n%s", diff)
	}
}

// Code that chooses a node by other means asks for the veto, and the answer is stored for all.
func TestANodeChosenElsewhereIsPutToTheVetoers(t *testing.T) {
	w, e := vetoed(t, "n1")
	w.set(gangOf("g", 1))
	w.open()
	task := w.TaskNamed("g-0")
	for node, want := range map[string]string{"n0": "", "n1": "node(s) were refused by the extender"} {
		for range 2 {
			if got := w.Engine.Veto(task, w.Cluster.Node(node)); got != want {
				t.Errorf("of %s the vetoers say %q, want %q", node, got, want)
			}
		}
	}
	w.Engine.Best(task)
	if len(e.asked) != 2 {
		t.Errorf("they were asked about %v", e.asked)
	}
	if !w.Engine.Fits(task, w.Cluster.Node("n1")) {
		t.Error("a veto was taken for a lack of room")
	}
}
