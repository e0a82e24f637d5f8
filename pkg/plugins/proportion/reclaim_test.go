package proportion

import (
	"testing"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// What protects pods.
var (
	withinShare = verdict.RuleWithinShare.Protection().String()
)

// halves is a full cluster of four CPUs that all belong to the victim; the preemptor wants two, one each.
func halves(tb testing.TB, preemptor, victim []fixture.QueueOption) *harness.Model {
	return harness.ForPlugin(tb, Factory(), "").Set(fixture.Node("n1", "cpu=4"),
		fixture.Queue("preemptor", preemptor...), fixture.Queue("victim", victim...)).
		Set(wanting("preemptor", 3, "cpu=1")).Set(holding("victim", 4, "cpu=1", "n1"))
}

func TestReclaim(t *testing.T) {
	t.Run("a queue gives as long as it is above its share", func(t *testing.T) {
		w := halves(t, nil, nil)
		s := w.Open()
		x := s.Begin()
		for _, step := range []struct{ victim, want string }{{"victim-0", "yes"}, {"victim-1", "yes"}, {"victim-2", withinShare}} {
			if got := w.Vote(harness.Question{Session: s, Reclaim: true, Preemptor: "of-preemptor", For: "preemptor-0", Victims: step.victim}); got != step.want {
				t.Fatalf("%s: %q, want %q", step.victim, got, step.want)
			}
			w.EvictPods(x, step.victim)
		}
		x.Undo()
		if got := w.Vote(harness.Question{Session: s, Preemptor: "of-preemptor", For: "preemptor-0", Victims: "victim-0"}); got != "" {
			t.Errorf("inside a queue shares have no say: %q", got)
		}
	})

	t.Run("a queue takes up to its share", func(t *testing.T) {
		w := halves(t, nil, nil)
		s := w.Open()
		x := s.Begin()
		for _, step := range []struct{ pod, want string }{
			{"preemptor-0", ""}, {"preemptor-1", ""}, {"preemptor-2", "OverShare preemptor: cpu: needs 1, has 0, short by 1; it deserves cpu 2"},
		} {
			if got := harness.Describe(s.MayReclaim(w.TaskNamed(step.pod))); got != step.want {
				t.Fatalf("%s: %q, want %q", step.pod, got, step.want)
			}
			w.Nominate(x, step.pod, "n1")
		}
		x.Undo()
	})

	t.Run("a queue that is not open takes nothing", func(t *testing.T) {
		w := halves(t, []fixture.QueueOption{fixture.Closed, fixture.Guaranteed("cpu=2")}, nil)
		if got := harness.Describe(w.Open().MayReclaim(w.TaskNamed("preemptor-0"))); got != "QueueClosed preemptor; its state is Closed" {
			t.Errorf("%q", got)
		}
	})
}

func TestAQueueOfMorePriorityTakesFromWithinTheShare(t *testing.T) {
	high, low := []fixture.QueueOption{fixture.Ranking(9)}, []fixture.QueueOption{fixture.Guaranteed("cpu=4")}
	for name, test := range map[string]struct {
		preemptor, victim []fixture.QueueOption
		compatibility     conf.Compatibility
		want              string
	}{
		"it does":                       {high, low, conf.Compatibility{}, "yes"},
		"it does, when that is written": {high, low, conf.Compatibility{QueuePriority: conf.QueuePriorityStrict}, "yes"},
		"it does not, as upstream":      {high, low, conf.Compatibility{QueuePriority: conf.QueuePriorityOrder}, withinShare},
		"one of less does not":          {nil, append(high, low...), conf.Compatibility{}, withinShare},
	} {
		w := halves(t, test.preemptor, test.victim).Use(test.compatibility)
		got := w.Vote(harness.Question{Session: w.Open(), Reclaim: true, Preemptor: "of-preemptor", For: "preemptor-0", Victims: "victim-0"})
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestARefusalIsOverShareOnlyWithinTheCeiling(t *testing.T) {
	for name, test := range map[string]struct {
		preemptor []fixture.QueueOption
		asks      string
		want      string
	}{
		"beyond the share":                     {nil, "cpu=3", "OverShare preemptor: cpu: needs 3, has 2, short by 1; it deserves cpu 2"},
		"beyond the ceiling":                   {[]fixture.QueueOption{fixture.Capped("cpu=1")}, "cpu=1", "OverCapability preemptor: cpu: needs 1, has 500m, short by 500m"},
		"beyond the ceiling for ever":          {[]fixture.QueueOption{fixture.Capped("cpu=1")}, "cpu=2", "TooLargeForQueue preemptor: cpu: needs 2, has 1, short by 1"},
		"beyond a ceiling below its guarantee": {[]fixture.QueueOption{fixture.Capped("cpu=1"), fixture.Guaranteed("cpu=2")}, "cpu=1", "OverCapability preemptor: cpu: needs 1, has 500m, short by 500m"},
	} {
		w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=4"), fixture.Queue("preemptor", test.preemptor...), fixture.Queue("other")).
			Set(wanting("preemptor", 1, test.asks)).Set(wanting("other", 4, "cpu=1"))
		if len(test.preemptor) > 0 {
			w.Set(fixture.Pod("half", fixture.In("of-preemptor"), fixture.Asks("cpu=500m"), fixture.On("n1")))
		}
		v := w.Open().MayAllocate(w.TaskNamed("preemptor-0"))
		if got := harness.Describe(v); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if v != nil && v.Code == verdict.TooLargeForQueue && v.Help&verdict.HelpJob == 0 {
			t.Errorf("%s: a smaller job would help, and the verdict does not say so", name)
		}
	}
}
