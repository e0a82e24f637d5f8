package cohorts

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/cohorts/world"
	"hekla.sh/hekla/test/fixture"
)

// The pods name a PodGroup as well, which the controllers make for them while no Workloads are served.
const grouped = `
{kind: Workload, metadata: {name: a}, spec: {queueName: q, podSets: [{name: main, count: 2, template: {metadata: {annotations: {scheduling.k8s.io/group-name: a}},
  spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}}]}}`

func TestJobsRunToTheirEndWhileNoWorkloadsAreAdmitted(t *testing.T) {
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4")
	w.Apply(one(4, "Never")).Apply(grouped).Apply(workloadOf("b", "q", 0, 1, "1"))
	group := fixture.Group("a", "default", 1)
	group.Namespace = world.Namespace
	w.Set(fixture.Queue("default"), group)
	w.Step()
	w.Expect("a", "admitted")
	if names := w.Pods("a"); len(names) != 2 || len(w.Running("a")) != 0 {
		t.Fatalf("pods %v, and %v run: the nodes are to be held for them still", names, w.Running("a"))
	}
	runs := func(when string) {
		t.Helper()
		for _, name := range w.Pods("a") {
			if task := w.Task(types.NamespacedName{Namespace: world.Namespace, Name: name}); task.Status != cluster.Running {
				t.Errorf("%s pod %s does not run: %+v", when, name, task.Status)
			}
		}
	}
	w.Switch(false)
	w.Rest(20)
	runs("switched off,")
	w.RemovePod("a-main-0")
	w.Rest(20)
	runs("made again,")
	w.Expect("a", "admitted")

	w.Switch(true)
	w.Rest(20)
	runs("switched on,")
	if w.Running("a")["n1"] != 2 {
		t.Errorf("of the Workload run %v", w.Running("a"))
	}
	const waits = "WaitingForQuota: couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor default, 1 more needed, " +
		"no room on the nodes of flavor default for 1 of 1 pod(s): 1 Insufficient cpu"
	w.Expect("b", waits)
	w.Mark("a")
	w.Rest(20).Expect("b", "admitted")
}
