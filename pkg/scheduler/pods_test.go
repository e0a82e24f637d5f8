package scheduler

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/fixture"
)

// conditionsOf runs cycles for a while and returns the conditions that pods were given, the last for each.
func (w *world) conditionsOf(span time.Duration) map[string]corev1.PodCondition {
	given := map[string]corev1.PodCondition{}
	for began := w.now; w.now.Sub(began) <= span; {
		for _, c := range w.cycle().Pods {
			given[c.Pod.Name] = c.Condition
		}
	}
	return given
}

func TestAPodWhosePodGroupDoesNotExistSaysSoAfterAWhile(t *testing.T) {
	w := newWorld(t, "", fixture.Node("n1", "cpu=9"))
	w.apply(fixture.Pod("p", fixture.In("gone")))
	if given := w.conditionsOf(arrivalPause - 2*time.Second); len(given) > 0 {
		t.Errorf("before the PodGroup can have come: %v", given)
	}
	c := w.conditionsOf(arrivalPause)["p"]
	if c.Type != corev1.PodScheduled || c.Status != corev1.ConditionFalse || c.Reason != "PodGroupNotFound" ||
		!strings.Contains(c.Message, "PodGroup work/gone") {
		t.Errorf("the condition is %+v", c)
	}
	if again := w.conditionsOf(time.Minute); len(again) > 0 {
		t.Errorf("it is said again: %v", again)
	}
	w.apply(fixture.Group("gone", "default", 1))
	if bound := w.run(); bound["p"] != "n1" {
		t.Errorf("with its PodGroup it is bound as %v", bound)
	}
}

func TestAPodInAPodGroupOfAnotherSchedulerSaysSoAndIsNotPlaced(t *testing.T) {
	g := fixture.Group("g", "default", 1)
	g.Annotations = map[string]string{schedulingv1beta1.SchedulerNameKey: "second"}
	w := newWorld(t, "", fixture.Node("n1", "cpu=9"), g, fixture.Pod("p", fixture.In("g")))
	d := w.cycle()
	if len(d.Binds)+len(d.Groups)+len(d.Events)+len(d.Plans)+len(d.Places) > 0 {
		t.Errorf("decided about what belongs to another scheduler: %+v", d)
	}
	if len(d.Pods) != 1 || d.Pods[0].Condition.Reason != "PodGroupOfAnotherScheduler" || !strings.Contains(d.Pods[0].Condition.Message, "scheduler second") {
		t.Errorf("the pod is told %+v", d.Pods)
	}
	mine := g.DeepCopy()
	mine.Annotations, mine.Generation = nil, 2
	w.apply(mine)
	if bound := w.run(); bound["p"] != "n1" {
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
			w := newWorld(t, "", fixture.Node("n1", "cpu=9"), g, fixture.Pod("p", append(options, fixture.In("g"))...))
			for range 10 {
				if d := w.cycle(); len(d.Groups)+len(d.Places)+len(d.Pods)+len(d.Events)+len(d.Plans) > 0 {
					t.Errorf("%q, and its pod %s: %+v", phase, name, d)
				}
			}
			if got := w.scheduler.Cluster().Job(fixture.Key("g")); got.Phase != phase {
				t.Errorf("%q, and its pod %s: taken for %q", phase, name, got.Phase)
			}
		}
	}
}
