package tasktopology_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/placement"
	"hekla.sh/hekla/internal/placer"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/tasktopology"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// says are the annotations of a PodGroup: affinity, anti-affinity, order.
func says(affinity, anti, order string) func(*schedulingv1beta1.PodGroup) {
	return func(g *schedulingv1beta1.PodGroup) {
		for key, value := range map[string]string{schedulingv1beta1.TaskTopologyAffinityKey: affinity,
			schedulingv1beta1.TaskTopologyAntiAffinityKey: anti, schedulingv1beta1.TaskTopologyOrderKey: order} {
			if value != "" {
				g.Annotations[key] = value
			}
		}
	}
}

// pods are pods of group g, named by their role and a number: "ps0 worker0 worker1". They are on a node, or wait if it
// is "".
func pods(names, node string, options ...func(*corev1.Pod)) []runtime.Object {
	var objects []runtime.Object
	for i, name := range strings.Fields(names) {
		p := fixture.Pod(name, fixture.In("g"), fixture.As(strings.TrimRight(name, "0123456789"), i), fixture.Asks("cpu=1"))
		if node != "" {
			fixture.On(node)(p)
		}
		for _, option := range options {
			option(p)
		}
		objects = append(objects, p)
	}
	return objects
}

func TestANodeScoresByThePeersOnIt(t *testing.T) {
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: fixture.Birth.Add(time.Hour)} }
	finished := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	foreign := func(p *corev1.Pod) { fixture.In("other")(p) }
	for name, test := range map[string]struct {
		affinity, anti string
		there          []runtime.Object
		want           int64 // thousandths of a point, for a worker
	}{
		"nothing is said":           {"", "", pods("ps0 worker1", "n"), 0},
		"nobody is there":           {"ps,worker", "", nil, 0},
		"one it belongs with":       {"ps,worker", "", pods("ps0", "n"), 50_000},
		"two":                       {"ps,worker", "", pods("ps0 ps1", "n"), 66_666},
		"the same role":             {"ps,worker", "", pods("worker1", "n"), 0},
		"the same role, if said":    {"worker", "", pods("worker1", "n"), 50_000},
		"one it keeps apart from":   {"", "ps,worker", pods("ps0", "n"), -50_000},
		"its own role apart":        {"", "worker", pods("worker1 worker2", "n"), -66_666},
		"one of each":               {"ps,worker", "worker", pods("ps0 worker1", "n"), 0},
		"more of one":               {"ps,worker", "worker", pods("ps0 ps1 worker1", "n"), 50_000},
		"a third role":              {"ps,worker", "", pods("chief0", "n"), 0},
		"another group":             {"ps,chief;evaluator,worker", "", pods("ps0 evaluator0", "n"), 50_000},
		"two groups with one role":  {"ps,worker;worker,ps", "", pods("ps0", "n"), 50_000},
		"both together and apart":   {"ps,worker", "ps,worker", pods("ps0", "n"), 0},
		"spaces and empty roles":    {" ps , worker ,; ;", "", pods("ps0", "n"), 50_000},
		"a role named twice":        {"worker,worker", "", pods("worker1", "n"), 50_000},
		"a role there is not":       {"nobody,worker", "", pods("ps0", "n"), 0},
		"one that leaves":           {"ps,worker", "", pods("ps0", "n", leaving), 0},
		"one that has finished":     {"ps,worker", "", pods("ps0", "n", finished), 0},
		"a pod of another job":      {"ps,worker", "", append(pods("ps0", "n", foreign), fixture.Group("other", "q", 1, says("ps,worker", "", ""))), 0},
		"one that is on other node": {"ps,worker", "", pods("ps0", "m"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.ForPlugin(t, tasktopology.Factory(), "")
			w.Set(fixture.Queue("q"), fixture.Group("g", "q", 1, says(test.affinity, test.anti, "")), fixture.Node("n", "cpu=9"), fixture.Node("m", "cpu=9"))
			s := w.Set(pods("worker0", "")).Set(test.there).Open()
			if got := s.Policy.Scorers[0].ScoreNode(w.TaskNamed("worker0").Class, w.Node("n")); got != test.want {
				t.Errorf("the score is %d thousandths, want %d", got, test.want)
			}
		})
	}
}

func TestANodeWithRoomForThoseWhoAreToComeIsBetter(t *testing.T) {
	const together = "ps,worker"
	for name, test := range map[string]struct {
		affinity, node string
		others         []runtime.Object
		want           int64 // thousandths of a point, for worker0, which asks for one CPU
	}{
		"room for all":                    {together, "cpu=3", pods("ps0 ps1", ""), 25_000},
		"room for some":                   {together, "cpu=2", pods("ps0 ps1", ""), 12_500},
		"room for none":                   {together, "cpu=1", pods("ps0 ps1", ""), 0},
		"room for large ones":             {together, "cpu=6", pods("ps0 ps1", "", fixture.Asks("cpu=4")), 12_500},
		"room of another kind is missing": {together, "cpu=6", pods("ps0 ps1", "", fixture.Asks("cpu=1 memory=1Gi")), 0},
		"two roles":                       {together + ",chief", "cpu=2", pods("ps0 ps1 ps2 chief0", ""), 12_500}, // one of three, and one
		"its own role, itself left out":   {"worker", "cpu=2", pods("worker1 worker2", ""), 12_500},
		"alone in its role":               {"worker", "cpu=2", nil, 0},
		"those who have their node":       {together, "cpu=9", pods("ps0 ps1", "m"), 0},
		"those of whom nothing is said":   {together, "cpu=9", pods("chief0", ""), 0},
		"some are there already":          {together, "cpu=3", append(pods("ps0", "n"), pods("ps1 ps2", "")...), 62_500},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.ForPlugin(t, tasktopology.Factory(), "")
			w.Set(fixture.Queue("q"), fixture.Group("g", "q", 1, says(test.affinity, "", "")), fixture.Node("n", test.node), fixture.Node("m", "cpu=9"))
			s := w.Set(pods("worker0", "")).Set(test.others).Open()
			if got := s.Policy.Scorers[0].ScoreNode(w.TaskNamed("worker0").Class, w.Node("n")); got != test.want {
				t.Errorf("the score is %d thousandths, want %d", got, test.want)
			}
		})
	}
}

func TestTheWeightIsThatOfTheArgument(t *testing.T) {
	for argument, want := range map[string]int64{"": 50_000, "task-topology.weight: 10": 500_000, "task-topology.weight: 0": 0} {
		w := harness.ForPlugin(t, tasktopology.Factory(), argument)
		s := w.Set(fixture.Group("g", "q", 1, says("ps,worker", "", "")), fixture.Node("n", "cpu=9")).Set(pods("ps0", "n")).Set(pods("worker0", "")).Open()
		if got := s.Policy.Scorers[0].ScoreNode(w.TaskNamed("worker0").Class, w.Node("n")); got != want {
			t.Errorf("%q: the score is %d, want %d", argument, got, want)
		}
	}
	if _, err := conf.ParseArguments([]byte("task-topology.weight: -1"), tasktopology.Factory().Spec); err == nil {
		t.Error("a weight below zero is accepted")
	}
}

func TestWhoIsJoinedComesBeforeWhoJoins(t *testing.T) {
	const all = "other0 worker0 ps0 worker1 self0 away0 ps1"
	for name, test := range map[string]struct{ affinity, anti, order, want string }{
		"nothing is said":                       {"", "", "", "away0 other0 ps0 ps1 self0 worker0 worker1"},
		"by what is said of them":               {"ps,worker;self", "ps;away,nobody", "", "ps0 ps1 worker0 worker1 self0 away0 other0"},
		"by the list":                           {"", "", "worker,other,ps", "worker0 worker1 other0 ps0 ps1 away0 self0"},
		"by the list, then by what is said":     {"ps,worker;self", "ps;away,nobody", "self, other", "self0 other0 ps0 ps1 worker0 worker1 away0"},
		"a role of two groups, the higher rank": {"self;self,worker", "", "", "self0 worker0 worker1 away0 other0 ps0 ps1"},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.ForPlugin(t, tasktopology.Factory(), "")
			w.Set(fixture.Queue("q"), fixture.Group("g", "q", 1, says(test.affinity, test.anti, test.order)))
			// One index and one age: where the plugin sees no difference the UID decides, and it is the name.
			for _, o := range pods(all, "") {
				fixture.As(strings.TrimRight(o.(*corev1.Pod).Name, "0123456789"), 0)(o.(*corev1.Pod))
				w.Set(o)
			}
			var got []string
			for _, task := range w.Open().Pending(w.JobNamed("g")) {
				got = append(got, task.Pod.Name)
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("the order is %s, want %s", text, test.want)
			}
		})
	}
}

func TestTheOrderIsReadAgainInEachSession(t *testing.T) {
	w := harness.ForPlugin(t, tasktopology.Factory(), "")
	w.Set(fixture.Queue("q")).Set(pods("ps0 worker0", ""))
	for _, first := range []string{"worker", "ps", "worker"} {
		w.Set(fixture.Group("g", "q", 1, says("", "", first)))
		if got := w.Open().Pending(w.JobNamed("g"))[0].Role; got != first {
			t.Errorf("first is a %s, want a %s", got, first)
		}
	}
}

// stage is a model with the plugin alone and an engine.
func stage(tb rapid.TB, objects ...runtime.Object) (*cache.Cache, *framework.Policy, *placement.Engine) {
	tb.Helper()
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	for _, o := range append(objects, fixture.Queue("q")) {
		c.Apply(cache.Set{Object: o})
	}
	tiers := []conf.Tier{{Plugins: []conf.Plugin{{Name: tasktopology.Name, Arguments: tasktopology.Factory().Spec.Defaults()}}}}
	policy, err := framework.NewRegistry(nil, []framework.PluginFactory{tasktopology.Factory()}).Build(&conf.Configuration{Tiers: tiers})
	if err != nil {
		tb.Fatal(err)
	}
	engine, err := placer.New(c.Cluster, policy)
	if err != nil {
		tb.Fatal(err)
	}
	return c, policy, engine
}

func TestAJobIsSpreadAndGatheredAsItSays(t *testing.T) {
	objects := append(pods("ps0 ps1 worker0 worker1 worker2 worker3", ""), fixture.Group("g", "q", 6, says("ps,worker", "ps", "")))
	for _, name := range []string{"n0", "n1", "n2"} {
		objects = append(objects, fixture.Node(name, "cpu=3"))
	}
	c, policy, engine := stage(t, objects...)
	s := framework.Open(c, policy, engine, fixture.Birth)
	x := s.Begin()
	for _, task := range s.Pending(c.Job(cluster.GroupID(fixture.Key("g")))) {
		x.Place(task, engine.Best(task))
	}
	var got []string
	for _, n := range c.Nodes() {
		var roles []string
		for _, task := range n.Tasks() {
			roles = append(roles, task.Role)
		}
		slices.Sort(roles)
		got = append(got, strings.Join(roles, " "))
	}
	if text := strings.Join(got, "; "); text != "ps worker worker; ps worker worker; " {
		t.Errorf("on the nodes are %s", text)
	}
}

func TestNodesAreLookedAtAgainWhenAnotherPodIsToCome(t *testing.T) {
	objects := append(pods("worker0", ""), fixture.Group("g", "q", 1, says("ps,worker", "", "")), fixture.Node("large", "cpu=9"), fixture.Node("a", "cpu=2"))
	c, policy, engine := stage(t, objects...)
	best := func() string {
		framework.Open(c, policy, engine, fixture.Birth)
		return engine.Best(c.Task(fixture.Key("worker0"))).Name
	}
	if got := best(); got != "a" {
		t.Errorf("with nobody to come the best node is %s", got)
	}
	ps := pods("ps0", "", fixture.Asks("cpu=4"))[0]
	c.Apply(cache.Set{Object: ps})
	if got := best(); got != "large" {
		t.Errorf("with one to come who needs room the best node is %s", got)
	}
	c.Apply(cache.Delete{Object: ps})
	if got := best(); got != "a" {
		t.Errorf("with nobody to come any more the best node is %s", got)
	}
}

// What the engine remembers of nodes is what the plugin would say now, whatever was placed, taken back and bound in
// between.
func TestAnswersThatAreKeptAreTrue(t *testing.T) {
	roles := []string{"ps", "worker", "chief"}
	rapid.Check(t, func(r *rapid.T) {
		draw := func(name string) string {
			return rapid.SampledFrom([]string{"", "ps", "worker", "ps,worker", "ps,worker,chief", "chief;ps,worker"}).Draw(r, name)
		}
		group := func() runtime.Object {
			return fixture.Group("g", "q", 1, says(draw("affinity"), draw("anti"), draw("order")))
		}
		objects := []runtime.Object{group()}
		for i := range 4 {
			objects = append(objects, fixture.Node(fmt.Sprint("n", i), fmt.Sprintf("cpu=%d", 3+i)))
		}
		for i := range 12 {
			objects = append(objects, pods(fmt.Sprint(rapid.SampledFrom(roles).Draw(r, "role"), i), "")...)
		}
		c, policy, engine := stage(r, objects...)
		for cycle := range 4 {
			s := framework.Open(c, policy, engine, fixture.Birth)
			x := s.Begin()
			for _, task := range s.Pending(c.Job(cluster.GroupID(fixture.Key("g"))))[:rapid.IntRange(0, 3).Draw(r, "steps")] {
				var want *cluster.Node
				var highest int64
				for _, n := range c.Nodes() {
					score := policy.Scorers[0].ScoreNode(task.Class, n)
					if n.Room(task.Request()) && (want == nil || score > highest) {
						want, highest = n, score
					}
				}
				have := engine.Best(task)
				if have != want {
					r.Fatalf("for %s the best node is %v, and was said to be %v", task.Pod.Name, want, have)
				}
				x.Place(task, have)
			}
			if rapid.Bool().Draw(r, "commit") {
				x.Commit()
			} else {
				x.Undo()
				c.Apply(cache.Set{Object: group()})
			}
			for _, o := range pods(fmt.Sprint(rapid.SampledFrom(roles).Draw(r, "late"), 90+cycle), "") {
				c.Apply(cache.Set{Object: o})
			}
		}
	})
}
