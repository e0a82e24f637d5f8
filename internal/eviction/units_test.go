package eviction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

func as(role string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { fixture.As(role, 0)(p) }
}

// One queue and full nodes of one cpu each. Which pods are evicted for a job of priority high?
func TestAGangGivesItsSurplusOrGoesWhole(t *testing.T) {
	for name, test := range map[string]struct {
		victim        int
		pods          string
		options       []option
		preemptors    string
		configuration string
		want          string
	}{
		"surplus goes pod by pod, the youngest first": {victim: 1, pods: "n1 n2 n3", preemptors: "- -",
			options: []option{one(0, startedAt(1)), one(1, startedAt(3)), one(2, startedAt(2))},
			want:    "victim-1 leaves n2; victim-2 leaves n3"},
		"at its minimum all go, for one pod too": {victim: 3, pods: "n1 n2 n3", preemptors: "-",
			want: "victim-0 leaves n1; victim-1 leaves n2; victim-2 leaves n3"},
		"the minimum is broken only after the surplus": {victim: 2, pods: "n1 n2 n3", preemptors: "- -",
			want: "victim-0 leaves n1; victim-1 leaves n2; victim-2 leaves n3"},
		"at its minimum nobody goes where that is forbidden": {victim: 3, pods: "n1 n2 n3", preemptors: "-",
			configuration: "configurations: [{name: preempt, arguments: {allowWholeGang: false}}]\n", want: ""},
		"one pod that may not go keeps the gang": {victim: 3, pods: "n1 n2 n3", preemptors: "-", options: []option{one(2, unmarked)}, want: ""},
		"one pod that may not go does not keep the surplus": {victim: 2, pods: "n1 n2 n3", preemptors: "-", options: []option{one(2, unmarked)},
			want: "victim-0 leaves n1"},
		"a role keeps its minimum": {victim: 2, pods: "n1 n2 n3", preemptors: "-",
			options: []option{one(0, as("b")), one(1, as("a")), one(2, as("b")), roles(map[string]int32{"a": 1, "b": 1})}, want: "victim-0 leaves n1"},
		"no role has any to spare": {victim: 3, pods: "n1 n2 n3", preemptors: "-", configuration: "configurations: [{name: preempt, arguments: {allowWholeGang: false}}]\n",
			options: []option{one(0, as("b")), one(1, as("a")), one(2, as("b")), roles(map[string]int32{"a": 1, "b": 2})}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, everything+test.configuration).Set(nodes("cpu=1", "n1", "n2", "n3"), job("victim", "default", "low", test.victim, test.pods, test.options...),
				job("preemptor", "default", "high", len(strings.Fields(test.preemptors)), test.preemptors))
			w.Cycle()
			if got := victims(w); got != test.want {
				t.Errorf("the victims are %q, should be %q", got, test.want)
			}
		})
	}
}

// One queue and full nodes of one cpu each, as above. The victim's pods are in subgroups of two, named by a letter, or
// in none (-).
func TestASubgroupGivesItsSurplusOrGoesWithItsGang(t *testing.T) {
	const notWhole = "configurations: [{name: preempt, arguments: {allowWholeGang: false}}]\n"
	all := "victim-0 leaves n1; victim-1 leaves n2; victim-2 leaves n3; victim-3 leaves n4"
	for name, test := range map[string]struct {
		victim        int
		parts         string
		preemptors    string
		configuration string
		options       []option
		want          string
	}{
		"what it has beyond its size goes":                {victim: 2, parts: "a a a b", preemptors: "-", configuration: notWhole, want: "victim-0 leaves n1"},
		"it is not broken, although the gang has surplus": {victim: 2, parts: "a a b b", preemptors: "-", want: all},
		"nor where the gang may not go whole":             {victim: 2, parts: "a a b b", preemptors: "-", configuration: notWhole, want: ""},
		"nor where one of the gang may not go":            {victim: 2, parts: "a a b b", preemptors: "-", options: []option{one(0, unmarked)}, want: ""},
		"what is in none goes by itself":                  {victim: 2, parts: "a a - -", preemptors: "-", configuration: notWhole, want: "victim-2 leaves n3"},
		"one that is broken keeps nothing":                {victim: 2, parts: "a a b -", preemptors: "- -", configuration: notWhole, want: "victim-2 leaves n3; victim-3 leaves n4"},
		"and does not bring the gang below its minimum":   {victim: 3, parts: "a a b -", preemptors: "- -", configuration: notWhole, want: ""},
		"and no more than that goes":                      {victim: 1, parts: "a a a b", preemptors: "- - -", configuration: notWhole, want: ""},
		"a large preemptor takes the whole gang":          {victim: 2, parts: "a a b b", preemptors: "- - -", want: all},
	} {
		t.Run(name, func(t *testing.T) {
			options := append([]option{func(g *schedulingv1beta1.PodGroup, _ *corev1.Pod) {
				g.Spec.SubGroupPolicy = nil
				fixture.Parts("part", 2, 1, nil)(g)
			}}, test.options...)
			for i, part := range strings.Fields(test.parts) {
				if part != "-" {
					options = append(options, one(i, fixture.Labelled("part", part)))
				}
			}
			w := start(t, everything+test.configuration).Set(nodes("cpu=1", "n1", "n2", "n3", "n4"),
				job("victim", "default", "low", test.victim, "n1 n2 n3 n4", options...),
				job("preemptor", "default", "high", len(strings.Fields(test.preemptors)), test.preemptors))
			w.Cycle()
			if got := victims(w); got != test.want {
				t.Errorf("the victims are %q, should be %q", got, test.want)
			}
		})
	}
}

// victims lists the names of the pods that were decided to be evicted.
func victims(w *loop.Loop) string {
	var said []string
	for _, p := range w.Result.Decisions.Plans {
		for _, e := range p.Evictions {
			said = append(said, fmt.Sprintf("%s leaves %s", e.Pod.Name, e.Node))
		}
	}
	slices.Sort(said)
	return strings.Join(said, "; ")
}

func TestAGangIsEvictedWholeOrKeepsItsMinimum(t *testing.T) {
	t.Run("one preemptor gets the room of a whole gang on all nodes", func(t *testing.T) {
		w := start(t, everything).Set(nodes("cpu=2", "n1", "n2"), job("wide", "default", "low", 2, "n1 n2"), job("small", "default", "mid", 1, "n1"),
			job("other", "default", "mid", 1, "n2"), job("preemptor", "default", "high", 2, "- -"))
		w.Expect("wide-1 leaves n2 for preemptor by J1; wide-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1; preemptor-1 is nominated to n2")
	})
	t.Run("no gang is broken for part of what a preemptor needs", func(t *testing.T) {
		w := start(t, everything).Set(nodes("cpu=1", "n1", "n2"), job("victim", "default", "low", 1, "n1"), job("stays", "default", "high", 1, "n2"),
			job("preemptor", "default", "high", 2, "- -"))
		w.Expect("")
		if got := w.Why("preemptor"); !strings.HasPrefix(got, "NotEnoughResources: 0 of the 2 pods that must start together") || protected(w, "preemptor") != "1 by rule J1 (the priority of their job is not lower)" {
			t.Error(got)
		}
	})
	t.Run("a gang may keep a small pod and lose a large one", func(t *testing.T) {
		// The least important of its pods alone would not be enough, and after it none of the others may be evicted.
		w := start(t, everything+"configurations: [{name: preempt, arguments: {allowWholeGang: false}}]\n").Set(nodes("cpu=2", "n1"),
			job("victim", "default", "low", 1, "n1 n1", one(0, fixture.Asks("cpu=1500m")), one(1, fixture.Asks("cpu=500m"))), job("preemptor", "default", "high", 1, "-"))
		w.Expect("victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1")
	})
	t.Run("only a pod on another node leaves if that is enough", func(t *testing.T) {
		w := start(t, everything).Set(fixture.Node("n1", "cpu=3"), fixture.Node("n2", "cpu=1"), queue("small", 0, "", "", "cpu=3"),
			job("victim", "small", "low", 1, "n1 n2", one(0, as("master")), roles(map[string]int32{"master": 1})),
			job("preemptor", "small", "high", 1, "-", asking("cpu=2")))
		w.Expect("victim-1 leaves n2 for preemptor by J1; preemptor-0 is nominated to n1")
	})
	t.Run("of a gang that needs any two, the large pod leaves", func(t *testing.T) {
		w := start(t, everything).Set(fixture.Node("n1", "cpu=4"), fixture.Node("n2", "cpu=2"), queue("small", 0, "", "", "cpu=4"),
			job("other", "small", "high", 1, "n1"), job("victim", "small", "low", 2, "n1 n2 n1", one(2, fixture.Asks("cpu=2"))),
			job("preemptor", "small", "high", 1, "-"))
		w.Expect("victim-2 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1")
	})
}

// The rules that look at objects alone, each with its reason in the verdict of the preemptor.
func TestWhoIsProtectedAndWhy(t *testing.T) {
	never := fixture.NeverPreempting("never", 100)
	for name, test := range map[string]struct {
		victim    []any
		preemptor []any
		want      string
	}{
		"a job of equal priority": {victim: []any{job("victim", "default", "high", 0, "n1")}, preemptor: []any{job("preemptor", "default", "high", 1, "-")},
			want: "1 by rule J1 (the priority of their job is not lower)"},
		"an unmarked pod": {victim: []any{job("victim", "default", "low", 0, "n1", each(unmarked))}, preemptor: []any{job("preemptor", "default", "high", 1, "-")},
			want: "1 by rule P2 (not marked volcano.sh/preemptable)"},
		"a pod that requests something, from one that does not": {victim: []any{job("victim", "default", "low", 0, "n1")},
			preemptor: []any{job("preemptor", "default", "high", 1, "-", asking(""))}, want: "1 by rule P3 (the pod that waits requests nothing)"},
		"everybody, from a class that preempts nobody": {victim: []any{job("victim", "default", "low", 0, "n1")}, preemptor: []any{job("preemptor", "default", "never", 1, "-")},
			want: "1 by rule P6 (the PriorityClass of the job never preempts)"},
		"a queue of higher priority": {victim: []any{queue("theirs", 2, "", "", ""), job("victim", "theirs", "low", 0, "n1")},
			preemptor: []any{queue("ours", 1, "cpu=1", "", ""), job("preemptor", "ours", "high", 1, "-")}, want: "1 by rule Q1 (their queue has the higher priority)"},
		"what a queue deserves": {victim: []any{queue("theirs", 0, "cpu=1", "", ""), job("victim", "theirs", "low", 0, "n1")},
			preemptor: []any{queue("ours", 0, "cpu=1", "", ""), job("preemptor", "ours", "high", 1, "-")}, want: "1 by rule Q1 (within what their queue deserves)"},
		"what a queue is guaranteed": {victim: []any{queue("theirs", 0, "", "cpu=1", ""), job("victim", "theirs", "low", 0, "n1")},
			preemptor: []any{queue("ours", 1, "", "", "cpu=1"), job("preemptor", "ours", "high", 1, "-")}, want: "1 by rule Q2 (guaranteed to their queue)"},
		"a queue that is not reclaimable": {victim: []any{queue("theirs", 0, "", "", "", keeping), job("victim", "theirs", "low", 0, "n1")},
			preemptor: []any{queue("ours", 1, "cpu=1", "", ""), job("preemptor", "ours", "high", 1, "-")}, want: "1 by rule Q3 (their queue is not reclaimable)"},
		"everybody, from a queue that has its share": {victim: []any{queue("theirs", 0, "", "", ""), job("victim", "theirs", "low", 0, "n1")},
			preemptor: []any{queue("ours", 0, "", "", ""), job("preemptor", "ours", "high", 1, "-")}, want: "1 by rule Q4 (the job's own queue has what it deserves)"},
		"kube-system": {victim: []any{job("victim", "default", "low", 0, "n1", each(func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }))},
			preemptor: []any{job("preemptor", "default", "high", 1, "-")}, want: "1 by rule P5 (system-critical pods)"},
		"a gang at its minimum": {victim: []any{job("victim", "default", "low", 1, "n1")}, preemptor: []any{job("preemptor", "default", "high", 1, "-")},
			want: "1 by rule J2 (their gang is at its minimum)"},
		"a queue of higher priority, from a lone pod": {victim: []any{queue("theirs", 2, "", "", ""), job("victim", "theirs", "low", 0, "n1")},
			preemptor: []any{queue("ours", 1, "cpu=1", "", ""), job("preemptor", "ours", "high", 1, "-", lone)}, want: "1 by rule Q1 (their queue has the higher priority)"},
		"a job of equal priority elsewhere, from a lone pod": {victim: []any{queue("theirs", 0, "", "", ""), job("victim", "theirs", "high", 0, "n1")},
			preemptor: []any{queue("ours", 0, "", "", ""), job("preemptor", "ours", "high", 1, "-", lone)}, want: "1 by rule J1 (the priority of their job is not lower)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, everything+"configurations: [{name: preempt, arguments: {allowWholeGang: false}}]\n").Set(never, fixture.Node("n1", "cpu=1 pods=1"))
			w.Set(test.victim).Set(test.preemptor).Expect("")
			if got := protected(w, "preemptor"); got != test.want {
				t.Errorf("spared are %q, should be %q\n%s", got, test.want, w.Why("preemptor"))
			}
		})
	}
}

func keeping(q *schedulingv1beta1.Queue) { no := false; q.Spec.Reclaimable = &no }

func TestNoPodWithRequestsIsEvictedForOneWithout(t *testing.T) {
	inVain := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "nowhere"} }
	w := start(t, oneByOne).Set(fixture.Node("n1", "cpu=3 pods=1"), job("victim", "default", "low", 0, "n1"),
		job("preemptor", "default", "high", 0, "- -", one(0, fixture.Asks("")), one(1, inVain)))
	w.Expect("")
}
