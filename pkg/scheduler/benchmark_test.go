package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// BenchmarkPlaceTenThousand places 10,000 pods, in 500 gangs of 20 and 20 classes, on 5,000 empty nodes in one cycle,
// with all plugins of the default configuration.
func BenchmarkPlaceTenThousand(b *testing.B) {
	const nodes, gangs, size, classes = 5000, 500, 20, 20
	for range b.N {
		b.StopTimer()
		w := loop.New(b, "")
		for i := range nodes {
			w.Set(fixture.Node(fmt.Sprintf("node-%04d", i), "cpu=32 memory=256Gi nvidia.com/gpu=8"))
		}
		for i := range gangs {
			group := fmt.Sprintf("gang-%03d", i)
			w.Set(fixture.Group(group, "default", size, fixture.PendingAdmission))
			k := i % classes
			request := fmt.Sprintf("cpu=%dm memory=%dMi", 500+100*k, 1024+256*k)
			if k%4 == 0 {
				request += " nvidia.com/gpu=1"
			}
			for j := range size {
				w.Set(fixture.Pod(fmt.Sprintf("%s-worker-%d", group, j), fixture.In(group), fixture.As("worker", j),
					fixture.Asks(request)))
			}
		}
		b.StartTimer()
		result := w.Scheduler.Cycle(w.Now, nil)
		b.StopTimer()
		if got := len(result.Decisions.Binds); got != gangs*size {
			b.Fatalf("%d pods were bound, want %d: %s", got, gangs*size, result.Panic)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(gangs*size*b.N)/b.Elapsed().Seconds(), "pods/s")
}

// BenchmarkIdleCycle runs cycles in which nothing has happened, on 5,000 nodes with 150,000 running pods.
func BenchmarkIdleCycle(b *testing.B) {
	w := fullCluster(b)
	w.Scheduler.Cycle(w.Now, nil)
	for b.Loop() {
		w.Now = w.Now.Add(time.Second)
		w.Scheduler.Cycle(w.Now, nil)
	}
}

// BenchmarkCycleAfterOneEvent is the same with one pod that finishes and one that comes before each cycle.
func BenchmarkCycleAfterOneEvent(b *testing.B) {
	w := fullCluster(b)
	w.Scheduler.Cycle(w.Now, nil)
	done := 0
	for b.Loop() {
		b.StopTimer()
		pod := w.Task(fixture.Key(fmt.Sprintf("pod-%06d", done))).Pod.DeepCopy()
		pod.Status.Phase = corev1.PodSucceeded
		fresh := fixture.Pod(fmt.Sprintf("fresh-%06d", done), fixture.In("gang-0000"))
		fresh.UID = types.UID(fresh.Name)
		done++
		b.StartTimer()
		w.Now = w.Now.Add(time.Second)
		result := w.Scheduler.Cycle(w.Now, []cache.Event{cache.Set{Object: pod}, cache.Set{Object: fresh}})
		if len(result.Decisions.Binds) != 1 {
			b.Fatalf("%d pods were bound: %s", len(result.Decisions.Binds), result.Panic)
		}
	}
}

func fullCluster(b *testing.B) *loop.Loop {
	const nodes, perNode, size = 5000, 30, 100
	w := loop.New(b, "")
	for i := range nodes {
		w.Set(fixture.Node(fmt.Sprintf("node-%04d", i), "cpu=32 memory=256Gi"))
	}
	for i := range nodes * perNode {
		group := fmt.Sprintf("gang-%04d", i/size)
		if i%size == 0 {
			w.Set(fixture.Group(group, "default", size))
		}
		w.Set(fixture.Pod(fmt.Sprintf("pod-%06d", i), fixture.In(group), fixture.As("worker", i%size),
			fixture.On(fmt.Sprintf("node-%04d", i%nodes))))
	}
	return w
}
