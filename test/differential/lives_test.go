package differential

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"hekla.sh/hekla/internal/simulator"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/fixture"
)

// installed is the configuration of a new installation.
var installed = sync.OnceValue(func() string {
	text, err := os.ReadFile("../../installer/configuration.yaml")
	if err != nil {
		panic(err)
	}
	var config corev1.ConfigMap
	if err := yaml.Unmarshal(text, &config); err != nil {
		panic(err)
	}
	return config.Data["volcano-scheduler.conf"]
})

// restartPolicy is what becomes of a gang of which a pod is evicted.
type restartPolicy uint8

const (
	restartsPod       restartPolicy = iota // its controller makes the pod again
	restartsRunning                        // all its pods that have nodes restart
	restartsWhole                          // all its pods begin again
	restartsOnlyTasks                      // all its pods of the same role begin again
)

var restartPolicies = []restartPolicy{restartsRunning, restartsWhole, restartsOnlyTasks}

// live does what controllers do once pods are told to leave.
func (l *run) live() {
	evicted := l.evicted
	l.evicted = nil
	for _, victim := range evicted {
		if now, ok := get(l, &corev1.Pod{}, victim.Name); ok && now.UID == victim.UID && now.DeletionTimestamp == nil {
			continue // it was refused
		}
		group := victim.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]
		policy := l.scenario.policies[group]
		if policy == restartsPod {
			continue
		}
		for _, o := range l.led.Objects() {
			p, ok := o.(*corev1.Pod)
			if !ok || p.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] != group || p.DeletionTimestamp != nil ||
				policy == restartsRunning && p.Spec.NodeName == "" ||
				policy == restartsOnlyTasks && p.Annotations[batchv1alpha1.TaskSpecKey] != victim.Annotations[batchv1alpha1.TaskSpecKey] {
				continue
			}
			l.story = append(l.story, fmt.Sprintf("%d:   pod %s restarts with %s", l.cycles, p.Name, victim.Name))
			l.led.Terminate(p)
			l.vain.ForgetJob(group)
		}
	}
	l.cordon.come(l)
}

// successor is how the controller of a pod makes it again.
func (l *run) successor(gone *corev1.Pod) simulator.Successor {
	how := l.scenario.replaced
	if how.Name != "" {
		l.made++
		base, _, _ := strings.Cut(gone.Name, how.Name)
		how.Name = fmt.Sprintf("%s%s%d", base, how.Name, l.made)
	}
	return how
}

// cordon is a node that is to be cordoned while a plan is in force: a number of cycles after the next plan.
type cordon struct {
	isAwaited bool
	after     int
	node      string
	opensIn   int // cycles after which it may be used again, 0 for never
}

func (c *cordon) observe(d *decision.Decisions) {
	for _, p := range d.Plans {
		if c.isAwaited && c.node == "" && len(p.Evictions) > 0 && len(p.Nominations) > 0 {
			c.node = p.Nominations[0].Node
		}
	}
}

// come cordons the node when its time has come, and opens it again.
func (c *cordon) come(l *run) {
	if c.node == "" {
		return
	}
	set := func(cordoned bool) {
		l.story = append(l.story, fmt.Sprintf("%d: node %s of a plan: cordoned %t", l.cycles, c.node, cordoned))
		l.vain.Forget()
		edit(l, &corev1.Node{}, c.node, func(n *corev1.Node) { n.Spec.Unschedulable = cordoned })
	}
	switch {
	case c.isAwaited && c.after == 0:
		c.isAwaited = false
		set(true)
	case c.isAwaited:
		c.after--
	case c.opensIn > 0:
		if c.opensIn--; c.opensIn == 0 {
			set(false)
		}
	default:
		c.node = ""
	}
}

// cordonSoon cordons a node of the next plan while its victims leave.
func (m *maker) cordonSoon() change {
	after, opensIn := m.oneOfInts(0, 1, 6, 31), m.oneOfInts(0, 2, 40)
	return change{fmt.Sprintf("a node of the next plan is cordoned after %d cycles, for %d", after, opensIn), func(l *run) {
		l.cordon = cordon{isAwaited: true, after: after, opensIn: opensIn}
	}}
}

// close makes a queue begin to close.
func (m *maker) close() change {
	name := m.oneOf(m.queues...)
	return change{"queue " + name + " begins to close", func(l *run) {
		edit(l, &schedulingv1beta1.Queue{}, name, func(q *schedulingv1beta1.Queue) { q.Status.State = schedulingv1beta1.QueueStateClosing })
	}}
}

// When a job restarts whole, its pods of low rank come back first, and pods of high rank evict them. That ends once it
// is known, also for a scheduler that starts now.
func TestAJobThatRestartsEvictsNoMoreOfItsOwn(t *testing.T) {
	low, high := rankedPod{rank: "0", grace: 1}, rankedPod{rank: "5", grace: 20}
	t.Run("pods on nodes leave", func(t *testing.T) {
		runsLow, runsHigh := low, high
		runsLow.node, runsHigh.node = "n1", "n1"
		evictsNoMoreOfItsOwn(t, []runtime.Object{fixture.Queue("q"), fixture.Node("n1", "cpu=2")}, nil, runsLow, low, runsHigh, high)
	})
	// The queue has room for one of the two. No pod but the one that is evicted has a node.
	t.Run("only the pod that room is made for leaves", func(t *testing.T) {
		other := fixture.Pod("other", fixture.Asks("cpu=1"), fixture.On("n2"))
		other.Spec.TerminationGracePeriodSeconds, other.Spec.SchedulerName = new(int64(600)), "other"
		ends := change{"other ends", func(l *run) { l.led.Terminate(other) }}
		low.node, high.zone = "n1", "b"
		evictsNoMoreOfItsOwn(t, []runtime.Object{fixture.Queue("q", fixture.Capped("cpu=1")), fixture.Node("n1", "cpu=1"),
			fixture.Node("n2", "cpu=1", fixture.InZone("b")), other}, []timed{{change: ends}}, low, high)
	})
}

// rankedPod is a pod of a job with ranks.
type rankedPod struct {
	rank  string
	grace int64
	node  string // the node that it runs on, "" if it waits
	zone  string // that it asks for
}

// evictsNoMoreOfItsOwn shows that a job that restarts whole evicts pods of its own twice, and says then that it
// restarts.
func evictsNoMoreOfItsOwn(t *testing.T, objects []runtime.Object, changes []timed, pods ...rankedPod) {
	t.Helper()
	w := &scenario{configuration: configuration{actions: "allocate, preempt, backfill", sharer: "capacity"},
		policies: map[string]restartPolicy{"g": restartsWhole}, replaced: simulator.Successor{Name: "-r", After: 2 * time.Second}, changes: changes}
	w.objects = append([]runtime.Object{ourNamespace(), fixture.Group("g", "q", 0, func(g *schedulingv1beta1.PodGroup) {
		g.Annotations[schedulingv1beta1.PreemptableKey] = "true"
		g.Status.Phase = schedulingv1beta1.PodGroupRunning
	})}, objects...)
	for i, pod := range pods {
		p := fixture.Pod(fmt.Sprintf("g-%d", i), fixture.In("g"), fixture.As("worker", i), fixture.Asks("cpu=1"),
			fixture.Annotated(schedulingv1beta1.TaskPriorityAnnotationKey, pod.rank))
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "g", UID: "job", Controller: new(true)}}
		p.Spec.TerminationGracePeriodSeconds = &pod.grace
		if pod.node != "" {
			fixture.On(pod.node)(p)
		}
		if pod.zone != "" {
			fixture.Selecting("zone", pod.zone)(p)
		}
		w.objects = append(w.objects, p)
	}
	l := lead(w)
	if l.failure != "" {
		t.Fatal(l.tell())
	}
	g, _ := get(l, &schedulingv1beta1.PodGroup{}, "g")
	isSaid := slices.ContainsFunc(g.Status.Conditions, func(c schedulingv1beta1.PodGroupCondition) bool {
		return c.Type == schedulingv1beta1.PodGroupRestartsType
	})
	if l.plans != 2 || !isSaid {
		t.Errorf("%d plans, and that the job restarts is said: %t\n%s", l.plans, isSaid, l.tell())
	}
}

// TestAJobIsAdmittedOnceTheOneThatItMayEvictRuns is about a job that is admitted and not yet known to run. If its pod
// is evicted it still claims what it was admitted with.
func TestAJobIsAdmittedOnceTheOneThatItMayEvictRuns(t *testing.T) {
	leaves := fixture.Pod("leaves", fixture.Asks("cpu=1"), fixture.On("n"), func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: fixture.Birth.Add(70 * time.Minute)}, new(int64(600))
	})
	comes := change{"gang high comes", func(l *run) {
		l.set(fixture.Group("high", "q", 1, fixture.PendingAdmission, fixture.Wanting("cpu=2"), func(g *schedulingv1beta1.PodGroup) {
			g.Spec.PriorityClassName = "high"
		}))
		l.set(fixture.Pod("high-0", fixture.In("high"), fixture.Asks("cpu=1")))
	}}
	l := lead(&scenario{configuration: configuration{actions: "enqueue, allocate, preempt", sharer: "capacity", whole: true}, changes: []timed{{change: comes}},
		objects: []runtime.Object{ourNamespace(), fixture.Queue("q"), fixture.PriorityClass("high", 20), fixture.Node("n", "cpu=2"), leaves,
			fixture.Group("runs", "q", 1), fixture.Pod("runs-0", fixture.In("runs"), fixture.Asks("cpu=1"), fixture.On("n"), marked),
			fixture.Group("low", "q", 1, fixture.Wanting("cpu=1")), fixture.Pod("low-0", fixture.In("low"), fixture.Asks("cpu=1"), marked),
		}})
	if l.failure != "" {
		t.Fatal(l.tell())
	}
	if !slices.ContainsFunc(l.story, func(line string) bool { return strings.Contains(line, "let in high") }) {
		t.Errorf("the gang is not admitted\n%s", l.tell())
	}
}
