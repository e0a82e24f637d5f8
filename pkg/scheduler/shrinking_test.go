package scheduler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/harness/loop"
)

// Shares follow from the size of the cluster. If it is smaller no queue deserves more, and as long as none holds more
// than it deserves then, nothing has happened that could help a job.
func TestASmallerClusterWakesNoJobThatItCannotHelp(t *testing.T) {
	for _, shares := range []string{"proportion", "capacity"} {
		t.Run(shares, func(t *testing.T) {
			c := busyCluster{nodes: 100, perNode: 4, minimum: 10, preemptable: true, queues: 2, racked: true, shares: shares}
			w := c.fill(t)
			gangs := c.waitingGangs(20, 4, "p0", false)
			rack(w, c.nodes, gangs)
			for range 6 {
				runCycle(t, w, gangs)
				gangs = nil
			}
			before := looks(w)
			if before == 0 {
				t.Fatal("no job waits")
			}
			n := w.Cluster.Node("node-0007").Object.DeepCopy()
			n.Spec.Unschedulable = true
			runCycle(t, w, []cache.Event{cache.Set{Object: n}})
			if after := looks(w); after != before {
				t.Errorf("jobs were looked at %d times again when a node was cordoned", after-before)
			}
			n = w.Cluster.Node("node-0008").Object.DeepCopy()
			n.Status.Allocatable[corev1.ResourceCPU] = n.Status.Allocatable[corev1.ResourceMemory]
			runCycle(t, w, []cache.Event{cache.Set{Object: n}})
			if looks(w) == before {
				t.Error("no job was looked at when a node had more")
			}
		})
	}
}

// looks counts how often jobs were refused.
func looks(w *loop.Loop) (sum uint64) {
	w.Cluster.EachJob(func(j *cluster.Job) { sum += j.Refusals })
	return sum
}
