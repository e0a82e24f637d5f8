package order_test

import (
	"strings"
	"testing"

	"hekla.sh/hekla/internal/cohorts/order"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/test/cohorts/trees"
)

// nominate makes a nomination of so many cores, which borrows so far up in the tree.
func nominate(t *trees.Trees, w *workload.Workload, cores int64, level int) *workload.Nomination {
	return &workload.Nomination{Workload: w, Assignment: &workload.Assignment{Level: level, Usage: []cohort.Amount{{FR: t.FR(), Value: 1000 * cores}}}}
}

// all hands out all nominations, and charges each for what it asks.
func all(heads order.Heads) string {
	var names []string
	for n := heads.Next(); n != nil; n = heads.Next() {
		n.Queue.Charge(n.Assignment.Usage)
		names = append(names, n.Name)
	}
	return strings.Join(names, " ")
}

func TestClassicOrder(t *testing.T) {
	w := trees.New()
	a, b, c := w.Queue("a", "all", 1), w.Queue("b", "all", 1), w.Queue("c", "all", 1)
	w.Grow()
	nominations := []*workload.Nomination{nominate(w, w.Workload(a, "borrows", 1, 9), 1, 1), nominate(w, w.Workload(b, "old", 1, 0), 1, 0),
		nominate(w, w.Workload(c, "important", 1, 5), 1, 0)}
	if got, want := all(order.Classic(nominations, true)), "important old borrows"; got != want {
		t.Errorf("by priority the order is %s, want %s", got, want)
	}
	if got, want := all(order.Classic(nominations, false)), "old important borrows"; got != want {
		t.Errorf("without priority the order is %s, want %s", got, want)
	}

	t.Run("the next head of a queue takes its place", func(t *testing.T) {
		heads := order.Classic(nominations, true)
		heads.Next()
		heads.Add(nominate(w, w.Workload(c, "next", 1, 5), 1, 0))
		if got, want := all(heads), "next old borrows"; got != want {
			t.Errorf("the order is %s, want %s", got, want)
		}
	})
}

func TestFairOrder(t *testing.T) {
	w := trees.New()
	a, b := w.Queue("a", "all", 0), w.Queue("b", "all", 0)
	w.Queue("idle", "all", 8)
	w.Grow()
	w.Hold(a, "held", 2, 0)
	heads := order.Fair([]*workload.Nomination{nominate(w, w.Workload(a, "a0", 1, 9), 1, 1), nominate(w, w.Workload(b, "b0", 1, 0), 1, 1)})
	first := heads.Next()
	first.Queue.Charge(first.Assignment.Usage)
	heads.Add(nominate(w, w.Workload(b, "b1", 1, 0), 4, 1))
	if got, want := first.Name+" "+all(heads), "b0 a0 b1"; got != want {
		t.Errorf("the order is %s, want %s: the share of b is the lower one, until it has more", got, want)
	}
}
