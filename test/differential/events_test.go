package differential

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/test/fixture"
)

// event is one thing that happens, and a state in which the pod preemptor-0 finds its place by that alone.
type event struct {
	kind   string // of the object, as the watches of the edge name it; "" if it is none
	causes []wake.Cause
	// objects are there besides the situation; they replace those of the same kind and name.
	objects []runtime.Object
	happens func(*run)

	plugins    []string
	sharer     string
	tree       bool // queues form one
	actions    string
	never      bool        // whole gangs may not go
	situations []situation // all, if it names none
}

// situation is a place where the preemptor could be.
type situation string

// The situations: there is room; a pod of lower priority fills the only node; nodes are in HyperNodes. Two HyperNodes
// are full. The third has a victim, and lacks only what the event brings.
const (
	free        situation = "there is room"
	full        situation = "room is made"
	inHyperNode situation = "room is made in one HyperNode of several"
)

// set makes the objects of a situation with those of an event in their place.
func (s situation) objects(e event) []runtime.Object {
	all := []runtime.Object{fixture.PriorityClass("low", 0), fixture.PriorityClass("high", 20), fixture.Queue("q"),
		fixture.Node("n1", "cpu=1"), ourNamespace(), gangOf("preemptor", "high", 1), fixture.Pod("preemptor-0", fixture.In("preemptor"))}
	if s != free {
		all = append(all, gangOf("victim", "low", 0), fixture.Pod("victim-0", fixture.In("victim"), fixture.On("n1"),
			fixture.Annotated(schedulingv1beta1.PreemptableKey, "true"), aLongEnd))
	}
	if s == inHyperNode {
		all = append(all, fixture.Node("n0", "cpu=1"), fixture.Node("n2", "cpu=1"), fixture.HyperNode("h0", 1, "n0"), fixture.HyperNode("h1", 1, "n1"),
			fixture.HyperNode("h2", 1, "n2"))
		for _, n := range []string{"n0", "n2"} {
			all = append(all, fixture.Pod("fixed-"+n, fixture.In("fixed"), fixture.On(n)))
		}
		all = append(all, gangOf("fixed", "high", 0))
	}
	for _, o := range e.objects {
		at := slices.IndexFunc(all, func(other runtime.Object) bool { return nameOf(other) == nameOf(o) })
		if at >= 0 {
			all[at] = o
		} else {
			all = append(all, o)
		}
	}
	if s == inHyperNode {
		for _, o := range all {
			if g, ok := o.(*schedulingv1beta1.PodGroup); ok && g.Name == "preemptor" {
				fixture.Within(1)(g)
			}
		}
	}
	return all
}

func nameOf(o runtime.Object) string {
	return strings.Fields(told(o))[0] + " " + o.(metav1.Object).GetNamespace() + "/" + o.(metav1.Object).GetName()
}

func ourNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Namespace, UID: "work-uid"}}
}

func aLongEnd(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = new(int64(100)) }

func gangOf(name, class string, least int32, options ...func(*schedulingv1beta1.PodGroup)) *schedulingv1beta1.PodGroup {
	return fixture.Group(name, "q", least, append([]func(*schedulingv1beta1.PodGroup){func(g *schedulingv1beta1.PodGroup) {
		g.Spec.PriorityClassName = class
	}}, options...)...)
}

// run plays an event on a situation: was is whether the preemptor had its place before, is whether it has it after.
func (e event) run(t *testing.T, s situation, overlook func(wake.Cause) bool) (was, is bool, l *run) {
	t.Helper()
	c := configuration{actions: e.actions, plugins: e.plugins, sharer: e.sharer, tree: e.tree, whole: !e.never}
	if c.actions == "" {
		c.actions = actionLists[0]
	}
	if s == inHyperNode {
		c.plugins = append(slices.Clone(c.plugins), "network-topology-aware")
	}
	l = begin(&scenario{configuration: c, objects: s.objects(e), overlook: overlook})
	has := func() bool {
		p, ok := get(l, &corev1.Pod{}, "preemptor-0")
		return ok && (p.Spec.NodeName != "" || p.Status.NominatedNodeName != "")
	}
	for range 5 {
		l.cycle()
	}
	was = has()
	e.happens(l)
	for range 8 {
		l.cycle()
	}
	if l.failure != "" {
		t.Fatal(l.failure)
	}
	return was, has(), l
}

// Each kind of event alone lets the preemptor start, in every situation in which it can happen. The named causes are
// the reason: without them the preemptor is not woken.
func TestEveryKindOfEventWakes(t *testing.T) {
	for name, test := range events() {
		situations := test.situations
		if situations == nil {
			situations = []situation{free, full, inHyperNode}
		}
		for _, s := range situations {
			t.Run(name+"/"+string(s), func(t *testing.T) {
				was, is, l := test.run(t, s, nil)
				if was || !is {
					t.Fatalf("the preemptor has its place before: %t, after: %t\n%s", was, is, l.tell())
				}
				if len(test.causes) == 0 {
					return // the job itself has changed, or the rules have
				}
				if _, is, l := test.run(t, s, func(c wake.Cause) bool {
					return c == wake.RoomCounted || c == wake.StockCounted || slices.Contains(test.causes, c)
				}); is {
					t.Errorf("the preemptor has its place though the causes are overlooked\n%s", l.tell())
				}
			})
		}
	}
}

// Whatever the edge watches has a row: what is not watched cannot wake.
func TestEveryKindThatIsWatchedIsTried(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../internal/edge/intake/inbox.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	// Templates of claims are read for pods of Workloads alone: test/cohorts has the row.
	tried := map[string]bool{"resourceclaimtemplates": true}
	for _, e := range events() {
		tried[e.kind] = true
	}
	watched := 0
	ast.Inspect(file, func(n ast.Node) bool {
		// The kinds are the keys of maps of informers, and what is added to them.
		var key ast.Expr
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if call, ok := n.Value.(*ast.CallExpr); ok && isInformer(call) {
				key = n.Key
			}
		case *ast.AssignStmt:
			index, isIndex := n.Lhs[0].(*ast.IndexExpr)
			if call, ok := n.Rhs[0].(*ast.CallExpr); ok && isIndex && isInformer(call) {
				key = index.Index
			}
		}
		if literal, ok := key.(*ast.BasicLit); ok {
			watched++
			if kind := strings.Trim(literal.Value, `"`); !tried[kind] {
				t.Errorf("no event of %s is tried", kind)
			}
		}
		return true
	})
	if watched < 18 {
		t.Errorf("only %d kinds are found to be watched", watched)
	}
}

func isInformer(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && selector.Sel.Name == "Informer"
}

// alter is an event that changes an object.
func alter[T interface {
	runtime.Object
	DeepCopyObject() runtime.Object
}](specimen T, name string, how func(T)) func(*run) {
	return func(l *run) { edit(l, specimen, name, how) }
}

// come is an event in which an object comes, or is as given.
func come(objects ...runtime.Object) func(*run) {
	return func(l *run) {
		for _, o := range objects {
			l.set(o)
		}
	}
}

// leave is an event in which an object goes.
func leave[T runtime.Object](specimen T, name string) func(*run) {
	return func(l *run) { drop(l, specimen, name) }
}
