package capacity

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// What protects pods.
var (
	withinShare     = verdict.RuleWithinShare.Protection().String()
	withinShareOver = verdict.RuleWithinShareOver.Protection().String()
	guaranteed      = verdict.RuleGuaranteed.Protection().String()
)

// pods are a job of a queue with some pods that run.
func pods(name, queue string, count int, asks string) []runtime.Object {
	objects := []runtime.Object{fixture.Group(name, queue, 1)}
	for i := range count {
		objects = append(objects, fixture.Pod(fmt.Sprintf("%s-%d", name, i), fixture.In(name), fixture.Asks(asks), fixture.On("n1")))
	}
	return objects
}

// flatWorld has a preemptor, whose pod asks for one CPU, and a victim with two pods of one CPU and one GiB each.
func flatWorld(tb testing.TB, preemptor, victim []fixture.QueueOption) *harness.Model {
	return harness.ForPlugin(tb, Factory(), "").Set(fixture.Node("n1", "cpu=20 memory=100Gi nvidia.com/gpu=8"),
		fixture.Queue("preemptor", preemptor...), fixture.Queue("victim", victim...)).
		Set(pending("t", "preemptor", "cpu=1")).Set(pods("g", "victim", 2, "cpu=1 memory=1Gi"))
}

func TestAQueueGivesWhatIsAboveItsShare(t *testing.T) {
	options := func(o ...fixture.QueueOption) []fixture.QueueOption { return o }
	for name, test := range map[string]struct {
		preemptor, victim []fixture.QueueOption
		victims           string
		want              string
	}{
		"what it holds beyond its share":                  {nil, options(fixture.Deserving("cpu=1")), "g-0", "yes"},
		"beyond in one of two resources":                  {nil, options(fixture.Deserving("cpu=4 memory=1Gi")), "g-0", "yes"},
		"not what is within its share":                    {nil, options(fixture.Deserving("cpu=2")), "g-0", withinShare},
		"what its share does not name":                    {nil, options(fixture.Deserving("nvidia.com/gpu=4")), "g-0", "yes"},
		"all, if it deserves nothing at all":              {nil, nil, "g-0 g-1", "yes"},
		"all, if it deserves only a number of pods":       {nil, options(fixture.Deserving("pods=9")), "g-0", "yes"},
		"not below its guarantee, whatever it deserves":   {nil, options(fixture.Deserving("cpu=1"), fixture.Guaranteed("memory=2Gi")), "g-0", guaranteed},
		"to a queue of more priority within its share":    {options(fixture.Ranking(5)), options(fixture.Deserving("cpu=9")), "g-0", "yes"},
		"to a queue of more priority down to the floor":   {options(fixture.Ranking(5)), options(fixture.Guaranteed("cpu=1")), "g-0", "yes"},
		"to a queue of more priority not below it":        {options(fixture.Ranking(5)), options(fixture.Guaranteed("cpu=1")), "g-0 g-1", guaranteed},
		"to a queue of less priority as to any other":     {nil, options(fixture.Ranking(5), fixture.Deserving("cpu=2")), "g-0", withinShare},
		"a guarantee of what does not leave is no reason": {options(fixture.Ranking(5)), options(fixture.Guaranteed("nvidia.com/gpu=1")), "g-0", "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			w := flatWorld(t, test.preemptor, test.victim)
			got := w.Vote(harness.Question{Session: w.Open(), Reclaim: true, Preemptor: "t", For: "t-0", Victims: test.victims})
			if got != test.want {
				t.Errorf("the answer is %q, want %q", got, test.want)
			}
		})
	}
}

func TestReclaimAndShares(t *testing.T) {
	t.Run("where priority only orders it gives no right to a share", func(t *testing.T) {
		w := flatWorld(t, []fixture.QueueOption{fixture.Ranking(5)}, []fixture.QueueOption{fixture.Deserving("cpu=2")}).
			Use(conf.Compatibility{QueuePriority: conf.QueuePriorityOrder})
		if got := w.Vote(harness.Question{Session: w.Open(), Reclaim: true, Preemptor: "t", For: "t-0", Victims: "g-0"}); got != withinShare {
			t.Errorf("the answer is %q", got)
		}
	})

	t.Run("inside a queue shares have no say", func(t *testing.T) {
		w := flatWorld(t, nil, []fixture.QueueOption{fixture.Deserving("cpu=2")}).Set(pending("sibling", "victim", "cpu=1"))
		if got := w.Vote(harness.Question{Session: w.Open(), Preemptor: "sibling", For: "sibling-0", Victims: "g-0"}); got != "" {
			t.Errorf("the answer is %q", got)
		}
	})

	t.Run("the sum of a plan stays above the share too", func(t *testing.T) {
		w := flatWorld(t, nil, []fixture.QueueOption{fixture.Deserving("cpu=1")})
		s := w.Open()
		x := s.Begin()
		w.EvictPods(x, "g-0")
		if got := w.Vote(harness.Question{Session: s, Reclaim: true, Preemptor: "t", For: "t-0", Victims: "g-1"}); got != withinShare {
			t.Errorf("the second of two pods, of which one is above the share: %q", got)
		}
		x.Undo()
	})

	t.Run("what is promised counts in the share", func(t *testing.T) {
		w := flatWorld(t, []fixture.QueueOption{fixture.Deserving("cpu=1")}, nil).Set(fixture.Pod("t-1", fixture.In("t")))
		s := w.Open()
		x := s.Begin()
		w.Nominate(x, "t-0", "n1")
		if got := harness.Describe(s.MayReclaim(w.TaskNamed("t-1"))); got != "OverShare preemptor: cpu: needs 1, has 0, short by 1" {
			t.Errorf("after the first pod of the plan the second may still be evicted: %q", got)
		}
		x.Undo()
		if v := s.MayReclaim(w.TaskNamed("t-1")); v != nil {
			t.Errorf("alone: %s", harness.Describe(v))
		}
	})

	t.Run("a queue that is not open takes nothing", func(t *testing.T) {
		w := flatWorld(t, []fixture.QueueOption{fixture.Deserving("cpu=1"), fixture.Closed}, nil)
		if got := harness.Describe(w.Open().MayReclaim(w.TaskNamed("t-0"))); got != "QueueClosed preemptor; its state is Closed" {
			t.Errorf("%q", got)
		}
	})
}

func TestPodsThatHoldNothingWantedStay(t *testing.T) {
	w := flatWorld(t, nil, nil).Set(pods("gpu", "victim", 1, "nvidia.com/gpu=1"))
	s := w.Open()
	question := harness.Question{Session: s, Reclaim: true, Preemptor: "t", For: "t-0", Victims: "gpu-0"}
	if got := w.Vote(question); got != "capacity ("+notWanted+")" {
		t.Errorf("for a CPU leaves a GPU: %q", got)
	}
	// Another pod of the same gang wants it.
	w.Set(fixture.Pod("t-1", fixture.In("t"), fixture.Asks("nvidia.com/gpu=1")))
	question.Session = w.Open()
	if got := w.Vote(question); got != "yes" {
		t.Errorf("for a gang that wants both: %q", got)
	}
	w.Set(pendingAdmission("pending", "preemptor", "nvidia.com/gpu=1"))
	if got := w.Vote(harness.Question{Session: w.Open(), Reclaim: true, Preemptor: "pending", Victims: "gpu-0"}); got != "yes" {
		t.Errorf("for a job pending admission that wants it: %q", got)
	}
}

func TestAQueueTakesWithinItsShare(t *testing.T) {
	for name, test := range map[string]struct {
		deserved, asks string
		want           string
	}{
		"within":                     {"cpu=2", "cpu=2", ""},
		"beyond":                     {"cpu=2", "cpu=3", "OverShare preemptor: cpu: needs 3, has 2, short by 1"},
		"within one, beyond other":   {"cpu=2 memory=1Gi", "cpu=1 memory=2Gi", "OverShare preemptor: memory: needs 2Gi, has 1Gi, short by 1Gi"},
		"what it does not name":      {"cpu=2", "memory=1Gi", "OverShare preemptor; it deserves nothing of what is requested"},
		"what is named and more":     {"cpu=2", "cpu=1 memory=1Gi", ""},
		"nothing deserved":           {"cpu=0", "cpu=1", "OverShare preemptor: cpu: needs 1, has 0, short by 1"},
		"only pods":                  {"pods=9", "cpu=1", "OverShare preemptor; it deserves nothing of what is requested"},
		"more pods than it deserves": {"cpu=9 pods=0", "cpu=1", "OverShare preemptor: pods: needs 1, has 0, short by 1"},
	} {
		w := harness.ForPlugin(t, Factory(), "").Set(fixture.Node("n1", "cpu=20 memory=100Gi"), fixture.Queue("preemptor", fixture.Deserving(test.deserved))).
			Set(pending("t", "preemptor", test.asks))
		if got := harness.Describe(w.Open().MayReclaim(w.TaskNamed("t-0"))); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// treeWorld is two branches of three levels. The victim's leaf and its parent deserve one CPU and hold two; the
// grandparent deserves what is given. The preemptor's leaf and parent deserve what they hold, two; the grandparent
// lends.
func treeWorld(tb testing.TB, levels int, protected, lent string) *harness.Model {
	w := harness.ForPlugin(tb, Factory(), fmt.Sprintf("ancestorReclaimLevel: %d", levels), conf.EnableHierarchy).Set(
		fixture.Node("n1", "cpu=20"),
		fixture.Queue("above-preemptors", fixture.Deserving(lent)), fixture.Queue("preemptors", fixture.Below("above-preemptors"), fixture.Deserving("cpu=2")),
		fixture.Queue("preemptor", fixture.Below("preemptors"), fixture.Deserving("cpu=2")),
		fixture.Queue("cousin", fixture.Below("preemptors"), fixture.Deserving("cpu=1")),
		fixture.Queue("above-victims", fixture.Deserving(protected)), fixture.Queue("victims", fixture.Below("above-victims"), fixture.Deserving("cpu=1")),
		fixture.Queue("victim", fixture.Below("victims"), fixture.Deserving("cpu=1")))
	return w.Set(pods("own", "preemptor", 2, "cpu=1")).Set(pods("g", "victim", 2, "cpu=1")).Set(pods("c", "cousin", 2, "cpu=1")).
		Set(pending("t", "preemptor", "cpu=1"))
}

func TestQueuesAboveProtectWithTheirShareUpToALevel(t *testing.T) {
	for name, test := range map[string]struct {
		levels    int
		protected string
		victim    string
		want      string
	}{
		"none are asked":                              {0, "cpu=9", "g-0", "yes"},
		"the parent is above its share":               {1, "cpu=9", "g-0", "yes"},
		"the grandparent is within its share":         {2, "cpu=9", "g-0", withinShareOver},
		"the grandparent is above its share":          {2, "cpu=1", "g-0", "yes"},
		"the grandparent's share does not say":        {2, "memory=1Gi", "g-0", "yes"},
		"the root has no share":                       {3, "cpu=1", "g-0", "yes"},
		"those above the preemptor too are not asked": {3, "cpu=1", "c-0", "yes"},
	} {
		w := treeWorld(t, test.levels, test.protected, "cpu=2")
		got := w.Vote(harness.Question{Session: w.Open(), Reclaim: true, Preemptor: "t", For: "t-0", Victims: test.victim})
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestQueuesAboveLendTheirShareUpToALevel(t *testing.T) {
	const refused = "OverShare preemptor: cpu: needs 1, has 0, short by 1"
	for name, test := range map[string]struct {
		levels int
		lent   string
		want   string
	}{
		"nobody lends":                      {0, "cpu=9", refused},
		"the parent has none left":          {1, "cpu=9", refused},
		"the grandparent has":               {2, "cpu=5", ""},
		"the grandparent has none left":     {2, "cpu=4", refused},
		"nobody deserves anything up there": {2, "memory=1Gi", refused},
		"the root lends nothing":            {3, "cpu=4", refused},
	} {
		w := treeWorld(t, test.levels, "cpu=9", test.lent)
		if got := harness.Describe(w.Open().MayReclaim(w.TaskNamed("t-0"))); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestTheGuaranteeOfAParentProtectsItsChildrenTogether(t *testing.T) {
	w := harness.ForPlugin(t, Factory(), "", conf.EnableHierarchy).Set(fixture.Node("n1", "cpu=20"),
		fixture.Queue("dept", fixture.Guaranteed("cpu=3")), fixture.Queue("a", fixture.Below("dept")), fixture.Queue("b", fixture.Below("dept")),
		fixture.Queue("urgent", fixture.Ranking(10)), fixture.Queue("urgent-sibling", fixture.Below("dept"), fixture.Ranking(10))).
		Set(pods("in-a", "a", 2, "cpu=1")).Set(pods("in-b", "b", 2, "cpu=1")).
		Set(pending("t", "urgent", "cpu=1")).Set(pending("sibling", "urgent-sibling", "cpu=1"))
	s := w.Open()
	x := s.Begin()
	question := harness.Question{Session: s, Reclaim: true, Preemptor: "t", For: "t-0", Victims: "in-a-0"}
	if got := w.Vote(question); got != "yes" {
		t.Errorf("the first of four, of which three are guaranteed: %q", got)
	}
	w.EvictPods(x, "in-a-0")
	question.Victims = "in-b-0"
	if got := w.Vote(question); got != guaranteed {
		t.Errorf("the second: %q", got)
	}
	// For a pod that comes into the department itself the department loses nothing.
	question.Preemptor, question.For = "sibling", "sibling-0"
	if got := w.Vote(question); got != "yes" {
		t.Errorf("the second, for a pod of a sibling: %q", got)
	}
	x.Undo()
}
