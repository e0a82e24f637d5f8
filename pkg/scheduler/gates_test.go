package scheduler

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
)

const queueGate = schedulingv1beta1.QueueAllocationGateKey

// gatedWorld is a world whose scheduler opens the gates of queue admission, with queue q that may hold so much CPU; "" is any.
func gatedWorld(tb testing.TB, capability string) *world {
	tb.Helper()
	w := &world{tb: tb, now: fixture.Birth.Add(time.Hour), groups: map[cluster.JobID]cluster.GroupStatus{}}
	w.scheduler = New(Options{Cluster: cluster.Options{SchedulerNames: []string{"volcano"}, OpensQueueGates: true}})
	w.use("actions: allocate, backfill\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n" +
		"- plugins:\n  - name: predicates\n  - name: capacity\n")
	queue := fixture.Queue("q")
	if capability != "" {
		queue.Spec.Capability = fixture.List("cpu=" + capability)
	}
	w.apply(queue)
	return w
}

// held is a pod of a job that asks for CPU, and has the gate of queue admission and others.
func held(name, job, cpu string, others ...string) *corev1.Pod {
	pod := fixture.Pod(name, fixture.In(job), fixture.Asks("cpu="+cpu))
	pod.Annotations[queueGate] = "true"
	for _, gate := range append([]string{queueGate}, others...) {
		pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: gate})
	}
	return pod
}

// opened runs a cycle, takes the gates off that it decides to open, and returns of which pods. Of pods that have a gate it may
// say nothing.
func (w *world) opened() []string {
	w.tb.Helper()
	decisions, names := w.cycle(), []string{}
	for _, c := range decisions.Pods {
		if w.scheduler.Cluster().Task(c.Pod).IsHeld() {
			w.tb.Errorf("of pod %s, which is held, is said %q", c.Pod.Name, c.Condition.Message)
		}
	}
	for _, g := range decisions.Gates {
		names = append(names, g.Pod.Name)
		pod := w.scheduler.Cluster().Task(g.Pod).Pod.DeepCopy()
		pod.Spec.SchedulingGates = nil
		pod.Generation++
		w.apply(pod)
	}
	slices.Sort(names)
	return names
}

func (w *world) expectOpened(when string, want ...string) {
	w.tb.Helper()
	if got := w.opened(); !slices.Equal(got, want) {
		w.tb.Errorf("%s: the gates of %v are opened, want %v", when, got, want)
	}
}

func TestPodsAreHeldWhileTheirQueueIsFull(t *testing.T) {
	w := gatedWorld(t, "2")
	w.apply(fixture.Node("n", "cpu=8 memory=8Gi"), fixture.Group("runs", "q", 1),
		fixture.Pod("runs-0", fixture.In("runs"), fixture.Asks("cpu=2"), fixture.On("n")),
		fixture.Group("waits", "q", 1), held("waits-0", "waits", "1"))
	w.expectOpened("the queue is full")
	if reason, _ := w.condition("waits"); reason != "OverCapability" {
		t.Errorf("the job waits for %q", reason)
	}
	w.scheduler.Cluster().Apply(cluster.Delete{Object: w.scheduler.Cluster().Task(fixture.Key("runs-0")).Pod})
	binds := w.cycle().Binds
	if len(binds) != 1 || !binds[0].IsHeld {
		t.Errorf("the queue has room and so has the node: bound is %+v", binds)
	}
}

func TestPodsThatLackNothingButANodeAreSeenByAutoscalers(t *testing.T) {
	w := gatedWorld(t, "8")
	w.apply(fixture.Group("sim", "q", 2), held("sim-0", "sim", "4"), held("sim-1", "sim", "4"))
	w.expectOpened("the cluster is empty", "sim-0", "sim-1")
	decisions := w.cycle()
	if len(decisions.Gates) > 0 {
		t.Errorf("what is open is opened again: %v", decisions.Gates)
	}
	var told []string
	for _, c := range decisions.Pods {
		told = append(told, c.Pod.Name+" "+c.Condition.Reason)
	}
	if slices.Sort(told); !slices.Equal(told, []string{"sim-0 Unschedulable", "sim-1 Unschedulable"}) {
		t.Errorf("said is %v", told)
	}
}

func TestAGangIsHeldOrOpenedAsAWhole(t *testing.T) {
	w := gatedWorld(t, "3")
	gang := fixture.Group("gang", "q", 4)
	w.apply(gang)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.apply(held(name, "gang", "1"))
	}
	w.expectOpened("the queue has room for three of four")
	wider := fixture.Queue("q")
	wider.Spec.Capability = fixture.List("cpu=4")
	wider.Generation++
	w.apply(wider)
	w.expectOpened("it has room for all", "a", "b", "c", "d")
}

func TestNoMorePodsAreOpenedThanTheQueueMayHold(t *testing.T) {
	w := gatedWorld(t, "10")
	w.apply(fixture.Group("first", "q", 1), held("first-0", "first", "6"),
		fixture.Group("second", "q", 1), held("second-0", "second", "6"),
		fixture.Group("third", "q", 1), held("third-0", "third", "4"))
	w.expectOpened("ten of sixteen", "first-0", "third-0")
	w.expectOpened("those that are open wait for nodes, and count")
	w.scheduler.Cluster().Apply(cluster.Delete{Object: w.scheduler.Cluster().Task(fixture.Key("first-0")).Pod})
	w.expectOpened("one of them is gone", "second-0")
}

func TestAnElasticJobIsOpenedAsFarAsItsQueueReaches(t *testing.T) {
	w := gatedWorld(t, "3")
	w.apply(fixture.Group("sim", "q", 1))
	for _, name := range []string{"a", "b", "c", "d"} {
		w.apply(held(name, "sim", "1"))
	}
	if got := w.opened(); len(got) != 3 {
		t.Errorf("opened are %v of four, the queue has room for three", got)
	}
}

func TestOtherGatesAreNotOurs(t *testing.T) {
	w := gatedWorld(t, "")
	w.apply(fixture.Group("sim", "q", 1), held("a", "sim", "1", "example.com/quota"))
	w.expectOpened("somebody else holds it too")
	if reason, _ := w.condition("sim"); reason != "SchedulingGated" {
		t.Errorf("the job waits for %q", reason)
	}
}

func TestWithoutTheFeatureTheGateIsLikeAnyOther(t *testing.T) {
	w := newWorld(t, "", fixture.Node("n", "cpu=8 memory=8Gi"), fixture.Group("sim", "default", 1), held("a", "sim", "1"))
	decisions := w.cycle()
	if len(decisions.Gates)+len(decisions.Binds) > 0 {
		t.Errorf("decided is %+v", decisions)
	}
	if reason, _ := w.condition("sim"); reason != "SchedulingGated" {
		t.Errorf("the job waits for %q", reason)
	}
}

// Whatever comes, no gate is opened beyond what its queue may hold beside all that is open or placed, and no gang is open in parts.
func TestGatesAreOpenedWithinTheQueueForAnyJobs(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := gatedWorld(t, "10")
		if rapid.Bool().Draw(r, "hasNode") {
			w.apply(fixture.Node("n", "cpu=4 memory=8Gi"))
		}
		minimums := map[string]int{}
		for range rapid.IntRange(1, 5).Draw(r, "rounds") {
			name := "job-" + string(rune('a'+len(minimums)))
			minimums[name] = rapid.IntRange(1, 4).Draw(r, "minimum")
			w.apply(fixture.Group(name, "q", int32(minimums[name])))
			for i := range rapid.IntRange(minimums[name], 5).Draw(r, "pods") {
				w.apply(held(name+"-"+string(rune('0'+i)), name, rapid.SampledFrom([]string{"1", "2", "3"}).Draw(r, "cpu")))
			}
			if len(w.opened()) == 0 {
				continue // what others got is not for the gates to decide
			}
			total, open := int64(0), map[string]int{}
			for _, j := range w.scheduler.Cluster().Jobs() {
				for _, task := range j.Tasks() {
					if len(task.Pod.Spec.SchedulingGates) == 0 || task.Status.Counts() {
						total += task.Pod.Spec.Containers[0].Resources.Requests.Cpu().Value()
						open[j.ID.Name]++
					}
				}
			}
			if total > 10 {
				r.Fatalf("open are %d CPUs of 10", total)
			}
			for name, count := range open {
				if count < minimums[name] {
					r.Fatalf("%d pods of %s are open, it needs %d together", count, name, minimums[name])
				}
			}
		}
	})
}

func TestThePodsThatRoomIsMadeForAreOpened(t *testing.T) {
	w := gatedWorld(t, "")
	w.use("actions: allocate, preempt\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n- plugins:\n  - name: predicates\n")
	important := fixture.Group("important", "q", 1)
	important.Spec.PriorityClassName = "high"
	w.apply(fixture.Node("n", "cpu=4 memory=8Gi"), fixture.PriorityClass("high", 1000), fixture.Group("low", "q", 1),
		fixture.Pod("low-0", fixture.In("low"), fixture.Asks("cpu=4"), fixture.On("n"),
			fixture.Annotated(schedulingv1beta1.PreemptableKey, "true")),
		important, held("important-0", "important", "4"))
	decisions := w.cycle()
	if len(decisions.Plans) != 1 || len(decisions.Gates) != 1 || decisions.Gates[0].Pod.Name != "important-0" {
		t.Errorf("planned is %+v, opened %+v", decisions.Plans, decisions.Gates)
	}
}
