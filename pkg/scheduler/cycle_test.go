package scheduler_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/statuses"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

func TestAJobThatLacksPodsHearsOfItsQueue(t *testing.T) {
	w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4"), fixture.Queue("q"), fixture.Group("g", "q", 2))
	reasonAfter := func(queues ...any) verdict.Code {
		w.Set(queues...)
		w.Cycle()
		return w.Scheduler.Cluster().Job(cluster.GroupID(fixture.Key("g"))).Verdict.Code
	}
	closed := fixture.Queue("q", func(q *schedulingv1beta1.Queue) { q.Status.State = schedulingv1beta1.QueueStateClosed })
	for i, step := range []struct {
		queues []any
		want   verdict.Code
	}{
		{nil, verdict.NotEnoughTasks},
		{[]any{closed}, verdict.QueueClosed},
		{[]any{fixture.Queue("q")}, verdict.NotEnoughTasks},
		{[]any{fixture.Queue("q", fixture.Below("nowhere"))}, verdict.QueueInvalid},
		{[]any{fixture.Queue("nowhere")}, verdict.NotEnoughTasks},
		{[]any{fixture.Queue("below", fixture.Below("q"))}, verdict.NotEnoughTasks},
		{[]any{fixture.Queue("q", fixture.Below("below"))}, verdict.QueueInvalid}, // it started no jobs before, as others are below it
		{[]any{fixture.Queue("q", fixture.Below("nowhere"))}, verdict.NotEnoughTasks},
	} {
		if got := reasonAfter(step.queues...); got != step.want {
			t.Errorf("step %d: it waits because of %s, want %s", i, got, step.want)
		}
	}
}

func TestGangsStartTogether(t *testing.T) {
	t.Run("a gang starts whole or not at all", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=1"), fixture.Node("n2", "cpu=1"))
		w.Set(fixture.Gang("g", "default", 3, 3))
		if bound := w.Bind(); len(bound) != 0 {
			t.Fatalf("bound %v, although the gang does not fit", bound)
		}
		reason, message := w.Condition("g")
		want := "2 of the 3 pods that must start together have a place; 0/2 nodes are available: 2 Insufficient cpu (such as n1): " +
			"cpu: needs 1, has 0, short by 1"
		if reason != "GangShort" || message != want {
			t.Errorf("the reason is %s: %s\nwant %s", reason, message, want)
		}
		w.Set(fixture.Node("n3", "cpu=1"))
		if bound := w.Bind(); len(bound) != 3 {
			t.Fatalf("bound %v after a node was added, want all three", bound)
		}
		w.Cycle()
		if reason, _ := w.Condition("g"); reason != schedulingv1beta1.PodGroupReadyReason {
			t.Errorf("the reason of a running gang is %q", reason)
		}
	})

	t.Run("two gangs never hold half each", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=3"))
		w.Set(fixture.Gang("a", "default", 2, 2))
		w.Set(fixture.Gang("b", "default", 2, 2))
		bound := w.Bind()
		if len(bound) != 2 || bound["a-0"] == "" || bound["a-1"] == "" {
			t.Errorf("bound %v, want a whole and nothing of b", bound)
		}
	})

	t.Run("the minimum of a role holds", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4"))
		w.Set(fixture.Group("g", "default", 3, fixture.NeedingOf("master", 1), fixture.NeedingOf("worker", 2)))
		for i := range 4 {
			w.Set(fixture.Pod(fmt.Sprintf("worker-%d", i), fixture.In("g"), fixture.As("worker", i)))
		}
		if bound := w.Bind(); len(bound) != 0 {
			t.Fatalf("bound %v without a master", bound)
		}
		w.CycleFor(statuses.ArrivalPause)
		if reason, message := w.Condition("g"); reason != "NotEnoughPodsOfTask" || !strings.Contains(message, "task master") {
			t.Errorf("the reason is %s: %s", reason, message)
		}
		w.Set(fixture.Pod("master-0", fixture.In("g"), fixture.As("master", 0)))
		if bound := w.Bind(); bound["master-0"] == "" || len(bound) != 4 {
			t.Errorf("bound %v, want the master and as many workers as fit", bound)
		}
	})

	t.Run("large pods go before small ones if their order fails", func(t *testing.T) {
		w := loop.New(t, "actions: \"allocate\"\ntiers:\n- plugins:\n  - name: gang\n  - name: nodeorder\n").Set(fixture.Node("n1", "cpu=2"), fixture.Node("n2", "cpu=3"))
		w.Set(fixture.Group("g", "default", 3))
		w.Set(fixture.Pod("a", fixture.In("g"), fixture.As("small", 0), fixture.Asks("cpu=1")))
		w.Set(fixture.Pod("b", fixture.In("g"), fixture.As("small", 1), fixture.Asks("cpu=1")))
		w.Set(fixture.Pod("c", fixture.In("g"), fixture.As("large", 2), fixture.Asks("cpu=3")))
		if bound := w.Bind(); bound["c"] != "n2" || len(bound) != 3 {
			t.Errorf("bound %v, want c on n2 and the others on n1", bound)
		}
	})

	t.Run("small pods alone start a job that needs no more", func(t *testing.T) {
		w := loop.New(t, "actions: \"allocate\"\ntiers:\n- plugins:\n  - name: gang\n").Set(fixture.Node("n1", "cpu=6"))
		w.Set(fixture.Group("g", "default", 2))
		for i, cpu := range []string{"6", "3", "3"} {
			w.Set(fixture.Pod(fmt.Sprintf("p-%d", i), fixture.In("g"), fixture.As("worker", i), fixture.Asks("cpu="+cpu)))
		}
		if bound := w.Bind(); len(bound) != 2 || bound["p-0"] != "" {
			t.Errorf("bound %v, want the two small ones", bound)
		}
	})
}

func TestJobsInOneCycle(t *testing.T) {
	t.Run("a job that never fits hides none behind it", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=2"))
		w.Set(fixture.Gang("a", "default", 9, 9))
		w.Set(fixture.Gang("b", "default", 2, 2))
		if bound := w.Bind(); len(bound) != 2 || bound["b-0"] != "n1" {
			t.Errorf("bound %v, want the two pods of b", bound)
		}
	})

	t.Run("elastic pods of two jobs grow side by side", func(t *testing.T) {
		w := loop.New(t, "actions: \"allocate\"\ntiers:\n- plugins:\n  - name: gang\n  - name: drf\n  - name: nodeorder\n").Set(fixture.Node("n1", "cpu=6 memory=64Gi"))
		for _, name := range []string{"a", "b"} {
			w.Set(fixture.Group(name, "default", 1))
			for i := range 6 {
				w.Set(fixture.Pod(fmt.Sprintf("%s-%d", name, i), fixture.In(name), fixture.As("worker", i)))
			}
		}
		bound := w.Bind()
		count := map[byte]int{}
		for pod := range bound {
			count[pod[0]]++
		}
		if count['a'] != 3 || count['b'] != 3 {
			t.Errorf("bound %v, want three of each", bound)
		}
	})

	t.Run("pods that request nothing are backfilled", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=1 pods=3"))
		w.Set(fixture.Group("g", "default", 1))
		for i := range 4 {
			w.Set(fixture.Pod(fmt.Sprintf("p-%d", i), fixture.In("g"), fixture.As("worker", i), fixture.Asks("")))
		}
		if bound := w.Bind(); len(bound) != 3 {
			t.Errorf("bound %v, want as many as the node has places for pods", bound)
		}
	})

	t.Run("a pod that follows another is placed after it", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4 memory=8Gi"), fixture.Node("n2", "cpu=4 memory=8Gi"))
		w.Set(fixture.Group("follower", "default", 1))
		w.Set(fixture.Pod("f", fixture.In("follower"), fixture.Near("app", "leader")))
		if bound := w.Bind(); len(bound) != 0 {
			t.Fatalf("bound %v before there is anybody to follow", bound)
		}
		w.Set(fixture.Group("leading", "default", 1), fixture.Pod("l", fixture.In("leading"), fixture.Labelled("app", "leader")))
		node := w.Bind()["l"]
		if bound := w.Bind(); bound["f"] != node {
			t.Errorf("bound %v, want f next to l on %s", bound, node)
		}
	})

	t.Run("the followers of a gang need not come after its leader", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4 memory=8Gi"))
		w.Set(fixture.Group("g", "default", 3))
		for i := range 2 {
			w.Set(fixture.Pod(fmt.Sprintf("f-%d", i), fixture.In("g"), fixture.As("follower", i), fixture.Near("app", "leader")))
		}
		w.Set(fixture.Pod("l", fixture.In("g"), fixture.As("leader", 2), fixture.Labelled("app", "leader")))
		if bound := w.Bind(); len(bound) != 3 {
			t.Errorf("bound %v, want all three", bound)
		}
	})
}

func TestAdmissionAndPods(t *testing.T) {
	t.Run("pods are made only after admission", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4 memory=4Gi"))
		w.Set(fixture.Group("g", "default", 2, fixture.PendingAdmission, fixture.Wanting("cpu=2")))
		w.Cycle()
		if phase := w.Groups[cluster.GroupID(fixture.Key("g"))].Status.Phase; phase != schedulingv1beta1.PodGroupInqueue {
			t.Fatalf("the phase is %s", phase)
		}
		w.CycleFor(statuses.ArrivalPause)
		reason, message := w.Condition("g")
		if reason != "NotEnoughTasks" || !strings.HasSuffix(message, "0 of 2") {
			t.Errorf("the reason is %s: %s", reason, message)
		}
	})

	// A job that has lost its pods is pending admission again. Earlier verdicts are no reason to leave it there: its
	// pods are created only after it is admitted.
	t.Run("a job that lost its pods is admitted again", func(t *testing.T) {
		group := fixture.Group("g", "default", 1, fixture.Wanting("cpu=1"))
		pod := fixture.Pod("p", fixture.In("g"), fixture.As("worker", 0), fixture.On("n1"))
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4"), group, pod)
		w.CycleFor(statuses.ArrivalPause)
		phase := func() schedulingv1beta1.PodGroupPhase {
			return w.Groups[cluster.GroupID(fixture.Key("g"))].Status.Phase
		}
		if phase() != schedulingv1beta1.PodGroupRunning {
			t.Fatalf("with its pod it is %s", phase())
		}
		w.Remove(pod)
		w.Cycle()
		w.Cycle()
		if phase() != schedulingv1beta1.PodGroupInqueue {
			t.Errorf("two cycles after its pod was deleted it is %s", phase())
		}
	})

	t.Run("without enqueue allocate admits", func(t *testing.T) {
		w := loop.New(t, "actions: \"allocate\"\ntiers:\n- plugins:\n  - name: gang\n").Set(fixture.Node("n1", "cpu=4"))
		w.Set(fixture.Group("g", "default", 1, fixture.PendingAdmission), fixture.Pod("p", fixture.In("g")))
		if bound := w.Bind(); len(bound) != 1 {
			t.Errorf("bound %v", bound)
		}
	})
}

func TestQueuesInACycle(t *testing.T) {
	t.Run("a job in a queue that does not exist says so", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4"))
		w.Set(fixture.Gang("g", "nowhere", 1, 1))
		w.Cycle()
		if reason, message := w.Condition("g"); reason != "QueueNotFound" || message != "queue nowhere does not exist" {
			t.Errorf("the reason is %s: %s", reason, message)
		}
		w.Set(fixture.Queue("nowhere"))
		if bound := w.Bind(); len(bound) != 1 {
			t.Errorf("bound %v after the queue was made", bound)
		}
	})

	t.Run("a closed queue starts nothing", func(t *testing.T) {
		closed := fixture.Queue("q", func(q *schedulingv1beta1.Queue) { q.Status.State = schedulingv1beta1.QueueStateClosed })
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4"), closed)
		w.Set(fixture.Gang("g", "q", 1, 1))
		w.Cycle()
		if reason, _ := w.Condition("g"); reason != "QueueClosed" {
			t.Errorf("the reason is %s", reason)
		}
	})

	t.Run("a queue says what its subtree holds", func(t *testing.T) {
		child := fixture.Queue("child", func(q *schedulingv1beta1.Queue) { q.Spec.Parent = "parent" })
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4 memory=8Gi"), fixture.Queue("parent"), child)
		w.Set(fixture.Gang("g", "child", 2, 2, fixture.Asks("cpu=1 memory=1Gi")))
		d := w.Cycle()
		if len(d.Queues) != 2 || d.Queues[0].Queue != "child" || d.Queues[1].Queue != "parent" {
			t.Fatalf("the statuses of queues are %+v", d.Queues)
		}
		for _, q := range d.Queues {
			if q.Allocated.Cpu().String() != "2" || q.Allocated.Memory().String() != "2Gi" || q.Allocated.Pods().Value() != 2 {
				t.Errorf("queue %s holds %v", q.Queue, q.Allocated)
			}
		}
	})

	t.Run("a share is not named where nodes lack room", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=2"), fixture.Node("n2", "cpu=2"), fixture.Queue("other"))
		w.Set(fixture.Gang("running", "other", 2, 2))
		if bound := w.Bind(); len(bound) != 2 {
			t.Fatalf("bound %v, want both pods", bound)
		}
		w.Set(fixture.Gang("waiting", "other", 2, 2))
		w.Set(fixture.Gang("g", "default", 3, 3))
		w.Bind()
		// Of four CPUs the queue deserves two, and the other has two: an empty cluster would hold the gang. It is nodes
		// that it lacks all the same, and its queue holds nothing.
		if reason, message := w.Condition("g"); reason != "GangShort" || strings.Contains(message, "deserves") {
			t.Errorf("the reason is %s: %s", reason, message)
		}
	})
}

func TestWhatACycleRepeats(t *testing.T) {
	t.Run("nothing is decided twice", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=1"))
		w.Set(fixture.Gang("g", "default", 2, 2))
		w.Cycle()
		for range 3 {
			if d := w.Cycle(); !d.IsEmpty() {
				t.Fatalf("a cycle in which nothing happened decided %+v", d)
			}
		}
	})

	t.Run("the owners of pods are told once why they wait", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=1"))
		w.Set(fixture.Gang("g", "default", 2, 2))
		d := w.Cycle()
		if len(d.Pods) != 2 || d.Pods[0].Condition.Reason != "Schedulable" || d.Pods[1].Condition.Reason != corev1.PodReasonUnschedulable {
			t.Fatalf("told %+v", d.Pods)
		}
		w.Set(fixture.Node("n0", "cpu=500m"))
		w.Scheduler.Cache().Reconsider() // a node that is too small wakes no job
		if d := w.Cycle(); len(d.Pods) != 0 || len(d.Groups) != 0 {
			t.Errorf("when only a number changed, decided %+v", d)
		}
	})

	t.Run("the loop wakes for the end of a back-off", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4"))
		w.Set(fixture.Gang("g", "default", 1, 1))
		w.Cycle()
		w.Apply(cache.BindFailed{Pod: fixture.Key("g-0"), UID: "g-0-uid", At: w.Now})
		if wake := w.Scheduler.Cycle(w.Now, nil).Wake; wake.Sub(w.Now) != time.Second {
			t.Errorf("wakes after %s", wake.Sub(w.Now))
		}
	})

	t.Run("a job is looked at again after a long rest", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=1"))
		w.Set(fixture.Gang("g", "default", 2, 2))
		w.Cycle()
		j := w.Job(cluster.GroupID(fixture.Key("g")))
		if w.Scheduler.Cluster().ShouldRetry(j, w.Now.Add(time.Minute)) {
			t.Error("a minute later, though nothing has happened")
		}
		if !w.Scheduler.Cluster().ShouldRetry(j, w.Now.Add(time.Hour)) {
			t.Error("not even an hour later")
		}
	})
}

func TestFailuresAreContained(t *testing.T) {
	t.Run("a refused binding is tried again later", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4"))
		w.Set(fixture.Gang("g", "default", 1, 1))
		if d := w.Cycle(); len(d.Binds) != 1 {
			t.Fatalf("decided %+v", d)
		}
		w.Apply(cache.BindFailed{Pod: fixture.Key("g-0"), UID: "g-0-uid", At: w.Now, Reason: "it is full"})
		result := w.Scheduler.Cycle(w.Now, nil)
		if len(result.Decisions.Binds) != 0 || !result.Wake.After(w.Now) {
			t.Fatalf("right after the failure: %+v", result)
		}
		want := "the API server refused to bind pod g-0, and the job is tried again later; it is full"
		if c := result.Decisions.Groups[0].Status.Conditions[0]; c.Reason != string(verdict.BackingOff) || c.Message != want {
			t.Errorf("the job is told %s: %s", c.Reason, c.Message)
		}
		w.Now = result.Wake
		if d := w.Cycle(); len(d.Binds) != 1 {
			t.Errorf("after the back-off: %+v", d)
		}
	})

	t.Run("a panic drops the decisions of its cycle only", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4"))
		w.Set(fixture.Gang("g", "default", 2, 2))
		sound := w.Policy.Actions
		w.Policy.Actions = append(sound[:len(sound):len(sound)], panics{})
		result := w.Scheduler.Cycle(w.Now, nil)
		if !strings.Contains(result.Panic, "on purpose") || len(result.Decisions.Binds) != 0 {
			t.Fatalf("the result is %+v", result)
		}
		w.Policy.Actions = sound
		if bound := w.Bind(); len(bound) != 2 {
			t.Errorf("bound %v in the next cycle", bound)
		}
	})

	t.Run("an event that cannot be taken in keeps no other out", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4"))
		var missing *corev1.Pod // stands for whatever the model stumbles over
		result := w.Scheduler.Cycle(w.Now, []cache.Event{cache.Set{Object: missing},
			cache.Set{Object: fixture.Group("g", "default", 1)}, cache.Set{Object: fixture.Pod("p", fixture.In("g"))}})
		if result.Panic == "" || len(result.Decisions.Binds) != 1 {
			t.Errorf("the result is %+v", result)
		}
	})

	t.Run("a job over which the scheduler fails is left alone", func(t *testing.T) {
		w := loop.New(t, "").Set(fixture.Node("n1", "cpu=4"))
		w.Set(fixture.Gang("a", "default", 1, 1))
		w.Set(fixture.Gang("b", "default", 1, 1))
		w.Policy.Actions = []framework.Action{panicsOver{name: "a"}, w.Policy.Actions[1]}
		failures := 0
		for range 6 {
			if result := w.Scheduler.Cycle(w.Now, nil); result.Panic != "" {
				failures++
			} else if len(result.Decisions.Binds) == 1 && result.Decisions.Binds[0].Pod.Name == "b-0" {
				break
			}
		}
		if failures != scheduler.MaxPanics {
			t.Errorf("the scheduler failed %d times, want %d", failures, scheduler.MaxPanics)
		}
		if v := w.Job(cluster.GroupID(fixture.Key("a"))).Verdict; v == nil || v.Code != verdict.Quarantined {
			t.Errorf("the verdict is %+v", v)
		}
	})
}

func TestDecisionsDoNotDependOnTheOrderOfArrival(t *testing.T) {
	build := func(backwards bool) string {
		var objects []func(*loop.Loop)
		for i := range 6 {
			objects = append(objects, func(w *loop.Loop) { w.Set(fixture.Node(fmt.Sprintf("n%d", i), "cpu=2 memory=8Gi")) })
		}
		for i := range 5 {
			objects = append(objects, func(w *loop.Loop) { w.Set(fixture.Gang(fmt.Sprintf("g%d", i), "default", 3, 3)) })
		}
		w := loop.New(t, "")
		for i := range objects {
			if backwards {
				i = len(objects) - 1 - i
			}
			objects[i](w)
		}
		return fmt.Sprintf("%+v", w.Cycle())
	}
	if forward, backward := build(false), build(true); forward != backward {
		t.Errorf("forwards:\n%s\nbackwards:\n%s", forward, backward)
	}
}
