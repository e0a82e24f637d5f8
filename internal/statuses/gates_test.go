package statuses_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness"
	"hekla.sh/hekla/test/harness/loop"
)

const queueGate = schedulingv1beta1.QueueAllocationGateKey

// gated is a scheduler that opens the gates of queues, with a queue q of a capability in CPUs, "" for none.
func gated(tb harness.TB, capability string) *loop.Loop {
	options := harness.ClusterOptions()
	options.OpensQueueGates = true
	queue := fixture.Queue("q")
	if capability != "" {
		queue.Spec.Capability = fixture.List("cpu=" + capability)
	}
	return loop.NewWith(tb, options, "actions: allocate, backfill\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n"+
		"- plugins:\n  - name: predicates\n  - name: capacity\n").Set(queue)
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

// opened runs a cycle, takes the gates off that it decides to open, and returns of which pods. Of pods that have a gate
// it may say nothing.
func opened(tb testing.TB, w *loop.Loop) []string {
	tb.Helper()
	decisions, names := w.Cycle(), []string{}
	for _, c := range decisions.Pods {
		if w.Task(c.Pod).IsHeld() {
			tb.Errorf("of pod %s, which is held, is said %q", c.Pod.Name, c.Condition.Message)
		}
	}
	for _, g := range decisions.Gates {
		names = append(names, g.Pod.Name)
		pod := w.Task(g.Pod).Pod.DeepCopy()
		pod.Spec.SchedulingGates = nil
		pod.Generation++
		w.Set(pod)
	}
	slices.Sort(names)
	return names
}

func expectOpened(tb testing.TB, w *loop.Loop, when string, want ...string) {
	tb.Helper()
	if got := opened(tb, w); !slices.Equal(got, want) {
		tb.Errorf("%s: the gates of %v are opened, want %v", when, got, want)
	}
}

func TestPodsAreHeldWhileTheirQueueIsFull(t *testing.T) {
	w := gated(t, "2")
	w.Set(fixture.Node("n", "cpu=8 memory=8Gi"), fixture.Group("runs", "q", 1),
		fixture.Pod("runs-0", fixture.In("runs"), fixture.Asks("cpu=2"), fixture.On("n")),
		fixture.Group("waits", "q", 1), held("waits-0", "waits", "1"))
	expectOpened(t, w, "the queue is full")
	if reason, _ := w.Condition("waits"); reason != "OverCapability" {
		t.Errorf("the job waits for %q", reason)
	}
	w.RemovePods("runs-0")
	binds := w.Cycle().Binds
	if len(binds) != 1 || !binds[0].IsHeld {
		t.Errorf("the queue has room and so has the node: bound is %+v", binds)
	}
}

func TestPodsThatLackNothingButANodeAreSeenByAutoscalers(t *testing.T) {
	w := gated(t, "8")
	w.Set(fixture.Group("sim", "q", 2), held("sim-0", "sim", "4"), held("sim-1", "sim", "4"))
	expectOpened(t, w, "the cluster is empty", "sim-0", "sim-1")
	decisions := w.Cycle()
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
	w := gated(t, "3")
	gang := fixture.Group("gang", "q", 4)
	w.Set(gang)
	for _, name := range []string{"a", "b", "c", "d"} {
		w.Set(held(name, "gang", "1"))
	}
	expectOpened(t, w, "the queue has room for three of four")
	wider := fixture.Queue("q")
	wider.Spec.Capability = fixture.List("cpu=4")
	wider.Generation++
	w.Set(wider)
	expectOpened(t, w, "it has room for all", "a", "b", "c", "d")
}

func TestNoMorePodsAreOpenedThanTheQueueMayHold(t *testing.T) {
	w := gated(t, "10")
	w.Set(fixture.Group("first", "q", 1), held("first-0", "first", "6"),
		fixture.Group("second", "q", 1), held("second-0", "second", "6"),
		fixture.Group("third", "q", 1), held("third-0", "third", "4"))
	expectOpened(t, w, "ten of sixteen", "first-0", "third-0")
	expectOpened(t, w, "those that are open wait for nodes, and count")
	w.RemovePods("first-0")
	expectOpened(t, w, "one of them is gone", "second-0")
}

func TestAnElasticJobIsOpenedAsFarAsItsQueueReaches(t *testing.T) {
	w := gated(t, "3")
	w.Set(fixture.Group("sim", "q", 1))
	for _, name := range []string{"a", "b", "c", "d"} {
		w.Set(held(name, "sim", "1"))
	}
	if got := opened(t, w); len(got) != 3 {
		t.Errorf("opened are %v of four, the queue has room for three", got)
	}
}

func TestOtherGatesAreNotOurs(t *testing.T) {
	w := gated(t, "")
	w.Set(fixture.Group("sim", "q", 1), held("a", "sim", "1", "example.com/quota"))
	expectOpened(t, w, "somebody else holds it too")
	if reason, _ := w.Condition("sim"); reason != "SchedulingGated" {
		t.Errorf("the job waits for %q", reason)
	}
}

func TestWithoutTheFeatureTheGateIsLikeAnyOther(t *testing.T) {
	w := loop.New(t, "").Set(fixture.Node("n", "cpu=8 memory=8Gi"), fixture.Group("sim", "default", 1), held("a", "sim", "1"))
	decisions := w.Cycle()
	if len(decisions.Gates)+len(decisions.Binds) > 0 {
		t.Errorf("decided is %+v", decisions)
	}
	if reason, _ := w.Condition("sim"); reason != "SchedulingGated" {
		t.Errorf("the job waits for %q", reason)
	}
}

// Whatever comes, no gate is opened beyond what its queue may hold in addition to all that is open or placed, and no
// gang is open in parts.
func TestGatesAreOpenedWithinTheQueueForAnyJobs(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := gated(t, "10")
		if rapid.Bool().Draw(r, "hasNode") {
			w.Set(fixture.Node("n", "cpu=4 memory=8Gi"))
		}
		minimums := map[string]int{}
		for range rapid.IntRange(1, 5).Draw(r, "rounds") {
			name := "job-" + string(rune('a'+len(minimums)))
			minimums[name] = rapid.IntRange(1, 4).Draw(r, "minimum")
			w.Set(fixture.Group(name, "q", int32(minimums[name])))
			for i := range rapid.IntRange(minimums[name], 5).Draw(r, "pods") {
				w.Set(held(name+"-"+string(rune('0'+i)), name, rapid.SampledFrom([]string{"1", "2", "3"}).Draw(r, "cpu")))
			}
			if len(opened(t, w)) == 0 {
				continue // what others got is not for the gates to decide
			}
			total, open := int64(0), map[string]int{}
			for _, j := range w.Jobs() {
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
	w := gated(t, "")
	w.Configure("actions: allocate, preempt\ntiers:\n- plugins:\n  - name: priority\n  - name: gang\n- plugins:\n  - name: predicates\n")
	important := fixture.Group("important", "q", 1)
	important.Spec.PriorityClassName = "high"
	w.Set(fixture.Node("n", "cpu=4 memory=8Gi"), fixture.PriorityClass("high", 1000), fixture.Group("low", "q", 1),
		fixture.Pod("low-0", fixture.In("low"), fixture.Asks("cpu=4"), fixture.On("n"),
			fixture.Annotated(schedulingv1beta1.PreemptableKey, "true")),
		important, held("important-0", "important", "4"))
	decisions := w.Cycle()
	if len(decisions.Plans) != 1 || len(decisions.Gates) != 1 || decisions.Gates[0].Pod.Name != "important-0" {
		t.Errorf("planned is %+v, opened %+v", decisions.Plans, decisions.Gates)
	}
}
