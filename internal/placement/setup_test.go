package placement_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/placement"
	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/binpack"
	gangplugin "hekla.sh/hekla/pkg/plugins/gang"
	"hekla.sh/hekla/pkg/plugins/networktopology"
	"hekla.sh/hekla/pkg/plugins/nodeorder"
	"hekla.sh/hekla/pkg/plugins/predicates"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

// atMost is a plugin from outside the tree that lets no node hold more than so many pods.
type atMost int

func (atMost) Name() string { return "at-most" }

func (m atMost) RefuseNode(_ *cluster.Class, n *cluster.Node) string {
	staying := 0
	for _, t := range n.Tasks() {
		if !t.Status.Leaves() {
			staying++
		}
	}
	if staying >= int(m) {
		return "node(s) held enough"
	}
	return ""
}

// picky is a plugin from outside the tree that is asked last, and wants no node of which an odd number of CPUs is
// taken.
type picky struct{}

func (picky) Name() string { return "picky" }

func (picky) VetoNode(_ *cluster.Task, n *cluster.Node) string {
	if n.Used.At(resources.CPU)%2000 == 1000 {
		return "node(s) were not liked"
	}
	return ""
}

// content is a plugin from outside the tree that is asked last, and likes every node.
type content struct{}

func (content) Name() string { return "content" }

func (content) VetoNode(*cluster.Task, *cluster.Node) string { return "" }

// setup is a model with engines, and with what is worked out afresh to hold their answers against.
type setup struct {
	*harness.Model
	harness.TB
	session *framework.Session
	plugins []string
}

// newSetup returns a setup with these plugins, in one tier.
func newSetup(t harness.TB, plugins ...string) *setup {
	t.Helper()
	if len(plugins) == 0 {
		plugins = []string{"gang", "predicates", "nodeorder"}
	}
	registry := framework.NewRegistry([]framework.ActionFactory{{Name: "none", New: func(conf.Arguments) (framework.Action, error) { return none{}, nil }}},
		[]framework.PluginFactory{gangplugin.Factory(), predicates.Factory(), nodeorder.Factory(), binpack.Factory(), networktopology.Factory(),
			harness.Made(atMost(4)), harness.Made(content{}), harness.Made(picky{})})
	text := "actions: none\ntiers:\n- plugins:\n"
	for _, name := range plugins {
		text += "  - name: " + name + "\n"
	}
	parsed, err := conf.Parse([]byte(text), registry.Catalogue())
	if err != nil {
		t.Fatalf("%v", err)
	}
	policy, err := registry.Build(parsed)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &setup{Model: harness.ForPolicy(t, policy).Placing().Set(fixture.Queue("default")), TB: t, plugins: plugins}
}

type none struct{}

func (none) Name() string               { return "none" }
func (none) Execute(*framework.Session) {}

// set shows objects to the scheduler.
func (w *setup) set(things ...any) *setup {
	w.Set(things...)
	return w
}

// open opens a session.
func (w *setup) open() *framework.Session {
	w.session = framework.Open(w.Cache, w.Policy, w.Engine, w.Now)
	return w.session
}

// answer is what is known of one node.
type answer struct {
	why   string
	veto  string
	score int64
}

// asks are the questions about a class: to the present, and to what comes.
type asks struct{ now, later *kube.Question }

func (w *setup) asksOf(k *cluster.Class) asks {
	scores := make([]kube.Weighted, len(w.Policy.KubeScores))
	for i, s := range w.Policy.KubeScores {
		scores[i] = kube.Weighted{Name: s.Name, Weight: s.Weight}
	}
	now, err := kube.New(w.Cluster, w.Policy.KubeFilters, scores, kube.Arguments{})
	if err != nil {
		w.Fatalf("%v", err)
	}
	later, err := kube.NewOutlook(w.Cluster, w.Policy.KubeFilters, scores, kube.Arguments{})
	if err != nil {
		w.Fatalf("%v", err)
	}
	return asks{now.Ask(k), later.Ask(k)}
}

// ask works everything out for this one question: it remembers nothing and skips nothing.
func (w *setup) ask(t *cluster.Task) (best *cluster.Node, answers map[*cluster.Node]answer) {
	questions := w.asksOf(t.Class)
	answers = map[*cluster.Node]answer{}
	var passing, candidates []*cluster.Node
	for _, n := range w.Cluster.Nodes() {
		switch {
		case n.Object == nil:
		case !isReady(n.Object):
			answers[n] = answer{why: "node(s) were not ready"}
		default:
			answers[n] = answer{why: questions.now.Refusal(n).Text}
			if answers[n].why == "" {
				passing = append(passing, n)
			}
		}
	}
	preferences := questions.now.Preferences(passing)
	for i, n := range passing {
		a := answer{why: w.refusal(questions, t.Class, n)}
		if preferences != nil {
			a.score = preferences[i] * framework.Point
		}
		for _, scorer := range w.Policy.Scorers {
			a.score += scorer.ScoreNode(t.Class, n)
		}
		for _, vetoer := range w.Policy.Vetoers {
			a.veto = vetoer.VetoNode(t, n)
		}
		if answers[n] = a; a.why == "" {
			candidates = append(candidates, n)
		}
	}
	refusals, around := questions.now.Survey(candidates)
	comes := w.laterSays(questions.later, candidates)
	for i, n := range candidates {
		a := answers[n]
		a.why, a.score = refusals[i], a.score+around[i]*framework.Point
		if a.why == "" {
			a.why = comes[i]
		}
		if answers[n] = a; a.why == "" && a.veto == "" && (best == nil || a.score > answers[best].score) {
			best = n
		}
	}
	return best, answers
}

// laterSays is what speaks against candidates because of what is promised.
func (w *setup) laterSays(later *kube.Question, candidates []*cluster.Node) []string {
	if w.Cluster.Promised.IsZero() {
		return make([]string, len(candidates))
	}
	refusals, _ := later.Survey(candidates)
	return refusals
}

// refusal is why a node whose object passes has no room all the same; the room is counted from its pods.
func (w *setup) refusal(questions asks, k *cluster.Class, n *cluster.Node) string {
	now, later := w.Cluster.Resources.Vector(nil), w.Cluster.Resources.Vector(nil)
	for _, t := range n.Tasks() {
		if t.Status != cluster.Pipelined {
			now.Add(t.Request())
		}
		if !t.Status.Leaves() {
			later.Add(t.Request())
		}
	}
	for d, amount := range k.Request {
		name := w.Cluster.Resources.Name(dim(d))
		if amount > 0 && max(now.At(dim(d)), later.At(dim(d)))+amount > n.Allocatable.At(dim(d)) {
			if name == corev1.ResourcePods {
				return "Too many pods"
			}
			return "Insufficient " + string(name)
		}
	}
	for _, filter := range w.Policy.Filters {
		if why := filter.RefuseNode(k, n); why != "" {
			return why
		}
	}
	if why := questions.now.Ports(n); why != "" || n.Promised.IsZero() {
		return why
	}
	return questions.later.Ports(n)
}

func isReady(n *corev1.Node) bool {
	return len(n.Status.Conditions) == 0 || n.Status.Conditions[0].Status == corev1.ConditionTrue
}

// check holds the engine's answers for a task against those that are worked out afresh.
func (w *setup) check(t *cluster.Task) {
	w.Helper()
	best, answers := w.ask(t)
	for n, a := range answers {
		if w.Engine.Fits(t, n) != (a.why == "") {
			w.Fatalf("for %s the engine says of %s that it fits is %t, worked out afresh it is %+v", t.Key().Name, n.Name, w.Engine.Fits(t, n), a)
		}
	}
	fit := 0
	for _, a := range answers {
		if a.why == "" {
			fit++
		}
	}
	room, _ := w.Engine.Room(t.Class)
	if isExact := !w.Cluster.DependsOnPods(t.Class) && !t.Class.NeedsSupplies(); room < int64(fit) || isExact && fit == 0 && room > 0 {
		w.Fatalf("for %s the engine counts room for %d, and %d nodes have room", t.Key().Name, room, fit)
	}
	if bound := w.Engine.RoomBound(t.Class).Left(); bound < room {
		w.Fatalf("for %s the engine counts room for %d, and for no more than %d", t.Key().Name, room, bound)
	}
	got := w.Engine.Best(t)
	if got != best {
		w.Fatalf("for %s the engine says %s, worked out afresh it is %s\n%s", t.Key().Name, nameOf(got), nameOf(best), w.describe(answers))
	}
	if best != nil {
		return
	}
	var want []verdict.NodeReason
	for _, n := range w.Cluster.Nodes() {
		if a, isAsked := answers[n]; isAsked {
			want = verdict.CountNode(want, verdict.NodeRefusal{Text: cmp.Or(a.why, a.veto)}, n.Name)
		}
	}
	have, _ := w.Engine.Explain(t)
	have = slices.Clone(have)
	for i := range have {
		have[i].Kind = ""
	}
	if !slices.Equal(have, want) {
		w.Fatalf("for %s the engine counts %v, worked out afresh it is %v", t.Key().Name, have, want)
	}
}

// counted is how many nodes an engine says refuse a task, by reason.
func counted(e *placement.Engine, t *cluster.Task) map[string]int {
	have := map[string]int{}
	reasons, _ := e.Explain(t)
	for _, r := range reasons {
		have[r.Reason] = r.Nodes
	}
	return have
}

func nameOf(n *cluster.Node) string {
	if n == nil {
		return "none"
	}
	return n.Name
}

func (w *setup) describe(answers map[*cluster.Node]answer) string {
	var b strings.Builder
	for _, n := range w.Cluster.Nodes() {
		fmt.Fprintf(&b, "%s: %+v\n", n.Name, answers[n])
	}
	return b.String()
}

func tainted(n *corev1.Node) {
	n.Spec.Taints = []corev1.Taint{{Key: "kept", Value: "free", Effect: corev1.TaintEffectNoSchedule}}
}

func notReady(n *corev1.Node) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
}

// gangOf is an admitted PodGroup with so many pods, all of which must start.
func gangOf(name string, size int, options ...func(*corev1.Pod)) []runtime.Object {
	return fixture.Gang(name, "default", size, size, append([]func(*corev1.Pod){fixture.Labelled("app", name)}, options...)...)
}
