package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/fixture"
	"hekla.sh/hekla/test/harness/loop"
)

// preemptors are jobs of high priority that arrive in front of a busyCluster, alike but for their kinds.
type preemptors struct {
	jobs, kinds int
	size        int                   // pods of each; 0 is a pod by itself
	asks        func(kind int) string // nil: about three CPU
	queue       func(job int) string  // nil: the queues of the busyCluster in turn
	plans       int                   // that the cycle must make
}

// arrive returns the events of their arrival.
func (p *preemptors) arrive(c *busyCluster) []cache.Event {
	var objects []runtime.Object
	for i := range p.jobs {
		name := fmt.Sprintf("comes-%05d", i)
		queue := c.queue(i)
		if p.queue != nil {
			queue = p.queue(i)
		}
		group := fixture.Group(name, queue, int32(max(p.size, 1)))
		group.Spec.PriorityClassName = "high"
		if p.size == 0 {
			isTrue := true
			group.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name, UID: "uid", Controller: &isTrue}}
		}
		objects = append(objects, group)
		for k := range max(p.size, 1) {
			pod := fixture.Pod(fmt.Sprintf("%s-%d", name, k), fixture.In(name), fixture.As("worker", k), c.ofKind(i%p.kinds), fixture.WithPriority(1000))
			if p.asks != nil {
				fixture.Asks(p.asks(i % p.kinds))(pod)
			}
			objects = append(objects, pod)
		}
	}
	return loop.Events(objects)
}

// BenchmarkSinglePreemptors measures one cycle in which 2,000 pods of high priority, of 100 kinds, each have one pod
// evicted, or two.
func BenchmarkSinglePreemptors(b *testing.B) {
	lone := preemptors{jobs: 2000, kinds: 100, plans: 2000}
	larger := lone
	larger.asks = func(kind int) string { return fmt.Sprintf("cpu=%dm memory=%dMi", 7000+10*kind, 512+kind) }
	for _, test := range []struct {
		name string
		busyCluster
	}{
		{"plain", busyCluster{nodes: 5000, perNode: 4, minimum: 1, preemptable: true}},
		{"gangs at their minimum", busyCluster{nodes: 5000, perNode: 4, minimum: 10, preemptable: true}},
		{"ten queues", busyCluster{nodes: 5000, perNode: 4, minimum: 1, preemptable: true, queues: 10}},
		{"seven queues, mixed", busyCluster{nodes: 5000, perNode: 4, minimum: 1, preemptable: true, queues: 7}},
		{"ten priorities", busyCluster{nodes: 5000, perNode: 4, minimum: 1, preemptable: true, priorities: 10}},
		{"node selectors", busyCluster{nodes: 5000, perNode: 4, minimum: 1, preemptable: true, labels: 10}},
	} {
		b.Run(test.name, func(b *testing.B) { measurePreemptors(b, &test.busyCluster, &lone) })
		if test.minimum == 1 && test.queues != 7 { // with seven queues there is a right to a few pods only
			b.Run(test.name+"/two victims", func(b *testing.B) { measurePreemptors(b, &test.busyCluster, &larger) })
		}
	}
}

// BenchmarkPreemptors measures the same in clusters that are harder: what runs is of several sizes, protected in part,
// or bound together, and what arrives asks for more, comes in gangs, or gets nothing.
func BenchmarkPreemptors(b *testing.B) {
	lone := preemptors{jobs: 2000, kinds: 100, plans: 2000}
	base := busyCluster{nodes: 5000, perNode: 4, minimum: 1, preemptable: true}
	for _, test := range []struct {
		name   string
		change func(c *busyCluster, p *preemptors)
	}{
		{"sizes", func(_ *busyCluster, p *preemptors) {
			p.asks = func(kind int) string { return fmt.Sprintf("cpu=%d memory=%dMi", 1+kind%16, 512+kind) }
		}},
		{"budgets", func(c *busyCluster, _ *preemptors) { c.budgets = 200 }},
		{"gangs above their minimum", func(c *busyCluster, _ *preemptors) { c.minimum = 8 }},
		{"half protected", func(c *busyCluster, _ *preemptors) { c.protected = 2 }},
		{"jobs of their queue", func(_ *busyCluster, p *preemptors) { p.size = 1 }},
		{"gangs of four", func(_ *busyCluster, p *preemptors) { p.jobs, p.size, p.plans = 500, 4, 500 }},
		{"none fits, all protected", func(c *busyCluster, p *preemptors) { c.preemptable, p.plans = false, 0 }},
		{"none fits, too large", func(c *busyCluster, p *preemptors) {
			c.protected, p.plans = 2, 0
			p.asks = func(kind int) string { return fmt.Sprintf("cpu=9 memory=%dMi", 512+kind) }
		}},
		{"none fits, too large, jobs", func(c *busyCluster, p *preemptors) {
			c.protected, p.plans, p.size = 2, 0, 1
			p.asks = func(kind int) string { return fmt.Sprintf("cpu=9 memory=%dMi", 512+kind) }
		}},
	} {
		b.Run(test.name, func(b *testing.B) {
			c, p := base, lone
			test.change(&c, &p)
			measurePreemptors(b, &c, &p)
		})
	}
}

// BenchmarkReclaim measures one cycle in which 2,000 jobs of one pod, of 100 kinds, reclaim from queues above their
// shares.
func BenchmarkReclaim(b *testing.B) {
	for _, test := range []struct {
		name   string
		queues int
		run    bool // also pods of the queues that reclaim run
	}{{"1 queues", 1, false}, {"10 queues", 10, false}, {"40 queues of which pods run", 40, true}} {
		b.Run(test.name, func(b *testing.B) {
			queues := test.queues
			c := busyCluster{nodes: 5000, perNode: 4, minimum: 1, preemptable: true, queues: queues, shares: "capacity", othersRun: test.run}
			p := preemptors{jobs: 2000, kinds: 100, size: 1, queue: func(job int) string { return fmt.Sprintf("poor%d", job%queues) }, plans: 2000}
			for i := range queues {
				c.others = append(c.others, fmt.Sprintf("poor%d", i))
			}
			measurePreemptors(b, &c, &p)
		})
	}
}

func measurePreemptors(b *testing.B, c *busyCluster, p *preemptors) {
	var spent time.Duration
	for range b.N {
		b.StopTimer()
		w := c.fill(b)
		events := p.arrive(c)
		began := cpuTime(b)
		b.StartTimer()
		result := w.Scheduler.Cycle(w.Now.Add(time.Second), events)
		b.StopTimer()
		spent += cpuTime(b) - began
		if got := len(result.Decisions.Plans); result.Panic != "" || got != p.plans {
			b.Fatalf("%d plans were made, want %d: %s", got, p.plans, result.Panic)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(p.jobs*b.N)/spent.Seconds(), "jobs/cpu-s") // which says more than the clock while others use the machine
}
