package backfill_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/actions/allocate"
	"hekla.sh/hekla/pkg/actions/backfill"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

func newStage(t *testing.T, l *harness.Limits) *harness.Model {
	return harness.ForActions(t, []framework.ActionFactory{allocate.Factory(), backfill.Factory()}, harness.Gang{}, ports{}, l)
}

// ports allows only one pod with a host port on a node.
type ports struct{}

func (ports) Name() string          { return "ports" }
func (ports) KubeFilters() []string { return []string{"NodePorts"} }

func expect(t *testing.T, got []string, want string) {
	t.Helper()
	if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
		t.Errorf("what is bound differs (-want +got):\n%s", diff)
	}
}

func add(s *harness.Model, name string, index int, options ...func(*corev1.Pod)) {
	s.Set(fixture.Pod(name, append([]func(*corev1.Pod){fixture.In("g"), fixture.As("worker", index)}, options...)...))
}

func TestPodsWithoutRequests(t *testing.T) {
	t.Run("only they are placed", func(t *testing.T) {
		s := newStage(t, &harness.Limits{}).Set(fixture.Node("n0", "cpu=9"), fixture.Group("g", "default", 0))
		add(s, "p0", 0, fixture.Asks("cpu=1"))
		add(s, "p1", 1, fixture.Asks(""))
		add(s, "p2", 2, fixture.Asks(""))
		expect(t, s.Run(backfill.Name), "p1 p2")
	})

	t.Run("a node takes as many as it has places for", func(t *testing.T) {
		s := newStage(t, &harness.Limits{}).Set(fixture.Node("n0", "cpu=9 pods=2")).Gang("g", "default", 0, 4, "")
		expect(t, s.Run(backfill.Name), "g-0 g-1")
		want := []verdict.NodeReason{{Kind: verdict.NodeRoom, Reason: "Too many pods", Nodes: 1, Example: "n0"}}
		if v := s.Verdict("g"); v == nil || cmp.Diff(want, v.Nodes) != "" {
			t.Errorf("the verdict is %+v", v)
		}
	})

	// A pod that fits on no node must not keep others of its job waiting.
	t.Run("a pod that fits nowhere hides none behind it", func(t *testing.T) {
		s := newStage(t, &harness.Limits{}).Set(fixture.Node("n0", "cpu=9"), fixture.Group("g", "default", 0))
		add(s, "p0", 0, fixture.Asks(""), fixture.OnPort(8080))
		add(s, "p1", 1, fixture.Asks(""), fixture.OnPort(8080))
		add(s, "p2", 2, fixture.Asks(""))
		expect(t, s.Run(backfill.Name), "p0 p2")
		if s.Code("g") != verdict.NotEnoughResources {
			t.Errorf("the verdict is %s", s.Code("g"))
		}
	})

	t.Run("a gang of them starts whole or not at all", func(t *testing.T) {
		s := newStage(t, &harness.Limits{}).Set(fixture.Node("n0", "cpu=9 pods=2")).Gang("a", "default", 3, 3, "").Gang("b", "default", 2, 2, "")
		expect(t, s.Run(backfill.Name), "b-0 b-1")
	})

	t.Run("a job pending admission is not placed", func(t *testing.T) {
		s := newStage(t, &harness.Limits{}).Set(fixture.Node("n0", "cpu=9"), fixture.Group("g", "default", 0, fixture.PendingAdmission))
		add(s, "p0", 0, fixture.Asks(""))
		expect(t, s.Run(backfill.Name), "")
	})
}

func TestVerdicts(t *testing.T) {
	// allocate's verdict on pods that wait for their queue is kept in addition to that on pods that wait for a node.
	t.Run("what helps either kind of pod is remembered", func(t *testing.T) {
		s := newStage(t, &harness.Limits{Overuses: map[string]int{"default": 0}}).Set(fixture.Node("n0", "cpu=9 pods=0"), fixture.Group("g", "default", 0))
		add(s, "p0", 0, fixture.Asks("cpu=1"))
		add(s, "p1", 1, fixture.Asks(""))
		expect(t, s.Run(allocate.Name, backfill.Name), "")
		if v := s.Verdict("g"); v == nil || v.Code != verdict.OverShare || v.Help != verdict.HelpQueue|verdict.HelpNode {
			t.Errorf("the verdict is %+v", v)
		}
	})

	t.Run("what allocate said of a whole gang stands", func(t *testing.T) {
		s := newStage(t, &harness.Limits{}).Set(fixture.Node("n0", "cpu=1"), fixture.Group("g", "default", 2))
		add(s, "p0", 0, fixture.Asks("cpu=2"))
		add(s, "p1", 1, fixture.Asks(""))
		expect(t, s.Run(allocate.Name, backfill.Name), "")
		if s.Code("g") != verdict.NotEnoughResources {
			t.Errorf("the verdict is %s", s.Code("g"))
		}
	})
}
