package eviction_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// everything is a configuration with preemption on all levels, by the shares of the queues' specs.
var everything = loop.Evicting("overcommit\n    arguments: {overcommit-factor: 1.0}", "predicates", "capacity")

// with returns a configuration in which parts are replaced.
func with(configuration string, replacements ...string) string {
	return strings.NewReplacer(replacements...).Replace(configuration)
}

// start returns a scheduler with a configuration, and with the PriorityClasses low, mid and high.
func start(tb testing.TB, configuration string, extensions ...scheduler.Extension) *loop.Loop {
	tb.Helper()
	return loop.New(tb, configuration, extensions...).
		Set(fixture.PriorityClass("low", 10), fixture.PriorityClass("mid", 50), fixture.PriorityClass("high", 100))
}

// protected returns what the verdict of a waiting job says about pods that may not be evicted.
func protected(l *loop.Loop, job string) string {
	_, after, _ := strings.Cut(l.Why(job), "cannot be evicted for it: ")
	return after
}

// option changes an object of a job: its PodGroup or one of its pods.
type option func(group *schedulingv1beta1.PodGroup, pod *corev1.Pod)

// job is a PodGroup with a PriorityClass in a queue, and its pods, given by their nodes, "-" for a pending one. Each
// requests one cpu and is marked preemptable, unless options change that.
func job(name, queue, class string, minimum int, pods string, options ...option) []runtime.Object {
	group := fixture.Group(name, queue, int32(minimum))
	group.Spec.PriorityClassName = class
	objects := []runtime.Object{group}
	for i, node := range strings.Fields(pods) {
		pod := fixture.Pod(fmt.Sprintf("%s-%d", name, i), fixture.In(name), fixture.As("worker", i))
		pod.Annotations[schedulingv1beta1.PreemptableKey] = "true"
		if node != "-" {
			fixture.On(node)(pod)
			group.Status.Phase = schedulingv1beta1.PodGroupRunning
		}
		objects = append(objects, pod)
	}
	for _, option := range options {
		option(group, nil)
		for _, object := range objects[1:] {
			option(group, object.(*corev1.Pod))
		}
	}
	return objects
}

// each applies an option of pods to all of them.
func each(change func(*corev1.Pod)) option {
	return func(_ *schedulingv1beta1.PodGroup, pod *corev1.Pod) {
		if pod != nil {
			change(pod)
		}
	}
}

// one applies an option for pods to one of them.
func one(index int, change func(*corev1.Pod)) option {
	suffix := fmt.Sprintf("-%d", index)
	return each(func(p *corev1.Pod) {
		if strings.HasSuffix(p.Name, suffix) {
			change(p)
		}
	})
}

func asking(text string) option { return each(fixture.Asks(text)) }

func unmarked(p *corev1.Pod) { delete(p.Annotations, schedulingv1beta1.PreemptableKey) }

// ranking sets the task priority of a pod.
func ranking(value string) func(*corev1.Pod) {
	return fixture.Annotated(schedulingv1beta1.TaskPriorityAnnotationKey, value)
}

func startedAt(minute int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		start := metav1.NewTime(fixture.Birth.Add(time.Duration(minute) * time.Minute))
		p.Status.StartTime = &start
	}
}

// lone makes the PodGroup that of a lone pod.
func lone(group *schedulingv1beta1.PodGroup, _ *corev1.Pod) {
	yes := true
	group.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: group.Name + "-0", Controller: &yes}}
}

func roles(minimums map[string]int32) option {
	return func(group *schedulingv1beta1.PodGroup, _ *corev1.Pod) { group.Spec.MinTaskMember = minimums }
}

// queue is an open queue. The amounts may be "".
func queue(name string, priority int32, deserved, guarantee, capability string, options ...func(*schedulingv1beta1.Queue)) *schedulingv1beta1.Queue {
	q := fixture.Queue(name, options...)
	q.Spec.Priority = priority
	if deserved != "" {
		q.Spec.Deserved = fixture.List(deserved)
	}
	if guarantee != "" {
		q.Spec.Guarantee.Resource = fixture.List(guarantee)
	}
	if capability != "" {
		q.Spec.Capability = fixture.List(capability)
	}
	return q
}

func nodes(amounts string, names ...string) []runtime.Object {
	var objects []runtime.Object
	for _, name := range names {
		objects = append(objects, fixture.Node(name, amounts))
	}
	return objects
}

// vetoer is a plugin that vetoes a node.
type vetoer struct{ node string }

func (*vetoer) Name() string { return "vetoer" }
func (v *vetoer) VetoNode(_ *cluster.Task, n *cluster.Node) string {
	if n.Name == v.node {
		return "node(s) were vetoed"
	}
	return ""
}

func vetoing(node string) scheduler.Extension {
	return scheduler.WithPlugin(framework.PluginFactory{Name: "vetoer",
		New: func(conf.Switches, conf.Arguments) (framework.Plugin, error) { return &vetoer{node: node}, nil }})
}
