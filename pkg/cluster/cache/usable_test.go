package cache

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

func withTaint(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

func tolerating(key string) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
}

func TestANodeCountsIfAPodOfOursCanUseIt(t *testing.T) {
	const noSchedule, noExecute, prefer = corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute, corev1.TaintEffectPreferNoSchedule
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	foreign := func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }
	type nodeOption = func(*corev1.Node)
	for name, test := range map[string]struct {
		node []nodeOption
		pods []podOption // of one pod
		// total is the CPU that counts, hidden what only a taint keeps from counting.
		total, hidden int64
	}{
		"without a taint":                       {nil, nil, 4000, 0},
		"cordoned":                              {[]nodeOption{cordoned}, nil, 0, 0},
		"cordoned, whatever pods tolerate":      {[]nodeOption{cordoned, withTaint("a", noSchedule)}, []podOption{tolerating("")}, 0, 0},
		"a taint that nobody tolerates":         {[]nodeOption{withTaint("a", noSchedule)}, []podOption{tolerating("b")}, 0, 4000},
		"one that evicts":                       {[]nodeOption{withTaint("a", noExecute)}, nil, 0, 4000},
		"one that only makes a node less liked": {[]nodeOption{withTaint("a", prefer)}, nil, 4000, 0},
		"a taint that a waiting pod tolerates":  {[]nodeOption{withTaint("a", noSchedule)}, []podOption{tolerating("a")}, 4000, 0},
		"a taint that a running pod tolerates":  {[]nodeOption{withTaint("a", noSchedule)}, []podOption{tolerating("a"), on("elsewhere")}, 4000, 0},
		"that a pod tolerated which is over":    {[]nodeOption{withTaint("a", noSchedule)}, []podOption{tolerating("a"), on("elsewhere"), phase(corev1.PodSucceeded)}, 0, 4000},
		"that a pod of others tolerates":        {[]nodeOption{withTaint("a", noSchedule)}, []podOption{tolerating("a"), on("elsewhere"), foreign}, 0, 4000},
		"one of two tolerated":                  {[]nodeOption{withTaint("a", noSchedule), withTaint("b", noSchedule)}, []podOption{tolerating("a")}, 0, 4000},
		"two of two tolerated":                  {[]nodeOption{withTaint("a", noSchedule), withTaint("b", noSchedule)}, []podOption{tolerating("a"), tolerating("b")}, 4000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			n, p := node("n", "cpu=4"), pod("p", test.pods...)
			for _, option := range test.node {
				option(n)
			}
			for order, events := range map[string][]Event{"the node first": {Set{n}, Set{p}}, "the pod first": {Set{p}, Set{n}}} {
				c := newCluster(events...)
				if c.Total.At(resources.CPU) != test.total || c.Tainted.Total.At(resources.CPU) != test.hidden {
					t.Errorf("%s: %d counts and %d is hidden, should %d and %d", order, c.Total.At(resources.CPU), c.Tainted.Total.At(resources.CPU), test.total, test.hidden)
				}
				sound(t, c)
			}
		})
	}
}

func TestANodeCountsFromTheFirstPodThatToleratesItUntilTheLast(t *testing.T) {
	n := node("n", "cpu=4")
	withTaint("a", corev1.TaintEffectNoSchedule)(n)
	c := newCluster(Set{queue("default", "")}, Set{n}, Set{group("waits", "")})
	check := func(when string, total int64, event Event) {
		t.Helper()
		before := countOf(counts(c), verdict.HelpNode)
		was := c.Total.At(resources.CPU)
		c.Apply(event)
		c.Settle()
		if got := c.Total.At(resources.CPU); got != total {
			t.Errorf("%s: %d counts, should %d", when, got, total)
		}
		if was != total && before == countOf(counts(c), verdict.HelpNode) {
			t.Errorf("%s: nobody who waits for nodes is looked at again", when)
		}
		sound(t, c)
	}
	check("one comes", 4000, Set{pod("p", tolerating("a"))})
	check("another comes", 4000, Set{pod("q", tolerating("a"), on("n"))})
	check("the first goes", 4000, Set{pod("p", tolerating("a"), phase(corev1.PodFailed))})
	check("the last goes", 0, Delete{pod("q")})
	c.Apply(Set{pod("q", in("waits"), on("n"))})
	if got := c.Shared(false).At(resources.CPU); got != 1000 {
		t.Errorf("%d is shared, should be the 1000 that a job holds there", got)
	}
	sound(t, c)
	if got := c.Attainable(true).At(resources.CPU); got != 4000 {
		t.Errorf("pods that do not exist yet could use %d, should 4000", got)
	}
}

func TestWhatIsShared(t *testing.T) {
	foreign := func(p *corev1.Pod) { p.Spec.SchedulerName = "other" }
	inQueue := func(name string, options ...podOption) Event {
		return Set{pod(name, append(options, in("g"), on("n"))...)}
	}
	others := func(name string, options ...podOption) Event {
		return Set{pod(name, append(options, foreign, on("n"))...)}
	}
	for name, test := range map[string]struct {
		allocatable string
		pods        []Event
		want        int64
		others      int64
	}{
		"what is idle":                                   {"cpu=4", nil, 4000, 0},
		"what a queue holds":                             {"cpu=4", []Event{inQueue("a", asks("cpu=3"))}, 4000, 0},
		"not what other schedulers hold":                 {"cpu=4", []Event{others("a", asks("cpu=3"))}, 1000, 3000},
		"but what they are about to leave":               {"cpu=4", []Event{others("a", asks("cpu=3"), deleting)}, 4000, 0},
		"what a queue holds beyond what the node offers": {"cpu=1", []Event{inQueue("a", asks("cpu=3"))}, 3000, 0},
		"also next to what others hold":                  {"cpu=4", []Event{inQueue("a", asks("cpu=3")), others("b", asks("cpu=3"))}, 3000, 3000},
		"what other schedulers hold beyond is nothing":   {"cpu=1", []Event{others("a", asks("cpu=3"))}, 0, 3000},
	} {
		t.Run(name, func(t *testing.T) {
			for order, events := range map[string][]Event{"the node first": append([]Event{Set{node("n", test.allocatable)}, Set{group("g", "")}}, test.pods...),
				"the node last": append(append([]Event{Set{group("g", "")}}, test.pods...), Set{node("n", test.allocatable)})} {
				c := newCluster(append(events, Set{queue("default", "")})...)
				c.Settle()
				if got := c.Shared(false).At(resources.CPU); got != test.want {
					t.Errorf("%s: %d is shared, should be %d", order, got, test.want)
				}
				if got := c.Others().At(resources.CPU); got != test.others {
					t.Errorf("%s: others hold %d, should %d", order, got, test.others)
				}
				sound(t, c)
				c.Apply(Set{node("m", "cpu=1")})
				before := countOf(counts(c), verdict.HelpQueue)
				c.Settle()
				if countOf(counts(c), verdict.HelpQueue) == before {
					t.Errorf("%s: a node comes, and no job looks at its share again", order)
				}
			}
		})
	}
}

func TestWhatANodeIsOversubscribedByIsRoom(t *testing.T) {
	for value, want := range map[string]int64{"": 4000, "1500": 5500, "2500.7": 6500, "-1": 4000, "many": 4000, "NaN": 4000, "1e300": 4000 + resources.MaxQuantity} {
		n := node("n", "cpu=4 memory=1Gi")
		n.Annotations = map[string]string{schedulingv1beta1.OversubscriptionCPUKey: value, schedulingv1beta1.OversubscriptionMemoryKey: "1073741824"}
		c := newCluster(Set{node("n", "cpu=4 memory=1Gi")}, Set{n})
		if got := c.Total.At(resources.CPU); got != want || c.Node("n").Free(resources.CPU) != want || c.Total.At(resources.Memory) != 2<<30 {
			t.Errorf("with %q the node has %d thousandths of a CPU and %d bytes, should have %d and 2Gi", value, got, c.Total.At(resources.Memory), want)
		}
		sound(t, c)
	}
}

func TestAJobIsHelpedByWhatIsPlacedWhereItsQueueCannotGo(t *testing.T) {
	for name, want := range map[string]bool{"cordoned": true, "usable": false} {
		t.Run(name, func(t *testing.T) {
			n := node("n", "cpu=4 pods=9")
			n.Spec.Unschedulable = want
			c := newCluster(Set{queue("default", "")}, Set{n}, Set{group("g", "")}, Set{pod("p", in("g"))}, Set{group("waits", "")}, Set{pod("w", in("waits"))})
			c.Settle()
			waits := c.Job(jobID("waits"))
			placed := c.Job(jobID("g")).Tasks()[0]
			c.Place(placed, c.Node("n"))
			c.Commit(placed)
			c.Keep()
			// Later in the same cycle, by what was shared when it began.
			c.SetVerdict(waits, &verdict.Verdict{Code: verdict.OverCapability, Help: verdict.HelpQueue})
			c.Settle()
			if have := c.IsHelped(waits); have != want {
				t.Errorf("the job is looked at: %t", have)
			}
		})
	}
}
