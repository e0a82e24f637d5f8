package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/internal/metrics"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// arrivals are jobs of one pod that arrive on a cluster with room for them.
type arrivals struct {
	*loop.Loop
	started bool // pods run once they are bound
	jobs    int
	groups  map[string]*schedulingv1beta1.PodGroup
	pods    map[string]*corev1.Pod
}

// BenchmarkArrivals measures what one job of one pod costs that arrives on 1,000 nodes, after so many that have come
// before. It counts the cycle that binds it, and those that learn that it is bound and what the status of its PodGroup
// is. Kubelets start the pods, or do not.
func BenchmarkArrivals(b *testing.B) {
	for _, before := range []int{100, 1_000, 10_000} {
		for _, started := range []bool{true, false} {
			b.Run(fmt.Sprintf("%d_jobs/started=%t", before, started), func(b *testing.B) {
				a := &arrivals{Loop: loop.New(b, evicting), started: started, groups: map[string]*schedulingv1beta1.PodGroup{}, pods: map[string]*corev1.Pod{}}
				for i := range 1000 {
					a.Set(fixture.Node(fmt.Sprintf("node-%04d", i), "cpu=64 memory=256Gi"))
				}
				a.arrive(b, before)
				for b.Loop() {
					a.arrive(b, 1)
				}
			})
		}
	}
}

// arrive adds jobs at once, and runs cycles until what they decided is known.
func (a *arrivals) arrive(tb testing.TB, count int) {
	var objects []runtime.Object
	for range count {
		name := fmt.Sprintf("job-%06d", a.jobs)
		a.jobs++
		a.groups[name] = fixture.Group(name, "default", 1, fixture.PendingAdmission, fixture.Wanting("cpu=1 memory=1Gi"))
		a.pods[name] = fixture.Pod(name, fixture.In(name), fixture.Asks("cpu=1 memory=1Gi"))
		objects = append(objects, a.groups[name], a.pods[name])
	}
	bound := 0
	for events := loop.Events(objects); len(events) > 0; {
		var binds int
		events, binds = a.cycle(tb, events)
		bound += binds
	}
	if bound != count {
		tb.Fatalf("%d pods are bound, should be %d", bound, count)
	}
}

// cycle runs one cycle, and returns what the API server then shows.
func (a *arrivals) cycle(tb testing.TB, events []cache.Event) (shown []cache.Event, binds int) {
	a.Now = a.Now.Add(5 * time.Millisecond)
	result := a.Scheduler.Cycle(a.Now, events)
	if result.Panic != "" {
		tb.Fatal(result.Panic)
	}
	for _, bind := range result.Decisions.Binds {
		pod := a.pods[bind.Pod.Name].DeepCopy()
		pod.Spec.NodeName = bind.Node
		if a.started {
			pod.Status.Phase = corev1.PodRunning
		}
		shown = append(shown, cache.Set{Object: pod})
	}
	for _, g := range result.Decisions.Groups {
		group := a.groups[g.Job.Name].DeepCopy()
		group.Status = g.Status
		shown = append(shown, cache.Set{Object: group})
	}
	return shown, len(result.Decisions.Binds)
}

// BenchmarkNamesThatComeAndGo measures what sixty jobs of one pod cost that come and are deleted, each with a name of
// its own in another field: a queue, a class, a resource, a label, a claim. So many have done so before.
func BenchmarkNamesThatComeAndGo(b *testing.B) {
	for _, before := range []int{600, 30_000} {
		b.Run(fmt.Sprintf("%d_jobs", before), func(b *testing.B) {
			c := &churn{Loop: loop.New(b, evicting), metrics: metrics.New()}
			for i := range 1000 {
				c.Set(fixture.Node(fmt.Sprintf("node-%04d", i), "cpu=64 memory=256Gi"))
			}
			c.run(b, before)
			for b.Loop() {
				c.run(b, 60)
			}
		})
	}
}
