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

const (
	notNear   = "node(s) didn't match pod affinity rules"
	notApart  = "node(s) didn't match pod anti-affinity rules"
	unwelcome = "node(s) didn't satisfy existing pods anti-affinity rules"
	uneven    = "node(s) didn't match pod topology spread constraints"
	noDomain  = "node(s) didn't match pod topology spread constraints (missing required label)"
)

// threeNodes are two nodes in zone a and one in zone b.
func threeNodes() []any {
	return []any{fixture.Node("a1", "", labelled(zone, "a")), fixture.Node("a2", "", labelled(zone, "a")), fixture.Node("b1", "", labelled(zone, "b"))}
}

func TestSurveyRefusesNodesInTheWordsOfKubeScheduler(t *testing.T) {
	cases := map[string]struct {
		others []any
		pod    *corev1.Pod
		want   map[string]string
	}{
		"nothing is asked for": {nil, fixture.Pod("a"), map[string]string{"a1": "", "a2": "", "b1": ""}},
		"near a pod that is there": {[]any{fixture.Pod("db", fixture.Labelled("app", "db"), fixture.On("a1"))}, fixture.Pod("a", near("db", zone)),
			map[string]string{"a1": "", "a2": "", "b1": notNear}},
		"near a pod that is nowhere": {nil, fixture.Pod("a", near("db", zone)),
			map[string]string{"a1": notNear, "a2": notNear, "b1": notNear}},
		"near its own kind, the first of them": {nil, fixture.Pod("a", fixture.Labelled("app", "x"), near("x", zone)),
			map[string]string{"a1": "", "a2": "", "b1": ""}},
		"near a pod of another namespace": {[]any{fixture.Pod("db", fixture.Labelled("app", "db"), fixture.On("a1"), inNamespace("other"))}, fixture.Pod("a", near("db", zone)),
			map[string]string{"a1": notNear, "a2": notNear, "b1": notNear}},
		"apart from a pod": {[]any{fixture.Pod("db", fixture.Labelled("app", "db"), fixture.On("a1"))}, fixture.Pod("a", apart("db", zone)),
			map[string]string{"a1": notApart, "a2": notApart, "b1": ""}},
		"a pod that wants to be alone": {[]any{fixture.Pod("db", apart("x", zone), fixture.On("a1"))}, fixture.Pod("a", fixture.Labelled("app", "x")),
			map[string]string{"a1": unwelcome, "a2": unwelcome, "b1": ""}},
		"spread evenly": {[]any{fixture.Pod("x1", fixture.Labelled("app", "x"), fixture.On("a1"))}, fixture.Pod("a", fixture.Labelled("app", "x"), spread("x", zone, 1, corev1.DoNotSchedule)),
			map[string]string{"a1": uneven, "a2": uneven, "b1": ""}},
		"spread over a label that a node lacks": {[]any{fixture.Node("c1", "")}, fixture.Pod("a", fixture.Labelled("app", "x"), spread("x", zone, 1, corev1.DoNotSchedule)),
			map[string]string{"a1": "", "a2": "", "b1": "", "c1": noDomain}},
		"spread over the nodes that its selector leaves": {[]any{fixture.Node("a2", "", labelled(zone, "a"), labelled("disk", "ssd")),
			fixture.Pod("x1", fixture.Labelled("app", "x"), fixture.On("a1"))},
			fixture.Pod("a", fixture.Labelled("app", "x"), fixture.Selecting("disk", "ssd"), spread("x", zone, 1, corev1.DoNotSchedule)),
			map[string]string{"a1": "", "a2": "", "b1": ""}},
		"a term that cannot be read": {nil, fixture.Pod("a", near("no label value", zone)),
			map[string]string{"a1": "parsing pod", "a2": "parsing pod", "b1": "parsing pod"}},
		"a constraint that cannot be read": {nil, fixture.Pod("a", spread("no label value", zone, 1, corev1.ScheduleAnyway)),
			map[string]string{"a1": "Invalid value", "a2": "Invalid value", "b1": "Invalid value"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newModel(t, append(append(threeNodes(), c.others...), c.pod)...)
			q := w.ask("a")
			around := map[string]string{}
			for _, n := range w.cluster.Nodes() {
				around[n.Name] = q.Around(n)
			}
			got, _ := w.survey(q)
			if diff := cmp.Diff(got, around); diff != "" {
				t.Errorf("one by one the nodes are refused otherwise (-survey +one by one):\n%s", diff)
			}
			for name, want := range c.want {
				if (got[name] == "") != (want == "") || !strings.Contains(got[name], want) {
					t.Errorf("node %s: got %q, want %q", name, got[name], want)
				}
			}
		})
	}
}

func TestSurveySeesWhatTheTransactionPlacesAndUndoes(t *testing.T) {
	w := newModel(t, append(threeNodes(), fixture.Pod("x1", fixture.Labelled("app", "x"), apart("x", zone)), fixture.Pod("x2", fixture.Labelled("app", "x"), apart("x", zone)),
		fixture.Pod("plain", fixture.Labelled("app", "x")), fixture.Pod("y", fixture.Labelled("app", "y")))...)
	// The class that first has nothing against any node must notice the anti-affinity that comes later.
	plain, twin := w.ask("plain"), w.ask("x2")
	expect := func(when string, q *Question, a1, a2, b1 string) {
		t.Helper()
		got, _ := w.survey(q)
		if diff := cmp.Diff(map[string]string{"a1": a1, "a2": a2, "b1": b1}, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", when, diff)
		}
	}
	expect("at first", plain, "", "", "")
	expect("at first", twin, "", "", "")
	mark := w.cluster.Mark()
	w.cluster.Place(w.task("x1"), w.cluster.Node("a1"))
	expect("after a pod was placed", plain, unwelcome, unwelcome, "")
	expect("after a pod was placed", twin, notApart, notApart, "")
	w.cluster.Undo(mark)
	expect("after it was undone", plain, "", "", "")
	expect("after it was undone", twin, "", "", "")
	w.cluster.Place(w.task("x1"), w.cluster.Node("b1"))
	w.cluster.Place(w.task("y"), w.cluster.Node("a1"))
	w.cluster.Keep()
	expect("after it was placed elsewhere", plain, "", "", unwelcome)
	expect("after it was placed elsewhere", twin, "", "", notApart)
}

func TestSurveyFollowsSelectedNamespaces(t *testing.T) {
	space := func(team string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other", Labels: map[string]string{"team": team}}}
	}
	selective := fixture.Pod("a")
	selectTeam := term("db", zone)
	selectTeam.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}
	requireApart(selective, selectTeam)
	w := newModel(t, append(threeNodes(), selective, fixture.Pod("db", fixture.Labelled("app", "db"), inNamespace("other"), fixture.On("a1")))...)
	q := w.ask("a")
	for _, step := range []struct {
		change any
		want   string
	}{
		{space("blue"), ""}, {space("red"), notApart}, {cache.Delete{Object: space("red")}, ""}, {space("red"), notApart},
	} {
		w.apply(step.change)
		if got, _ := w.survey(q); got["a2"] != step.want || got["b1"] != "" {
			t.Errorf("got %q and %q, want %q and none", got["a2"], got["b1"], step.want)
		}
	}
}

func TestSurveyScoresAreNormalisedOverTheNodesThatAreLeft(t *testing.T) {
	w := newModel(t, append(threeNodes(), fixture.Node("c1", "", labelled(zone, "c")), fixture.Pod("db", fixture.Labelled("app", "db"), fixture.On("a1")),
		fixture.Pod("foe", fixture.Labelled("app", "foe"), fixture.On("b1")), fixture.Pod("a", preferringNear("db", zone, 10), apart("foe", zone)))...)
	_, scores := w.survey(w.ask("a"))
	if diff := cmp.Diff(map[string]int64{"a1": 200, "a2": 200, "b1": 0, "c1": 0}, scores); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestSurveyAnswersForTheCandidatesItIsGiven(t *testing.T) {
	w := newModel(t, append(threeNodes(), fixture.Pod("db", fixture.Labelled("app", "db"), fixture.On("a1")), fixture.Pod("a", near("db", zone)))...)
	q := w.ask("a")
	for _, c := range []struct{ node, want string }{{"a1", ""}, {"b1", notNear}, {"a2", ""}} {
		refusals, scores := q.Survey([]*cluster.Node{w.cluster.Node(c.node)})
		if len(refusals) != 1 || len(scores) != 1 || refusals[0] != c.want {
			t.Errorf("node %s: got %q and %v, want %q", c.node, refusals, scores, c.want)
		}
	}
	if refusals, scores := q.Survey(nil); len(refusals) != 0 || len(scores) != 0 {
		t.Errorf("for no candidates: got %q and %v", refusals, scores)
	}
}

func TestSurveyKnowsNoNodeWithoutAnObject(t *testing.T) {
	w := newModel(t, append(threeNodes(), fixture.Pod("db", fixture.Labelled("app", "db"), fixture.On("ghost")), fixture.Pod("a", near("db", zone)))...)
	q := w.ask("a")
	if got, _ := w.survey(q); got["ghost"] != unknown.Text || got["a1"] != notNear {
		t.Errorf("got %v", got)
	}
	w.apply(fixture.Node("ghost", "", labelled(zone, "a")))
	if got, _ := w.survey(q); got["ghost"] != "" || got["a1"] != "" || got["b1"] != notNear {
		t.Errorf("after the node came: got %v", got)
	}
	w.apply(cache.Delete{Object: fixture.Node("ghost", "")})
	if got, _ := w.survey(q); got["ghost"] != unknown.Text || got["a1"] != notNear {
		t.Errorf("after the node went: got %v", got)
	}
}

// A scorer may be the only one that reads a term.
func TestWhatOnlyScorersCannotReadIsRefusedOneByOneToo(t *testing.T) {
	w := newModel(t, append(threeNodes(), fixture.Pod("a", preferringNear("no label value", zone, 1)))...)
	plugins, err := New(w.cluster.Cluster, nil, allScores, Arguments{})
	if err != nil {
		t.Fatal(err)
	}
	q := plugins.Ask(w.task("a").Class)
	for _, n := range w.cluster.Nodes() {
		one := q.Around(n)
		if all, _ := w.survey(q); one == "" || one != all[n.Name] {
			t.Errorf("node %s is refused with %q, in a survey with %q", n.Name, one, all[n.Name])
		}
	}
}

func TestASurveyAfterAQuestionAboutOneNodeIsOfThePodsAsTheyAre(t *testing.T) {
	w := newModel(t, append(threeNodes(), fixture.Pod("x1", fixture.Labelled("app", "x")), fixture.Pod("a", apart("x", zone)))...)
	q := w.ask("a")
	w.survey(q)
	w.cluster.Place(w.task("x1"), w.cluster.Node("a1"))
	if got := q.Around(w.cluster.Node("a2")); got != notApart {
		t.Errorf("a2: got %q", got)
	}
	if got, _ := w.survey(q); got["a1"] != notApart || got["a2"] != notApart || got["b1"] != "" {
		t.Errorf("got %v", got)
	}
}

func TestAnOutlookSeesThePodsThatWillBeThere(t *testing.T) {
	w := newModel(t, append(threeNodes(), fixture.Pod("leaves", fixture.Labelled("app", "x"), fixture.OnPort(80), fixture.On("a1")), fixture.Pod("comes", fixture.Labelled("app", "x"), fixture.OnPort(80)),
		fixture.Pod("a", apart("x", zone), fixture.OnPort(80)))...)
	outlook, err := NewOutlook(w.cluster.Cluster, allFilters, allScores, Arguments{})
	if err != nil {
		t.Fatal(err)
	}
	now, later := w.ask("a"), outlook.Ask(w.task("a").Class)
	expect := func(when string, q *Question, a1, b1 string, portsOfA1, portsOfB1 bool) {
		t.Helper()
		got, _ := w.survey(q)
		if got["a1"] != a1 || got["b1"] != b1 {
			t.Errorf("%s: got %v", when, got)
		}
		if free := q.Ports(w.cluster.Node("a1")) == ""; free != portsOfA1 {
			t.Errorf("%s: that the port of a1 is free is %t", when, free)
		}
		if free := q.Ports(w.cluster.Node("b1")) == ""; free != portsOfB1 {
			t.Errorf("%s: that the port of b1 is free is %t", when, free)
		}
	}
	expect("now, at first", now, notApart, "", false, true)
	expect("later, at first", later, notApart, "", false, true)
	mark := w.cluster.Mark()
	w.cluster.Evict(w.task("leaves"))
	w.cluster.Pipeline(w.task("comes"), w.cluster.Node("b1"))
	expect("now, with a plan", now, notApart, "", false, true)
	expect("later, with a plan", later, "", notApart, true, false)
	w.cluster.Undo(mark)
	expect("now, without it again", now, notApart, "", false, true)
	expect("later, without it again", later, notApart, "", false, true)
}
