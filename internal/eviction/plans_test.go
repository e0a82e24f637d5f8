package eviction_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// The user of the victim reads these messages.
func TestEveryEvictionNamesPreemptorRuleAndNumbers(t *testing.T) {
	for name, test := range map[string]struct {
		things []any
		want   string
	}{
		"between jobs": {things: []any{job("victim", "default", "low", 0, "n1"), job("preemptor", "default", "high", 1, "-")},
			want: "Preempted by job work/preemptor (priority 100) in queue default: higher job priority than 10 (rule J1)"},
		"a whole gang": {things: []any{job("victim", "default", "low", 2, "n1 n2"), job("preemptor", "default", "high", 1, "-")},
			want: "Preempted by job work/preemptor (priority 100) in queue default: higher job priority than 10 (rule J1); its gang cannot run without it and is evicted as a whole (rule J2)"},
		"from a lower queue": {things: []any{queue("theirs", 1, "", "", ""), queue("ours", 2, "", "", ""), job("victim", "theirs", "low", 0, "n1"), job("preemptor", "ours", "low", 1, "-")},
			want: "Preempted by job work/preemptor in queue ours (queue priority 2): higher queue priority than 1 of queue theirs (rule Q1)"},
		"above a share": {things: []any{queue("theirs", 0, "cpu=1", "", ""), queue("ours", 0, "cpu=1", "", ""), job("victim", "theirs", "low", 0, "n1 n2"), job("preemptor", "ours", "low", 1, "-")},
			want: "Preempted by job work/preemptor in queue ours: queue theirs holds more than it deserves (rule Q1); it keeps cpu 1 and deserves 1"},
		"above a share that nobody wrote down": {things: []any{queue("theirs", 0, "", "", ""), queue("ours", 0, "cpu=1", "", ""), job("victim", "theirs", "low", 0, "n1 n2"), job("preemptor", "ours", "low", 1, "-")},
			want: "Preempted by job work/preemptor in queue ours: queue theirs holds more than it deserves (rule Q1)"},
		"a lone pod": {things: []any{queue("theirs", 0, "", "", ""), job("victim", "theirs", "low", 0, "n1"), queue("default", 0, "cpu=1", "", ""), job("preemptor", "default", "high", 1, "-", lone)},
			want: "Preempted by job work/preemptor (priority 100) in queue default: a lone pod of higher priority than 10 (rule A3)"},
		"inside a job": {things: []any{job("victim", "default", "low", 0, "n1 -", one(1, ranking("7")))},
			want: "Preempted by pod victim-1 (task priority 7) of the same job: higher task priority than 0 (rule P1)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, everything).Set(fixture.Node("n1", "cpu=1"), fixture.Node("n2", "cpu=1")).Set(test.things)
			if strings.Count(name, "share")+strings.Count(name, "gang") == 0 {
				w.Remove(fixture.Node("n2", "cpu=1"))
			}
			w.Cycle()
			if len(w.Result.Decisions.Plans) != 1 || len(w.Result.Decisions.Plans[0].Evictions) == 0 {
				t.Fatalf("decided: %s", loop.Describe(&w.Result.Decisions))
			}
			message, mention, _ := strings.Cut(w.Result.Decisions.Plans[0].Evictions[0].Message, " (plan ")
			if message != test.want || mention != w.Result.Decisions.Plans[0].ID+")" {
				t.Errorf("the message is\n\t%s\nshould be\n\t%s", message, test.want)
			}
		})
	}
}

// Plans of each scope are checked until their evictions are sent.
func TestAPlanEndsWhenARuleComesToProtectItsVictims(t *testing.T) {
	for name, test := range map[string]struct {
		things  []any
		happens func(w *loop.Loop)
		want    string
	}{
		"between queues": {things: []any{queue("theirs", 1, "", "", ""), queue("ours", 2, "", "", ""), job("victim", "theirs", "low", 0, "n1"), job("preemptor", "ours", "low", 1, "-")},
			happens: func(w *loop.Loop) { w.Set(queue("theirs", 1, "", "cpu=1", "")) },
			want:    "the plan for preemptor ends: pod work/victim-0 may not leave any more: rule Q2 (guaranteed to their queue), victim-0 stays, preemptor-0 waits"},
		"for a lone pod": {things: []any{queue("theirs", 0, "", "", ""), job("victim", "theirs", "low", 0, "n1"), queue("default", 0, "cpu=1", "", ""), job("preemptor", "default", "high", 1, "-", lone)},
			happens: func(w *loop.Loop) { w.Set(queue("theirs", 0, "", "", "", keeping)) },
			want:    "the plan for preemptor ends: pod work/victim-0 may not leave any more: rule Q3 (their queue is not reclaimable), victim-0 stays, preemptor-0 waits"},
		"inside a job": {things: []any{job("preemptor", "default", "low", 0, "n1 -", one(1, ranking("7")))},
			happens: func(w *loop.Loop) { w.Set(job("preemptor", "default", "low", 1, "n1", lone)[0]) },
			want:    "the plan for preemptor ends: pod work/preemptor-0 may not leave: rule J2 (their gang is at its minimum), preemptor-0 stays, preemptor-1 waits"},
	} {
		t.Run(name, func(t *testing.T) {
			w := start(t, everything).Set(fixture.Node("n1", "cpu=1")).Set(test.things)
			if w.Cycle(); len(w.Result.Decisions.Plans) != 1 {
				t.Fatalf("decided: %s", loop.Describe(&w.Result.Decisions))
			}
			test.happens(w)
			w.Expect(test.want)
		})
	}
}

func TestPlansCountAllThatANodeMustHave(t *testing.T) {
	t.Run("ports of the host, and pods with anti-affinity", func(t *testing.T) {
		port := each(fixture.OnPort(80))
		apart := each(fixture.ApartFrom("app", "web"))
		web := each(fixture.Labelled("app", "web"))
		for name, test := range map[string]struct {
			victim, preemptor []any
			happens           func(w *loop.Loop)
			want, then        string
		}{
			"who holds the port leaves, and nobody else": {victim: []any{job("a", "default", "low", 0, "n1"), job("b", "default", "mid", 0, "n1", port)},
				preemptor: []any{job("preemptor", "default", "high", 1, "-", port)}, want: "b-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1"},
			"a port that a foreign pod takes is lost": {victim: []any{job("b", "default", "mid", 0, "n1", port)}, preemptor: []any{job("preemptor", "default", "high", 1, "-", port)},
				want: "b-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1",
				happens: func(w *loop.Loop) {
					w.Set(fixture.Pod("foreign", fixture.On("n1"), fixture.OnPort(80), func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }))
				},
				then: "the plan for preemptor ends: the room that was promised is not there any more, b-0 stays, preemptor-0 waits"},
			"who repels leaves, and nobody else": {victim: []any{job("a", "default", "low", 0, "n1"), job("b", "default", "mid", 0, "n1", web)},
				preemptor: []any{job("preemptor", "default", "high", 1, "-", apart)}, want: "b-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1"},
			"each of a gang that keeps apart opens a node": {victim: []any{fixture.Node("n2", "cpu=8"), job("a", "default", "low", 0, "n1 n2", web), job("b", "default", "mid", 0, "n1 n2")},
				preemptor: []any{job("preemptor", "default", "high", 2, "- -", web, apart)},
				want:      "a-1 leaves n2 for preemptor by J1; a-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1; preemptor-1 is nominated to n2"},
		} {
			t.Run(name, func(t *testing.T) {
				w := start(t, everything).Set(fixture.Node("n1", "cpu=8")).Set(test.victim).Set(test.preemptor).Expect(test.want)
				if test.happens != nil {
					test.happens(w)
					w.Expect(test.then)
				}
			})
		}
	})
	t.Run("large pods are placed before small ones", func(t *testing.T) {
		w := start(t, everything).Set(fixture.Node("n1", "cpu=1"), fixture.Node("n2", "cpu=3"), job("a", "default", "low", 0, "n1"), job("b", "default", "low", 0, "n2 n2", asking("cpu=1500m")),
			job("preemptor", "default", "high", 2, "- -", one(1, fixture.Asks("cpu=3"))))
		w.Expect("b-1 leaves n2 for preemptor by J1; b-0 leaves n2 for preemptor by J1; a-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1; preemptor-1 is nominated to n2")
	})
	t.Run("the capability of the queue may be in the way", func(t *testing.T) {
		// There is room on n2, but the queue is at its upper limit: one of its pods is evicted, on whatever node.
		w := start(t, everything).Set(nodes("cpu=2", "n1", "n2"), queue("default", 0, "", "", "cpu=2"), job("victim", "default", "low", 0, "n1 n1"),
			job("preemptor", "default", "high", 1, "-", asking("cpu=2")))
		w.Expect("victim-1 leaves n1 for preemptor by J1; victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1")
	})
}

func TestTheConfigurationSaysWhatMayBeTaken(t *testing.T) {
	t.Run("with proportion, jobs take what their queue has", func(t *testing.T) {
		w := start(t, with(everything, "name: capacity", "name: proportion")).Set(nodes("cpu=1", "n1", "n2"), queue("other", 0, "", "", ""),
			job("low", "default", "low", 0, "n1"), job("theirs", "other", "low", 0, "n2", each(unmarked)), job("preemptor", "default", "high", 1, "-"), job("more", "other", "low", 1, "-"))
		w.Expect("low-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1")
	})
	t.Run("marks of pods are read as the compatibility says", func(t *testing.T) {
		for name, test := range map[string]struct {
			mark string
			want string
		}{
			"none is yes":            {"", "victim-0 leaves n1"},
			"true":                   {"true", "victim-0 leaves n1"},
			"another word for true":  {"1", "victim-0 leaves n1"},
			"false":                  {"false", ""},
			"what cannot be read no": {"maybe", ""},
		} {
			t.Run(name, func(t *testing.T) {
				mark := each(unmarked)
				if test.mark != "" {
					mark = each(fixture.Annotated("volcano.sh/preemptable", test.mark))
				}
				w := start(t, everything+"compatibility: {preemptableByDefault: true}\n").Set(nodes("cpu=1", "n1"), job("victim", "default", "low", 0, "n1", mark), job("preemptor", "default", "high", 1, "-"))
				w.Cycle()
				if got := victims(w); got != test.want {
					t.Errorf("the victims are %q, should be %q", got, test.want)
				}
			})
		}
	})
	t.Run("where queue priority only orders, the surplus is taken", func(t *testing.T) {
		for deserved, want := range map[string]string{"cpu=1": "victim-0 leaves n1", "cpu=2": ""} {
			w := start(t, everything+"compatibility: {queuePriority: order}\n").Set(nodes("cpu=1", "n1", "n2"), queue("theirs", 1, deserved, "", ""), queue("ours", 2, "cpu=1", "", ""),
				job("victim", "theirs", "low", 0, "n1 n2"), job("preemptor", "ours", "low", 1, "-"))
			w.Cycle()
			if got := victims(w); got != want {
				t.Errorf("with %s deserved the victims are %q, should be %q", deserved, got, want)
			}
		}
	})
	t.Run("a preset that does not exist is an error", func(t *testing.T) {
		_, err := conf.Parse([]byte(everything+"configurations: [{name: preempt, arguments: {preset: kube-1.0}}]\n"), scheduler.NewRegistry().Catalogue())
		if err == nil || !strings.Contains(err.Error(), "kube-1.36 or kube-1.8") {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestShuffleLeavesAloneWhatIsGoneOrGuarded(t *testing.T) {
	c := &chooser{pods: []string{"a-0", "a-1", "b-0", "c-0"}}
	w := start(t, with(everything, "backfill", "shuffle", "- name: predicates", "- name: predicates\n  - name: chooser"), choosing(c)).Set(fixture.Node("n1", "cpu=9"),
		job("a", "default", "low", 0, "n1 n1", each(budgeted)), job("b", "default", "low", 0, "n1", each(leaving)), job("c", "default", "low", 1, "n1"), fixture.Budget("b", "guarded", 1))
	w.Expect("a-0 leaves n1 for  by ; c-0 leaves n1 for  by ")
	c.pods = []string{"a-0", "b-0"}
	w.Expect("")
}
