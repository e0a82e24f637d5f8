package guarantees

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	kuberuntime "k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/scheduler"
	"hekla.sh/hekla/pkg/verdict"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

const configuration = `
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
  - name: predicates
  - name: guaranteed-shares
  - name: nodeorder
`

func newScheduler(tb testing.TB) *scheduler.Scheduler {
	tb.Helper()
	return newSchedulerOf(tb, configuration)
}

func newSchedulerOf(tb testing.TB, configuration string) *scheduler.Scheduler {
	tb.Helper()
	policy, err := loop.Policy(configuration)
	if err != nil {
		tb.Fatal(err)
	}
	s := scheduler.New(scheduler.Options{Cluster: cache.Options{SchedulerNames: []string{"volcano"}}})
	if err := s.Use(policy); err != nil {
		tb.Fatal(err)
	}
	return s
}

// queueTree is a tree with so many leaves, ten below each parent.
func queueTree(leaves int) (objects []kuberuntime.Object) {
	for i := range leaves {
		if i%10 == 0 {
			objects = append(objects, fixture.Queue(fmt.Sprintf("top%d", i/10), fixture.Guaranteed("cpu=100 memory=1Ti")))
		}
		objects = append(objects, fixture.Queue(fmt.Sprintf("leaf%d", i), fixture.Below(fmt.Sprintf("top%d", i/10)), fixture.Guaranteed("cpu=40 memory=400Gi"),
			fixture.Capped("cpu=100000 memory=10000Ti")))
	}
	return objects
}

// BenchmarkOneDecision measures a cycle that finds the victims of one job: 400 leaf queues, of which 30 fill 1,000
// nodes.
func BenchmarkOneDecision(b *testing.B) {
	for _, test := range []struct {
		name          string
		pods, minimum int
		isFirst       bool // after a restart
	}{{"one pod", 1, 1, false}, {"a gang of ten", 10, 10, false}, {"ten pods by themselves", 10, 0, false}, {"one pod after a restart", 1, 1, true}} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				s, now := full(b, test.isFirst)
				asks := asking(test.pods, test.minimum)
				runtime.GC() // what making the cluster has left is not the decision's
				b.StartTimer()
				result := s.Cycle(now.Add(time.Hour), asks)
				b.StopTimer()
				if result.Panic != "" || len(result.Decisions.Plans) != 1 || len(result.Decisions.Plans[0].Evictions) != 4*test.pods {
					b.Fatalf("the plan is not what it should be: %s %d plans", result.Panic, len(result.Decisions.Plans))
				}
				b.StartTimer()
			}
		})
	}
}

// BenchmarkNotGuaranteed measures a cycle that refuses one job of each of the 30 queues that fill the cluster: they
// hold what they are guaranteed, so the pods of the others need not be looked at.
func BenchmarkNotGuaranteed(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		s, now := full(b, false)
		var objects []kuberuntime.Object
		for q := range 30 {
			name := fmt.Sprintf("more%d", q)
			objects = append(objects, fixture.Group(name, fmt.Sprintf("leaf%d", q*13), 1), fixture.Pod(name, fixture.In(name), fixture.Asks("cpu=4 memory=16Gi")))
		}
		events := loop.Events(objects)
		b.StartTimer()
		result := s.Cycle(now.Add(time.Hour), events)
		b.StopTimer()
		refused := 0
		s.Cluster().EachJob(func(j *cluster.Job) {
			if j.Verdict != nil && j.Verdict.Code == verdict.NotGuaranteed {
				refused++
			}
		})
		if result.Panic != "" || refused != 30 {
			b.Fatalf("%d jobs are refused as they should be: %s", refused, result.Panic)
		}
		b.StartTimer()
	}
}

// full is a cluster that 30 of 400 leaf queues fill, with eight pods on each node. isFirst says that the scheduler has
// not placed a pod there yet.
func full(b *testing.B, isFirst bool) (*scheduler.Scheduler, time.Time) {
	b.Helper()
	objects := queueTree(400)
	for n := range 1000 {
		node := fmt.Sprintf("n%04d", n)
		objects = append(objects, fixture.Node(node, "cpu=8 memory=64Gi pods=110"))
		for i := range 8 {
			name := fmt.Sprintf("r%04d-%d", n, i)
			objects = append(objects, running(name, fmt.Sprintf("leaf%d", (n*8+i)%30*13), node)...)
		}
	}
	s, now := newScheduler(b), fixture.Birth.Add(time.Hour)
	if result := s.Cycle(now, loop.Events(objects)); result.Panic != "" {
		b.Fatal(result.Panic)
	}
	if !isFirst {
		// A job of a queue without a guarantee finds no room, so that placement has looked at the nodes before, and is
		// gone again.
		waits := loop.Events([]kuberuntime.Object{fixture.Queue("without"), fixture.Group("early", "without", 1),
			fixture.Pod("early", fixture.In("early"), fixture.Asks("cpu=1 memory=1Gi"))})
		if result := s.Cycle(now.Add(time.Second), waits); result.Panic != "" || len(result.Decisions.Plans) > 0 {
			b.Fatalf("room is made without a guarantee: %s", result.Panic)
		}
		s.Cycle(now.Add(2*time.Second), []cache.Event{cache.Delete{Object: fixture.Pod("early")}, cache.Delete{Object: fixture.Group("early", "without", 1)}})
	}
	return s, now
}

// running is a job of one pod that runs.
func running(name, queue, node string) []kuberuntime.Object {
	group := fixture.Group(name, queue, 1)
	group.Status.Phase = schedulingv1beta1.PodGroupRunning
	return []kuberuntime.Object{group, fixture.Pod(name, fixture.In(name), fixture.On(node), fixture.Asks("cpu=1 memory=8Gi"))}
}

// asking is a job of a queue that holds nothing and is guaranteed 40 CPU.
func asking(pods, minimum int) []cache.Event {
	objects := []kuberuntime.Object{fixture.Group("ask", "leaf1", int32(minimum))}
	for i := range pods {
		objects = append(objects, fixture.Pod(fmt.Sprintf("ask-%d", i), fixture.In("ask"), fixture.As("worker", i), fixture.Asks("cpu=4 memory=16Gi")))
	}
	return loop.Events(objects)
}

// BenchmarkOpenSession measures a cycle in which a pod of one queue has changed, with so many queues.
func BenchmarkOpenSession(b *testing.B) {
	for _, leaves := range []int{10, 900} {
		b.Run(fmt.Sprintf("queues=%d", leaves+(leaves+9)/10), func(b *testing.B) {
			s, now := newScheduler(b), fixture.Birth.Add(time.Hour)
			objects := append(queueTree(leaves), fixture.Node("n1", "cpu=1 memory=64Gi pods=110"))
			for i := range leaves {
				name := fmt.Sprintf("w%d", i)
				objects = append(objects, fixture.Group(name, fmt.Sprintf("leaf%d", i), 1), fixture.Pod(name, fixture.In(name), fixture.Asks("cpu=2")))
			}
			s.Cycle(now, loop.Events(objects))
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Second)
				s.Cycle(now, nil)
			}
		})
	}
}

// BenchmarkWithoutThePlugin measures the same cycles with the plugin and without it, side by side: a hundred jobs of a
// hundred flat queues that say nothing of guaranteed shares get nodes, and leave again. Without the plugin its rules
// must cost nothing.
func BenchmarkWithoutThePlugin(b *testing.B) {
	for _, test := range []struct{ name, configuration string }{
		{"with", configuration}, {"without", strings.Replace(configuration, "  - name: guaranteed-shares\n", "", 1)},
	} {
		b.Run(test.name, func(b *testing.B) {
			s, now := newSchedulerOf(b, test.configuration), fixture.Birth.Add(time.Hour)
			var objects []kuberuntime.Object
			for n := range 500 {
				objects = append(objects, fixture.Node(fmt.Sprintf("n%03d", n), "cpu=8 memory=64Gi pods=110"))
			}
			var come, leave []cache.Event
			for i := range 100 {
				name := fmt.Sprintf("j%d", i)
				objects = append(objects, fixture.Queue(fmt.Sprintf("q%d", i)))
				pod := fixture.Pod(name, fixture.In(name), fixture.Asks("cpu=1 memory=1Gi"))
				come = append(come, loop.Events([]kuberuntime.Object{fixture.Group(name, fmt.Sprintf("q%d", i), 1), pod})...)
				leave = append(leave, cache.Delete{Object: pod})
			}
			s.Cycle(now, loop.Events(objects))
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Second)
				if result := s.Cycle(now, come); len(result.Decisions.Binds) != 100 {
					b.Fatalf("%d pods are bound: %s", len(result.Decisions.Binds), result.Panic)
				}
				s.Cycle(now, leave)
			}
		})
	}
}
