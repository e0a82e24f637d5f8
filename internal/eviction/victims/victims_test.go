package victims_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/internal/eviction/victims"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// evicting is an action that evicts and that has nothing but rules.
type evicting struct {
	framework.EvictingAction
	rules framework.EvictionRules
}

func (evicting) Name() string                             { return "evicting" }
func (e evicting) EvictionRules() framework.EvictionRules { return e.rules }

// allowing is a plugin that allows evicting every pod.
type allowing struct{}

func (allowing) Name() string { return "allowing" }
func (allowing) VotePreempt(*framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return framework.Permit, verdict.Protection{}
}

// evictions are what a preemptor of high priority may evict from node n, in an open transaction.
type evictions struct {
	*harness.Model
	*victims.Selector
	x framework.Transaction
}

// evictionsOn is a cluster with these objects.
func evictionsOn(t *testing.T, action framework.EvictionRules, objects ...[]runtime.Object) *evictions {
	m := harness.ForPlugin(t, harness.Made(allowing{}), "").Set(fixture.Queue("default"), fixture.Node("n", "cpu=64"), fixture.Node("other", "cpu=64"),
		fixture.PriorityClass("low", 10), fixture.PriorityClass("mid", 50), fixture.PriorityClass("high", 100))
	for _, o := range objects {
		m.Set(o)
	}
	preemptor := fixture.Group("preemptor", "default", 1)
	preemptor.Spec.PriorityClassName = "high"
	m.Set(preemptor, fixture.Pod("waits", fixture.In("preemptor")))
	s := m.Open()
	r := rules.Of(s, evicting{rules: action}).For(decision.BetweenJobs, m.JobNamed("preemptor"))
	r.SetPod(m.TaskNamed("waits"))
	return &evictions{m, victims.New(r), s.Begin()}
}

// running is a gang with pods of one CPU that run on node n and may be evicted.
func running(name, class string, minimum, size int, options ...func(*corev1.Pod)) []runtime.Object {
	objects := fixture.Gang(name, "default", minimum, size, append([]func(*corev1.Pod){fixture.On("n"), fixture.Labelled("app", name),
		fixture.Annotated(schedulingv1beta1.PreemptableKey, "true")}, options...)...)
	objects[0].(*schedulingv1beta1.PodGroup).Spec.PriorityClassName = class
	return objects
}

// onOne applies an option to one pod of a gang.
func onOne(index int, change func(*corev1.Pod)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		if strings.HasSuffix(p.Name, fmt.Sprint("-", index)) {
			change(p)
		}
	}
}

func unmarked(p *corev1.Pod) { delete(p.Annotations, schedulingv1beta1.PreemptableKey) }

func (e *evictions) evict(o victims.Options) victims.Evicted {
	return e.Evict(e.x, slices.Clone(e.Node("n").Tasks()), o)
}

// names are the pods of units, those of one unit joined: "a-1 b-0+b-1".
func names(units []victims.Unit) string {
	var all []string
	for _, u := range units {
		var pods []string
		for _, t := range u.Tasks {
			pods = append(pods, t.Pod.Name)
		}
		slices.Sort(pods)
		all = append(all, strings.Join(pods, "+"))
	}
	return strings.Join(all, " ")
}

var wholeGangs = framework.EvictionRules{AllowWholeGang: true, Budgets: true, Ends: true, Starts: true}

func TestUnitsAreEvictedTheLeastImportantFirst(t *testing.T) {
	for name, test := range map[string]struct {
		action  framework.EvictionRules
		objects [][]runtime.Object
		options victims.Options
		want    string
	}{
		"lower jobs first":              {wholeGangs, [][]runtime.Object{running("a", "mid", 0, 1), running("b", "low", 0, 1)}, victims.Options{}, "b-0 a-0"},
		"surplus, then the gang":        {wholeGangs, [][]runtime.Object{running("a", "low", 2, 3)}, victims.Options{}, "a-2 a-0+a-1"},
		"no gang where none may go":     {framework.EvictionRules{}, [][]runtime.Object{running("a", "low", 2, 3)}, victims.Options{}, "a-2"},
		"no gang with a protected pod":  {wholeGangs, [][]runtime.Object{running("a", "low", 2, 3, onOne(0, unmarked))}, victims.Options{}, "a-2"},
		"nothing that is protected":     {wholeGangs, [][]runtime.Object{running("a", "low", 0, 2, unmarked)}, victims.Options{}, ""},
		"nothing of a higher job":       {wholeGangs, [][]runtime.Object{running("a", "high", 0, 2)}, victims.Options{}, ""},
		"the largest first":             {wholeGangs, [][]runtime.Object{running("a", "low", 0, 1, fixture.Asks("cpu=500m")), running("b", "mid", 0, 1)}, victims.Options{LargestFirst: true}, "b-0 a-0"},
		"surplus before a whole job":    {wholeGangs, [][]runtime.Object{running("b", "low", 1, 1), running("a", "low", 1, 2)}, victims.Options{}, "a-1 b-0 a-0"},
		"what is elsewhere goes along":  {wholeGangs, [][]runtime.Object{running("a", "low", 2, 2, onOne(1, fixture.On("other")))}, victims.Options{}, "a-0+a-1"},
		"task priority within one job":  {wholeGangs, [][]runtime.Object{running("a", "low", 0, 2, onOne(0, fixture.Annotated(schedulingv1beta1.TaskPriorityAnnotationKey, "-5")))}, victims.Options{}, "a-0 a-1"},
		"ends as soon as it is enough":  {wholeGangs, [][]runtime.Object{running("a", "mid", 0, 2), running("b", "low", 0, 1)}, victims.Options{Enough: func() bool { return true }}, ""},
		"of equals the later UID first": {wholeGangs, [][]runtime.Object{running("a", "low", 0, 2)}, victims.Options{}, "a-1 a-0"},
	} {
		t.Run(name, func(t *testing.T) {
			e := evictionsOn(t, test.action, test.objects...)
			evicted := e.evict(test.options)
			if got := names(evicted.Units); got != test.want {
				t.Errorf("evicted are %q, want %q", got, test.want)
			}
			if test.options.Enough == nil && evicted.NoneUnprotected != (test.want == "") {
				t.Errorf("that rules protect all is %t", evicted.NoneUnprotected)
			}
			for _, pod := range victims.TasksOf(evicted.Units) {
				if pod.Status != cluster.Evicting {
					t.Errorf("%s is %s", pod.Pod.Name, pod.Status)
				}
			}
			e.x.Undo()
		})
	}
}

func TestOnlyThePodsOfTheNodeLeaveForTheMoment(t *testing.T) {
	e := evictionsOn(t, wholeGangs, running("a", "low", 2, 2, onOne(1, fixture.On("other"))))
	evicted := e.evict(victims.Options{Local: e.Node("n")})
	if got := names(evicted.Units); got != "a-0+a-1" || e.TaskNamed("a-0").Status != cluster.Evicting || e.TaskNamed("a-1").Status != cluster.Running {
		t.Errorf("evicted is %q, a-0 is %s, a-1 elsewhere is %s", got, e.TaskNamed("a-0").Status, e.TaskNamed("a-1").Status)
	}
	e.x.Undo()
}

// The preemptor fits once so many CPUs of node n are free of pods that stay.
func (e *evictions) giveBack(gone []victims.Unit, cpus int) []victims.Unit {
	return e.GiveBack(e.x, gone, nil, func(*victims.Unit) bool {
		leaving := 0
		for _, t := range e.Node("n").Tasks() {
			if t.Status == cluster.Evicting {
				leaving++
			}
		}
		return leaving >= cpus
	})
}

func TestVictimsThatAreNotNeededAreGivenBack(t *testing.T) {
	noBudgets := wholeGangs
	noBudgets.Budgets = false
	for name, test := range map[string]struct {
		action  framework.EvictionRules
		objects [][]runtime.Object
		cpus    int
		want    string
	}{
		"the most important first":        {wholeGangs, [][]runtime.Object{running("a", "mid", 0, 1), running("b", "low", 0, 2)}, 1, "b-1"},
		"none if all are needed":          {wholeGangs, [][]runtime.Object{running("a", "mid", 0, 1), running("b", "low", 0, 2)}, 3, "b-1 b-0 a-0"},
		"all if none is needed":           {wholeGangs, [][]runtime.Object{running("a", "mid", 0, 1)}, 0, ""},
		"a gang whose surplus is enough":  {wholeGangs, [][]runtime.Object{running("a", "low", 2, 3)}, 1, "a-2"},
		"no part of a gang that must go":  {wholeGangs, [][]runtime.Object{running("a", "low", 2, 3)}, 2, "a-2 a-0+a-1"},
		"what breaks a budget first":      {wholeGangs, [][]runtime.Object{running("a", "mid", 0, 1), running("b", "low", 0, 1), {fixture.Budget("b", "b", 0)}}, 1, "a-0"},
		"not where the budget allows it":  {wholeGangs, [][]runtime.Object{running("a", "mid", 0, 1), running("b", "low", 0, 1), {fixture.Budget("b", "b", 1)}}, 1, "b-0"},
		"not where budgets do not count":  {noBudgets, [][]runtime.Object{running("a", "mid", 0, 1), running("b", "low", 0, 1), {fixture.Budget("b", "b", 0)}}, 1, "b-0"},
		"the surplus that is on the node": {wholeGangs, [][]runtime.Object{running("a", "low", 2, 3, onOne(2, fixture.On("other")))}, 1, "a-1"},
	} {
		t.Run(name, func(t *testing.T) {
			e := evictionsOn(t, test.action, test.objects...)
			gone := e.evict(victims.Options{})
			kept := e.giveBack(gone.Units, test.cpus)
			if got := names(kept); got != test.want {
				t.Errorf("of %q must go %q, want %q", names(gone.Units), got, test.want)
			}
			leaving := 0
			for _, pod := range e.Node("n").Tasks() {
				if pod.Status == cluster.Evicting {
					leaving++
				}
			}
			if want := len(victims.TasksOf(kept)); leaving > want {
				t.Errorf("%d pods are left evicted, and %d are victims", leaving, want)
			}
			e.x.Undo()
			e.Check()
		})
	}
}

func TestTheCostCountsWhatTheVictimsAre(t *testing.T) {
	e := evictionsOn(t, wholeGangs, running("a", "low", 0, 2), running("b", "mid", 2, 2), []runtime.Object{fixture.Budget("a", "a", 1)})
	a0, a1 := victims.OneTask(e.TaskNamed("a-0")), victims.OneTask(e.TaskNamed("a-1"))
	whole, ok := e.WholeGang(e.JobNamed("b"))
	if !ok {
		t.Fatal("gang b may not be evicted as a whole")
	}
	ascending := []struct {
		what  string
		units []victims.Unit
	}{
		{"no victim", nil},
		{"one pod of a job", []victims.Unit{a0}},
		{"a gang of higher priority", []victims.Unit{whole}},
		{"two pods, which the budget forbids", []victims.Unit{a1, a0}},
	}
	for i := 1; i < len(ascending); i++ {
		less, more := e.Cost(ascending[i-1].units, 0), e.Cost(ascending[i].units, 0)
		if less.Compare(&more, &wholeGangs) >= 0 {
			t.Errorf("%s costs no less than %s", ascending[i-1].what, ascending[i].what)
		}
	}
}
