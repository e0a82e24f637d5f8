package eviction_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
)

// everything is a configuration in which all levels may make room, by written shares.
const everything = `
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
    arguments: {overcommit-factor: 1.0}
  - name: predicates
  - name: capacity
`

// with returns a configuration with something else in place of a part of it.
func with(configuration string, replacements ...string) string {
	return strings.NewReplacer(replacements...).Replace(configuration)
}

// world is a scheduler in front of a make-believe cluster: what it binds runs at once, what it evicts leaves when told to.
type world struct {
	*scheduler.Scheduler
	tb         testing.TB
	extensions []scheduler.Extension
	now        time.Time
	decided    decision.Decisions // in the last cycle
}

// newWorld returns a world with a configuration. The queue default exists, and PriorityClasses low, mid and high.
func newWorld(tb testing.TB, configuration string, extensions ...scheduler.Extension) *world {
	tb.Helper()
	w := &world{tb: tb, extensions: extensions, now: fixture.Birth.Add(time.Hour)}
	w.Scheduler = scheduler.New(scheduler.Options{Cluster: cluster.Options{SchedulerNames: []string{"volcano"}}})
	w.use(configuration)
	return w.set(fixture.Queue("default"), fixture.PriorityClass("low", 10), fixture.PriorityClass("mid", 50), fixture.PriorityClass("high", 100))
}

func (w *world) use(configuration string) {
	w.tb.Helper()
	registry := scheduler.NewRegistry(w.extensions...)
	parsed, err := conf.Parse([]byte(configuration), registry.Catalogue())
	if err != nil {
		w.tb.Fatal(err)
	}
	policy, err := registry.Build(parsed)
	if err != nil {
		w.tb.Fatal(err)
	}
	if err := w.Use(policy); err != nil {
		w.tb.Fatal(err)
	}
}

// set shows objects to the scheduler, each an object or a list of them.
func (w *world) set(things ...any) *world {
	w.tb.Helper()
	for _, thing := range things {
		switch thing := thing.(type) {
		case runtime.Object:
			w.Cluster().Apply(cluster.Set{Object: thing})
		case []runtime.Object:
			for _, object := range thing {
				w.Cluster().Apply(cluster.Set{Object: object})
			}
		default:
			w.tb.Fatalf("a world cannot hold a %T", thing)
		}
	}
	return w
}

func (w *world) remove(object runtime.Object) *world {
	w.Cluster().Apply(cluster.Delete{Object: object})
	return w
}

// cycle runs a cycle one second after the one before, audits the model, and returns what was decided, see tell.
func (w *world) cycle() string {
	w.tb.Helper()
	return w.cycleAfter(time.Second)
}

func (w *world) cycleAfter(pause time.Duration) string {
	w.tb.Helper()
	w.now = w.now.Add(pause)
	result := w.Cycle(w.now, nil)
	if result.Panic != "" {
		w.tb.Fatal(result.Panic)
	}
	for _, problem := range w.Cluster().Audit() {
		w.tb.Errorf("audit: %s", problem)
	}
	w.decided = result.Decisions
	return tell(&w.decided)
}

// expect runs a cycle that must decide just this.
func (w *world) expect(want string) *world {
	w.tb.Helper()
	if got := w.cycle(); got != want {
		w.tb.Errorf("the cycle decides\n\t%s\nshould\n\t%s", got, want)
	}
	return w
}

// tell says what was decided of pods: "v-0 leaves n1 for t by J1" of each victim, "t-0 is promised n1", "t-0 goes to n1",
// "the plan of t ends: why, v-0 stays, t-0 waits".
func tell(d *decision.Decisions) string {
	var said []string
	say := func(format string, arguments ...any) { said = append(said, fmt.Sprintf(format, arguments...)) }
	for _, b := range d.Binds {
		say("%s goes to %s", b.Pod.Name, b.Node)
	}
	for _, p := range d.Ended {
		text := fmt.Sprintf("the plan of %s ends: %s", p.Job.Name, p.Why)
		for _, s := range p.Spared {
			text += ", " + s.Pod.Name + " stays"
		}
		for _, n := range p.Nominations {
			text += ", " + n.Pod.Name + " waits"
		}
		said = append(said, text)
	}
	for _, p := range d.Plans {
		for _, e := range p.Evictions {
			past := ""
			if e.PastBudget {
				past = " past its budget"
			}
			say("%s leaves %s for %s by %s%s", e.Pod.Name, e.Node, e.For.Name, e.Law, past)
		}
		for _, n := range p.Nominations {
			say("%s is promised %s", n.Pod.Name, n.Node)
		}
	}
	return strings.Join(said, "; ")
}

func (w *world) pod(name string) *corev1.Pod {
	w.tb.Helper()
	t := w.Cluster().Task(fixture.Key(name))
	if t == nil {
		w.tb.Fatalf("there is no pod %s", name)
	}
	return t.Pod.DeepCopy()
}

// leave has pods being deleted, with thirty seconds to end.
func (w *world) leave(names ...string) *world {
	w.tb.Helper()
	for _, name := range names {
		p := w.pod(name)
		stamp := metav1.NewTime(w.now.Add(30 * time.Second))
		p.DeletionTimestamp = &stamp
		w.set(p)
	}
	return w
}

// die has pods gone.
func (w *world) die(names ...string) *world {
	w.tb.Helper()
	for _, name := range names {
		w.remove(w.pod(name))
	}
	return w
}

// run has pods that were bound running.
func (w *world) run() *world {
	w.tb.Helper()
	for _, b := range w.decided.Binds {
		p := w.pod(b.Pod.Name)
		p.Spec.NodeName, p.Status.Phase = b.Node, corev1.PodRunning
		w.set(p)
	}
	return w
}

// why is what is said of a job that waits.
func (w *world) why(job string) string {
	w.tb.Helper()
	j := w.Cluster().Job(fixture.Key(job))
	if j == nil {
		w.tb.Fatalf("there is no job %s", job)
	}
	if j.Verdict == nil {
		return ""
	}
	return string(j.Verdict.Code) + ": " + j.Verdict.Sentence()
}

// spared is what of why is about pods that may not leave.
func (w *world) spared(job string) string {
	w.tb.Helper()
	_, after, _ := strings.Cut(w.why(job), "cannot be evicted for it: ")
	return after
}

// option changes an object of a job: its PodGroup or one of its pods.
type option func(group *schedulingv1beta1.PodGroup, pod *corev1.Pod)

// job is a PodGroup of a class in a queue with its pods, each named by where it runs, "-" if it waits. All ask for one cpu and
// are marked preemptable, unless options say otherwise.
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

// one applies an option of pods to one of them.
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

// ranking is the pod's task priority.
func ranking(value string) func(*corev1.Pod) {
	return fixture.Annotated(schedulingv1beta1.TaskPriorityAnnotationKey, value)
}

func startedAt(minute int) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		start := metav1.NewTime(fixture.Birth.Add(time.Duration(minute) * time.Minute))
		p.Status.StartTime = &start
	}
}

// lone makes the PodGroup one of a pod alone.
func lone(group *schedulingv1beta1.PodGroup, _ *corev1.Pod) {
	yes := true
	group.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: group.Name + "-0", Controller: &yes}}
}

func roles(minimums map[string]int32) option {
	return func(group *schedulingv1beta1.PodGroup, _ *corev1.Pod) { group.Spec.MinTaskMember = minimums }
}

// queue is an open queue; the amounts may be "".
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

func budget(name, label string, allowed int32) *policyv1.PodDisruptionBudget {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: name, UID: types.UID(name)}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": label}}
	b.Status.DisruptionsAllowed = allowed
	return b
}

func nodes(amounts string, names ...string) []runtime.Object {
	var objects []runtime.Object
	for _, name := range names {
		objects = append(objects, fixture.Node(name, amounts))
	}
	return objects
}

// dump is what the model holds of nodes, queues and jobs.
func (w *world) dump() string {
	var b strings.Builder
	c := w.Cluster()
	for _, n := range c.Nodes() {
		fmt.Fprintf(&b, "node %s used %v releasing %v promised %v\n", n.Name, n.Used, n.Releasing, n.Promised)
	}
	for _, q := range c.Queues() {
		fmt.Fprintf(&b, "queue %s %v %v\n", q.Name, q.Own, q.Subtree)
	}
	for _, j := range c.Jobs() {
		fmt.Fprintf(&b, "job %s %s %v plan %v\n", j.ID.Name, j.Phase, j.Usage, j.Plan)
		for _, t := range j.Tasks() {
			node := ""
			if t.Node != nil {
				node = t.Node.Name
			}
			fmt.Fprintf(&b, "  %s %s %s\n", t.Pod.Name, t.Status, node)
		}
	}
	return b.String()
}

// vetoer is a plugin that refuses a node whenever it would be chosen.
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
