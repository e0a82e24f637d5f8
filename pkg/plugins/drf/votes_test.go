package drf

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// What users read.
const (
	hasLessJob   = "drf (" + smallerJob + ")"
	hasLessQueue = "drf (" + smallerQueue + ")"
)

// job is a job of a queue with pods that run, named r0 and on, and pods that wait, w0 and on.
func job(name, queue string, runs, waits int, asks string) []runtime.Object {
	objects := []runtime.Object{fixture.Group(name, queue, 1)}
	for i := range runs {
		objects = append(objects, fixture.Pod(fmt.Sprintf("%s-r%d", name, i), fixture.In(name), fixture.Asks(asks), fixture.On("n1")))
	}
	for i := range waits {
		objects = append(objects, fixture.Pod(fmt.Sprintf("%s-w%d", name, i), fixture.In(name), fixture.Asks(asks)))
	}
	return objects
}

func TestAJobGivesAsLongAsItHasNoLessThanThePreemptor(t *testing.T) {
	for name, test := range map[string]struct {
		preemptor, victim int // pods of one of twelve CPUs that run
		victims           string
		want              string
	}{
		"it would have more":            {0, 4, "g-r0", "yes"},
		"it would have as much":         {2, 4, "g-r0", "yes"},
		"it would have less":            {3, 4, "g-r0", hasLessJob},
		"together they would have less": {1, 4, "g-r0 g-r1 g-r2", hasLessJob},
	} {
		w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=12"), fixture.Queue("q")).
			Set(job("t", "q", test.preemptor, 1, "cpu=1")).Set(job("g", "q", test.victim, 0, "cpu=1"))
		if got := w.Vote(harness.Question{Session: w.Open(), Preemptor: "t", For: "t-w0", Victims: test.victims}); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestVotesOnVictims(t *testing.T) {
	t.Run("the sum of a plan counts for the shares", func(t *testing.T) {
		w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=12"), fixture.Queue("q")).
			Set(job("t", "q", 0, 3, "cpu=1")).Set(job("g", "q", 4, 0, "cpu=1"))
		s := w.Open()
		x := s.Begin()
		for i, want := range []string{"yes", "yes", hasLessJob} {
			waits, victim := fmt.Sprintf("t-w%d", i), fmt.Sprintf("g-r%d", i)
			if got := w.Vote(harness.Question{Session: s, Preemptor: "t", For: waits, Victims: victim}); got != want {
				t.Fatalf("%s for %s: %q, want %q", victim, waits, got, want)
			}
			w.EvictPods(x, victim)
			w.Nominate(x, waits, "n1")
		}
		x.Undo()
	})

	t.Run("the largest part of any resource decides", func(t *testing.T) {
		w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=10 memory=100"), fixture.Queue("q")).
			Set(job("t", "q", 0, 1, "cpu=1 memory=30")).Set(job("g", "q", 3, 0, "cpu=1 memory=10"))
		if got := w.Vote(harness.Question{Session: w.Open(), Preemptor: "t", For: "t-w0", Victims: "g-r0"}); got != hasLessJob {
			t.Errorf("a fifth stays and three tenths come: %q", got)
		}
	})

	t.Run("inside a job shares have no say", func(t *testing.T) {
		w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=10"), fixture.Queue("q")).Set(job("t", "q", 2, 1, "cpu=1"))
		if got := w.Vote(harness.Question{Session: w.Open(), Preemptor: "t", For: "t-w0", Victims: "t-r0"}); got != "" {
			t.Errorf("the answer is %q", got)
		}
	})

	t.Run("a job pending admission counts with its minimum", func(t *testing.T) {
		for minimum, want := range map[string]string{"cpu=3": "yes", "cpu=4": hasLessJob} {
			w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=12"), fixture.Queue("q"),
				fixture.Group("pending", "q", 1, fixture.PendingAdmission, fixture.Wanting(minimum))).Set(job("g", "q", 4, 0, "cpu=1"))
			if got := w.Vote(harness.Question{Session: w.Open(), Preemptor: "pending", Victims: "g-r0"}); got != want {
				t.Errorf("%s against three: %q, want %q", minimum, got, want)
			}
		}
	})

	t.Run("only the hierarchy has a say between queues", func(t *testing.T) {
		for on, want := range map[conf.Switch]string{conf.EnableJobOrder: "", conf.EnableHierarchy: "yes"} {
			w := harness.ForPlugin(t, Factory(), "", on).Set(fixture.Node("n1", "cpu=4"), fixture.Queue("a"), fixture.Queue("b")).
				Set(job("t", "a", 0, 1, "cpu=1")).Set(job("g", "b", 4, 0, "cpu=1"))
			if got := w.Vote(harness.Question{Session: w.Open(), Reclaim: true, Preemptor: "t", For: "t-w0", Victims: "g-r0"}); got != want {
				t.Errorf("with %s: %q, want %q", on, got, want)
			}
		}
	})

	t.Run("branches are compared where they part for victims too", func(t *testing.T) {
		// The preemptor has less than the victim; its department has more than the victim's.
		w := treeOf(t, []runtime.Object{fixture.Node("n1", "cpu=12"), at("a", "root/x/a", "1/1/1"), at("rich", "root/x/rich", "1/1/1"),
			at("b", "root/y/b", "1/1/1")}, job("t", "a", 0, 1, "cpu=1"), job("r", "rich", 7, 1, "cpu=1"), job("g", "b", 5, 1, "cpu=1"))
		s := w.Open()
		question := harness.Question{Session: s, Reclaim: true, Preemptor: "t", For: "t-w0", Victims: "r-r0"}
		if got := w.Vote(question); got != "yes" {
			t.Errorf("of its rich sibling: %q", got)
		}
		question.Victims = "g-r0"
		if got := w.Vote(question); got != hasLessQueue {
			t.Errorf("of a queue in the other department: %q", got)
		}
	})

	t.Run("queues of unreadable annotations are left to others", func(t *testing.T) {
		w := treeOf(t, []runtime.Object{fixture.Node("n1", "cpu=8"), at("a", "root/a", "1/1"), at("b", "root/b", "nonsense")},
			job("t", "a", 0, 1, "cpu=1"), job("g", "b", 4, 0, "cpu=1"))
		if got := w.Vote(harness.Question{Session: w.Open(), Reclaim: true, Preemptor: "t", For: "t-w0", Victims: "g-r0"}); got != "" {
			t.Errorf("the answer is %q", got)
		}
	})
}

func TestAQueueGivesAsLongAsItComesAfterThePreemptors(t *testing.T) {
	for name, test := range map[string]struct {
		weights          string // of the victim; the preemptor's is 1
		preemptor, waits int
		victim           int
		victims          string
		want             string
	}{
		"it would have more":                    {"1", 1, 3, 5, "g-r0", "yes"},
		"it would have as much":                 {"1", 2, 3, 4, "g-r0", hasLessQueue},
		"it would have less":                    {"1", 3, 3, 4, "g-r0", hasLessQueue},
		"it would have more for its weight":     {"2", 1, 3, 6, "g-r0", "yes"},
		"it would have less for its weight":     {"4", 1, 3, 6, "g-r0", hasLessQueue},
		"the last pod that the preemptor wants": {"1", 0, 1, 6, "g-r0", "yes"},
		"the only pod of a victim":              {"1", 0, 1, 1, "g-r0", hasLessQueue},
		"more than one pod at once":             {"1", 0, 1, 6, "g-r0 g-r1 g-r2", "yes"},
		"more than there is between the two":    {"1", 0, 1, 6, "g-r0 g-r1 g-r2 g-r3 g-r4", hasLessQueue},
	} {
		w := treeOf(t, []runtime.Object{fixture.Node("n1", "cpu=8"), at("a", "root/a", "1/1"), at("b", "root/b", "1/"+test.weights)},
			job("t", "a", test.preemptor, test.waits, "cpu=1"), job("g", "b", test.victim, 0, "cpu=1"))
		s := w.Open()
		if got := w.Vote(harness.Question{Session: s, Reclaim: true, Preemptor: "t", For: "t-w0", Victims: test.victims}); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestAVoteLeavesNoTraceInTheOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := drawWorld(r, t)
		s := w.Open()
		h := opened(s)
		place(r, w, s)
		var before []int
		order := func() (signs []int) {
			for _, a := range s.Queues() {
				for _, b := range s.Queues() {
					signs = append(signs, h.CompareQueues(a, b))
				}
			}
			return signs
		}
		before = order()
		for _, preemptor := range w.Jobs() {
			for _, victim := range w.Jobs() {
				if preemptor.Queue != victim.Queue && len(victim.Tasks()) > 0 && len(preemptor.Tasks()) > 0 {
					h.VoteReclaim(&framework.VictimProposal{Preemptor: preemptor, For: preemptor.Tasks()[0], Victims: victim.Tasks()[:1]})
				}
			}
		}
		if after := order(); fmt.Sprint(after) != fmt.Sprint(before) {
			r.Fatalf("the order was %v and is %v", before, after)
		}
	})
}

// opened is the plugin with the hierarchy, in a session of its own.
func opened(s *framework.Session) *hierarchical {
	h := &hierarchical{}
	h.OpenSession(s)
	return h
}
