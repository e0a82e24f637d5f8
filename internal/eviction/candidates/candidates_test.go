package candidates_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/eviction/candidates"
	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/internal/eviction/victims"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// evicting is an action that evicts and that has nothing but rules.
type evicting struct{ framework.EvictingAction }

func (evicting) Name() string { return "evicting" }
func (evicting) EvictionRules() framework.EvictionRules {
	return framework.EvictionRules{AllowWholeGang: true, Budgets: true, Ends: true, Starts: true}
}

// allowing is a plugin that allows evicting every pod, and vetoes the nodes with a label.
type allowing struct{}

func (allowing) Name() string { return "allowing" }

func (allowing) VotePreempt(*framework.VictimProposal) (framework.Vote, verdict.Protection) {
	return framework.Permit, verdict.Protection{}
}

func (allowing) VetoNode(_ *cluster.Task, n *cluster.Node) string {
	if n.Object.Labels["vetoed"] != "" {
		return "node(s) were not liked"
	}
	return ""
}

// preemption is a cluster in which pod waits of job preemptor, of high priority, needs a node.
type preemption struct {
	*harness.Model
	session *framework.Session
	rules   *rules.Rules
	victims *victims.Selector
	floors  victims.FloorsByRules
	waits   *cluster.Task
}

func preempting(t harness.TB, request string, objects ...any) *preemption {
	t.Helper()
	preemptor := fixture.Group("preemptor", "default", 1)
	preemptor.Spec.PriorityClassName = "high"
	m := harness.ForPlugin(t, harness.Made(allowing{}), "").Placing().Set(fixture.Queue("default"),
		fixture.PriorityClass("low", 10), fixture.PriorityClass("mid", 50), fixture.PriorityClass("high", 100),
		preemptor, fixture.Pod("waits", fixture.In("preemptor"), fixture.Asks(request))).Set(objects...)
	p := &preemption{Model: m, session: m.Open(), waits: m.TaskNamed("waits")}
	p.rules = rules.Of(p.session, evicting{}).For(decision.BetweenJobs, m.JobNamed("preemptor"))
	p.rules.SetPod(p.waits)
	p.victims = victims.New(p.rules)
	return p
}

// nodes are the candidates of the preemptor, with lower bounds of the costs or without.
func (p *preemption) nodes(bounded bool) *candidates.Nodes {
	if !bounded {
		return candidates.New(p.rules, p.victims, nil, nil)
	}
	floors := p.floors.For(p.victims, func() map[*quota.Node]int32 { return rules.EvictableQueues(p.session) })
	return candidates.New(p.rules, p.victims, floors, nil)
}

// dump is what the model has. Amounts of nothing may have been written as zeros since.
func (p *preemption) dump() string { return strings.ReplaceAll(p.Dump(), "[0 0 0]", "[]") }

// gang is one of a class with a pod on each of some nodes, all of which may be evicted.
func gang(name, class string, minimum int, nodes ...string) []any {
	group := fixture.Group(name, "default", int32(minimum))
	group.Spec.PriorityClassName = class
	objects := []any{group}
	for i, node := range nodes {
		objects = append(objects, fixture.Pod(fmt.Sprintf("%s-%d", name, i), fixture.In(name), fixture.As("worker", i), fixture.On(node),
			fixture.Annotated(schedulingv1beta1.PreemptableKey, "true")))
	}
	return objects
}

// describe says which node is opened, and which pods leave: "n1: a-0 b-1".
func describe(o candidates.Opened) string {
	if o.Node == nil {
		return "none"
	}
	var pods []string
	for _, t := range victims.TasksOf(o.Units) {
		pods = append(pods, t.Pod.Name)
	}
	slices.Sort(pods)
	return o.Node.Name + ": " + strings.Join(pods, " ")
}

func ExampleNodes_OpenCheapest() {
	p := preempting(new(testing.T), "cpu=1", fixture.Node("n1", "cpu=1"), fixture.Node("n2", "cpu=1"),
		gang("a", "mid", 1, "n1"), gang("b", "low", 1, "n2"))
	x := p.session.Begin()
	opened := p.nodes(true).OpenCheapest(x, p.waits, nil)
	fmt.Println(describe(opened))
	x.Pipeline(p.waits, opened.Node)
	fmt.Println(p.TaskNamed("b-0").Status, p.waits.Status)
	// Output:
	// n2: b-0
	// Evicting Pipelined
}

func TestTheCheapestNodeIsOpened(t *testing.T) {
	vetoed := func(n *corev1.Node) { n.Labels["vetoed"] = "yes" }
	unmarked := func(objects []any) []any {
		for _, o := range objects[1:] {
			delete(o.(*corev1.Pod).Annotations, schedulingv1beta1.PreemptableKey)
		}
		return objects
	}
	for name, test := range map[string]struct {
		request string
		objects []any
		avoid   string
		want    string
	}{
		"fewer pods leave": {"cpu=2", []any{fixture.Node("n1", "cpu=2"), fixture.Node("n2", "cpu=2"),
			gang("a", "low", 0, "n1", "n1"), gang("b", "low", 0, "n2")}, "", "n2: b-0"},
		"those that are not needed stay": {"cpu=1", []any{fixture.Node("n1", "cpu=3"), gang("a", "mid", 0, "n1", "n1"), gang("b", "low", 0, "n1")}, "", "n1: b-0"},
		"surplus goes, and no whole gang": {"cpu=1", []any{fixture.Node("n1", "cpu=2"), fixture.Node("n2", "cpu=1"),
			gang("a", "low", 2, "n1", "n1"), gang("b", "low", 0, "n2")}, "", "n2: b-0"},
		"a gang whose surplus is too little goes whole": {"cpu=2", []any{fixture.Node("n1", "cpu=3"), gang("a", "low", 2, "n1", "n1", "n1")}, "", "n1: a-0 a-1 a-2"},
		"a gang at its minimum goes whole":              {"cpu=1", []any{fixture.Node("n1", "cpu=1"), fixture.Node("n2", "cpu=500m"), fixture.Node("n3", "cpu=1"), gang("a", "low", 2, "n1", "n3")}, "", "n1: a-0 a-1"},
		"no node that must be avoided":                  {"cpu=1", []any{fixture.Node("n1", "cpu=1"), fixture.Node("n2", "cpu=1"), gang("a", "low", 0, "n1"), gang("b", "mid", 0, "n2")}, "n1", "n2: b-0"},
		"no node that a plugin vetoes":                  {"cpu=1", []any{fixture.Node("n1", "cpu=1", vetoed), fixture.Node("n2", "cpu=1"), gang("a", "low", 0, "n1"), gang("b", "mid", 0, "n2")}, "", "n2: b-0"},
		"no node that is too small":                     {"cpu=2", []any{fixture.Node("n1", "cpu=1"), gang("a", "low", 0, "n1")}, "", "none"},
		"no node of pods of equal priority":             {"cpu=1", []any{fixture.Node("n1", "cpu=1"), gang("a", "high", 0, "n1")}, "", "none"},
		"no node of pods that are not marked":           {"cpu=1", []any{fixture.Node("n1", "cpu=1"), unmarked(gang("a", "low", 0, "n1"))}, "", "none"},
		"of equal nodes the first by its name":          {"cpu=1", []any{fixture.Node("n2", "cpu=1"), fixture.Node("n1", "cpu=1"), gang("a", "low", 0, "n1", "n2")}, "", "n1: a-0"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, bounded := range []bool{true, false} {
				p := preempting(t, test.request, test.objects...)
				before := p.dump()
				var avoid []*cluster.Node
				if test.avoid != "" {
					avoid = append(avoid, p.NodeNamed(test.avoid))
				}
				x := p.session.Begin()
				if got := describe(p.nodes(bounded).OpenCheapest(x, p.waits, avoid)); got != test.want {
					t.Errorf("opened is %s, want %s (with bounds: %t)", got, test.want, bounded)
				}
				if test.want == "none" && p.dump() != before {
					t.Errorf("no node is opened, and the model is changed\n%s\nwas\n%s", p.dump(), before)
				}
				x.Undo()
			}
		})
	}
}

func TestAVetoIsToldToTheCaller(t *testing.T) {
	vetoed := func(n *corev1.Node) { n.Labels["vetoed"] = "yes" }
	p := preempting(t, "cpu=1", fixture.Node("n1", "cpu=1", vetoed), gang("a", "low", 0, "n1"))
	nodes := p.nodes(true)
	x := p.session.Begin()
	defer x.Undo()
	if o := nodes.OpenCheapest(x, p.waits, nil); o.Node != nil || !o.WasVetoed {
		t.Errorf("opened is %s, and that a plugin has vetoed a node is %t", describe(o), o.WasVetoed)
	}
	reasons := nodes.VetoReasons()
	if len(reasons) != 1 || reasons[0].Nodes != 1 || reasons[0].Reason != "node(s) were not liked" {
		t.Errorf("the vetoes are %+v", reasons)
	}
	if s := p.TaskNamed("a-0").Status; s != cluster.Running {
		t.Errorf("the pod on the vetoed node is %s", s)
	}
}

// isWhole reports whether a gang keeps its minimum, or nothing. The surplus of a gang cannot stay without the rest.
func isWhole(j *cluster.Job) bool {
	stay := 0
	for _, t := range j.Tasks() {
		if t.Status == cluster.Running {
			stay++
		}
	}
	return stay == 0 || stay >= j.MinMember
}

// Whatever runs where: no node costs less than the one that is opened (K3), no victim there is needless (K2), bounds
// change nothing, and nodes that are not opened stay as they were.
func TestNoNodeIsCheaperThanTheOneThatIsOpened(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var objects []any
		var names []string
		for i := range rapid.IntRange(1, 5).Draw(r, "nodes") {
			names = append(names, fmt.Sprint("n", i))
			objects = append(objects, fixture.Node(names[i], fmt.Sprintf("cpu=%d", rapid.IntRange(1, 4).Draw(r, "cpus"))))
		}
		for i := range rapid.IntRange(0, 5).Draw(r, "gangs") {
			on := rapid.SliceOfN(rapid.SampledFrom(names), 1, 3).Draw(r, "on")
			made := gang(fmt.Sprint("g", i), rapid.SampledFrom([]string{"low", "mid", "high"}).Draw(r, "class"), rapid.IntRange(0, len(on)).Draw(r, "minimum"), on...)
			for _, pod := range made[1:] { // of unequal sizes, so that bounds are less than costs
				fixture.Asks(rapid.SampledFrom([]string{"cpu=1", "cpu=1", "cpu=2", "cpu=3"}).Draw(r, "asks"))(pod.(*corev1.Pod))
			}
			objects = append(objects, made...)
		}
		p := preempting(r, fmt.Sprintf("cpu=%d", rapid.IntRange(1, 4).Draw(r, "request")), objects...)
		before := p.dump()
		open := func(how func(n *candidates.Nodes, x framework.Transaction) candidates.Opened, bounded bool, look func(candidates.Opened, framework.Transaction)) {
			p.victims.Reset()
			x := p.session.Begin()
			look(how(p.nodes(bounded), x), x)
			if x.Undo(); p.dump() != before {
				r.Fatalf("after it was undone the model is\n%s\nand was\n%s", p.dump(), before)
			}
		}
		cheapest := func(n *candidates.Nodes, x framework.Transaction) candidates.Opened {
			return n.OpenCheapest(x, p.waits, nil)
		}
		var best string
		var first candidates.Opened
		open(cheapest, true, func(o candidates.Opened, x framework.Transaction) {
			if best = describe(o); o.Node == nil {
				if p.dump() != before {
					r.Fatalf("no node is opened, and the model is\n%s\nand was\n%s", p.dump(), before)
				}
				return
			}
			first = o
			for _, j := range p.Jobs() {
				for _, t := range j.Tasks() {
					if t.Status == cluster.Evicting && !slices.Contains(victims.TasksOf(o.Units), t) {
						r.Fatalf("opened is %s, and %s leaves", best, t.Pod.Name)
					}
				}
			}
			for i := range o.Units {
				y := p.session.Begin()
				for _, t := range o.Units[i].Tasks {
					x.Spare(t)
				}
				if p.rules.Fits(p.waits, o.Node) && isWhole(o.Units[i].Tasks[0].Job) {
					r.Fatalf("opened is %s, and number %d of the units need not leave", best, i)
				}
				y.Undo()
			}
		})
		open(cheapest, false, func(o candidates.Opened, _ framework.Transaction) {
			if got := describe(o); got != best {
				r.Fatalf("without bounds is opened %s, with them %s", got, best)
			}
		})
		for _, n := range p.Nodes() {
			one := func(c *candidates.Nodes, x framework.Transaction) candidates.Opened { return c.Open(x, p.waits, n) }
			var other candidates.Opened
			open(one, false, func(o candidates.Opened, _ framework.Transaction) { other = o })
			if other.Node == nil {
				continue
			}
			if best == "none" {
				r.Fatalf("no node is opened, and this one can be: %s", describe(other))
			}
			// Costs are those of pods that are there.
			less, than := p.victims.Cost(other.Units, n.Rank), p.victims.Cost(first.Units, first.Node.Rank)
			if less.Compare(&than, &p.rules.EvictionRules) < 0 {
				r.Fatalf("opened is %s, and cheaper is %s", best, describe(other))
			}
		}
	})
}
