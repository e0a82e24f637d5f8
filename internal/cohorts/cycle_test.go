package cohorts_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/internal/cohorts"
	"hekla.sh/hekla/internal/cohorts/flavors"
	"hekla.sh/hekla/internal/cohorts/victims"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/test/cohorts/trees"
)

// run runs a cycle, and returns what is decided: the Workload, the outcome and the victims.
func run(w *trees.Trees, nodes workload.Nodes, change func(*cohorts.Cycle)) (decided []string) {
	rules := &victims.Rules{Queues: w.Queues}
	c := &cohorts.Cycle{Queues: w.Queues, Rules: rules, Assigner: &flavors.Assigner{Index: w.Index, Oracle: rules, Nodes: nodes},
		Nodes: nodes, ByPriority: true, Now: trees.Start}
	c.Decided = func(n *workload.Nomination) {
		said := fmt.Sprint(n.Name, " ", n.Outcome)
		for _, v := range n.Victims {
			said += fmt.Sprint(" ", v.Name, " ", v.Why)
		}
		decided = append(decided, said)
	}
	if change != nil {
		change(c)
	}
	c.Run()
	return decided
}

func TestACycle(t *testing.T) {
	t.Run("admits what fits, in the order of priority", func(t *testing.T) {
		w := trees.New()
		a, b := w.Queue("a", "both", 1), w.Queue("b", "both", 1)
		w.Grow()
		w.Wait(a, "low", 1, 0)
		w.Wait(b, "high", 1, 5)
		w.Wait(b, "later", 1, 5)
		want := []string{"high Admitted", "low Admitted", "later SkippedNoLongerFits", "later NoCandidates"}
		if diff := cmp.Diff(want, run(w, trees.Room{}, nil)); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("a queue gets back what another borrows", func(t *testing.T) {
		w := trees.New()
		a, b := w.Queue("a", "both", 1), w.Queue("b", "both", 1)
		w.Grow()
		w.Hold(a, "first", 1, 0)
		w.Hold(a, "second", 1, 0)
		owner := w.Wait(b, "owner", 1, 0)
		want := []string{"owner Preempting second InCohortReclamation"}
		if diff := cmp.Diff(want, run(w, trees.Room{}, nil)); diff != "" {
			t.Error(diff)
		}
		if owner.Phase != workload.PhasePlanned || b.Usage(w.FR()) != 1000 {
			t.Errorf("it is %s, and its queue is charged for %d", owner.Phase, b.Usage(w.FR()))
		}
	})

	t.Run("two do not get the room of one victim", func(t *testing.T) {
		w := trees.New()
		a, b := w.Queue("a", "both", 0), w.Queue("b", "both", 1)
		w.Grow()
		w.Hold(a, "borrower", 1, 0)
		w.Wait(b, "one", 1, 0)
		w.Wait(b, "other", 1, 0)
		want := []string{"one Preempting borrower InCohortReclamation", "other NoCandidates"}
		if diff := cmp.Diff(want, run(w, trees.Room{}, nil)); diff != "" {
			t.Error(diff)
		}
	})

	t.Run("quota without nodes admits nothing", func(t *testing.T) {
		w := trees.New()
		q := w.Queue("q", "alone", 4)
		w.Grow()
		large := w.Wait(q, "large", 3, 1)
		w.Wait(q, "small", 1, 0)
		want := []string{"large NoFit", "small Admitted"}
		if diff := cmp.Diff(want, run(w, onePod{}, nil)); diff != "" {
			t.Error(diff)
		}
		if large.Charge != nil || q.Usage(w.FR()) != 1000 {
			t.Errorf("the large one is charged for %v, the queue for %d", large.Charge, q.Usage(w.FR()))
		}
	})

	t.Run("it ends when its time is over", func(t *testing.T) {
		w := trees.New()
		q := w.Queue("q", "alone", 4)
		w.Grow()
		for i := range 3 {
			w.Wait(q, fmt.Sprint(i), 1, 0)
		}
		got := run(w, trees.Room{}, func(c *cohorts.Cycle) { c.IsOver = func() bool { return true } })
		if diff := cmp.Diff([]string{"0 Admitted"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// onePod is nodes that have room for one pod.
type onePod struct{ trees.Room }

func (onePod) CanPlace(_ *workload.Workload, parts []workload.Part) bool { return parts[0].Count <= 1 }
func (onePod) CouldPlace(_ *workload.Workload, parts []workload.Part) bool {
	return parts[0].Count <= 1
}
