package rows_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/explain/rows"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// walk changes a small cluster at random.
type walk struct {
	*loop.Loop
	r      *rand.Rand
	exists map[string]runtime.Object
}

// step changes one object, starts pods, or runs a cycle.
func (w *walk) step() {
	i := w.r.IntN(4)
	switch w.r.IntN(13) {
	case 0, 1:
		w.show(fmt.Sprint("node-", i), fixture.Node(fmt.Sprint("n", i), fmt.Sprintf("cpu=%d gpu=%d", 1+w.r.IntN(8), w.r.IntN(3)), func(n *corev1.Node) {
			n.Spec.Unschedulable = w.r.IntN(4) == 0
			n.Labels["zone"] = fmt.Sprint(w.r.IntN(2))
		}))
	case 2, 3:
		w.show(fmt.Sprint("group-", i), fixture.Group(fmt.Sprint("g", i), w.queue(), int32(1+w.r.IntN(3)), func(g *schedulingv1beta1.PodGroup) {
			g.Spec.PriorityClassName = "high"
			switch w.r.IntN(6) {
			case 0:
				g.Annotations = map[string]string{schedulingv1beta1.PodsRefusedKey: fmt.Sprint("refused ", w.r.IntN(3))}
			case 1:
				g.Annotations = map[string]string{schedulingv1beta1.SchedulerNameKey: "another"}
			case 2:
				fixture.PendingAdmission(g)
			}
		}))
	case 4, 5, 6:
		name := fmt.Sprintf("p%d-%d", i, w.r.IntN(4))
		w.show("pod-"+name, fixture.Pod(name, fixture.In(fmt.Sprint("g", i)), fixture.Asks(fmt.Sprintf("cpu=%d", 1+w.r.IntN(6))),
			fixture.Annotated(schedulingv1beta1.PreemptableKey, "true")))
	case 7:
		w.show("class", fixture.PriorityClass("high", int32(w.r.IntN(3))))
	case 8:
		w.show("queue-a", fixture.Queue("a", fixture.Weighing(int32(1+w.r.IntN(3))), fixture.Capped(fmt.Sprint("cpu=", 2+w.r.IntN(8)))))
	case 9:
		w.show("hypernode", fixture.HyperNode(fmt.Sprint("h", w.r.IntN(2)), 1, fmt.Sprint("n", w.r.IntN(4))))
	case 10:
		w.forget()
	case 11:
		w.finish()
	default:
		w.Cycle()
		w.StartBound()
	}
}

func (w *walk) queue() string { return []string{"default", "a", "missing"}[w.r.IntN(3)] }

func (w *walk) show(id string, o runtime.Object) {
	w.exists[id] = o
	w.Set(o)
}

// forget deletes one object.
func (w *walk) forget() {
	for _, id := range shuffled(w.r, w.exists) {
		w.Remove(w.exists[id])
		delete(w.exists, id)
		return
	}
}

// finish makes one pod succeed, wherever it is.
func (w *walk) finish() {
	for _, id := range shuffled(w.r, w.exists) {
		if pod, ok := w.exists[id].(*corev1.Pod); ok && w.Task(fixture.Key(pod.Name)) != nil {
			ended := w.Task(fixture.Key(pod.Name)).Pod.DeepCopy()
			ended.Status.Phase = corev1.PodSucceeded
			w.Set(ended)
			return
		}
	}
}

// shuffled returns the keys of a map in an order that only the numbers decide.
func shuffled(r *rand.Rand, of map[string]runtime.Object) []string {
	var names []string
	for i := range 4 {
		for _, kind := range []string{"node-%d", "group-%d", "pod-p%d-0", "pod-p%d-1", "pod-p%d-2", "pod-p%d-3"} {
			if name := fmt.Sprintf(kind, i); of[name] != nil {
				names = append(names, name)
			}
		}
	}
	for _, name := range []string{"class", "queue-a", "hypernode"} {
		if of[name] != nil {
			names = append(names, name)
		}
	}
	r.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
	return names
}

func TestABoardThatFollowsIsLikeAFreshOne(t *testing.T) {
	const worlds, steps = 60, 150
	changed := 0
	for seed := range uint64(worlds) {
		w := &walk{Loop: loop.New(t, loop.Evicting("predicates", "proportion", "nodeorder")), r: rand.New(rand.NewPCG(seed, 14)), exists: map[string]runtime.Object{}}
		w.Cycle()
		var follower rows.Maker
		var last rows.Board
		for step := range steps {
			w.step()
			m, err := w.Scheduler.Reader()
			if err != nil {
				t.Fatal(err)
			}
			if w.r.IntN(3) == 0 { // questions try things, and take them back
				for i := range 4 {
					_, _ = m.Why(w.Now, cluster.GroupID(fixture.Key(fmt.Sprint("g", i))), true)
				}
			}
			if w.r.IntN(2) == 0 {
				continue
			}
			var fresh rows.Maker
			got, want := follower.Board(m, w.Now), fresh.Board(m, w.Now)
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("world %d, step %d:\n%s", seed, step, difference(got, want))
			}
			if !reflect.DeepEqual(got, last) {
				changed++
			}
			last = got
		}
	}
	if changed < worlds*steps/8 {
		t.Errorf("only %d boards differ from the ones before", changed)
	}
}

// at is the row at a place, zero if there is none.
func at[T any](list []*T, i int) (row T) {
	if i < len(list) {
		row = *list[i]
	}
	return row
}

// difference names the rows that differ.
func difference(got, want rows.Board) (text string) {
	for i := range max(len(got.Jobs), len(want.Jobs)) {
		if i >= len(got.Jobs) || i >= len(want.Jobs) || !reflect.DeepEqual(got.Jobs[i], want.Jobs[i]) {
			return fmt.Sprintf("jobs, of which %d is the first: %+v, want %+v", i, at(got.Jobs, i), at(want.Jobs, i))
		}
	}
	for i := range max(len(got.Nodes), len(want.Nodes)) {
		if i >= len(got.Nodes) || i >= len(want.Nodes) || !reflect.DeepEqual(got.Nodes[i], want.Nodes[i]) {
			return fmt.Sprintf("nodes, of which %d is the first: %+v, want %+v", i, at(got.Nodes, i), at(want.Nodes, i))
		}
	}
	return fmt.Sprintf("%+v, want %+v", got, want)
}

func TestOnlyRowsThatChangeAreMadeAgain(t *testing.T) {
	l := loop.New(t, loop.Evicting("predicates", "capacity", "nodeorder"))
	for i := range 3 {
		l.Set(fixture.Node(fmt.Sprint("n", i), "cpu=4"), fixture.Group(fmt.Sprint("runs-", i), "default", 1),
			fixture.Pod(fmt.Sprint("runs-", i, "-0"), fixture.In(fmt.Sprint("runs-", i)), fixture.Asks("cpu=3"), fixture.On(fmt.Sprint("n", i))))
		l.Set(fixture.Group(fmt.Sprint("waits-", i), "default", 1), fixture.Pod(fmt.Sprint("waits-", i, "-0"), fixture.In(fmt.Sprint("waits-", i)), fixture.Asks("cpu=9")))
	}
	l.Rest()
	var maker rows.Maker
	board := func() rows.Board {
		m, err := l.Scheduler.Reader()
		if err != nil {
			t.Fatal(err)
		}
		return maker.Board(m, l.Now)
	}
	first := board()
	ended := l.Task(fixture.Key("runs-1-0")).Pod.DeepCopy()
	ended.Status.Phase = corev1.PodSucceeded
	l.Set(ended)
	l.CycleAfter(time.Second)
	second := board()
	var made []string
	for i, row := range second.Jobs {
		if row != first.Jobs[i] {
			made = append(made, row.Job)
		}
	}
	for i, row := range second.Nodes {
		if row != first.Nodes[i] {
			made = append(made, row.Node)
		}
	}
	if want := []string{"work/runs-1", "n1"}; !reflect.DeepEqual(made, want) {
		t.Errorf("after a pod of runs-1 has ended on n1 the rows of %v are made again, want those of %v", made, want)
	}
}
