package statuses_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/statuses"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// conditionsOf runs cycles for a while and returns the conditions that pods were given, the last for each.
func conditionsOf(w *loop.Loop, span time.Duration) map[string]corev1.PodCondition {
	given := map[string]corev1.PodCondition{}
	for began := w.Now; w.Now.Sub(began) <= span; {
		for _, c := range w.Cycle().Pods {
			given[c.Pod.Name] = c.Condition
		}
	}
	return given
}

func TestAPodWhosePodGroupDoesNotExistSaysSoAfterAWhile(t *testing.T) {
	w := loop.New(t, "").Set(fixture.Node("n1", "cpu=9"))
	w.Set(fixture.Pod("p", fixture.In("gone")))
	if given := conditionsOf(w, statuses.ArrivalPause-2*time.Second); len(given) > 0 {
		t.Errorf("before the PodGroup can have come: %v", given)
	}
	c := conditionsOf(w, statuses.ArrivalPause)["p"]
	if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != "PodGroupNotFound" ||
		!strings.Contains(c.Message, "PodGroup work/gone") {
		t.Errorf("the condition is %+v", c)
	}
	if again := conditionsOf(w, time.Minute); len(again) > 0 {
		t.Errorf("it is said again: %v", again)
	}
	w.Set(fixture.Group("gone", "default", 1))
	if bound := w.Bind(); bound["p"] != "n1" {
		t.Errorf("with its PodGroup it is bound as %v", bound)
	}
}

func TestAPodInAPodGroupOfAnotherSchedulerSaysSoAndIsNotPlaced(t *testing.T) {
	g := fixture.Group("g", "default", 1)
	g.Annotations = map[string]string{schedulingv1beta1.SchedulerNameKey: "second"}
	w := loop.New(t, "").Set(fixture.Node("n1", "cpu=9"), g, fixture.Pod("p", fixture.In("g")))
	d := w.Cycle()
	if len(d.Binds)+len(d.Groups)+len(d.Events)+len(d.Plans)+len(d.Places) > 0 {
		t.Errorf("decided about what belongs to another scheduler: %+v", d)
	}
	if len(d.Pods) != 1 || d.Pods[0].Condition.Reason != "PodGroupOfAnotherScheduler" || !strings.Contains(d.Pods[0].Condition.Message, "scheduler second") {
		t.Errorf("the pod is told %+v", d.Pods)
	}
	mine := g.DeepCopy()
	mine.Annotations, mine.Generation = nil, 2
	w.Set(mine)
	if bound := w.Bind(); bound["p"] != "n1" {
		t.Errorf("when the PodGroup is this scheduler's the pod is bound as %v", bound)
	}
}

// Whatever state another scheduler leaves its PodGroup in, nothing is written to it.
func TestNothingIsWrittenToThePodGroupsOfAnotherScheduler(t *testing.T) {
	second := func(p *corev1.Pod) { p.Spec.SchedulerName = "second" }
	for _, phase := range []schedulingv1beta1.PodGroupPhase{"", schedulingv1beta1.PodGroupPending, schedulingv1beta1.PodGroupInqueue,
		schedulingv1beta1.PodGroupRunning, schedulingv1beta1.PodGroupUnknown, schedulingv1beta1.PodGroupCompleted} {
		for name, options := range map[string][]func(*corev1.Pod){
			"waits": {second}, "runs": {second, fixture.On("n1")}, "has succeeded": {second, fixture.On("n1"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }},
		} {
			g := fixture.Group("g", "default", 2)
			g.Status.Phase = phase
			w := loop.New(t, "").Set(fixture.Node("n1", "cpu=9"), g, fixture.Pod("p", append(options, fixture.In("g"))...))
			for range 10 {
				if d := w.Cycle(); len(d.Groups)+len(d.Places)+len(d.Pods)+len(d.Events)+len(d.Plans) > 0 {
					t.Errorf("%q, and its pod %s: %+v", phase, name, d)
				}
			}
			if got := w.Job(cluster.GroupID(fixture.Key("g"))); got.Phase != phase {
				t.Errorf("%q, and its pod %s: taken for %q", phase, name, got.Phase)
			}
		}
	}
}

const placedPods = `
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: gang
    arguments: {placedPodReason: %s}
  - name: predicates
  - name: proportion
`

// The reason tells which pods of a gang have a place while the others have none, as in Volcano. Where an autoscaler is
// to add nodes for the whole gang, all of them are Unschedulable.
func TestPodsThatHaveAPlaceWhileTheirGangHasNoneAreSchedulable(t *testing.T) {
	for _, c := range []struct{ configuration, placed string }{
		{"", "Schedulable"},
		{fmt.Sprintf(placedPods, "Schedulable"), "Schedulable"},
		{fmt.Sprintf(placedPods, "Unschedulable"), "Unschedulable"},
		{"actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n", "Schedulable"},
	} {
		w := loop.New(t, c.configuration).Set(fixture.Node("n1", "cpu=1"), fixture.Node("n2", "cpu=1"))
		w.Set(fixture.Gang("g", "default", 3, 3))
		given := conditionsOf(w, time.Second)
		for pod, want := range map[string]string{"g-0": c.placed, "g-1": c.placed, "g-2": "Unschedulable"} {
			if got := given[pod]; got.Type != corev1.PodScheduled || got.Status != corev1.ConditionFalse || got.Reason != want {
				t.Errorf("with %q pod %s is %+v, want %s", c.configuration, pod, got, want)
			}
		}
		if c.placed == "Schedulable" && !strings.Contains(given["g-0"].Message, "can possibly be assigned") {
			t.Errorf("pod g-0 says %q", given["g-0"].Message)
		}
		w.Set(fixture.Node("n2", "cpu=500m")) // one place less
		if again := conditionsOf(w, time.Second); len(again) != len(given)-2 && c.placed == "Schedulable" || again["g-0"].Reason != "" {
			t.Errorf("with %q, when one place is gone, told %+v", c.configuration, again)
		} else if c.placed == "Schedulable" && again["g-1"].Reason != "Unschedulable" {
			t.Errorf("with %q the pod that lost its place is told %+v", c.configuration, again)
		}
		if again := conditionsOf(w, time.Minute); len(again) > 0 {
			t.Errorf("with %q it is said again: %v", c.configuration, again)
		}
	}
}

func TestPodsFollowAChangeOfTheirReason(t *testing.T) {
	w := loop.New(t, fmt.Sprintf(placedPods, "Schedulable")).Set(fixture.Node("n1", "cpu=1"))
	w.Set(fixture.Gang("g", "default", 2, 2))
	w.Bind()
	w.Configure(fmt.Sprintf(placedPods, "Unschedulable"))
	if given := conditionsOf(w, time.Second); len(given) != 1 || given["g-0"].Reason != "Unschedulable" {
		t.Errorf("told %+v", given)
	}
}

func TestAPodThatGetsNoPodGroupSaysSoAfterAWhile(t *testing.T) {
	w := loop.New(t, "").Set(fixture.Node("n1", "cpu=9"))
	gated := fixture.Pod("gated", func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} })
	foreign := fixture.Pod("foreign", func(p *corev1.Pod) { p.Spec.SchedulerName = "another" })
	w.Set(fixture.Pod("p"), fixture.Pod("q"), gated, foreign, fixture.Pod("runs", fixture.On("n1")))
	if given := conditionsOf(w, statuses.GroupingPause-2*time.Second); len(given) > 0 {
		t.Errorf("before the controllers can have made it: %v", given)
	}
	q := fixture.Pod("q", fixture.In("late"))
	q.ResourceVersion = "2"
	w.Set(q, fixture.Group("late", "default", 1))
	given := conditionsOf(w, statuses.GroupingPause)
	if c := given["p"]; len(given) != 1 || c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != "PodGroupNotFound" ||
		!strings.Contains(c.Message, "no PodGroup was made") {
		t.Errorf("told %+v", given)
	}
	if again := conditionsOf(w, time.Minute); len(again) > 0 {
		t.Errorf("it is said again: %v", again)
	}
}

func TestManyPodsWithoutPodGroupAreToldSomeAtATime(t *testing.T) {
	w := loop.New(t, "").Set(fixture.Node("n1", "cpu=9"))
	const pods = 2*statuses.UngroupedAtOnce + 7
	for i := range pods {
		w.Set(fixture.Pod(fmt.Sprintf("p%03d", i)))
	}
	began, told := w.Now, 0
	result := w.Scheduler.Cycle(w.Now, nil)
	for told < pods && w.Now.Sub(began) < time.Minute {
		if result.Wake.IsZero() {
			t.Fatalf("the scheduler sleeps on when %d of %d are told", told, pods)
		}
		w.Now = result.Wake
		result = w.Scheduler.Cycle(w.Now, nil)
		if len(result.Decisions.Pods) > statuses.UngroupedAtOnce {
			t.Errorf("%d are told at once", len(result.Decisions.Pods))
		}
		told += len(result.Decisions.Pods)
	}
	if took := w.Now.Sub(began); told != pods || took < statuses.GroupingPause || took > statuses.GroupingPause+5*statuses.UngroupedPause {
		t.Errorf("%d of %d are told after %s", told, pods, took)
	}
}

// As in Volcano the room that a node's agent gives away is for every pod: neither its QoS nor the mark preemptable is
// asked for, nor the label that says whether the node is oversubscribed.
func TestEveryPodMayUseWhatANodeIsOversubscribedBy(t *testing.T) {
	for _, label := range []string{"", "true", "false"} {
		for name, options := range map[string][]func(*corev1.Pod){
			"ordinary":    nil,
			"preemptable": {func(p *corev1.Pod) { p.Annotations[schedulingv1beta1.PreemptableKey] = "true" }},
			"protected":   {func(p *corev1.Pod) { p.Annotations[schedulingv1beta1.PreemptableKey] = "false" }},
			"offline":     {func(p *corev1.Pod) { p.Annotations["volcano.sh/qos-level"] = "BE" }},
		} {
			n := fixture.Node("n1", "cpu=1")
			n.Annotations = map[string]string{schedulingv1beta1.OversubscriptionCPUKey: "1000"}
			if label != "" {
				n.Labels = map[string]string{"volcano.sh/oversubscription": label}
			}
			w := loop.New(t, "").Set(n)
			w.Set(fixture.Gang("g", "default", 2, 2, options...))
			if bound := w.Bind(); len(bound) != 2 {
				t.Errorf("label %q, %s pods: bound %v, want both on a node of one CPU and one given away", label, name, bound)
			}
		}
	}
}
