package eviction_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// promised returns a world of one full node, which is nominated for job mid at the expense of job low.
func promised(t *testing.T, configuration string, extensions ...scheduler.Extension) *loop.Loop {
	w := start(t, configuration, extensions...).Set(nodes("cpu=1", "n1"), job("low", "default", "low", 1, "n1"), job("mid", "default", "mid", 1, "-"))
	return w.Expect("low-0 leaves n1 for mid by J1; mid-0 is nominated to n1")
}

func TestNominationsAreOverruled(t *testing.T) {
	t.Run("by a higher job, once the victims are leaving", func(t *testing.T) {
		w := promised(t, everything).Set(job("high", "default", "high", 1, "-"))
		w.Expect("")
		w.Terminate("low-0").Expect("the plan for mid ends: job work/high of higher priority takes the room that was promised, mid-0 waits; high-0 is nominated to n1")
		w.Expect("")
		w.RemovePods("low-0").Expect("high-0 is bound to n1")
	})
	t.Run("whatever the votes take the preemptor for", func(t *testing.T) {
		w := promised(t, everything+"compatibility: {victimVote: upstream}\n").Terminate("low-0").Set(job("high", "default", "high", 1, "-"))
		w.Expect("the plan for mid ends: job work/high of higher priority takes the room that was promised, mid-0 waits; high-0 is nominated to n1")
	})
	t.Run("not by jobs of equal priority", func(t *testing.T) {
		w := promised(t, everything).Terminate("low-0").Set(job("other", "default", "mid", 1, "-"))
		w.Expect("").RemovePods("low-0").Expect("mid-0 is bound to n1")
	})
}

// A gang of two has one pod on n1, and n2 is nominated for the other.
func TestTheNominationsOfAnIncompleteGangAreOverruledWithAllOfIt(t *testing.T) {
	incomplete := func(t *testing.T, options ...option) *loop.Loop {
		w := start(t, everything).Set(nodes("cpu=1", "n1", "n2"), job("low", "default", "low", 1, "n2"), job("mid", "default", "mid", 2, "n1 -", options...))
		return w.Expect("low-0 leaves n2 for mid by J1; mid-1 is nominated to n2").Terminate("low-0")
	}
	const taken = "the plan for mid ends: job work/high of higher priority takes the room that was promised, mid-1 waits; mid-0 leaves n1 for high by J1; high-0 is nominated to n2"
	t.Run("its pods leave", func(t *testing.T) {
		incomplete(t).Set(job("high", "default", "high", 1, "-")).Expect(taken)
	})
	t.Run("not where gangs do not leave whole", func(t *testing.T) {
		w := incomplete(t)
		w.Configure(everything + "configurations: [{name: preempt, arguments: {allowWholeGang: false}}]\n")
		w.Set(job("high", "default", "high", 1, "-")).Expect("")
	})
	t.Run("not where one of its pods may not leave", func(t *testing.T) {
		incomplete(t, one(0, unmarked)).Set(job("high", "default", "high", 1, "-")).Expect("")
	})
	t.Run("and what is not needed then stays", func(t *testing.T) {
		w := start(t, everything).Set(nodes("cpu=3", "n2"), job("low", "default", "low", 1, "n2"), job("mid", "default", "mid", 2, "n2 -"),
			job("other", "default", "mid", 1, "n2", asking("cpu=1"), one(0, startedAt(9))))
		w.Expect("low-0 leaves n2 for mid by J1; mid-1 is nominated to n2").Terminate("low-0")
		w.Set(job("high", "default", "high", 1, "-", asking("cpu=2")))
		w.Expect("the plan for mid ends: job work/high of higher priority takes the room that was promised, mid-1 waits; mid-0 leaves n2 for high by J1; high-0 is nominated to n2")
	})
	for name, test := range map[string]struct {
		priority int32
		options  []option
		want     string
	}{
		"before those of a more important job": {priority: 60, want: taken},
		"not before those of an equal job": {priority: 50,
			want: "the plan for other ends: job work/high of higher priority takes the room that was promised, other-0 waits; high-0 is nominated to n3"},
		"nor where its pods may not leave": {priority: 60, options: []option{one(0, unmarked)},
			want: "the plan for other ends: job work/high of higher priority takes the room that was promised, other-0 waits; high-0 is nominated to n3"},
	} {
		t.Run(name, func(t *testing.T) {
			w := incomplete(t, test.options...).Set(fixture.PriorityClass("other", test.priority), nodes("cpu=1", "n3"),
				job("last", "default", "low", 1, "n3"), job("other", "default", "other", 1, "-"))
			w.Expect("last-0 leaves n3 for other by J1; other-0 is nominated to n3").Terminate("last-0").Set(job("high", "default", "high", 1, "-")).Expect(test.want)
		})
	}
}

func TestNominationsAreOverruledAcrossQueues(t *testing.T) {
	t.Run("by a higher queue, and not the other way", func(t *testing.T) {
		for name, test := range map[string]struct {
			theirs, ours int32
			options      []func(*corev1.Pod)
			want         string
		}{
			"higher": {1, 2, nil, "the plan for mid ends: job work/preemptor of higher priority takes the room that was promised, mid-0 waits; preemptor-0 is nominated to n1"},
			"equal":  {1, 1, nil, ""},
			"lower":  {2, 1, nil, ""},
		} {
			t.Run(name, func(t *testing.T) {
				w := start(t, everything).Set(nodes("cpu=1", "n1"), queue("theirs", test.theirs, "", "", ""), queue("ours", test.ours, "cpu=1", "", ""),
					job("low", "theirs", "low", 1, "n1"), job("mid", "theirs", "mid", 1, "-"))
				w.Expect("low-0 leaves n1 for mid by J1; mid-0 is nominated to n1").Terminate("low-0").Set(job("preemptor", "ours", "low", 1, "-"))
				w.Expect(test.want)
			})
		}
	})
	t.Run("by a lone pod, of lower jobs in any queue", func(t *testing.T) {
		w := start(t, everything).Set(nodes("cpu=1", "n1"), queue("theirs", 0, "", "", ""), job("low", "theirs", "low", 1, "n1"), job("mid", "theirs", "mid", 1, "-"))
		w.Expect("low-0 leaves n1 for mid by J1; mid-0 is nominated to n1").Terminate("low-0").Set(job("alone", "default", "high", 1, "-", lone))
		w.Expect("the plan for mid ends: job work/alone of higher priority takes the room that was promised, mid-0 waits; alone-0 is nominated to n1")
	})
	t.Run("only of plans that are in the way", func(t *testing.T) {
		// mid has the lower priority and would be displaced first, but its node is too small.
		w := start(t, everything).Set(nodes("cpu=1", "n1"), nodes("cpu=2", "n2"), fixture.PriorityClass("middle", 60),
			job("low", "default", "low", 1, "n1"), job("large", "default", "low", 1, "n2", asking("cpu=2")),
			job("mid", "default", "mid", 1, "-"), job("middle", "default", "middle", 1, "-", asking("cpu=2")))
		w.Expect("large-0 leaves n2 for middle by J1; middle-0 is nominated to n2; low-0 leaves n1 for mid by J1; mid-0 is nominated to n1")
		w.Terminate("low-0", "large-0").Set(job("high", "default", "high", 1, "-", asking("cpu=2")))
		w.Expect("the plan for middle ends: job work/high of higher priority takes the room that was promised, middle-0 waits; high-0 is nominated to n2")
	})
}

// chooser is a plugin that names pods to evict for no preemptor, once.
type chooser struct {
	pods    []string
	cluster *model.Cluster
}

func (*chooser) Name() string                       { return "chooser" }
func (c *chooser) OpenSession(s *framework.Session) { c.cluster = s.Cluster }
func (c *chooser) ChooseVictims() []framework.Chosen {
	var chosen []framework.Chosen
	for _, pod := range c.pods {
		chosen = append(chosen, framework.Chosen{Task: c.cluster.Task(fixture.Key(pod)), Why: "its time is up"})
	}
	c.pods = nil
	return chosen
}

func choosing(c *chooser) scheduler.Extension {
	return scheduler.WithPlugin(framework.PluginFactory{Name: "chooser",
		New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) { return c, nil }})
}

func TestNominationsAreNotOverruled(t *testing.T) {
	t.Run("of a plan without a preemptor", func(t *testing.T) {
		c := &chooser{pods: []string{"other-0"}}
		w := start(t, with(everything, "backfill", "shuffle", "- name: predicates", "- name: predicates\n  - name: chooser"), choosing(c))
		w.Set(nodes("cpu=1", "n1", "n2"), job("other", "default", "high", 1, "n1"), job("last", "default", "high", 1, "n2", each(unmarked)))
		w.Expect("other-0 leaves n1 for  by ").Terminate("other-0").Set(job("high", "default", "high", 1, "-", asking("cpu=2"))).Expect("")
	})
	t.Run("where they keep a queue at its guarantee", func(t *testing.T) {
		for guarantee, want := range map[string]string{
			"":      "the plan for preemptor ends: job work/boss of higher priority takes the room that was promised, preemptor-0 waits; boss-0 is nominated to n1",
			"cpu=1": "",
		} {
			w := start(t, everything).Set(nodes("cpu=1", "n1", "n2", "n3"), queue("poor", 0, "", guarantee, ""), queue("rich", 1, "", "", ""),
				job("other", "default", "", 1, "n2 n3", each(unmarked)), job("victim", "poor", "low", 0, "n1"), job("preemptor", "poor", "high", 1, "-"))
			w.Expect("victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1").Terminate("victim-0")
			w.Set(job("boss", "rich", "high", 1, "-")).Expect(want)
		}
	})
}

// One pod in place of the large one would leave the queue below its guarantee. The refusal says nothing about two such
// pods.
func TestARefusalForAGuaranteeIsNotThatOfALargerJob(t *testing.T) {
	w := start(t, everything).Set(nodes("cpu=2", "n1"), queue("ours", 0, "", "cpu=2", ""),
		job("low", "ours", "low", 1, "n1", asking("cpu=2")), job("mid", "ours", "mid", 1, "-", asking("cpu=2")))
	w.Expect("low-0 leaves n1 for mid by J1; mid-0 is nominated to n1").Terminate("low-0")
	w.Set(job("one", "ours", "high", 1, "-"), job("two", "ours", "high", 2, "- -")).Expect("the plan for mid ends: job work/two of higher priority takes the room that was promised, mid-0 waits; " +
		"two-0 is nominated to n1; two-1 is nominated to n1")
}

func TestAPlanThatWouldNowBreakAGuaranteeIsCancelled(t *testing.T) {
	w := start(t, everything).Set(nodes("cpu=2", "n1", "n2"), queue("poor", 0, "", "cpu=2", ""),
		job("victim", "poor", "low", 1, "n1", asking("cpu=2")), job("other", "poor", "high", 1, "n2", asking("cpu=2")), job("preemptor", "poor", "high", 1, "-"))
	w.Expect("victim-0 leaves n1 for preemptor by J1; preemptor-0 is nominated to n1").Expect("")
	w.Remove(w.PodNamed("other-0")).Expect("preemptor-0 is bound to n2; the plan for preemptor ends: pod work/victim-0 may not leave any more: rule Q2 " +
		"(guaranteed to their queue), victim-0 stays, preemptor-0 waits")
}

// spreadOverNodes makes a pod want as many pods labelled app=x on each node, one more at most.
func spreadOverNodes(p *corev1.Pod) {
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelHostname,
		WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}}}
}

// The displaced job would fit next to the preemptor. But with its pod there the preemptor would not fit.
func TestAPromiseDoesNotComeBackThatKeepsThePreemptorAway(t *testing.T) {
	tainted := fixture.Node("n2", "cpu=1")
	tainted.Spec.Taints = []corev1.Taint{{Key: "kept", Effect: corev1.TaintEffectNoSchedule}}
	x := each(fixture.Labelled("app", "x"))
	w := start(t, everything).Set(nodes("cpu=1", "n1"), tainted, job("low", "default", "low", 1, "n1"), job("mid", "default", "mid", 1, "-", x))
	w.Expect("low-0 leaves n1 for mid by J1; mid-0 is nominated to n1").Terminate("low-0")
	w.Set(job("high", "default", "high", 1, "-", x, each(spreadOverNodes), asking("")))
	w.Expect("high-0 is bound to n1; the plan for mid ends: job work/high of higher priority takes the room that was promised, mid-0 waits; mid-0 is nominated to n1")
	w.Expect("").RemovePods("low-0").Expect("mid-0 is bound to n1")
}

// With the job next to the one that is promised room, more of their kind would be there than elsewhere.
func TestAJobThatWouldBreakAPromiseIsLookedAtWhenAPodComes(t *testing.T) {
	x := each(fixture.Labelled("app", "x"))
	w := start(t, everything).Set(nodes("cpu=2", "n1"), nodes("cpu=1", "n2"), job("victim", "default", "low", 1, "n1", asking("cpu=2")),
		job("full", "default", "high", 1, "n2", each(unmarked)), job("high", "default", "high", 1, "-", x, each(spreadOverNodes)))
	w.Expect("victim-0 leaves n1 for high by J1; high-0 is nominated to n1").Terminate("victim-0")
	w.Set(job("other", "default", "low", 1, "-", x)).Expect("").Expect("")
	w.Set(job("elsewhere", "default", "low", 1, "-", x, asking(""), each(fixture.Selecting(corev1.LabelHostname, "n2"))))
	w.Expect("elsewhere-0 is bound to n2").Expect("other-0 is nominated to n1")
}
