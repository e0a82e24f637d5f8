package pdb_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/pdb"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

const spent = "pdb (their disruption budget is spent)"

func bare(p *corev1.Pod) { p.Labels = nil }

// running has five pods: three of app a, one of app b, and one without labels.
func running(tb testing.TB, budgets ...*policyv1.PodDisruptionBudget) *harness.Model {
	in, on := fixture.In("g"), fixture.On("n")
	w := harness.ForPlugin(tb, pdb.Factory(), "").Set(fixture.Queue("q"), fixture.Node("n", "cpu=9"), fixture.Group("g", "q", 1),
		fixture.Group("preemptor", "q", 1), fixture.Pod("t", fixture.In("preemptor")),
		fixture.Pod("a0", in, on, fixture.Labelled("app", "a")), fixture.Pod("a1", in, on, fixture.Labelled("app", "a")),
		fixture.Pod("a2", in, on, fixture.Labelled("app", "a")), fixture.Pod("b0", in, on, fixture.Labelled("app", "b")),
		fixture.Pod("bare", in, on, bare))
	for _, b := range budgets {
		w.Set(b)
	}
	return w
}

func ask(w *harness.Model, s *framework.Session, reclaim bool, victims string) string {
	return w.Vote(harness.Question{Session: s, Reclaim: reclaim, Preemptor: "preemptor", For: "t", Victims: victims})
}

func TestPodsLeaveAsFarAsTheirBudgetsGo(t *testing.T) {
	one, none, two := fixture.Budget("one", "a", 1), fixture.Budget("none", "b", 0), fixture.Budget("two", "a", 2)
	for name, test := range map[string]struct {
		budgets []*policyv1.PodDisruptionBudget
		victims string
		want    string
	}{
		"no budget at all":                  {nil, "a0 a1 a2", "yes"},
		"one of one":                        {[]*policyv1.PodDisruptionBudget{one}, "a0", "yes"},
		"two of one":                        {[]*policyv1.PodDisruptionBudget{one}, "a0 a1", spent},
		"one of none":                       {[]*policyv1.PodDisruptionBudget{none}, "b0", spent},
		"one that is not covered":           {[]*policyv1.PodDisruptionBudget{one, none}, "bare", "yes"},
		"one that is, with one that is not": {[]*policyv1.PodDisruptionBudget{one}, "a0 b0 bare", "yes"},
		"the smaller of two budgets":        {[]*policyv1.PodDisruptionBudget{one, two}, "a0 a1", spent},
		"each within its own budget":        {[]*policyv1.PodDisruptionBudget{two, fixture.Budget("b", "b", 1)}, "a0 b0 a1", "yes"},
		"one of two apps without any left":  {[]*policyv1.PodDisruptionBudget{two, none}, "a0 b0", spent},
	} {
		w := running(t, test.budgets...)
		s := w.Open()
		for _, reclaim := range []bool{false, true} {
			if got := ask(w, s, reclaim, test.victims); got != test.want {
				t.Errorf("%s, for another queue %t: %q, want %q", name, reclaim, got, test.want)
			}
		}
	}
}

func TestTheSumOfAPlanStaysWithinTheBudgetToo(t *testing.T) {
	w := running(t, fixture.Budget("two", "a", 2))
	s := w.Open()
	x := s.Begin()
	for _, step := range []struct{ victim, want string }{{"a0", "yes"}, {"a1", "yes"}, {"a2", spent}} {
		if got := ask(w, s, false, step.victim); got != step.want {
			t.Fatalf("%s: %q, want %q", step.victim, got, step.want)
		}
		w.EvictPods(x, step.victim)
	}
	x.Undo()
	if got := ask(w, s, false, "a2"); got != "yes" {
		t.Errorf("after the plan was given up: %q", got)
	}
}
