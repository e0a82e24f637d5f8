package cohorts

import (
	"fmt"
	"testing"
	"time"

	"hekla.sh/hekla/test/cohorts/world"
	"hekla.sh/hekla/test/fixture"
)

// large is a scheduler with 1,000 nodes, 1,000 ClusterQueues in 100 cohorts, and Workloads that wait in them. Each
// ClusterQueue has a quota of so many CPUs.
func large(b *testing.B, quota, workloads int) *world.World {
	w := world.New(b, world.Configuration(""))
	w.Apply("{kind: ResourceFlavor, metadata: {name: default}}")
	for i := range 1000 {
		w.AddNode(fmt.Sprintf("n%d", i), "cpu=32 memory=128Gi pods=110")
		w.Apply(fmt.Sprintf(`{kind: ClusterQueue, metadata: {name: q%d}, spec: {cohortName: c%d, namespaceSelector: {},
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: %d}]}]}]}}
---
{kind: LocalQueue, metadata: {name: q%d}, spec: {clusterQueue: q%d}}`, i, i%100, quota, i, i))
	}
	for i := range workloads {
		w.Apply(workloadOf(fmt.Sprintf("w%d", i), fmt.Sprintf("q%d", i%1000), 0, 1+i%2, "1"))
	}
	return w
}

func cycle(b *testing.B, w *world.World) int {
	w.Now = w.Now.Add(time.Millisecond)
	result := w.Scheduler.Cycle(w.Now, nil)
	if result.Panic != "" {
		b.Fatal(result.Panic)
	}
	return len(result.Decisions.Workloads)
}

// A cycle in which nothing has changed, with 10,000 Workloads that were refused.
func BenchmarkIdleCycleWithWorkloads(b *testing.B) {
	w := large(b, 0, 10_000)
	cycle(b, w)
	cycle(b, w)
	for b.Loop() {
		cycle(b, w)
	}
}

// The first cycle with 1,000 heads that are all refused by quota. Those behind them have the same shapes.
func BenchmarkRefusalOfThousandHeads(b *testing.B) {
	w := large(b, 0, 10_000)
	cycle(b, w)
	for b.Loop() {
		b.StopTimer()
		for _, q := range w.Loop.Workloads.Queues().All() {
			w.Loop.Workloads.Queues().RetryAll(q)
		}
		b.StartTimer()
		cycle(b, w)
	}
}

// One cycle that admits all of 10,000 Workloads with one or two pods, each with quota and named nodes.
func BenchmarkAdmissionOfWorkloads(b *testing.B) {
	admitted := 0
	for b.Loop() {
		b.StopTimer()
		w := large(b, 40, 10_000)
		b.StartTimer()
		admitted += cycle(b, w)
	}
	b.ReportMetric(float64(admitted)/b.Elapsed().Seconds(), "admissions/s")
}

// A gang of fifty pods preempts fifty of 700 Workloads. The 2,000 nodes are full.
func BenchmarkPreemptionAmongWorkloads(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		w := world.New(b, world.Configuration("")).Apply(one(100_000, "LowerPriority"))
		for i := range 2000 {
			w.AddNode(fmt.Sprintf("n%d", i), "cpu=4 memory=16Gi pods=110")
			if i >= 700 {
				w.Set(fixture.Pod(fmt.Sprintf("other-%d", i), fixture.Asks("cpu=4"), fixture.On(fmt.Sprintf("n%d", i))))
			}
		}
		for i := range 700 {
			w.Apply(workloadOf(fmt.Sprintf("low%d", i), "q", 0, 1, "4"))
		}
		w.Rest(20)
		w.Apply(workloadOf("high", "q", 5, 50, "4"))
		w.Now = w.Now.Add(time.Second)
		b.StartTimer()
		result := w.Scheduler.Cycle(w.Now, nil)
		b.StopTimer()
		if p := w.Plans().InOrder(); len(p) != 1 || len(p[0].Victims) != 50 {
			b.Fatalf("%d plans: %s", len(p), result.Panic)
		}
		b.StartTimer()
	}
}
