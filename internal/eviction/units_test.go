package eviction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

func as(role string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { fixture.As(role, 0)(p) }
}

// One queue and full nodes of one cpu each; who leaves for a job of priority high?
func TestAGangGivesItsSurplusOrGoesWhole(t *testing.T) {
	for name, test := range map[string]struct {
		giver         int
		pods          string
		options       []option
		takers        string
		configuration string
		want          string
	}{
		"surplus goes pod by pod, the youngest first": {giver: 1, pods: "n1 n2 n3", takers: "- -",
			options: []option{one(0, startedAt(1)), one(1, startedAt(3)), one(2, startedAt(2))},
			want:    "giver-1 leaves n2; giver-2 leaves n3"},
		"at its minimum all go, for one pod too": {giver: 3, pods: "n1 n2 n3", takers: "-",
			want: "giver-0 leaves n1; giver-1 leaves n2; giver-2 leaves n3"},
		"the minimum is broken only after the surplus": {giver: 2, pods: "n1 n2 n3", takers: "- -",
			want: "giver-0 leaves n1; giver-1 leaves n2; giver-2 leaves n3"},
		"at its minimum nobody goes where that is forbidden": {giver: 3, pods: "n1 n2 n3", takers: "-",
			configuration: "configurations: [{name: preempt, arguments: {allowWholeGang: false}}]\n", want: ""},
		"one pod that may not go keeps the gang": {giver: 3, pods: "n1 n2 n3", takers: "-", options: []option{one(2, unmarked)}, want: ""},
		"one pod that may not go does not keep the surplus": {giver: 2, pods: "n1 n2 n3", takers: "-", options: []option{one(2, unmarked)},
			want: "giver-0 leaves n1"},
		"a role keeps its minimum": {giver: 2, pods: "n1 n2 n3", takers: "-",
			options: []option{one(0, as("b")), one(1, as("a")), one(2, as("b")), roles(map[string]int32{"a": 1, "b": 1})}, want: "giver-0 leaves n1"},
		"no role has any to spare": {giver: 3, pods: "n1 n2 n3", takers: "-", configuration: "configurations: [{name: preempt, arguments: {allowWholeGang: false}}]\n",
			options: []option{one(0, as("b")), one(1, as("a")), one(2, as("b")), roles(map[string]int32{"a": 1, "b": 2})}, want: ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, everything+test.configuration).set(nodes("cpu=1", "n1", "n2", "n3"), job("giver", "default", "low", test.giver, test.pods, test.options...),
				job("taker", "default", "high", len(strings.Fields(test.takers)), test.takers))
			w.cycle()
			if got := w.victims(); got != test.want {
				t.Errorf("the victims are %q, should be %q", got, test.want)
			}
		})
	}
}

// One queue and full nodes of one cpu each, as above; the giver's pods are in subgroups of two, told by a letter, or in none (-).
func TestASubgroupGivesItsSurplusOrGoesWithItsGang(t *testing.T) {
	const notWhole = "configurations: [{name: preempt, arguments: {allowWholeGang: false}}]\n"
	all := "giver-0 leaves n1; giver-1 leaves n2; giver-2 leaves n3; giver-3 leaves n4"
	for name, test := range map[string]struct {
		giver         int
		parts         string
		takers        string
		configuration string
		options       []option
		want          string
	}{
		"what it has beyond its size goes":                {giver: 2, parts: "a a a b", takers: "-", configuration: notWhole, want: "giver-0 leaves n1"},
		"it is not broken, although the gang has surplus": {giver: 2, parts: "a a b b", takers: "-", want: all},
		"nor where the gang may not go whole":             {giver: 2, parts: "a a b b", takers: "-", configuration: notWhole, want: ""},
		"nor where one of the gang may not go":            {giver: 2, parts: "a a b b", takers: "-", options: []option{one(0, unmarked)}, want: ""},
		"what is in none goes by itself":                  {giver: 2, parts: "a a - -", takers: "-", configuration: notWhole, want: "giver-2 leaves n3"},
		"one that is broken keeps nothing":                {giver: 2, parts: "a a b -", takers: "- -", configuration: notWhole, want: "giver-2 leaves n3; giver-3 leaves n4"},
		"and does not bring the gang below its minimum":   {giver: 3, parts: "a a b -", takers: "- -", configuration: notWhole, want: ""},
		"and no more than that goes":                      {giver: 1, parts: "a a a b", takers: "- - -", configuration: notWhole, want: ""},
		"a large taker takes the whole gang":              {giver: 2, parts: "a a b b", takers: "- - -", want: all},
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
			w := newWorld(t, everything+test.configuration).set(nodes("cpu=1", "n1", "n2", "n3", "n4"),
				job("giver", "default", "low", test.giver, "n1 n2 n3 n4", options...),
				job("taker", "default", "high", len(strings.Fields(test.takers)), test.takers))
			w.cycle()
			if got := w.victims(); got != test.want {
				t.Errorf("the victims are %q, should be %q", got, test.want)
			}
		})
	}
}

// victims are the pods that were decided to leave, by name.
func (w *world) victims() string {
	var said []string
	for _, p := range w.decided.Plans {
		for _, e := range p.Evictions {
			said = append(said, fmt.Sprintf("%s leaves %s", e.Pod.Name, e.Node))
		}
	}
	slices.Sort(said)
	return strings.Join(said, "; ")
}

func TestTheWholeGangGoesAndOneTakerGetsItsRoomAcrossNodes(t *testing.T) {
	w := newWorld(t, everything).set(nodes("cpu=2", "n1", "n2"), job("wide", "default", "low", 2, "n1 n2"), job("small", "default", "mid", 1, "n1"),
		job("other", "default", "mid", 1, "n2"), job("taker", "default", "high", 2, "- -"))
	w.expect("wide-1 leaves n2 for taker by J1; wide-0 leaves n1 for taker by J1; taker-0 is promised n1; taker-1 is promised n2")
}

func TestAGangIsNotBrokenForATakerThatGetsOnlyPartOfWhatItNeeds(t *testing.T) {
	w := newWorld(t, everything).set(nodes("cpu=1", "n1", "n2"), job("giver", "default", "low", 1, "n1"), job("stays", "default", "high", 1, "n2"),
		job("taker", "default", "high", 2, "- -"))
	w.expect("")
	if got := w.why("taker"); !strings.HasPrefix(got, "NotEnoughResources: 0 of the 2 pods that must start together") || w.spared("taker") != "1 by rule J1 (the priority of their job is not lower)" {
		t.Error(got)
	}
}

// The laws on the objects alone, each with how it is told to the taker's owner.
func TestWhoIsProtectedAndWhy(t *testing.T) {
	never := fixture.PriorityClass("never", 100)
	policy := corev1.PreemptNever
	never.PreemptionPolicy = &policy
	for name, test := range map[string]struct {
		giver []any
		taker []any
		want  string
	}{
		"a job of equal priority": {giver: []any{job("giver", "default", "high", 0, "n1")}, taker: []any{job("taker", "default", "high", 1, "-")},
			want: "1 by rule J1 (the priority of their job is not lower)"},
		"an unmarked pod": {giver: []any{job("giver", "default", "low", 0, "n1", each(unmarked))}, taker: []any{job("taker", "default", "high", 1, "-")},
			want: "1 by rule P2 (not marked volcano.sh/preemptable)"},
		"a pod that requests something, from one that does not": {giver: []any{job("giver", "default", "low", 0, "n1")},
			taker: []any{job("taker", "default", "high", 1, "-", asking(""))}, want: "1 by rule P3 (the pod that waits requests nothing)"},
		"everybody, from a class that preempts nobody": {giver: []any{job("giver", "default", "low", 0, "n1")}, taker: []any{job("taker", "default", "never", 1, "-")},
			want: "1 by rule P6 (the PriorityClass of the job never preempts)"},
		"a queue of higher priority": {giver: []any{queue("theirs", 2, "", "", ""), job("giver", "theirs", "low", 0, "n1")},
			taker: []any{queue("ours", 1, "cpu=1", "", ""), job("taker", "ours", "high", 1, "-")}, want: "1 by rule Q1 (their queue has the higher priority)"},
		"what a queue deserves": {giver: []any{queue("theirs", 0, "cpu=1", "", ""), job("giver", "theirs", "low", 0, "n1")},
			taker: []any{queue("ours", 0, "cpu=1", "", ""), job("taker", "ours", "high", 1, "-")}, want: "1 by rule Q1 (within what their queue deserves)"},
		"what a queue is guaranteed": {giver: []any{queue("theirs", 0, "", "cpu=1", ""), job("giver", "theirs", "low", 0, "n1")},
			taker: []any{queue("ours", 1, "", "", "cpu=1"), job("taker", "ours", "high", 1, "-")}, want: "1 by rule Q2 (guaranteed to their queue)"},
		"a queue that is not reclaimable": {giver: []any{queue("theirs", 0, "", "", "", keeping), job("giver", "theirs", "low", 0, "n1")},
			taker: []any{queue("ours", 1, "cpu=1", "", ""), job("taker", "ours", "high", 1, "-")}, want: "1 by rule Q3 (their queue is not reclaimable)"},
		"everybody, from a queue that has its share": {giver: []any{queue("theirs", 0, "", "", ""), job("giver", "theirs", "low", 0, "n1")},
			taker: []any{queue("ours", 0, "", "", ""), job("taker", "ours", "high", 1, "-")}, want: "1 by rule Q4 (the job's own queue has what it deserves)"},
		"kube-system": {giver: []any{job("giver", "default", "low", 0, "n1", each(func(p *corev1.Pod) { p.Spec.PriorityClassName = "system-node-critical" }))},
			taker: []any{job("taker", "default", "high", 1, "-")}, want: "1 by rule P5 (system-critical pods)"},
		"a gang at its minimum": {giver: []any{job("giver", "default", "low", 1, "n1")}, taker: []any{job("taker", "default", "high", 1, "-")},
			want: "1 by rule J2 (their gang is at its minimum)"},
		"a queue of higher priority, from a lone pod": {giver: []any{queue("theirs", 2, "", "", ""), job("giver", "theirs", "low", 0, "n1")},
			taker: []any{queue("ours", 1, "cpu=1", "", ""), job("taker", "ours", "high", 1, "-", lone)}, want: "1 by rule Q1 (their queue has the higher priority)"},
		"a job of equal priority elsewhere, from a lone pod": {giver: []any{queue("theirs", 0, "", "", ""), job("giver", "theirs", "high", 0, "n1")},
			taker: []any{queue("ours", 0, "", "", ""), job("taker", "ours", "high", 1, "-", lone)}, want: "1 by rule J1 (the priority of their job is not lower)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, everything+"configurations: [{name: preempt, arguments: {allowWholeGang: false}}]\n").set(never, fixture.Node("n1", "cpu=1 pods=1"))
			w.set(test.giver...).set(test.taker...).expect("")
			if got := w.spared("taker"); got != test.want {
				t.Errorf("spared are %q, should be %q\n%s", got, test.want, w.why("taker"))
			}
		})
	}
}

func keeping(q *schedulingv1beta1.Queue) { no := false; q.Spec.Reclaimable = &no }

func TestAGangMayKeepASmallPodAndGiveALargeOne(t *testing.T) {
	// The least important of its pods alone would not make room, and after it none of the others may leave.
	w := newWorld(t, everything+"configurations: [{name: preempt, arguments: {allowWholeGang: false}}]\n").set(nodes("cpu=2", "n1"),
		job("giver", "default", "low", 1, "n1 n1", one(0, fixture.Asks("cpu=1500m")), one(1, fixture.Asks("cpu=500m"))), job("taker", "default", "high", 1, "-"))
	w.expect("giver-0 leaves n1 for taker by J1; taker-0 is promised n1")
}

func TestAGangLeavesOnlyAPodElsewhereIfThatIsAllItTakes(t *testing.T) {
	w := newWorld(t, everything).set(fixture.Node("n1", "cpu=3"), fixture.Node("n2", "cpu=1"), queue("small", 0, "", "", "cpu=3"),
		job("giver", "small", "low", 1, "n1 n2", one(0, as("master")), roles(map[string]int32{"master": 1})),
		job("taker", "small", "high", 1, "-", asking("cpu=2")))
	w.expect("giver-1 leaves n2 for taker by J1; taker-0 is promised n1")
}

func TestNobodyWhoHasRequestsLeavesForAPodThatHasNoneBesideOneThatFindsNoNode(t *testing.T) {
	inVain := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "nowhere"} }
	w := newWorld(t, oneByOne).set(fixture.Node("n1", "cpu=3 pods=1"), job("giver", "default", "low", 0, "n1"),
		job("taker", "default", "high", 0, "- -", one(0, fixture.Asks("")), one(1, inVain)))
	w.expect("")
}

func TestOfAGangThatNeedsAnyTwoPodsTheLargeOneLeavesIfThatIsEnough(t *testing.T) {
	w := newWorld(t, everything).set(fixture.Node("n1", "cpu=4"), fixture.Node("n2", "cpu=2"), queue("small", 0, "", "", "cpu=4"),
		job("other", "small", "high", 1, "n1"), job("giver", "small", "low", 2, "n1 n2 n1", one(2, fixture.Asks("cpu=2"))),
		job("taker", "small", "high", 1, "-"))
	w.expect("giver-2 leaves n1 for taker by J1; taker-0 is promised n1")
}
