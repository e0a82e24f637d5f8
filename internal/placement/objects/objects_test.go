package objects_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/internal/placement/objects"
	"hekla.sh/hekla/internal/placement/reason"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

var (
	filters = []string{"NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity"}
	scores  = []kube.Weighted{{Name: "TaintToleration", Weight: 3}, {Name: "NodeAffinity", Weight: 2}}
)

// point is one point of a score.
const point = 1000

// cases are a cluster with a table.
type cases struct {
	*harness.Model
	harness.TB
	plugins  *kube.Plugins
	refusals *reason.Refusals
	table    *objects.Table
}

func newCases(t harness.TB) *cases {
	t.Helper()
	c := &cases{Model: harness.ForPlugins(t), TB: t, refusals: reason.New()}
	c.plugins = c.fresh()
	c.table = objects.New(c.Cluster, c.plugins, c.refusals, point)
	return c
}

// fresh are plugins that have read nothing yet.
func (c *cases) fresh() *kube.Plugins {
	plugins, err := kube.New(c.Cluster, filters, scores, kube.Arguments{})
	if err != nil {
		c.Fatalf("%v", err)
	}
	return plugins
}

func (c *cases) class(pod string) *cluster.Class { return c.TaskNamed(pod).Class }

// preferring prefers nodes with a label.
func preferring(key, value string, weight int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: weight, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}}}}}}}
	}
}

func tolerating(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: key, Operator: corev1.TolerationOpExists}}
	}
}

func tainted(key string, effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}} }
}

func labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func notReady(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

// kinds are pods with constraints of their own, and two whose constraints are those of others.
var kinds = map[string][]func(*corev1.Pod){
	"plain": nil, "as-plain": {fixture.Asks("cpu=3"), fixture.Labelled("app", "x")},
	"ssd": {fixture.Selecting("disk", "ssd")}, "as-ssd": {fixture.Selecting("disk", "ssd"), fixture.Asks("memory=1Gi")},
	"rare-pool": {fixture.Selecting("pool", "rare"), preferring("disk", "ssd", 5)}, "preferring": {preferring("disk", "ssd", 5)},
	"tolerating": {tolerating("gpu")},
}

func ExampleTable() {
	c := newCases(new(testing.T))
	c.Set(fixture.Node("a", "cpu=8", labelled("disk", "ssd")), fixture.Node("b", "cpu=8"), fixture.Node("c", "cpu=8", notReady),
		fixture.Pod("p", preferring("disk", "ssd", 5)))
	answers := c.table.For(c.class("p"))
	answers.Follow()
	scores := answers.Scores("", c.class("p"))
	for _, n := range c.Nodes() {
		fmt.Printf("%s: %q, %d points\n", n.Name, c.refusals.Text(answers.At(n.Slot)), scores.At(int32(n.Slot))/point)
	}
	// Output:
	// a: "", 500 points
	// b: "", 300 points
	// c: "node(s) were not ready", 0 points
}

// check holds the answers for a class against plugins that have read nothing yet.
func (c *cases) check(name string) {
	c.Helper()
	k, asked := c.class(name), c.fresh()
	answers := c.table.For(k)
	if answers.Follow(); !answers.AreCurrent() {
		c.Fatalf("the answers that the table gives for %s are out of date", name)
	}
	few, areFew := answers.Few()
	var passing []*cluster.Node
	for slot, n := range c.BySlot() {
		want, isFit := "node(s) are unknown", false
		switch {
		case n == nil || n.Object == nil:
		case !n.Ready():
			want = "node(s) were not ready"
		default:
			want = asked.Ask(k).Refusal(n).Text
			isFit = want == ""
		}
		got := answers.At(slot)
		if isAmong := slices.Contains(few, int32(slot)); (got == reason.Fits) != isFit || (!areFew || isAmong) && c.refusals.Text(got) != want || areFew && isFit && !isAmong {
			c.Fatalf("for %s slot %d is refused by %q, want %q; among few %v: %t", name, slot, c.refusals.Text(got), want, few, areFew)
		}
		if isFit {
			passing = append(passing, n)
		}
	}
	points, given := asked.Ask(k).Preferences(passing), answers.Scores("", k)
	for i, n := range passing {
		var want int64
		if points != nil {
			want = points[i] * point
		}
		if got := given.At(int32(n.Slot)); got != want {
			c.Fatalf("for %s node %s scores %d, want %d", name, n.Name, got, want)
		}
	}
}

func TestAnswersAreThoseOfPluginsThatReadEverythingAgain(t *testing.T) {
	names := slices.Sorted(maps.Keys(kinds))
	rapid.Check(t, func(r *rapid.T) {
		c := newCases(r)
		for _, name := range names {
			c.Set(fixture.Pod(name, kinds[name]...))
		}
		change := func() {
			node := fixture.Node(fmt.Sprintf("n%02d", rapid.IntRange(0, 20).Draw(r, "node")), "cpu=8")
			if before := c.Cluster.Node(node.Name); before != nil && before.Object != nil && rapid.IntRange(0, 3).Draw(r, "remove") == 0 {
				c.Remove(before.Object)
				return
			}
			for _, option := range rapid.SliceOfN(rapid.SampledFrom([]func(*corev1.Node){labelled("disk", "ssd"), labelled("pool", "rare"), cordoned, notReady,
				tainted("gpu", corev1.TaintEffectNoSchedule), tainted("gpu", corev1.TaintEffectPreferNoSchedule), tainted("old", corev1.TaintEffectPreferNoSchedule)}),
				0, 2).Draw(r, "options") {
				option(node)
			}
			c.Set(node)
		}
		for range rapid.IntRange(0, 20).Draw(r, "at first") {
			change()
		}
		for range rapid.IntRange(1, 15).Draw(r, "steps") {
			change()
			c.Settle()
			name := rapid.SampledFrom(names).Draw(r, "asked about")
			switch rapid.IntRange(0, 4).Draw(r, "how") {
			case 0:
				c.table.For(c.class(name)).FollowAll()
			case 1: // one node, without looking at the others
				answers := c.table.For(c.class(name))
				for _, n := range c.Nodes() {
					if n.Object != nil && n.Ready() && rapid.IntRange(0, 5).Draw(r, "look") == 0 {
						got, isKnown := answers.OfNode(n)
						if want := c.fresh().Ask(c.class(name)).Refusal(n).Text; isKnown && (got == reason.Fits) != (want == "") {
							r.Fatalf("for %s node %s alone is refused by %q, want %q", name, n.Name, c.refusals.Text(got), want)
						}
					}
				}
			}
			c.check(name)
		}
	})
}

func TestClassesWithEqualConstraintsShareTheirAnswers(t *testing.T) {
	c := newCases(t).with(fixture.Node("n", "cpu=8"))
	for name, options := range kinds {
		c.Set(fixture.Pod(name, options...))
	}
	shared := func(a, b string) bool { return c.table.For(c.class(a)) == c.table.For(c.class(b)) }
	for _, pair := range [][2]string{{"plain", "as-plain"}, {"ssd", "as-ssd"}, {"plain", "tolerating"}} {
		if !shared(pair[0], pair[1]) {
			t.Errorf("%s and %s have answers of their own", pair[0], pair[1])
		}
	}
	before := c.table.For(c.class("plain"))
	if shared("plain", "ssd") || shared("plain", "preferring") {
		t.Error("classes share answers, and ask for different labels")
	}
	c.with(fixture.Node("n", "cpu=8", tainted("gpu", corev1.TaintEffectNoSchedule)))
	if shared("plain", "tolerating") || before.AreCurrent() {
		t.Error("a class that tolerates a taint shares the answers of one that does not")
	}
}

func (c *cases) with(things ...any) *cases {
	c.Set(things...)
	return c
}

func TestOnlyTheFewNodesWithALabelAreRead(t *testing.T) {
	c := newCases(t)
	for i := range 20 {
		c.Set(fixture.Node(fmt.Sprintf("n%02d", i), "cpu=8"))
	}
	c.Set(fixture.Node("rare", "cpu=8", labelled("pool", "rare")), fixture.Pod("rare-pool", kinds["rare-pool"]...), fixture.Pod("plain"))
	answers, slot := c.table.For(c.class("rare-pool")), int32(c.NodeNamed("rare").Slot)
	answers.Follow()
	if few, areFew := answers.Few(); !areFew || !slices.Equal(few, []int32{slot}) || len(answers.All()) > 0 {
		t.Errorf("answers are stored about %v and %d nodes, want slot %d alone", few, len(answers.All()), slot)
	}
	if all := c.table.For(c.class("plain")); len(all.All()) > 0 {
		t.Errorf("before any question %d answers are stored", len(all.All()))
	} else if all.Follow(); len(all.All()) != 21 {
		t.Errorf("%d answers are stored about 21 nodes", len(all.All()))
	}
}

// The API server lets users make any number of node selectors.
func TestTheAnswersOfManyConstraintsAreBounded(t *testing.T) {
	c := newCases(t).with(fixture.Node("n", "cpu=8"), fixture.Pod("plain"), fixture.Pod("ssd", kinds["ssd"]...))
	used, unused := c.table.For(c.class("ssd")), c.table.For(c.class("plain"))
	unused.Follow()
	const bytes, each = 64 << 20, 3 << 10 // what the table may take, and about what a set of constraints takes
	for i := range bytes/each + 1 {
		k := &cluster.Class{Pod: c.class("plain").Pod, Selection: fmt.Sprint("selection ", i)}
		c.table.For(k).Follow()
		if used.Follow(); i == 0 && c.table.For(c.class("plain")) != unused {
			t.Fatal("answers are dropped without need")
		}
	}
	if c.table.For(c.class("ssd")) != used {
		t.Error("the answers that were used last are dropped")
	}
	if c.table.For(c.class("plain")) == unused {
		t.Errorf("the answers of %d constraints are stored", bytes/each+3)
	}
}
