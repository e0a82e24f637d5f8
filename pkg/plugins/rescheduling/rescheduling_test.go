package rescheduling_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/plugins/predicates"
	"hekla.sh/hekla/pkg/plugins/rescheduling"
	"hekla.sh/hekla/pkg/plugins/usage"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
)

var noon = fixture.Birth.Add(12 * time.Hour)

// moderate is what most tests configure: nodes up to 30% are low, those above 70% high.
const moderate = "strategies: [{name: lowNodeUtilization, params: {thresholds: {cpu: 30}, targetThresholds: {cpu: 70}}}]"

// moving is a model with the plugin, and others that say where pods go.
func moving(tb testing.TB, arguments string, objects ...runtime.Object) *harness.Model {
	tb.Helper()
	m := harness.ForPlugins(tb, harness.Entry{Factory: rescheduling.Factory(), Arguments: arguments}, harness.Entry{Factory: usage.Factory()},
		harness.Entry{Factory: predicates.Factory()}).Placing()
	// The root as it is in a cluster: no queue is outside of it.
	root := fixture.Queue(schedulingv1beta1.RootQueue, func(q *schedulingv1beta1.Queue) { q.Spec.Reclaimable = new(bool) })
	return m.Set(root, fixture.Queue("q"), fixture.Group("g", "q", 1)).Set(objects)
}

// measured shows the CPU load of nodes, "a=90 b=10".
func measured(m *harness.Model, at time.Time, nodes string) *harness.Model {
	for _, word := range strings.Fields(nodes) {
		name, load, _ := strings.Cut(word, "=")
		var cpu float64
		if _, err := fmt.Sscan(load, &cpu); err != nil {
			panic(err)
		}
		m.Measure(name, at, cpu, 0)
	}
	return m
}

// chosen are the pods that are named at a time.
func chosen(m *harness.Model, at time.Time) string {
	var names []string
	for _, c := range m.OpenAt(at).ChooseVictims() {
		names = append(names, c.Task.Pod.Name)
	}
	if m.Check().Mark() != 0 {
		panic("the model is not as it was")
	}
	return strings.Join(names, " ")
}

// pod is one that runs on a node for long, may be evicted, and would be made again.
func pod(name, node string, options ...func(*corev1.Pod)) *corev1.Pod {
	isController := true
	standard := []func(*corev1.Pod){fixture.In("g"), fixture.On(node), fixture.Asks("cpu=2"),
		fixture.Annotated(schedulingv1beta1.PreemptableKey, "true"), func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch.volcano.sh/v1alpha1", Kind: "Job", Name: "g", UID: "g", Controller: &isController}}
			start := metav1.NewTime(noon.Add(-time.Hour))
			p.Status.StartTime = &start
		}}
	return fixture.Pod(name, append(standard, options...)...)
}

func started(at time.Time) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		start := metav1.NewTime(at)
		p.Status.StartTime = &start
	}
}

var twoNodes = []runtime.Object{fixture.Node("a", "cpu=8 memory=8Gi"), fixture.Node("b", "cpu=8 memory=8Gi"), pod("p1", "a"), pod("p2", "a")}

func TestPodsLeaveABusyNodeUntilItIsAtTheTarget(t *testing.T) {
	three := append([]runtime.Object{pod("p3", "a"), fixture.Node("c", "cpu=8 memory=8Gi")}, twoNodes...)
	for name, test := range map[string]struct {
		arguments, loads string
		objects          []runtime.Object
		want             string
	}{
		"one is enough":                     {moderate, "a=90 b=10", twoNodes, "p1"},
		"one is not enough":                 {moderate, "a=99 b=10", three, "p1 p2"},
		"at the target":                     {moderate, "a=70 b=10", twoNodes, ""},
		"no node is low":                    {moderate, "a=90 b=31", twoNodes, ""},
		"the low one is not known":          {moderate, "a=90", twoNodes, ""},
		"the high one is not known":         {moderate, "b=10", twoNodes, ""},
		"only as much as the low one takes": {"strategies: [{name: lowNodeUtilization, params: {thresholds: {cpu: 30}, targetThresholds: {cpu: 40}}}]", "a=99 b=10", three, "p1"},
		"by default nothing moves":          {"", "a=100 b=0", twoNodes, ""},
		"too few nodes are low":             {"strategies: [{name: lowNodeUtilization, params: {thresholds: {cpu: 30}, targetThresholds: {cpu: 70}, numberOfNodes: 1}}]", "a=90 b=10", twoNodes, ""},
		"too many pods": {"strategies: [{name: lowNodeUtilization, params: {thresholds: {pods: 30}, targetThresholds: {pods: 60}}}]", "a=20 b=10",
			[]runtime.Object{fixture.Node("a", "cpu=8 pods=3"), fixture.Node("b", "cpu=8 pods=3"), pod("p1", "a"), pod("p2", "a")}, "p1"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := chosen(measured(moving(t, test.arguments, test.objects...), noon, test.loads), noon); got != test.want {
				t.Errorf("named are %q, want %q", got, test.want)
			}
		})
	}
}

func TestOnlyAPodThatIsBetterOffElsewhereLeaves(t *testing.T) {
	queue := func(edit func(*schedulingv1beta1.Queue)) runtime.Object { return fixture.Queue("q", edit) }
	no := false
	for name, test := range map[string]struct {
		option func(*corev1.Pod)
		more   []runtime.Object
	}{
		"it is not marked":             {func(p *corev1.Pod) { delete(p.Annotations, schedulingv1beta1.PreemptableKey) }, nil},
		"its mark says no":             {fixture.Annotated(schedulingv1beta1.PreemptableKey, "false"), nil},
		"it is on its way out":         {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }, nil},
		"it is critical":               {fixture.WithPriority(2_000_000_000), nil},
		"nobody would make it again":   {func(p *corev1.Pod) { p.OwnerReferences = nil }, nil},
		"it has just started":          {started(noon.Add(-time.Minute)), nil},
		"it may go to no other node":   {fixture.Selecting(corev1.LabelHostname, "a"), nil},
		"it is too large":              {fixture.Asks("cpu=7"), nil},
		"its queue is closed":          {nil, []runtime.Object{queue(func(q *schedulingv1beta1.Queue) { q.Status.State = schedulingv1beta1.QueueStateClosed })}},
		"its queue is not reclaimable": {nil, []runtime.Object{queue(func(q *schedulingv1beta1.Queue) { q.Spec.Reclaimable = &no })}},
		"a queue above is not reclaimable": {nil, []runtime.Object{
			fixture.Queue("above", func(q *schedulingv1beta1.Queue) { q.Spec.Reclaimable = &no }),
			queue(func(q *schedulingv1beta1.Queue) { q.Spec.Parent = "above" })}},
		"its gang needs it":              {nil, []runtime.Object{fixture.Group("g", "q", 2), pod("member", "c")}},
		"its disruption budget is spent": {fixture.Labelled("app", "x"), []runtime.Object{budget(0)}},
		"another pod waits for the room": {nil, []runtime.Object{fixture.Group("w", "q", 1), fixture.Pod("waits", fixture.In("w"), fixture.Selecting(corev1.LabelHostname, "b"))}},
		"the other node is cordoned":     {nil, []runtime.Object{fixture.Node("b", "cpu=8", func(n *corev1.Node) { n.Spec.Unschedulable = true })}},
		"the other node keeps it off": {nil, []runtime.Object{fixture.Node("b", "cpu=8", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}
		})}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{fixture.Node("a", "cpu=8 memory=8Gi"), fixture.Node("b", "cpu=8 memory=8Gi")}
			option := test.option
			if option == nil {
				option = func(*corev1.Pod) {}
			}
			objects = append(append(objects, pod("p", "a", option)), test.more...)
			if got := chosen(measured(moving(t, moderate, objects...), noon, "a=90 b=10"), noon); got != "" {
				t.Errorf("named is %s", got)
			}
		})
	}
	// That without any of this it does leave.
	if got := chosen(measured(moving(t, moderate, twoNodes[0], twoNodes[1], pod("p", "a")), noon, "a=90 b=10"), noon); got != "p" {
		t.Errorf("named is %q", got)
	}
}

func budget(left int32) *policyv1.PodDisruptionBudget {
	one := intstr.FromInt32(1)
	return &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: "budget", UID: "budget"},
		Spec:   policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}},
		Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: left}}
}

func TestThePodsThatMatterLeastLeaveFirst(t *testing.T) {
	guaranteed := func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = fixture.List("cpu=2 memory=1Gi")
		p.Spec.Containers[0].Resources.Requests = fixture.List("cpu=2 memory=1Gi")
	}
	for name, test := range map[string]struct {
		first, second func(*corev1.Pod)
	}{
		"of lower priority":   {fixture.WithPriority(1), fixture.WithPriority(2)},
		"promised less":       {func(*corev1.Pod) {}, guaranteed},
		"started later":       {started(noon.Add(-time.Hour)), started(noon.Add(-2 * time.Hour))},
		"below the threshold": {fixture.WithPriority(9), fixture.WithPriority(10)},
	} {
		t.Run(name, func(t *testing.T) {
			s := moving(t, strings.Replace(moderate, "params: {", "params: {thresholdPriority: 10, ", 1),
				twoNodes[0], twoNodes[1], pod("first", "a", test.first), pod("second", "a", test.second))
			if got := chosen(measured(s, noon, "a=90 b=10"), noon); got != "first" {
				t.Errorf("named are %q", got)
			}
		})
	}
}

func TestAPriorityClassSaysWhoStays(t *testing.T) {
	arguments := strings.Replace(moderate, "params: {", "params: {thresholdPriorityClassName: important, ", 1)
	for name, test := range map[string]struct {
		more []runtime.Object
		want string
	}{
		"whose class is below it": {[]runtime.Object{fixture.PriorityClass("important", 11)}, "p"},
		"whose class is the same": {[]runtime.Object{fixture.PriorityClass("important", 10)}, ""},
		"where nobody knows it":   {nil, ""},
	} {
		s := moving(t, arguments, append(test.more, twoNodes[0], twoNodes[1], pod("p", "a", fixture.WithPriority(10)))...)
		if got := chosen(measured(s, noon, "a=90 b=10"), noon); got != test.want {
			t.Errorf("%s: named are %q, want %q", name, got, test.want)
		}
	}
}

// A pod that was moved runs elsewhere, and none is moved after it: for a while since nothing shows of it in the loads
// yet, and then because nothing is high.
func TestAPodThatWasMovedIsNotMovedAgain(t *testing.T) {
	s := measured(moving(t, moderate, twoNodes...), noon, "a=90 b=10")
	if got := chosen(s, noon); got != "p1" {
		t.Fatalf("named are %q", got)
	}
	if want := noon.Add(5 * time.Minute); !s.Policy.WakeAt().Equal(want) {
		t.Errorf("the next round is at %v, want %v", s.Policy.WakeAt(), want)
	}
	if got := chosen(s, noon.Add(time.Minute)); got != "" {
		t.Errorf("within the interval %s is named", got)
	}
	again := pod("p1", "b", started(noon.Add(time.Minute)))
	again.UID = "again"
	s.Apply(cache.Delete{Object: twoNodes[2]}, cache.Set{Object: again})
	for i := 1; i <= 20; i++ {
		at := noon.Add(time.Duration(i) * 5 * time.Minute)
		if got := chosen(measured(s, at, "a=65 b=35"), at); got != "" {
			t.Fatalf("in round %d %s is named", i, got)
		}
	}
}

// The loads are averages: after a move the node that lost a pod is measured as busy as before for a while, and the
// other as idle.
func TestNothingMoreIsTakenWhileTheLoadsAreOld(t *testing.T) {
	s := moving(t, moderate+"\nmetricsPeriod: 10m", append([]runtime.Object{fixture.Node("c", "cpu=8"), pod("p3", "c")}, twoNodes...)...)
	if got := chosen(measured(s, noon, "a=90 b=10 c=60"), noon); got != "p1" {
		t.Fatalf("named are %q", got)
	}
	s.Apply(cache.Delete{Object: twoNodes[2]})
	at := noon.Add(5 * time.Minute)
	if got := chosen(measured(s, at, "a=90 b=10 c=60"), at); got != "" {
		t.Errorf("%s is named, though a has lost one", got)
	}
	// 10% and the 25% that were meant for it are above the 30% of a low node.
	if got := chosen(measured(s, at, "a=60 b=10 c=95"), at.Add(5*time.Minute-1)); got != "" {
		t.Errorf("%s is named, though b is to take one", got)
	}
	at = noon.Add(20 * time.Minute)
	if got := chosen(measured(s, at, "a=90 b=10 c=60"), at); got != "p2" {
		t.Errorf("named are %q, once what has moved shows", got)
	}
}

func TestArgumentsOfAnotherFormAreRefused(t *testing.T) {
	params := func(text string) string { return "strategies: [{name: lowNodeUtilization, params: {" + text + "}}]" }
	for arguments, want := range map[string]string{
		"interval: 0s":                                                "interval is",
		"strategies: []":                                              "a list of strategies, each with its name",
		"strategies: lowNodeUtilization":                              "a list of strategies, each with its name",
		"strategies: [lowNodeUtilization]":                            "number 1 is none",
		"strategies: [{name: offlineOnly}]":                           "the name of number 1 is lowNodeUtilization, not offlineOnly",
		"strategies: [{name: lowNodeUtilization, parameters: {}}]":    "strategy number 1 has no key parameters; known are name, params",
		params("thresholds: 20"):                                      "thresholds is a mapping, not 20",
		params("thresholds: {cpu: 101}"):                              "cpu of thresholds is a number from 0 to 100, not 101",
		params("thresholds: {mem: 10}"):                               "thresholds has no key mem; known are cpu, memory, pods",
		params("targetThresholds: {cpu: 50}"):                         "the cpu of thresholds is at most that of targetThresholds",
		params("nodeFit: false"):                                      "nodeFit is true, not false",
		params("numberOfNodes: -1"):                                   "numberOfNodes is a whole number of at least 0, not -1",
		params("thresholdPriority: high"):                             "thresholdPriority is a whole number, not high",
		params("thresholdPriorityClassName: 7"):                       "is the name of a PriorityClass, not 7",
		params("thresholdPriority: 1, thresholdPriorityClassName: x"): "not both given",
		params("evictableNamespaces: {}"):                             "params has no key evictableNamespaces",
	} {
		_, err := conf.ParseArguments([]byte(arguments), rescheduling.Factory().Spec)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", arguments, err, want)
		}
	}
}
