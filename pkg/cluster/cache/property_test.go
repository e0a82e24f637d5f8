package cache

import (
	"maps"
	"slices"
	"testing"

	"hekla.sh/hekla/pkg/cluster"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawn makes the choices of a property test.
func drawn(t *rapid.T) chooser {
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }
}

// expectSame fails the test if two dumps differ.
func expectSame(t *rapid.T, what string, before, after any) {
	t.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Fatalf("%s (-before +after):\n%s", what, diff)
	}
}

// stepsOf are all that can happen, one by one or many in a row, and that the model is sound after each.
func stepsOf(w *randomModel) map[string]func(*rapid.T) {
	steps := map[string]func(*rapid.T){"": func(t *rapid.T) { sound(t, w.model) }}
	actions := w.actions()
	names := slices.Sorted(maps.Keys(actions))
	for name, action := range actions {
		steps[name] = func(*rapid.T) { action() }
	}
	steps["many"] = func(t *rapid.T) {
		for range 50 {
			actions[w.choose.oneOf(names...)]()
			sound(t, w.model)
		}
	}
	steps["many more"], steps["still more"] = steps["many"], steps["many"]
	return steps
}

func TestWhateverHappensTheModelIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newRandomModel(drawn(t))
		w.fill()
		steps := stepsOf(w)
		t.Repeat(steps)
	})
}

func TestUndoRestoresTheModelBitForBit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newRandomModel(drawn(t))
		w.fill()
		steps := stepsOf(w)
		attempt := func(t *rapid.T) {
			w.settle()
			before := exactly(w.model)
			marks, dumps := []int{}, []any{}
			for range 1 + w.choose(4) {
				marks, dumps = append(marks, w.model.Mark()), append(dumps, exactly(w.model))
				for range w.choose(4) {
					w.try(false)
					sound(t, w.model)
				}
			}
			for i, mark := range slices.Backward(marks) {
				if w.choose(2) == 1 {
					w.model.Undo(mark)
					expectSame(t, "after undoing an inner transaction", dumps[i], exactly(w.model))
				}
			}
			w.model.Undo(0)
			expectSame(t, "after undoing all", before, exactly(w.model))
		}
		steps["attempt"], steps["attempt again"] = attempt, attempt
		t.Repeat(steps)
	})
}

// A model does not depend on its history: told afresh of what exists now, and of what it had decided, it is the same.
// From this follows that neither the order of events, nor their number, nor events that were missed show anywhere.
func TestTheModelIsWhatARestartedOneWouldBe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newRandomModel(drawn(t))
		w.fill()
		steps := stepsOf(w)
		compare := func(t *rapid.T) {
			w.settle()
			w.model.Expire(w.now)
			again := w.again()
			sound(t, again)
			expectSame(t, "after a restart", meaning(w.model), meaning(again))
		}
		steps["compare"], steps["compare again"] = compare, compare
		t.Repeat(steps)
		compare(t)
	})
}

func TestObjectsMayComeInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newRandomModel(drawn(t))
		for range 30 {
			[]func(){w.setPod, w.setPod, w.setPod, w.setNode, w.setGroup, w.setQueue, w.setClass, w.setBudget, w.setQuota}[w.choose(9)]()
		}
		first, second := w.again(), w.again()
		expectSame(t, "in another order", meaning(first), meaning(second))
		expectSame(t, "classes in another order", classmates(first), classmates(second))
		for i, n := range first.Nodes() {
			if second.Nodes()[i].Name != n.Name {
				t.Fatalf("node %d is %s or %s", i, n.Name, second.Nodes()[i].Name)
			}
		}
		for i, j := range first.Jobs() {
			if second.Jobs()[i].ID != j.ID {
				t.Fatalf("job %d is %s or %s", i, j.ID, second.Jobs()[i].ID)
			}
		}
	})
}

// Events of different objects may come in any order, as long as those of each object stay in theirs.
func TestEventsOfDifferentObjectsCommute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newRandomModel(drawn(t))
		for range 40 {
			w.events()[w.choose(len(w.events()))]()
		}
		w.settle()
		shuffled := w.shuffled()
		sound(t, shuffled)
		expectSame(t, "in another order", meaning(w.model), meaning(shuffled))
	})
}

func TestTheOrdersAreTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newRandomModel(drawn(t))
		for range 3 {
			p := pod(rapid.SampledFrom(podNames).Draw(t, "name"), born(birth.AddDate(0, 0, w.choose(3))))
			if index := w.choose(4); index > 0 {
				annotated("volcano.sh/task-index", string(rune('0'+index)))(p)
			}
			w.model.Apply(Set{p})
		}
		for range 4 {
			w.setGroup()
			w.setQueue()
		}
		total(t, w.sorted(func(*cluster.Task) bool { return true }), cluster.CompareTasks)
		total(t, w.model.Jobs(), cluster.CompareJobs)
		total(t, w.model.Queues(), cluster.CompareQueues)
	})
}

// total fails the test if an order has two that are neither before nor after each other, or a circle.
func total[T comparable](t *rapid.T, all []T, compare func(a, b T) int) {
	for _, a := range all {
		for _, b := range all {
			if compare(a, b) != -compare(b, a) || (a == b) != (compare(a, b) == 0) {
				t.Fatalf("the order of %v and %v is not one", a, b)
			}
			for _, c := range all {
				if compare(a, b) < 0 && compare(b, c) < 0 && compare(a, c) >= 0 {
					t.Fatalf("%v, %v and %v are in a circle", a, b, c)
				}
			}
		}
	}
}
