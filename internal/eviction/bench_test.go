package eviction_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// benchmarked is the usual configuration with both evicting actions and the slower plugins.
var benchmarked = with(everything, "  - name: overcommit\n    arguments: {overcommit-factor: 1.0}\n", "  - name: drf\n", "  - name: capacity\n",
	"  - name: capacity\n  - name: nodeorder\n")

// BenchmarkAGangOfWholeNodes measures one decision. Nodes of eight devices are full of pods with one device each, one
// job to a node, in a queue of low priority. A gang in a queue of high priority arrives and needs a tenth of the nodes
// whole. The cycle that makes the plan is timed, with the events of the gang.
func BenchmarkAGangOfWholeNodes(b *testing.B) {
	for _, nodes := range []int{100, 500, 1000, 2000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s, now := full(b, nodes, nil)
				gang := gangOf(nodes / 10)
				b.StartTimer()
				result := s.Cycle(now.Add(time.Second), gang)
				b.StopTimer()
				if result.Panic != "" || len(result.Decisions.Plans) != 1 || len(result.Decisions.Plans[0].Evictions) != nodes/10*8 {
					b.Fatalf("the plan is not what it should be: %s %d plans", result.Panic, len(result.Decisions.Plans))
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkAGiantGangThatGoesWhole is the same with one gang at its minimum on all nodes: every victim ends all of it.
func BenchmarkAGiantGangThatGoesWhole(b *testing.B) {
	for _, nodes := range []int{100, 500, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s, now := full(b, nodes, func(string) string { return "giant" })
				gang := gangOf(nodes / 10)
				b.StartTimer()
				result := s.Cycle(now.Add(time.Second), gang)
				b.StopTimer()
				if len(result.Decisions.Plans) != 1 || len(result.Decisions.Plans[0].Evictions) != nodes*8 {
					b.Fatalf("the plan is not what it should be: %s %d plans", result.Panic, len(result.Decisions.Plans))
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkNoPodMayLeave measures a cycle in which a hundred gangs of different shapes find no victims.
func BenchmarkNoPodMayLeave(b *testing.B) {
	for _, nodes := range []int{100, 500, 1000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s, now := full(b, nodes, nil)
				var waiting []cache.Event
				for i := range 100 {
					group := fixture.Group(fmt.Sprintf("w%d", i), "low", 2)
					group.Spec.PriorityClassName = "high"
					objects := []runtime.Object{group}
					for k := range 2 {
						objects = append(objects, fixture.Pod(fmt.Sprintf("w%d-%d", i, k), fixture.In(group.Name), fixture.As("worker", k),
							fixture.Asks(fmt.Sprintf("cpu=%d memory=600Gi nvidia.com/gpu=8", i+1))))
					}
					waiting = append(waiting, events(objects)...)
				}
				b.StartTimer()
				result := s.Cycle(now.Add(time.Second), waiting)
				b.StopTimer()
				if result.Panic != "" || len(result.Decisions.Plans) != 0 {
					b.Fatalf("somebody left: %s", result.Panic)
				}
				b.StartTimer()
			}
		})
	}
}

func full(tb testing.TB, nodes int, jobOf func(node string) string) (*scheduler.Scheduler, time.Time) {
	tb.Helper()
	policy, err := loop.Policy(benchmarked)
	if err != nil {
		tb.Fatal(err)
	}
	s := scheduler.New(scheduler.Options{Cluster: cache.Options{SchedulerNames: []string{"volcano"}}})
	if err := s.Use(policy); err != nil {
		tb.Fatal(err)
	}
	now := fixture.Birth.Add(time.Hour)
	low, high := fixture.Queue("low"), fixture.Queue("high")
	low.Spec.Priority, high.Spec.Priority = 1, 10
	if jobOf == nil {
		jobOf = func(node string) string { return "g" + node }
	}
	objects := []runtime.Object{low, high, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "high", UID: "high"}, Value: 1000}}
	for n := range nodes {
		node := fmt.Sprintf("n%05d", n)
		objects = append(objects, fixture.Node(node, "cpu=64 memory=512Gi nvidia.com/gpu=8 pods=110"))
		minimum := int32(1)
		if jobOf(node) == "giant" {
			minimum = int32(8 * nodes)
		}
		if minimum == 1 || n == 0 {
			group := fixture.Group(jobOf(node), "low", minimum)
			group.Status.Phase = schedulingv1beta1.PodGroupRunning
			objects = append(objects, group)
		}
		for i := range 8 {
			objects = append(objects, fixture.Pod(fmt.Sprintf("p%05d-%d", n, i), fixture.In(jobOf(node)), fixture.As("worker", i),
				fixture.On(node), fixture.Asks("cpu=4 memory=16Gi nvidia.com/gpu=1"), func(p *corev1.Pod) {
					p.Annotations[schedulingv1beta1.PreemptableKey] = "true"
				}))
		}
	}
	s.Cycle(now, events(objects))
	return s, now
}

func gangOf(size int) []cache.Event {
	group := fixture.Group("gang", "high", int32(size))
	group.Spec.PriorityClassName = "high"
	objects := []runtime.Object{group}
	for i := range size {
		objects = append(objects, fixture.Pod(fmt.Sprintf("gang-%d", i), fixture.In("gang"), fixture.As("worker", i),
			fixture.Asks("cpu=32 memory=128Gi nvidia.com/gpu=8")))
	}
	return events(objects)
}

func events(objects []runtime.Object) []cache.Event {
	events := make([]cache.Event, len(objects))
	for i, o := range objects {
		events[i] = cache.Set{Object: o}
	}
	return events
}
