package statuses_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// evictionsOf returns the pods that the condition Evicted of the job low names, in its order.
func evictionsOf(status schedulingv1beta1.PodGroupStatus) (pods []string) {
	for _, c := range status.Conditions {
		if c.Type == schedulingv1beta1.PodGroupEvictedType {
			for line := range strings.SplitSeq(c.Message, "\n") {
				pods = append(pods, strings.TrimSuffix(strings.Fields(line)[2], ":"))
			}
		}
	}
	return pods
}

const preempting = `{actions: "enqueue, allocate, preempt", tiers: [{plugins: [{name: priority}, {name: gang}]}, {plugins: [{name: predicates}]}]}`

// full is a cluster of four nodes with a pod of the job low on each.
func full(t *testing.T) *loop.Loop {
	w := loop.New(t, preempting).Set(fixture.PriorityClass("high", 1000), fixture.Group("low", "default", 1))
	for i := range 4 {
		w.Set(fixture.Node(fmt.Sprintf("n%d", i), "cpu=1"), lowPod(i))
	}
	return w
}

func lowPod(i int) *corev1.Pod {
	return fixture.Pod(fmt.Sprintf("low-%d", i), fixture.In("low"), fixture.On(fmt.Sprintf("n%d", i)), fixture.Annotated(schedulingv1beta1.PreemptableKey, "true"))
}

// preempt makes a job of high priority take the node of one pod of low, and returns the name of that pod.
func preempt(t *testing.T, w *loop.Loop, name string) string {
	t.Helper()
	group := fixture.Group(name, "default", 1)
	group.Spec.PriorityClassName = "high"
	w.Set(group, fixture.Pod(name+"-0", fixture.In(name)))
	d := w.Cycle()
	if len(d.Plans) != 1 || len(d.Plans[0].Evictions) != 1 {
		t.Fatalf("decided is %+v, want one eviction", d)
	}
	return d.Plans[0].Evictions[0].Pod.Name
}

func TestAJobNamesItsLastThreeEvictionsTheNewestFirst(t *testing.T) {
	w := full(t)
	var victims []string
	for _, name := range []string{"a", "b", "c"} {
		victim := preempt(t, w, name)
		victims = append([]string{victim}, victims...)
		w.RemovePods(victim).Rest()
		if got := evictionsOf(w.Groups[cluster.GroupID(fixture.Key("low"))].Status); fmt.Sprint(got) != fmt.Sprint(victims) {
			t.Errorf("after %s the job names %v, want %v", name, got, victims)
		}
	}
	shown := w.Groups[cluster.GroupID(fixture.Key("low"))].Status
	if c := shown.Conditions[len(shown.Conditions)-1]; c.Reason != "Preempted" || !strings.Contains(c.Message, "J1") || !strings.Contains(c.Message, "work/c") {
		t.Errorf("the condition is %+v, want the rule and the job", c)
	}

	// A process that starts later keeps what is shown, and goes on.
	next := loop.New(t, preempting).Set(fixture.PriorityClass("high", 1000))
	low := fixture.Group("low", "default", 1)
	low.Status = shown
	next.Set(low)
	for i := range 2 {
		next.Set(fixture.Node(fmt.Sprintf("n%d", i), "cpu=1"), lowPod(i))
	}
	next.Cycle()
	newest := preempt(t, next, "d")
	if got, want := evictionsOf(next.Groups[cluster.GroupID(fixture.Key("low"))].Status), append([]string{newest}, victims[:2]...); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("after a restart the job names %v, want %v", got, want)
	}
}

func TestAJobDoesNotNameAnEvictionThatWasCancelled(t *testing.T) {
	w := full(t)
	victim := preempt(t, w, "a")
	if got := evictionsOf(w.Groups[cluster.GroupID(fixture.Key("low"))].Status); fmt.Sprint(got) != fmt.Sprint([]string{victim}) {
		t.Fatalf("the job names %v, want %s", got, victim)
	}
	w.RemovePods("a-0").Rest()
	if got := evictionsOf(w.Groups[cluster.GroupID(fixture.Key("low"))].Status); got != nil {
		t.Errorf("the job still names %v", got)
	}
}
