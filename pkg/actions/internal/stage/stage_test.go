package stage_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/pkg/actions/internal/stage"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
)

// greedy places the pods of the jobs whose turn it is one by one, where the queue lets it. It is an action as simple as one can
// be, with what tests ask of it to get wrong.
type greedy struct{ leavesOpen, miscounts bool }

func (greedy) Name() string { return "greedy" }

func (g greedy) Execute(s *framework.Session) {
	jobs := s.Cluster.Waiting()
	for _, j := range jobs {
		for _, t := range j.Tasks() {
			if t.Status != cluster.Pending {
				continue
			}
			if v := s.MayAllocate(t); v != nil {
				j.Verdict = v
				continue
			}
			n := s.Placer.Best(t)
			if n == nil {
				continue
			}
			x := s.Begin()
			x.Place(t, n)
			if !g.leavesOpen {
				x.Commit()
			}
		}
		if g.miscounts {
			j.Queue.Own.Allocated.Add(resources.Vector{1000})
		}
	}
}

func actions(g greedy) []framework.ActionFactory {
	return []framework.ActionFactory{{Name: "greedy", New: func(conf.Arguments) (framework.Action, error) { return g, nil }}}
}

// witness is a test that may fail.
type witness struct {
	testing.TB
	said []string
}

func (*witness) Helper()             {}
func (w *witness) Error(args ...any) { w.said = append(w.said, fmt.Sprint(args...)) }

func TestWhatAnActionDoesIsSeen(t *testing.T) {
	limits := &stage.Limits{Pods: map[string]int{"default": 2}}
	s := stage.New(t, actions(greedy{}), stage.Gang{}, limits).Set(fixture.Node("n", "cpu=8")).Gang("g", "default", 1, 3, "cpu=1")
	if diff := cmp.Diff([]string{"g-0", "g-1"}, s.Run("greedy")); diff != "" {
		t.Errorf("bound are\n%s", diff)
	}
	if v := s.Verdict("g"); v == nil || v.Subject != "default" || s.Code("g") != verdict.OverCapability {
		t.Errorf("the verdict is %+v", v)
	}
	if len(s.Planned) > 0 {
		t.Errorf("planned is %q", s.Planned)
	}
}

func TestAnActionThatGetsItWrongFailsTheTest(t *testing.T) {
	for name, test := range map[string]struct {
		action greedy
		want   string
	}{
		"it leaves a transaction open": {greedy{leavesOpen: true}, "a transaction is left open"},
		"the totals are wrong":         {greedy{miscounts: true}, "default"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &witness{TB: t}
			stage.New(w, actions(test.action)).Set(fixture.Node("n", "cpu=8")).Gang("g", "default", 1, 1, "cpu=1").Run("greedy")
			if said := strings.Join(w.said, "\n"); !strings.Contains(said, test.want) {
				t.Errorf("it says %q, want %q", said, test.want)
			}
		})
	}
	w := &witness{TB: t}
	stage.New(w, actions(greedy{})).Set(fixture.Node("n", "cpu=8")).Gang("g", "default", 1, 1, "cpu=1").Run("greedy")
	if len(w.said) > 0 {
		t.Errorf("of one that is right it says %q", w.said)
	}
}

func TestLimitsAreNumbersOfPods(t *testing.T) {
	limits := &stage.Limits{Overuses: map[string]int{"full": 1}, AdmissionLimits: map[string]int{"full": 2}}
	s := stage.New(t, nil, limits).Set(fixture.Queue("full"), fixture.Queue("empty"), fixture.Node("n", "cpu=8"), fixture.Group("runs", "full", 1),
		fixture.Pod("r", fixture.In("runs"), fixture.On("n")),
		fixture.Group("small", "full", 2, fixture.PendingAdmission, fixture.Wanting("pods=2")), fixture.Group("large", "full", 3, fixture.PendingAdmission, fixture.Wanting("pods=3")),
		fixture.Group("elsewhere", "empty", 3, fixture.PendingAdmission, fixture.Wanting("pods=3")))
	full, empty := s.Queue("full"), s.Queue("empty")
	if limits.Overused(full) == nil || limits.Overused(empty) != nil {
		t.Error("a queue has enough from its number on, and not before")
	}
	var votes []framework.Vote
	for _, name := range []string{"small", "large", "elsewhere"} {
		vote, _ := limits.MayEnqueue(s.Job(fixture.Key(name)))
		votes = append(votes, vote)
	}
	if diff := cmp.Diff([]framework.Vote{framework.Permit, framework.Reject, framework.Permit}, votes); diff != "" {
		t.Errorf("at the door\n%s", diff)
	}
	if diff := cmp.Diff([]string{"small", "large", "elsewhere"}, limits.Asked); diff != "" {
		t.Errorf("it remembers\n%s", diff)
	}
	small, large := s.Job(fixture.Key("small")), s.Job(fixture.Key("large"))
	for _, backwards := range []bool{false, true} {
		limits.Backwards = backwards
		if got := limits.CompareJobs(large, small) < 0; got == backwards {
			t.Errorf("backwards %t, large is before small: %t", backwards, got)
		}
		if limits.CompareQueues(empty, full) >= 0 {
			t.Errorf("backwards %t, the queue that holds more is first", backwards)
		}
	}
}
