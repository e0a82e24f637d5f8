package statuses_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/statuses"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// inState is a pod of the gang g, as it is after a word.
func inState(i int, state string) *corev1.Pod {
	p := fixture.Pod(fmt.Sprintf("p%d", i), fixture.In("g"), fixture.As("worker", i))
	if state != "pending" && state != "gated" {
		fixture.On("n1")(p)
	}
	switch state {
	case "gated":
		p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "wait"}}
	case "bound":
		p.Status.Phase = corev1.PodPending
	case "succeeded":
		p.Status.Phase = corev1.PodSucceeded
	case "failed":
		p.Status.Phase = corev1.PodFailed
	case "failed leaving":
		p.Status.Phase, p.DeletionTimestamp = corev1.PodFailed, &metav1.Time{Time: fixture.Birth}
	case "leaving unplaced":
		p.Spec.NodeName, p.Status.Phase, p.DeletionTimestamp = "", corev1.PodPending, &metav1.Time{Time: fixture.Birth}
	case "leaving":
		p.DeletionTimestamp = &metav1.Time{Time: fixture.Birth}
	}
	return p
}

func TestThePhaseFollowsFromThePods(t *testing.T) {
	const (
		pending, inqueue, running = schedulingv1beta1.PodGroupPending, schedulingv1beta1.PodGroupInqueue, schedulingv1beta1.PodGroupRunning
		unknown, completed        = schedulingv1beta1.PodGroupUnknown, schedulingv1beta1.PodGroupCompleted
		unschedulable, scheduled  = schedulingv1beta1.PodGroupUnschedulableType, schedulingv1beta1.PodGroupScheduledType
		nothing                   = schedulingv1beta1.PodGroupConditionType("")
		small, large              = "cpu=2", "cpu=9"
	)
	for name, test := range map[string]struct {
		was       schedulingv1beta1.PodGroupPhase
		minimum   int32
		node      string
		pods      []string
		phase     schedulingv1beta1.PodGroupPhase
		condition schedulingv1beta1.PodGroupConditionType
	}{
		"pending admission, and no pods yet":       {pending, 2, large, nil, inqueue, unschedulable},
		"admitted, and its pods wait":              {inqueue, 3, small, []string{"pending", "pending", "pending"}, inqueue, unschedulable},
		"admitted, and being bound":                {inqueue, 2, large, []string{"pending", "pending"}, inqueue, nothing},
		"bound, and none runs yet":                 {inqueue, 2, large, []string{"bound", "bound"}, running, scheduled},
		"running":                                  {inqueue, 2, large, []string{"running", "bound"}, running, scheduled},
		"running, and another waits for room":      {running, 2, small, []string{"running", "running", "pending"}, running, scheduled},
		"a pod was lost":                           {running, 2, large, []string{"running"}, unknown, unschedulable},
		"a pod was lost and came back, no room":    {running, 3, small, []string{"running", "running", "pending"}, unknown, unschedulable},
		"a pod was lost and came back, with room":  {running, 3, large, []string{"running", "running", "pending"}, inqueue, nothing},
		"a pod is being deleted":                   {running, 2, large, []string{"running", "leaving"}, running, unschedulable},
		"all pods are being deleted":               {running, 2, large, []string{"leaving", "leaving"}, running, unschedulable},
		"one is being deleted, and one was lost":   {running, 3, large, []string{"running", "leaving"}, unknown, unschedulable},
		"one without a node is being deleted":      {running, 2, large, []string{"running", "leaving unplaced"}, unknown, unschedulable},
		"the others are over, one is deleted":      {running, 2, large, []string{"succeeded", "leaving"}, running, unschedulable},
		"some have succeeded":                      {running, 2, large, []string{"running", "succeeded"}, running, scheduled},
		"one has failed":                           {running, 2, large, []string{"running", "failed"}, unknown, unschedulable},
		"all have succeeded":                       {running, 2, large, []string{"succeeded", "succeeded"}, completed, scheduled},
		"all are over, one way or the other":       {running, 2, large, []string{"succeeded", "failed"}, completed, nothing},
		"all have failed":                          {running, 2, large, []string{"failed", "failed"}, completed, nothing},
		"all were evicted, and have ended":         {running, 2, large, []string{"failed leaving", "failed leaving"}, running, unschedulable},
		"all were evicted, and are gone":           {running, 2, large, nil, inqueue, unschedulable},
		"one was evicted, the others are over":     {running, 2, large, []string{"succeeded", "failed", "failed leaving"}, completed, nothing},
		"over, and its pods are deleted":           {completed, 2, large, []string{"failed leaving", "failed leaving"}, completed, nothing},
		"over, and its pods are cleaned away":      {completed, 2, large, nil, completed, nothing},
		"over, and some pods are cleaned away":     {completed, 2, large, []string{"succeeded"}, completed, nothing},
		"fewer than the minimum have failed":       {inqueue, 2, large, []string{"failed"}, inqueue, unschedulable},
		"a gate holds it back":                     {inqueue, 2, large, []string{"pending", "gated"}, inqueue, unschedulable},
		"without a minimum, and nothing there yet": {inqueue, 0, large, nil, inqueue, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			g := fixture.Group("g", "default", test.minimum)
			g.Status.Phase = test.was
			w := loop.New(t, "{actions: \"enqueue, allocate, backfill\", tiers: [{plugins: [{name: gang}]}]}").Set(fixture.Node("n1", test.node), g)
			for i, state := range test.pods {
				w.Set(inState(i, state))
			}
			w.CycleFor(statuses.ArrivalPause)
			j := w.Job(cluster.GroupID(fixture.Key("g")))
			if j.Phase != test.phase {
				t.Errorf("the phase is %s, want %s", j.Phase, test.phase)
			}
			var condition schedulingv1beta1.PodGroupConditionType
			for _, c := range w.Groups[cluster.GroupID(fixture.Key("g"))].Status.Conditions {
				if c.Type != schedulingv1beta1.PodGroupQueuedType {
					condition = c.Type
				}
			}
			if condition != test.condition {
				t.Errorf("the condition is %q, want %q: %+v", condition, test.condition, j.Verdict)
			}
			// Another cycle, in which nothing has happened, changes nothing.
			if w.Cycle(); j.Phase != test.phase {
				t.Errorf("without any event the phase becomes %s", j.Phase)
			}
		})
	}
}

// A queue holds what its jobs hold, and what those below it hold; its status says so whenever that changes, also when
// the tree does.
func TestAQueueSaysWhatItHoldsAlsoWhenTheTreeChanges(t *testing.T) {
	below := func(parent string) *schedulingv1beta1.Queue {
		return fixture.Queue("leaf", func(q *schedulingv1beta1.Queue) { q.Spec.Parent = parent })
	}
	w := loop.New(t, "").Set(fixture.Node("n1", "cpu=9"), fixture.Queue("a"), fixture.Queue("b"), below("a"))
	w.Set(fixture.Gang("g", "leaf", 2, 2))
	holds := map[string]int64{}
	look := func() {
		t.Helper()
		for _, q := range w.Cycle().Queues {
			holds[q.Queue] = q.Allocated.Cpu().Value()
		}
	}
	look()
	if holds["leaf"] != 2 || holds["a"] != 2 || holds["b"] != 0 {
		t.Errorf("the queues hold %v", holds)
	}
	w.Set(below("b"))
	look()
	if holds["leaf"] != 2 || holds["a"] != 0 || holds["b"] != 2 {
		t.Errorf("below another parent the queues hold %v", holds)
	}
	w.Set(fixture.Group("g", "a", 2))
	look()
	if holds["leaf"] != 0 || holds["a"] != 2 || holds["b"] != 0 {
		t.Errorf("when the job is in another queue they hold %v", holds)
	}
}

// The owner of a job that was admitted and whose pods do not come, or go, is told.
func TestAJobThatLacksPodsSaysSo(t *testing.T) {
	w := loop.New(t, "").Set(fixture.Node("n1", "cpu=9"))
	w.Set(fixture.Group("g", "default", 2))
	w.CycleFor(statuses.ArrivalPause)
	if reason, message := w.Condition("g"); reason != "NotEnoughTasks" || message != "not all pods exist yet: 0 of 2" {
		t.Errorf("before there are pods it says %s: %s", reason, message)
	}
	w.Set(inState(0, "gated"), inState(1, "gated"))
	w.Cycle()
	if reason, _ := w.Condition("g"); reason != "SchedulingGated" {
		t.Errorf("of gated pods it says %s", reason)
	}
	for i := range 2 {
		p := inState(i, "gated")
		w.Remove(p)
	}
	w.CycleFor(statuses.ArrivalPause)
	if reason, _ := w.Condition("g"); reason != "NotEnoughTasks" {
		t.Errorf("when they are gone it says %s", reason)
	}
}

// While its pods come one after the other nothing is written about those that are not there yet.
func TestPodsThatAreStillComingAreNotMissed(t *testing.T) {
	w := loop.New(t, "").Set(fixture.Node("n1", "cpu=1"))
	w.Set(fixture.Group("g", "default", 9))
	w.Cycle()
	var since time.Time
	for i := range 8 {
		w.Set(fixture.Pod(fmt.Sprintf("p-%d", i), fixture.In("g"), fixture.Asks("cpu=1")))
		d := w.Cycle()
		since = w.Now
		if len(d.Groups)+len(d.Pods)+len(d.Events) > 0 {
			t.Fatalf("when pod %d has come %+v, %+v and %+v are written", i, d.Groups, d.Pods, d.Events)
		}
	}
	w.Now = since
	result := w.Scheduler.Cycle(w.Now, nil)
	if want := since.Add(statuses.ArrivalPause); !result.Wake.Equal(want) {
		t.Fatalf("it looks again at %v, want %v", result.Wake, want)
	}
	w.Now = result.Wake.Add(-time.Second) // from where the next cycle takes a step of a second
	d := w.Cycle()
	if reason, message := w.Condition("g"); reason != "NotEnoughTasks" || !strings.HasSuffix(message, "8 of 9") || len(d.Pods) != 8 || len(d.Events) != 1 {
		t.Errorf("then it says %s: %s, to %d pods and by %d Events", reason, message, len(d.Pods), len(d.Events))
	}
	if result := w.Scheduler.Cycle(w.Now.Add(time.Minute), nil); !result.Wake.IsZero() || !result.Decisions.IsEmpty() {
		t.Errorf("then it has said it, and looks again at %v for %+v", result.Wake, result.Decisions)
	}
	// The last one comes: now it is about nodes, which is said at once.
	w.Set(fixture.Pod("p-8", fixture.In("g"), fixture.Asks("cpu=1")))
	w.Cycle()
	if reason, _ := w.Condition("g"); reason != "GangShort" {
		t.Errorf("when all have come it says %s", reason)
	}
}

// What was said of missing pods stays, and is not taken back for the moment in which another one comes or goes.
func TestWhatIsSaidOfMissingPodsStaysWhileOneComes(t *testing.T) {
	w := loop.New(t, "").Set(fixture.Node("n1", "cpu=9"))
	w.Set(fixture.Group("g", "default", 3))
	w.CycleFor(statuses.ArrivalPause)
	w.Set(fixture.Pod("p-0", fixture.In("g")))
	if d := w.Cycle(); len(d.Groups)+len(d.Events) > 0 {
		t.Errorf("at once %+v and %+v are written", d.Groups, d.Events)
	}
	w.CycleFor(statuses.ArrivalPause)
	if _, message := w.Condition("g"); !strings.HasSuffix(message, "1 of 3") {
		t.Errorf("it says %s", message)
	}
}

func TestAnAnnotationThatCannotBeReadIsToldOnce(t *testing.T) {
	annotated := func(delay string) *schedulingv1beta1.Queue {
		return fixture.Queue("q", fixture.QueueAnnotated(schedulingv1beta1.PreemptionDelayKey, delay))
	}
	w := loop.New(t, "")
	for _, step := range []struct{ delay, want string }{
		{"soon", `InvalidQueueProperty of Queue q: queue q: annotation hekla.sh/preemption.delay is "soon", allowed is a duration above 0, such as 30s; the default holds`},
		{"soon", ""},
		{"10s", ""},
		{"soon", "InvalidQueueProperty"},
		{"later", `is "later"`},
	} {
		w.Set(annotated(step.delay))
		var told []string
		for _, e := range w.Cycle().Events {
			told = append(told, fmt.Sprintf("%s of %s %s: %s", e.Reason, e.Regarding.Kind, e.Regarding.Name, e.Message))
		}
		if said := strings.Join(told, "; "); (said == "") != (step.want == "") || !strings.Contains(said, step.want) {
			t.Errorf("delay %q: told is %q, want %q", step.delay, said, step.want)
		}
	}
}
