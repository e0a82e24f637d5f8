package eviction_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

func budgeted(p *corev1.Pod) { p.Labels["app"] = "guarded" }

// Two nodes of one cpu are full, each with pods of one victim. The preemptor takes one of them, by the list of rule K3.
// Each case differs in one item of the list, and all later items are in favour of n1.
func TestAmongNodesTheListDecidesItemByItem(t *testing.T) {
	const old = "configurations: [{name: preempt, arguments: {preset: kube-1.8}}]\n"
	for name, test := range map[string]struct {
		things        []any
		configuration string
		want          string
	}{
		"no victim at all": {things: []any{fixture.Node("n3", "cpu=1"), job("a", "default", "low", 0, "n1"), job("b", "default", "low", 0, "n2"), job("c", "default", "low", 0, "n3", each(leaving))},
			want: "preemptor-0 is nominated to n3"},
		"fewer violations of budgets": {things: []any{job("a", "default", "low", 0, "n1", each(budgeted)), job("b", "default", "mid", 0, "n2"), fixture.Budget("b", "guarded", 0)},
			want: "b-0 leaves n2 for preemptor by J1; preemptor-0 is nominated to n2"},
		"budgets do not count as they did not then": {things: []any{job("a", "default", "low", 0, "n1", each(budgeted)), job("b", "default", "mid", 0, "n2"), fixture.Budget("b", "guarded", 0)},
			configuration: old, want: "a-0 leaves n1 for preemptor by J1 past its budget; preemptor-0 is nominated to n1"},
		"the most important victim matters less": {things: []any{job("a", "default", "mid", 0, "n1"), job("b", "default", "low", 0, "n2 n2", asking("cpu=500m"))},
			want: "b-1 leaves n2 for preemptor by J1; b-0 leaves n2 for preemptor by J1; preemptor-0 is nominated to n2"},
		"the sum is smaller": {things: []any{job("a", "default", "mid", 0, "n1", asking("cpu=500m")), job("c", "default", "low", 0, "n1", asking("cpu=500m")), job("b", "default", "mid", 0, "n2")},
			want: "b-0 leaves n2 for preemptor by J1; preemptor-0 is nominated to n2"},
		"later start of the most important": {things: []any{job("a", "default", "low", 0, "n1", one(0, startedAt(1))), job("b", "default", "low", 0, "n2", one(0, startedAt(2)))},
			want: "b-0 leaves n2 for preemptor by J1; preemptor-0 is nominated to n2"},
		"starts do not count as they did not then": {things: []any{job("a", "default", "low", 0, "n1", one(0, startedAt(1))), job("b", "default", "low", 0, "n2", one(0, startedAt(2)))},
			configuration: old, want: "a-0 leaves n1 for preemptor by J1 past its budget; preemptor-0 is nominated to n1"},
		"the name": {things: []any{job("a", "default", "low", 0, "n2"), job("b", "default", "low", 0, "n1")},
			want: "b-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, everything+test.configuration).Set(nodes("cpu=1", "n1", "n2")).Set(test.things...).Set(job("preemptor", "default", "high", 1, "-"))
			w.Expect(test.want)
		})
	}
}

// leaving makes a pod terminating.
func leaving(p *corev1.Pod) {
	stamp := fixture.Pod("").CreationTimestamp
	stamp.Time = fixture.Birth.Add(61 * 60e9)
	p.DeletionTimestamp = &stamp
}

func TestWhatComesBackFirst(t *testing.T) {
	for name, test := range map[string]struct {
		things []any
		want   string
	}{
		"the most important": {things: []any{job("a", "default", "low", 0, "n1"), job("b", "default", "mid", 0, "n1")},
			want: "a-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1"},
		"the pod of a higher task priority": {things: []any{job("a", "default", "low", 0, "n1 n1", one(0, ranking("1")), one(1, ranking("2")))},
			want: "a-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1"},
		"what breaks a budget, though it matters less": {things: []any{job("a", "default", "low", 0, "n1", each(budgeted)), job("b", "default", "mid", 0, "n1"), fixture.Budget("b", "guarded", 0)},
			want: "b-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1"},
		"what the more important leave no budget for": {things: []any{job("a", "default", "low", 0, "n1 n1", each(budgeted)), fixture.Budget("b", "guarded", 1)},
			want: "a-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1"},
		"a small pod, where a large one must go anyway": {things: []any{job("a", "default", "low", 0, "n1", asking("cpu=500m")), job("b", "default", "mid", 0, "n1", asking("cpu=1500m"))},
			want: "b-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1"},
		"a gang that breaks a budget, before its own surplus": {things: []any{job("a", "default", "low", 1, "n1 n1", asking("cpu=500m"), each(budgeted)), job("b", "default", "mid", 0, "n1"), fixture.Budget("b", "guarded", 0)},
			want: "b-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1"},
	} {
		t.Run(name, func(t *testing.T) {
			start(t, everything).Set(nodes("cpu=2", "n1")).Set(test.things...).Set(job("preemptor", "default", "high", 1, "-")).Expect(test.want)
		})
	}
}

func TestNoOtherVictimIsLeftThatCouldCoverABudget(t *testing.T) {
	// All pods are needed, so the budget is violated, and the eviction says so.
	w := start(t, everything).Set(nodes("cpu=2", "n1"), job("a", "default", "low", 0, "n1 n1", each(budgeted)), fixture.Budget("b", "guarded", 1),
		job("preemptor", "default", "high", 1, "-", asking("cpu=2")))
	w.Expect("a-1 leaves n1 for preemptor by J1 past its budget; a-0 leaves n1 for preemptor by J1 past its budget; preemptor-0 is nominated to n1")
}

func TestQueuesGiveByPriorityAndThenByWhatExceedsTheirShare(t *testing.T) {
	ours := queue("ours", 2, "cpu=4", "", "")
	for name, test := range map[string]struct {
		things    []any
		preemptor string
		want      string
	}{
		"the lowest, though its jobs matter more": {preemptor: "-", things: []any{queue("low", 0, "", "", ""), queue("mid", 1, "", "", ""), job("a", "low", "high", 0, "n1"), job("b", "mid", "low", 0, "n1 n1 n1")},
			want: "a-0 leaves n1"},
		"of equals the one that holds more of what it deserves": {preemptor: "-", things: []any{queue("a", 0, "cpu=1", "", ""), queue("b", 0, "cpu=1", "", ""), job("a", "a", "low", 0, "n1"), job("b", "b", "high", 0, "n1 n1 n1")},
			want: "b-2 leaves n1"},
		"which changes as the plan grows": {preemptor: "- - -", things: []any{queue("a", 0, "cpu=1", "", ""), queue("b", 0, "cpu=1", "", ""), job("a", "a", "low", 0, "n1"), job("b", "b", "high", 0, "n1 n1 n1")},
			want: "a-0 leaves n1; b-1 leaves n1; b-2 leaves n1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, everything).Set(nodes("cpu=4", "n1"), ours).Set(test.things...).Set(job("preemptor", "ours", "low", len(test.preemptor+" ")/2, test.preemptor))
			w.Cycle()
			if got := victims(w); got != test.want {
				t.Errorf("the victims are %s, should be %s", got, test.want)
			}
		})
	}
}

func TestAGangsVictimsAreGivenBackOverTheWholePlan(t *testing.T) {
	// For the first pod alone, n1 is the cheapest by name. Once the gang on all nodes is evicted for the second, no
	// other pod is needed.
	w := start(t, everything).Set(nodes("cpu=2", "n1", "n2"), job("wide", "default", "low", 2, "n1 n2"), job("a", "default", "low", 0, "n1"), job("b", "default", "mid", 0, "n2"),
		job("preemptor", "default", "high", 2, "- -"))
	w.Expect("wide-1 leaves n2 for preemptor by J1; wide-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1; preemptor-1 is nominated to n2")
}

func TestPlansCountTheRoomThatIsThere(t *testing.T) {
	t.Run("room of pods that are being deleted needs no victims", func(t *testing.T) {
		w := start(t, everything).Set(nodes("cpu=1", "n1", "n2"), job("gone", "default", "low", 0, "n1", each(leaving)), job("other", "default", "low", 0, "n2"),
			job("preemptor", "default", "high", 1, "-")).Expect("preemptor-0 is nominated to n1")
		if got := w.Why("preemptor"); got != "Preempting: pods are leaving the nominated nodes; they were being deleted before, and no pod is evicted for it" {
			t.Error(got)
		}
		// A later job gets what is left. No pod gets the nominated room.
		w.Set(job("later", "default", "mid", 1, "-")).Expect("other-0 leaves n2 for later by J1; later-0 is nominated to n2")
		w.RemovePods("gone-0").Expect("preemptor-0 is bound to n1")
	})
	t.Run("free room is left to allocate", func(t *testing.T) {
		w := start(t, with(everything, "allocate, preempt, reclaim", "preempt, allocate")).Set(nodes("cpu=1", "n1", "n2"), job("other", "default", "low", 0, "n2"),
			job("preemptor", "default", "high", 1, "-"))
		w.Expect("preemptor-0 is bound to n1")
	})
	t.Run("an attempt that fails leaves nothing behind", func(t *testing.T) {
		w := start(t, everything).Set(nodes("cpu=1", "n1", "n2"), job("a", "default", "low", 0, "n1"), job("b", "default", "low", 1, "n2", each(unmarked)),
			job("preemptor", "default", "high", 2, "- -"))
		w.Expect("")
		before := w.Dump()
		// A second attempt finds the same plan and changes nothing.
		w.Set(fixture.Node("n3", "cpu=500m")).Expect("").Remove(fixture.Node("n3", "cpu=500m"))
		w.Expect("")
		if after := w.Dump(); after != before {
			t.Errorf("the model was\n%s\nand is\n%s", before, after)
		}
	})
}

func TestPodsThatRequestNothingTakeAPlaceFromTheirLikeOnly(t *testing.T) {
	nothing := asking("")
	w := start(t, everything).Set(fixture.Node("n1", "cpu=8 pods=2"), job("a", "default", "low", 0, "n1"), job("b", "default", "mid", 0, "n1", nothing),
		job("preemptor", "default", "high", 1, "-", nothing))
	w.Expect("b-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1")
}

func TestAVetoedNodeIsPassedOver(t *testing.T) {
	t.Run("the next best node is taken", func(t *testing.T) {
		w := start(t, with(everything, "- name: predicates", "- name: predicates\n  - name: vetoer"), vetoing("n1")).Set(nodes("cpu=1", "n1", "n2"),
			job("a", "default", "low", 0, "n1"), job("b", "default", "mid", 0, "n2"), job("preemptor", "default", "high", 1, "-"))
		w.Expect("b-0 leaves n2 for preemptor by J1; preemptor-0 is nominated to n2")
	})
	t.Run("the plugin that refuses the nodes is named", func(t *testing.T) {
		w := start(t, with(everything, "- name: predicates", "- name: predicates\n  - name: vetoer"), vetoing("n1")).Set(nodes("cpu=1", "n1"),
			job("a", "default", "low", 0, "n1"), job("preemptor", "default", "high", 1, "-"))
		w.Expect("")
		if got, want := w.Why("preemptor"), "; refused although evictions would make room: 1 node(s) were vetoed (such as n1)"; !strings.HasSuffix(got, want) {
			t.Errorf("the preemptor waits because %s; it should say %s", got, want)
		}
	})
}

// A surplus pod is given back only after the rest of its gang. Neither may keep a pod from coming back whose budget is
// spent.
func TestASurplusPodWithoutBudgetLeftIsGivenBackFirst(t *testing.T) {
	start(t, everything).Set(nodes("cpu=2", "n1", "n2"), fixture.Budget("b", "guarded", 0), fixture.Budget("other", "other", 9),
		job("pair", "default", "low", 0, "n1 n2", one(0, budgeted)),
		job("young", "default", "low", 0, "n1", each(startedAt(5)), each(fixture.Labelled("app", "other"))),
		job("full", "default", "high", 1, "n2"),
		job("preemptor", "default", "high", 1, "-", each(fixture.Selecting("kubernetes.io/hostname", "n1")))).
		Expect("young-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1")
}

// Both pods of old may not leave for the first pod alone: their department would fall below its guarantee. With the
// first pod elsewhere they may leave for the second, and their queue is lower than that of the others.
func TestANodeThatWasRefusedForOnePodIsTriedForTheNext(t *testing.T) {
	below := func(q *schedulingv1beta1.Queue) { q.Spec.Parent = "dept" }
	hierarchical := with(everything, "- name: capacity", "- name: capacity\n    enableHierarchy: true")
	w := start(t, hierarchical).Set(nodes("cpu=1", "n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", "n9", "na", "nb"), queue("dept", 0, "", "cpu=2", ""),
		queue("theirs", 0, "", "", "", below), queue("ours", 2, "", "", "", below), queue("others", 1, "", "", ""),
		job("old", "theirs", "low", 2, "n2 n3"), job("other", "others", "low", 0, "n1 n4 n5 n6 n7 n8 n9 na nb"),
		job("preemptor", "ours", "high", 9, "- - - - - - - - -"))
	w.Cycle()
	if got := victims(w); !strings.HasPrefix(got, "old-0 leaves n2; old-1 leaves n3; ") || strings.Count(got, "other-") != 7 {
		t.Errorf("the victims are %s, should be both pods of old and seven others", got)
	}
}
