package eviction_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
)

// What the victim's owner reads.
func TestEveryEvictionSaysWhoTakesTheRoomByWhichLawAndTheNumbers(t *testing.T) {
	for name, test := range map[string]struct {
		things []any
		want   string
	}{
		"between jobs": {things: []any{job("giver", "default", "low", 0, "n1"), job("taker", "default", "high", 1, "-")},
			want: "Preempted by job work/taker (priority 100) in queue default: higher job priority than 10 (rule J1)"},
		"a whole gang": {things: []any{job("giver", "default", "low", 2, "n1 n2"), job("taker", "default", "high", 1, "-")},
			want: "Preempted by job work/taker (priority 100) in queue default: higher job priority than 10 (rule J1); its gang cannot run without it and is evicted as a whole (rule J2)"},
		"from a lower queue": {things: []any{queue("theirs", 1, "", "", ""), queue("ours", 2, "", "", ""), job("giver", "theirs", "low", 0, "n1"), job("taker", "ours", "low", 1, "-")},
			want: "Preempted by job work/taker in queue ours (queue priority 2): higher queue priority than 1 of queue theirs (rule Q1)"},
		"above a share": {things: []any{queue("theirs", 0, "cpu=1", "", ""), queue("ours", 0, "cpu=1", "", ""), job("giver", "theirs", "low", 0, "n1 n2"), job("taker", "ours", "low", 1, "-")},
			want: "Preempted by job work/taker in queue ours: queue theirs holds more than it deserves (rule Q1); it keeps cpu 1 and deserves 1"},
		"above a share that nobody wrote down": {things: []any{queue("theirs", 0, "", "", ""), queue("ours", 0, "cpu=1", "", ""), job("giver", "theirs", "low", 0, "n1 n2"), job("taker", "ours", "low", 1, "-")},
			want: "Preempted by job work/taker in queue ours: queue theirs holds more than it deserves (rule Q1)"},
		"a lone pod": {things: []any{queue("theirs", 0, "", "", ""), job("giver", "theirs", "low", 0, "n1"), queue("default", 0, "cpu=1", "", ""), job("taker", "default", "high", 1, "-", lone)},
			want: "Preempted by job work/taker (priority 100) in queue default: a lone pod of higher priority than 10 (rule A3)"},
		"inside a job": {things: []any{job("giver", "default", "low", 0, "n1 -", one(1, ranking("7")))},
			want: "Preempted by pod giver-1 (task priority 7) of the same job: higher task priority than 0 (rule P1)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, everything).set(fixture.Node("n1", "cpu=1"), fixture.Node("n2", "cpu=1")).set(test.things...)
			if strings.Count(name, "share")+strings.Count(name, "gang") == 0 {
				w.remove(fixture.Node("n2", "cpu=1"))
			}
			w.cycle()
			if len(w.decided.Plans) != 1 || len(w.decided.Plans[0].Evictions) == 0 {
				t.Fatalf("decided: %s", tell(&w.decided))
			}
			message, mention, _ := strings.Cut(w.decided.Plans[0].Evictions[0].Message, " (plan ")
			if message != test.want || mention != w.decided.Plans[0].ID+")" {
				t.Errorf("the message is\n\t%s\nshould be\n\t%s", message, test.want)
			}
		})
	}
}

// Plans of each level are looked after until their victims are on their way.
func TestAPlanOfAnyLevelEndsWhenALawComesToProtectItsVictims(t *testing.T) {
	for name, test := range map[string]struct {
		things  []any
		happens func(w *world)
		want    string
	}{
		"between queues": {things: []any{queue("theirs", 1, "", "", ""), queue("ours", 2, "", "", ""), job("giver", "theirs", "low", 0, "n1"), job("taker", "ours", "low", 1, "-")},
			happens: func(w *world) { w.set(queue("theirs", 1, "", "cpu=1", "")) },
			want:    "the plan of taker ends: pod work/giver-0 may not leave any more: rule Q2 (guaranteed to their queue), giver-0 stays, taker-0 waits"},
		"for a lone pod": {things: []any{queue("theirs", 0, "", "", ""), job("giver", "theirs", "low", 0, "n1"), queue("default", 0, "cpu=1", "", ""), job("taker", "default", "high", 1, "-", lone)},
			happens: func(w *world) { w.set(queue("theirs", 0, "", "", "", keeping)) },
			want:    "the plan of taker ends: pod work/giver-0 may not leave any more: rule Q3 (their queue is not reclaimable), giver-0 stays, taker-0 waits"},
		"inside a job": {things: []any{job("taker", "default", "low", 0, "n1 -", one(1, ranking("7")))},
			happens: func(w *world) { w.set(job("taker", "default", "low", 1, "n1", lone)[0]) },
			want:    "the plan of taker ends: pod work/taker-0 may not leave: rule J2 (their gang is at its minimum), taker-0 stays, taker-1 waits"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, everything).set(fixture.Node("n1", "cpu=1")).set(test.things...)
			if w.cycle(); len(w.decided.Plans) != 1 {
				t.Fatalf("decided: %s", tell(&w.decided))
			}
			test.happens(w)
			w.expect(test.want)
		})
	}
}

func TestPortsAndPodsThatRepelAreRoomToo(t *testing.T) {
	port := each(fixture.OnPort(80))
	apart := each(fixture.ApartFrom("app", "web"))
	web := each(fixture.Labelled("app", "web"))
	for name, test := range map[string]struct {
		giver, taker []any
		happens      func(w *world)
		want, then   string
	}{
		"who holds the port leaves, and nobody else": {giver: []any{job("a", "default", "low", 0, "n1"), job("b", "default", "mid", 0, "n1", port)},
			taker: []any{job("taker", "default", "high", 1, "-", port)}, want: "b-0 leaves n1 for taker by J1; taker-0 is promised n1"},
		"a port that a stranger takes is lost": {giver: []any{job("b", "default", "mid", 0, "n1", port)}, taker: []any{job("taker", "default", "high", 1, "-", port)},
			want: "b-0 leaves n1 for taker by J1; taker-0 is promised n1",
			happens: func(w *world) {
				w.set(fixture.Pod("stranger", fixture.On("n1"), fixture.OnPort(80), func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }))
			},
			then: "the plan of taker ends: the room that was promised is not there any more, b-0 stays, taker-0 waits"},
		"who repels leaves, and nobody else": {giver: []any{job("a", "default", "low", 0, "n1"), job("b", "default", "mid", 0, "n1", web)},
			taker: []any{job("taker", "default", "high", 1, "-", apart)}, want: "b-0 leaves n1 for taker by J1; taker-0 is promised n1"},
		"each of a gang that keeps apart opens a node": {giver: []any{fixture.Node("n2", "cpu=8"), job("a", "default", "low", 0, "n1 n2", web), job("b", "default", "mid", 0, "n1 n2")},
			taker: []any{job("taker", "default", "high", 2, "- -", web, apart)},
			want:  "a-1 leaves n2 for taker by J1; a-0 leaves n1 for taker by J1; taker-0 is promised n1; taker-1 is promised n2"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, everything).set(fixture.Node("n1", "cpu=8")).set(test.giver...).set(test.taker...).expect(test.want)
			if test.happens != nil {
				test.happens(w)
				w.expect(test.then)
			}
		})
	}
}

func TestATakerOfTwoKindsOfPodsHasTheLargePlacedFirstWhereTheSmallWouldTakeTheirRoom(t *testing.T) {
	w := newWorld(t, everything).set(fixture.Node("n1", "cpu=1"), fixture.Node("n2", "cpu=3"), job("a", "default", "low", 0, "n1"), job("b", "default", "low", 0, "n2 n2", asking("cpu=1500m")),
		job("taker", "default", "high", 2, "- -", one(1, fixture.Asks("cpu=3"))))
	w.expect("b-1 leaves n2 for taker by J1; b-0 leaves n2 for taker by J1; a-0 leaves n1 for taker by J1; taker-0 is promised n1; taker-1 is promised n2")
}

func TestWhatStandsInTheWayMayBeTheCeilingOfTheQueue(t *testing.T) {
	// There is room on n2, but not under the ceiling: somebody of the queue leaves, wherever it is.
	w := newWorld(t, everything).set(nodes("cpu=2", "n1", "n2"), queue("default", 0, "", "", "cpu=2"), job("giver", "default", "low", 0, "n1 n1"),
		job("taker", "default", "high", 1, "-", asking("cpu=2")))
	w.expect("giver-1 leaves n1 for taker by J1; giver-0 leaves n1 for taker by J1; taker-0 is promised n1")
}

func TestProportionLetsJobsTakeFromEachOtherWhatTheirQueueHas(t *testing.T) {
	w := newWorld(t, with(everything, "name: capacity", "name: proportion")).set(nodes("cpu=1", "n1", "n2"), queue("other", 0, "", "", ""),
		job("low", "default", "low", 0, "n1"), job("theirs", "other", "low", 0, "n2", each(unmarked)), job("taker", "default", "high", 1, "-"), job("more", "other", "low", 1, "-"))
	w.expect("low-0 leaves n1 for taker by J1; taker-0 is promised n1")
}

func TestMarksAreReadAsTheCompatibilitySays(t *testing.T) {
	for name, test := range map[string]struct {
		mark string
		want string
	}{
		"none is yes":            {"", "giver-0 leaves n1"},
		"true":                   {"true", "giver-0 leaves n1"},
		"another word for true":  {"1", "giver-0 leaves n1"},
		"false":                  {"false", ""},
		"what cannot be read no": {"maybe", ""},
	} {
		t.Run(name, func(t *testing.T) {
			mark := each(unmarked)
			if test.mark != "" {
				mark = each(fixture.Annotated("volcano.sh/preemptable", test.mark))
			}
			w := newWorld(t, everything+"compatibility: {preemptableByDefault: true}\n").set(nodes("cpu=1", "n1"), job("giver", "default", "low", 0, "n1", mark), job("taker", "default", "high", 1, "-"))
			w.cycle()
			if got := w.victims(); got != test.want {
				t.Errorf("the victims are %q, should be %q", got, test.want)
			}
		})
	}
}

func TestWherePriorityOnlyOrdersAHigherQueueTakesWhatIsAboveTheShare(t *testing.T) {
	for deserved, want := range map[string]string{"cpu=1": "giver-0 leaves n1", "cpu=2": ""} {
		w := newWorld(t, everything+"compatibility: {queuePriority: order}\n").set(nodes("cpu=1", "n1", "n2"), queue("theirs", 1, deserved, "", ""), queue("ours", 2, "cpu=1", "", ""),
			job("giver", "theirs", "low", 0, "n1 n2"), job("taker", "ours", "low", 1, "-"))
		w.cycle()
		if got := w.victims(); got != want {
			t.Errorf("with %s deserved the victims are %q, should be %q", deserved, got, want)
		}
	}
}

func TestAPresetThatDoesNotExistIsRefused(t *testing.T) {
	_, err := conf.Parse([]byte(everything+"configurations: [{name: preempt, arguments: {preset: kube-1.0}}]\n"), scheduler.NewRegistry().Catalogue())
	if err == nil || !strings.Contains(err.Error(), "kube-1.36 or kube-1.8") {
		t.Errorf("the error is %v", err)
	}
}

func TestShuffleLeavesAloneWhatIsGoneOrGuarded(t *testing.T) {
	c := &chooser{pods: []string{"a-0", "a-1", "b-0", "c-0"}}
	w := newWorld(t, with(everything, "backfill", "shuffle", "- name: predicates", "- name: predicates\n  - name: chooser"), choosing(c)).set(fixture.Node("n1", "cpu=9"),
		job("a", "default", "low", 0, "n1 n1", each(budgeted)), job("b", "default", "low", 0, "n1", each(leaving)), job("c", "default", "low", 1, "n1"), budget("b", "guarded", 1))
	w.expect("a-0 leaves n1 for  by ; c-0 leaves n1 for  by ")
	c.pods = []string{"a-0", "b-0"}
	w.expect("")
}
