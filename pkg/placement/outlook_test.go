package placement_test

import (
	"fmt"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
)

// twin is a world in which what leaves was never there, and what is placed or promised runs.
func (w *world) twin() *world {
	twin := newWorld(w.tb, w.plugins...)
	twin.set(fixture.Group("g", "default", 0))
	for _, n := range w.cluster.Nodes() {
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
	for _, t := range w.job("g").Tasks() {
		if t.Node == nil {
			twin.set(t.Pod)
		}
	}
	twin.open()
	return twin
}

// checkOutlook holds the outlook's answers for waiting tasks against the present's in a world where all has come true.
func (w *world) checkOutlook(waiting []*cluster.Task) {
	w.Helper()
	if len(waiting) == 0 {
		return
	}
	twin := w.twin()
	for _, t := range waiting {
		other := twin.task(t.Key().Name)
		// One node by one first, before the outlook has reason to look at all of them.
		for _, n := range w.cluster.Nodes() {
			then := twin.cluster.Node(n.Name)
			if want := then != nil && twin.engine.Fits(other, then); w.outlook.Fits(t, n) != want {
				w.Fatalf("that %s fits on %s is %t in the outlook, and %t once it is so", t.Key().Name, n.Name, !want, want)
			}
			if want := w.couldBeOn(t, n); w.outlook.CanOpen(t, n) != want {
				w.Fatalf("that %s can be opened for %s is %t", n.Name, t.Key().Name, !want)
			}
		}
		got, want := w.outlook.Best(t), twin.engine.Best(other)
		if nameOf(got) != nameOf(want) {
			w.Fatalf("for %s the outlook says %s, and once it is so it is %s", t.Key().Name, nameOf(got), nameOf(want))
		}
		if got != nil {
			continue
		}
		if have, want := counted(w.outlook, t), counted(twin.engine, other); fmt.Sprint(have) != fmt.Sprint(want) {
			w.Fatalf("for %s the outlook counts %v, and once it is so it is %v", t.Key().Name, have, want)
		}
	}
}

// couldBeOn works out afresh whether a task could be on a node that were empty.
func (w *world) couldBeOn(t *cluster.Task, n *cluster.Node) bool {
	return n.Object != nil && isReady(n.Object) && w.asksOf(t.Class).now.Refusal(n) == "" && t.Request().LessEqual(n.Allocatable)
}
