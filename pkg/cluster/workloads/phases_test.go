package workloads_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/cohorts/world"
)

func TestThePhasesOfAWorkload(t *testing.T) {
	const queue = `
{kind: ResourceFlavor, metadata: {name: default}}
---
{kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, preemption: {withinClusterQueue: LowerPriority},
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}}`
	const localQueue = "{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}"
	workload := func(name string, priority int) string {
		return fmt.Sprintf("{kind: Workload, metadata: {name: %s}, spec: {queueName: q, priority: %d, podSets: [{name: main, count: 1,"+
			" template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 4}}}]}}}]}}", name, priority)
	}
	w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(queue)
	w.Grace = 2
	seen := map[string][]string{}
	step := func(count int) {
		for range count {
			w.Step()
			for _, e := range w.Cache.Workloads.All() {
				if p := e.Phase.String(); !slices.Contains(seen[e.Name], p) || seen[e.Name][len(seen[e.Name])-1] != p {
					seen[e.Name] = append(seen[e.Name], p)
				}
			}
		}
	}
	w.Apply(workload("low", 0))
	step(2)
	w.Apply(localQueue)
	step(4)
	w.Apply(workload("high", 5))
	step(12)
	w.Edit("high", func(o *v1beta2.Workload) { conditions.Finish(o, "Succeeded", "done", w.Now) })
	step(1)
	for name, want := range map[string]string{
		"low":  "Outside Reserved Admitted Evicting Waiting",
		"high": "Planned Reserved Admitted Finished",
	} {
		if got := strings.Join(seen[name], " "); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if e := w.Cache.Workloads.Find(types.NamespacedName{Namespace: world.Namespace, Name: "high"}); e.Phase.Holds() {
		t.Errorf("one that is %s holds quota", e.Phase)
	}
}
