package kube

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
)

const zone = corev1.LabelTopologyZone

func TestNamesAndWeightsThatCannotBeUsedAreErrorsThatSayWhatCan(t *testing.T) {
	cases := map[string]struct {
		filters []string
		scores  []Weighted
		want    string
	}{
		"an unknown filter": {filters: []string{"NodeAffinity", "Foo"},
			want: `kube-scheduler plugin "Foo" is not supported as a filter, supported are NodeUnschedulable, NodeName, ` +
				`TaintToleration, NodeAffinity, NodePorts, PodTopologySpread, InterPodAffinity`},
		"a filter that only scores": {filters: []string{"ImageLocality"}, want: `"ImageLocality" is not supported as a filter`},
		"a scorer that only filters": {scores: []Weighted{{"NodePorts", 1}},
			want: `kube-scheduler plugin "NodePorts" is not supported as a score, supported are TaintToleration, ` +
				`NodeAffinity, ImageLocality, PodTopologySpread, InterPodAffinity`},
		"a filter given twice":       {filters: []string{"NodeName", "NodeName"}, want: `"NodeName" is given twice as a filter`},
		"a scorer given twice":       {scores: []Weighted{{"NodeAffinity", 1}, {"NodeAffinity", 2}}, want: `"NodeAffinity" is given twice as a score`},
		"a negative weight":          {scores: []Weighted{{"NodeAffinity", -1}}, want: `"NodeAffinity" has weight -1, must be 0 to 2147483647`},
		"a weight that is too large": {scores: []Weighted{{"NodeAffinity", 1 << 31}}, want: `has weight 2147483648`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			plugins, err := New(cache.New(cache.Options{}).Cluster, c.filters, c.scores, Arguments{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want %s", err, c.want)
			}
			if plugins != nil {
				t.Error("there are plugins and the error")
			}
		})
	}
}

func TestAPluginThatReachesForMoreThanItIsGivenIsTold(t *testing.T) {
	defer func() {
		want := "invariant: a kube-scheduler plugin calls Extenders, which it has no use for"
		if got := recover(); got != want {
			t.Errorf("got %v, want %s", got, want)
		}
	}()
	newHandle(newMirror(cache.New(cache.Options{}).Cluster, isThere)).Extenders()
}

func TestRefusesNodesInTheWordsOfKubeScheduler(t *testing.T) {
	cases := map[string]struct {
		pod  *corev1.Pod
		node *corev1.Node
		want string
	}{
		"a node that suits":        {fixture.Pod("a"), fixture.Node("n", ""), ""},
		"a cordoned node":          {fixture.Pod("a"), fixture.Node("n", "", cordoned), "node(s) were unschedulable"},
		"a cordon that is allowed": {fixture.Pod("a", tolerating(corev1.TaintNodeUnschedulable)), fixture.Node("n", "", cordoned), ""},
		"a taint":                  {fixture.Pod("a"), fixture.Node("n", "", tainted(corev1.TaintEffectNoSchedule)), "node(s) had untolerated taint(s)"},
		"a taint that evicts":      {fixture.Pod("a"), fixture.Node("n", "", tainted(corev1.TaintEffectNoExecute)), "node(s) had untolerated taint(s)"},
		"a taint that is tolerated": {fixture.Pod("a", tolerating("only")),
			fixture.Node("n", "", tainted(corev1.TaintEffectNoSchedule)), ""},
		"a taint that only repels": {fixture.Pod("a"), fixture.Node("n", "", tainted(corev1.TaintEffectPreferNoSchedule)), ""},
		"a selector that does not match": {fixture.Pod("a", fixture.Selecting("disk", "ssd")), fixture.Node("n", "", labelled("disk", "hdd")),
			"node(s) didn't match Pod's node affinity/selector"},
		"a selector that matches": {fixture.Pod("a", fixture.Selecting("disk", "ssd")), fixture.Node("n", "", labelled("disk", "ssd")), ""},
		"affinity to another node": {fixture.Pod("a", requiringFields(named("other"))), fixture.Node("n", ""),
			"node(s) didn't match Pod's node affinity/selector"},
		"affinity to the node by name": {fixture.Pod("a", requiringFields(named("other"), named("n"))), fixture.Node("n", ""), ""},
		"affinity to two nodes at once": {fixture.Pod("a", requiringFields(named("n", "other"))), fixture.Node("n", ""),
			"pod affinity terms conflict"},
		"a preference that cannot be read": {fixture.Pod("a", preferringNodes("disk", "not a label value", 1)), fixture.Node("n", ""),
			`Invalid value: "not a label value"`},
		"the first of several": {fixture.Pod("a", fixture.Selecting("disk", "ssd")), fixture.Node("n", "", cordoned, tainted(corev1.TaintEffectNoSchedule)),
			"node(s) were unschedulable"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newModel(t, c.node, c.pod)
			got := w.ask("a").Refusal(w.cluster.Node("n")).Text
			if c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestRefusesEveryNodeButTheOneThatIsNamed(t *testing.T) {
	// A pod with a node never waits, so this class comes from outside of the model.
	w := newModel(t, fixture.Node("n", ""), fixture.Node("m", ""))
	q := w.plugins.Ask(&cluster.Class{Pod: fixture.Pod("a", fixture.On("n"))})
	if got := q.Refusal(w.cluster.Node("n")).Text; got != "" {
		t.Errorf("refuses the node it names: %s", got)
	}
	if got, want := q.Refusal(w.cluster.Node("m")).Text, "node(s) didn't match the requested node name"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRefusalFollowsTheNodeObject(t *testing.T) {
	n := fixture.Node("n", "")
	w := newModel(t, n, fixture.Pod("a"))
	q := w.ask("a")
	steps := []struct {
		change any
		want   string
	}{
		{n, ""},
		{fixture.Node("n", "", cordoned), "node(s) were unschedulable"},
		{fixture.Node("n", ""), ""},
		{fixture.Pod("b", fixture.On("n")), ""},
		{cache.Delete{Object: n}, unknown.Text},
		{fixture.Node("n", "", tainted(corev1.TaintEffectNoSchedule)), "node(s) had untolerated taint(s)"},
	}
	for i, step := range steps {
		w.apply(step.change)
		if got := q.Refusal(w.cluster.Node("n")).Text; got != step.want {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
}

func TestOnlyTheFiltersAskedForRefuse(t *testing.T) {
	w := newModel(t, fixture.Node("n", "", cordoned, tainted(corev1.TaintEffectNoSchedule)), fixture.Pod("b", fixture.On("n"), fixture.OnPort(80)),
		fixture.Pod("a", fixture.OnPort(80), near("db", zone)))
	plugins, err := New(w.cluster.Cluster, []string{"TaintToleration"}, nil, Arguments{})
	if err != nil {
		t.Fatal(err)
	}
	q := plugins.Ask(w.task("a").Class)
	if got, want := q.Refusal(w.cluster.Node("n")).Text, "node(s) had untolerated taint(s)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := q.Ports(w.cluster.Node("n")); got != "" {
		t.Errorf("ports are refused: %s", got)
	}
	if refusals, scores := q.Survey(w.cluster.Nodes()); refusals[0] != "" || scores[0] != 0 {
		t.Errorf("the survey says %q, %d", refusals[0], scores[0])
	}
}

func TestPortsFollowWhatIsOnTheNode(t *testing.T) {
	const taken = "node(s) didn't have free ports for the requested pod ports"
	w := newModel(t, fixture.Node("n", ""), fixture.Node("m", ""), fixture.Pod("a", fixture.OnPort(80)), fixture.Pod("b", fixture.OnPort(80)), fixture.Pod("c", fixture.OnPort(81)), fixture.Pod("d"))
	n, m := w.cluster.Node("n"), w.cluster.Node("m")
	q := w.ask("a")
	expect := func(when, atN, atM string) {
		t.Helper()
		if got := []string{q.Ports(n), q.Ports(m)}; !cmp.Equal(got, []string{atN, atM}) {
			t.Errorf("%s: got %q, want %q", when, got, []string{atN, atM})
		}
	}
	expect("on empty nodes", "", "")
	mark := w.cluster.Mark()
	w.cluster.Place(w.task("c"), n)
	expect("next to another port", "", "")
	w.cluster.Place(w.task("b"), n)
	expect("once a pod with the port was placed", taken, "")
	if got := w.ask("d").Ports(n); got != "" {
		t.Errorf("a pod without ports is refused: %s", got)
	}
	w.cluster.Undo(mark)
	expect("once that was undone", "", "")
	w.cluster.Place(w.task("b"), m)
	w.cluster.Commit(w.task("b"))
	w.cluster.Keep()
	expect("once it was placed elsewhere", "", taken)
	w.apply(cache.Delete{Object: w.task("b").Pod})
	expect("once the pod was deleted", "", "")
	leaving := fixture.Pod("e", fixture.On("n"), fixture.OnPort(80))
	leaving.DeletionTimestamp = &metav1.Time{}
	w.apply(leaving)
	expect("while a pod is on its way out", taken, "")
}

func TestPreferencesAreNilIfNodesCannotDiffer(t *testing.T) {
	w := newModel(t, fixture.Node("n", "", having("other:1", 1<<30)), fixture.Node("m", "", labelled("disk", "ssd")), fixture.Pod("a", ofImage("main:1")))
	q := w.ask("a")
	if got := q.Preferences(w.cluster.Nodes()); got != nil {
		t.Errorf("got %v, want nil", got)
	}
	w.apply(fixture.Node("m", "", having("main:1", 1<<30)))
	if got := q.Preferences(w.cluster.Nodes()); got == nil {
		t.Error("an image that only one node has makes no difference")
	}
	w.apply(fixture.Node("m", "", tainted(corev1.TaintEffectPreferNoSchedule)))
	if got := q.Preferences(w.cluster.Nodes()); got == nil {
		t.Error("a taint that only one node has makes no difference")
	}
	w.apply(fixture.Node("m", ""))
	if got := q.Preferences(w.cluster.Nodes()); got != nil {
		t.Errorf("got %v after image and taint are gone, want nil", got)
	}
}

func TestPreferencesAreTheWeightedScoresOfKubeScheduler(t *testing.T) {
	const gibibyte = 1 << 30
	cases := map[string]struct {
		pod  *corev1.Pod
		n, m *corev1.Node
		want []int64 // of m, of n: nodes come by name
	}{
		"fewer taints that repel": {fixture.Pod("a"), fixture.Node("n", "", tainted(corev1.TaintEffectPreferNoSchedule)), fixture.Node("m", ""), []int64{300, 0}},
		"node affinity": {fixture.Pod("a", preferringNodes("disk", "ssd", 10), preferringNodes("rack", "1", 30)),
			fixture.Node("n", "", labelled("disk", "ssd")), fixture.Node("m", "", labelled("rack", "1")), []int64{300 + 200, 300 + 2*33}},
		// Half of the nodes have it: 512 MiB count, of 1,000 MiB at most and 23 MiB at least.
		"an image": {fixture.Pod("a", ofImage("main:1")), fixture.Node("n", "", having("main:1", gibibyte)), fixture.Node("m", ""), []int64{300, 300 + 50}},
		"an image under its default tag": {fixture.Pod("a", ofImage("main")), fixture.Node("n", "", having("main:latest", gibibyte)), fixture.Node("m", ""),
			[]int64{300, 300 + 50}},
		"an image in two sizes": {fixture.Pod("a", ofImage("main:1")), fixture.Node("n", "", having("main:1", 100<<20)), fixture.Node("m", "", having("main:1", gibibyte)),
			[]int64{300 + 100, 300 + 7}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			for _, order := range [][]any{{c.n, c.m, c.pod}, {c.pod, c.m, c.n}} {
				w := newModel(t, order...)
				if diff := cmp.Diff(c.want, w.ask("a").Preferences(w.cluster.Nodes())); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
}

func TestAWeightOfZeroLeavesAScorerOut(t *testing.T) {
	w := newModel(t, fixture.Node("n", "", tainted(corev1.TaintEffectPreferNoSchedule)), fixture.Node("m", ""), fixture.Pod("a"))
	plugins, err := New(w.cluster.Cluster, nil, []Weighted{{"TaintToleration", 0}}, Arguments{})
	if err != nil {
		t.Fatal(err)
	}
	if got := plugins.Ask(w.task("a").Class).Preferences(w.cluster.Nodes()); got != nil {
		t.Errorf("got %v, want nil", got)
	}
}
