package cohorts

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/cohorts/world"
)

// one is a queue of one flavor with so much CPU.
func one(cpu int, preemption string) string {
	return fmt.Sprintf(`
{kind: ResourceFlavor, metadata: {name: default}}
---
{kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, preemption: {withinClusterQueue: %s},
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: %d}]}]}]}}
---
{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}`, preemption, cpu)
}

func workloadOf(name, queue string, priority, count int, cpu string) string {
	return fmt.Sprintf(`
{kind: Workload, metadata: {name: %s}, spec: {queueName: %s, priority: %d, podSets: [{name: main, count: %d, template:
  {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: %s}}}]}}}]}}`, name, queue, priority, count, cpu)
}

func TestAdmission(t *testing.T) {
	t.Run("pods take the places that were held for them", func(t *testing.T) {
		w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").AddNode("n2", "cpu=4")
		w.Apply(one(10, "Never")).Apply(workloadOf("a", "q", 0, 3, "2")).Rest(20)
		w.Expect("a", "admitted")
		if diff := cmp.Diff(3, w.Running("a")["n1"]+w.Running("a")["n2"]); diff != "" {
			t.Errorf("pods that run (-want +got):\n%s", diff)
		}
	})
	t.Run("a gang that nodes do not hold is not admitted", func(t *testing.T) {
		w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=3").AddNode("n2", "cpu=3")
		w.Apply(one(10, "Never")).Apply(workloadOf("a", "q", 0, 3, "2")).Apply(workloadOf("b", "q", 0, 2, "2")).Rest(20)
		w.Expect("a", "TopologyPlacementFailed: couldn't assign flavors to pod set main: no room on the nodes of flavor default for 1 of 3 pod(s): 2 Insufficient cpu")
		w.Expect("b", "admitted")
		w.AddNode("n3", "cpu=6").Rest(20)
		w.Expect("a", "admitted")
	})
	t.Run("a victim leaves before its preemptor starts", func(t *testing.T) {
		w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4")
		w.Apply(one(10, "LowerPriority")).Apply(workloadOf("low", "q", 0, 2, "2")).Rest(20)
		w.Expect("low", "admitted")
		w.Apply(workloadOf("high", "q", 5, 2, "2")).Apply(workloadOf("late", "q", 1, 1, "1")).Rest(30)
		w.Expect("high", "admitted")
		if w.Evictions != 1 || w.Running("high")["n1"] != 2 {
			t.Errorf("%d evictions; of high run %v", w.Evictions, w.Running("high"))
		}
	})
}

func TestRestorePlan(t *testing.T) {
	begin := func(t *testing.T) *world.World {
		w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(one(4, "LowerPriority")).Apply(workloadOf("low", "q", 0, 1, "4")).Rest(20)
		w.Grace = 6
		w.Apply(workloadOf("high", "q", 5, 1, "4"))
		for w.Evictions == 0 {
			w.Step()
		}
		return w
	}
	t.Run("nodes that were promised are promised again", func(t *testing.T) {
		w := begin(t).Restart(nil)
		w.Step()
		plans := w.Plans().InOrder()
		if len(plans) != 1 || len(plans[0].Promised()) != 1 || plans[0].Promised()[0].Node.Name != "n1" {
			t.Fatalf("the plans are %v", plans)
		}
		if w.Rest(40).Expect("high", "admitted"); w.Evictions != 1 {
			t.Errorf("%d evictions", w.Evictions)
		}
	})
	t.Run("a plan whose node is gone ends, and another is used", func(t *testing.T) {
		w := begin(t)
		w.RemoveNode("n1")
		w.AddNode("n2", "cpu=4").Restart(nil).Rest(40).Expect("high", "admitted")
		if len(w.Plans().InOrder()) != 0 || w.Running("high")["n2"] != 1 {
			t.Errorf("%d plans, and it runs on %v", len(w.Plans().InOrder()), w.Running("high"))
		}
	})
}

func TestNothingIsAdmittedWhilePodsAreNotReady(t *testing.T) {
	w := world.New(t, world.Configuration("{waitForPodsReady: {enable: true, blockAdmission: true}}")).AddNode("n1", "cpu=4").Apply(one(4, "Never"))
	w.Apply(workloadOf("a", "q", 0, 1, "1")).Rest(20).Expect("a", "admitted")
	w.Apply(workloadOf("b", "q", 0, 1, "1")).Rest(20)
	w.Expect("b", "WaitingForPodsReady: waiting for all admitted workloads to be in PodsReady condition")
	w.Edit("a", func(o *v1beta2.Workload) { queueing.ObservePods(o, true, w.Now) })
	w.Rest(20).Expect("b", "admitted")
}

func TestRoundsThatAreCutShortGoOnAtOnce(t *testing.T) {
	w := world.New(t, world.Configuration("{maxRounds: 1}")).AddNode("n1", "cpu=4")
	w.Apply(one(4, "Never"))
	for _, name := range []string{"a", "b", "c", "d"} {
		w.Apply(workloadOf(name, "q", 0, 1, "1"))
	}
	for i, name := range []string{"a", "b", "c", "d"} {
		w.Step()
		if said := strings.Join(w.Said, " "); said != "admit "+name {
			t.Errorf("cycle %d: %s", i, said)
		}
		if next := w.Result.Wake.Sub(w.Now); i < 3 && (next <= 0 || next > 100*time.Millisecond) {
			t.Errorf("after cycle %d the next one is due after %s", i, next)
		}
	}
	if tally := w.Result.Workloads; tally.Rounds != 1 || tally.Reserved != 1 {
		t.Errorf("of the last cycle is counted %+v", tally)
	}
	w.Rest(10)
	if wake := w.Result.Wake; !wake.IsZero() && wake.Before(w.Now.Add(time.Second)) {
		t.Errorf("at rest the next cycle is due at %s, now is %s", wake, w.Now)
	}
}

func TestPlacesOfAWorkload(t *testing.T) {
	begin := func(t *testing.T) *world.World {
		w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=2")
		return w.Apply(one(2, "Never")).Apply(workloadOf("a", "q", 0, 2, "1")).Rest(20).Expect("a", "admitted")
	}
	awaited := func(w *world.World) (held int) {
		w.Cluster.EachTask(func(t *cluster.Task) {
			if t.Status == cluster.Awaited {
				held++
			}
		})
		return held
	}
	t.Run("the place of a pod that has succeeded is held for the next", func(t *testing.T) {
		w := begin(t)
		w.Succeed(w.Pods("a")[0])
		w.Apply(workloadOf("b", "q", 0, 1, "1")).Rest(20)
		if w.Expect("a", "admitted"); awaited(w) != 1 || w.Evictions != 0 {
			t.Errorf("%d places are held, after %d evictions", awaited(w), w.Evictions)
		}
		w.Edit("a", func(o *v1beta2.Workload) {
			o.Status.ReclaimablePods = []v1beta2.ReclaimablePod{{Name: "main", Count: 1}}
		})
		w.Rest(20).Expect("b", "admitted")
		if awaited(w) != 0 || w.Running("a")["n1"] != 1 || w.Running("b")["n1"] != 1 {
			t.Errorf("%d places are held, of a run %v, of b %v", awaited(w), w.Running("a"), w.Running("b"))
		}
	})
	t.Run("a Workload that had started waits long for a pod", func(t *testing.T) {
		w := begin(t)
		for range 2 {
			w.Now = w.Now.Add(time.Hour)
			w.Succeed(w.Pods("a")[0])
			w.Rest(20).Expect("a", "admitted")
			w.Restart(nil).Rest(20).Expect("a", "admitted")
		}
		if awaited(w) == 0 || w.Evictions != 0 {
			t.Errorf("%d places are held, after %d evictions", awaited(w), w.Evictions)
		}
	})
}
