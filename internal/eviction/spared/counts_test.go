package spared_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/internal/eviction/spared"
	"hekla.sh/hekla/internal/eviction/victims"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/capacity"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// evicting is an action that evicts and that has nothing but rules.
type evicting struct {
	framework.EvictingAction
	wholeGangs bool
}

func (evicting) Name() string { return "evicting" }
func (e evicting) EvictionRules() framework.EvictionRules {
	return framework.EvictionRules{AllowWholeGang: e.wholeGangs}
}

var marked = fixture.Annotated(schedulingv1beta1.PreemptableKey, "true")

func inClass(name, queue, class string, minimum int32) *schedulingv1beta1.PodGroup {
	g := fixture.Group(name, queue, minimum)
	g.Spec.PriorityClassName = class
	return g
}

// modelOf is a cluster in which pod waits of job preemptor, of priority 50 in queue ours, needs a node.
func modelOf(t harness.TB, objects ...any) *harness.Model {
	t.Helper()
	return harness.ForPlugin(t, capacity.Factory(), "").Set(fixture.Node("n", "cpu=64"), fixture.Queue("ours", fixture.Deserving("cpu=4")),
		fixture.Queue("theirs", fixture.Deserving("cpu=2")), fixture.Queue("above", fixture.Ranking(2)), fixture.Queue("below", fixture.Ranking(-1)),
		fixture.PriorityClass("low", 10), fixture.PriorityClass("mid", 50), fixture.PriorityClass("high", 100),
		inClass("preemptor", "ours", "mid", 1), fixture.Pod("waits", fixture.In("preemptor"))).Set(objects...)
}

// preemption are the rules for job preemptor, and who leaves for it.
func preemption(m *harness.Model, s *framework.Session, scope decision.Scope, wholeGangs bool) (*rules.Rules, *victims.Selector) {
	r := rules.Of(s, evicting{wholeGangs: wholeGangs}).For(scope, m.JobNamed("preemptor"))
	r.SetPod(m.TaskNamed("waits"))
	return r, victims.New(r)
}

// tried counts the pods that a trial spares, by rule, and those that leave.
func tried(s *framework.Session, r *rules.Rules, selector *victims.Selector) (by []verdict.Spared, leaving int) {
	counts, unprotected := map[verdict.Protection]int{}, []*cluster.Task{}
	for _, t := range s.Cluster.TasksOnNodes() {
		if !r.Concerns(t) {
			continue
		}
		if why := r.Protects(t); why.Exists() {
			counts[why]++
		} else {
			unprotected = append(unprotected, t)
		}
	}
	x, refused := s.Begin(), map[*cluster.Task]verdict.Protection{}
	defer x.Undo()
	units := selector.Evict(x, unprotected, victims.Options{Why: refused}).Units
	for _, t := range unprotected {
		if t.Status != cluster.Evicting {
			counts[refused[t].Or(verdict.RuleAtItsMinimum.Protection())]++
		}
	}
	return spared.List(counts), len(victims.TasksOf(units))
}

func ExampleCounts() {
	m := modelOf(new(testing.T), inClass("gang", "ours", "low", 2), fixture.Pod("g0", fixture.In("gang"), fixture.On("n"), marked), fixture.Pod("g1", fixture.In("gang"), fixture.On("n"), marked),
		inClass("equal", "ours", "mid", 0), fixture.Pod("e", fixture.In("equal"), fixture.On("n"), marked),
		inClass("own", "ours", "low", 0), fixture.Pod("o", fixture.In("own"), fixture.On("n")))
	r, selector := preemption(m, m.Open(), decision.BetweenJobs, false)
	var counts spared.Counts
	list, _, ok := counts.Of(r, selector, true)
	fmt.Println(ok)
	for _, s := range list {
		fmt.Println(s.Pods, s.Why)
	}
	// Output:
	// true
	// 2 rule J2 (their gang is at its minimum)
	// 1 rule J1 (the priority of their job is not lower)
	// 1 rule P2 (not marked volcano.sh/preemptable)
}

func TestNothingIsCountedWhereAPodMayBeTheFirstToLeave(t *testing.T) {
	gang := func(minimum int32) []any {
		return []any{inClass("gang", "ours", "low", minimum), fixture.Pod("g0", fixture.In("gang"), fixture.On("n"), marked), fixture.Pod("g1", fixture.In("gang"), fixture.On("n"), marked)}
	}
	for name, test := range map[string]struct {
		minimum           int32
		wholeGangs, leave bool
	}{
		"surplus":               {1, false, true},
		"a gang at its minimum": {2, false, false},
		"a gang that may end":   {2, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := modelOf(t, gang(test.minimum)...)
			r, selector := preemption(m, m.Open(), decision.BetweenJobs, test.wholeGangs)
			var counts spared.Counts
			list, areProtected, ok := counts.Of(r, selector, true)
			if ok == test.leave || areProtected || ok && !slices.Equal(list, []verdict.Spared{{Why: verdict.RuleAtItsMinimum.Protection(), Pods: 2}}) {
				t.Errorf("counted are %v: %t, and all are protected: %t", list, ok, areProtected)
			}
			if _, is := counts.NoneFirst(r); is == test.leave {
				t.Errorf("that none may be the first is %t", is)
			}
		})
	}
}

// The surplus of queue theirs might leave for one pod, and not for all that the job needs.
func TestAQueueWithoutARightKeepsNoPodFromBeingCounted(t *testing.T) {
	objects := []any{inClass("surplus", "theirs", "low", 0)}
	for i := range 3 { // theirs deserves two
		objects = append(objects, fixture.Pod(fmt.Sprint("s", i), fixture.In("surplus"), fixture.On("n"), fixture.Asks("cpu=1"), marked))
	}
	m := modelOf(t, objects...)
	r, selector := preemption(m, m.Open(), decision.BetweenQueues, false)
	var counts spared.Counts
	if list, _, ok := counts.Of(r, selector, true); ok {
		t.Errorf("with a right, counted are %v", list)
	}
	list, areProtected, ok := counts.Of(r, selector, false)
	if want := []verdict.Spared{{Why: verdict.RuleHasItsShare.Protection(), Pods: 3}}; !ok || areProtected || !slices.Equal(list, want) {
		t.Errorf("without a right, counted are %v: %t, and all are protected: %t", list, ok, areProtected)
	}
}

func TestCountsAreThoseOfATrial(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := modelOf(r)
		for i := range rapid.IntRange(0, 6).Draw(r, "jobs") {
			name, size := fmt.Sprint("j", i), rapid.IntRange(1, 3).Draw(r, "size")
			group := inClass(name, rapid.SampledFrom([]string{"ours", "theirs", "above", "below"}).Draw(r, "queue"), rapid.SampledFrom([]string{"low", "mid", "high"}).Draw(r, "class"),
				int32(rapid.IntRange(0, size).Draw(r, "minimum")))
			if rapid.IntRange(0, 5).Draw(r, "foreign") == 0 {
				group.Annotations[schedulingv1beta1.SchedulerNameKey] = "other"
			}
			m.Set(group)
			for k := range size {
				options := []func(*corev1.Pod){fixture.In(name), fixture.As("worker", k), fixture.On("n"), fixture.Asks(rapid.SampledFrom([]string{"cpu=1", "cpu=2", "memory=1Gi"}).Draw(r, "asks"))}
				if rapid.IntRange(0, 3).Draw(r, "marked") > 0 {
					options = append(options, marked)
				}
				m.Set(fixture.Pod(fmt.Sprint(name, "-", k), options...))
			}
		}
		s := m.Open()
		var counts spared.Counts // shared by preemptors of all scopes
		wholeGangs := rapid.Bool().Draw(r, "whole gangs")
		for _, scope := range []decision.Scope{decision.BetweenJobs, decision.BetweenQueues, decision.Anywhere} {
			rules, selector := preemption(m, s, scope, wholeGangs)
			got, _, ok := counts.Of(rules, selector, true)
			want, leaving := tried(s, rules, victims.New(rules))
			// A pod that only a plugin keeps is none of those that are counted: plugins are not asked.
			if ok && (leaving > 0 || !slices.Equal(got, want)) {
				r.Fatalf("%s: counted are %v (%t), and a trial spares %v and evicts %d", scope, got, ok, want, leaving)
			}
			if _, is := counts.NoneFirst(rules); is && leaving > 0 {
				r.Fatalf("%s: none may be the first, and in a trial %d leave", scope, leaving)
			}
		}
	})
}
