package nodes_test

import (
	"testing"

	"hekla.sh/hekla/test/cohorts/world"
)

const queue = `
{kind: ResourceFlavor, metadata: {name: default}}
---
{kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {},
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 8}]}]}]}}
---
{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}
---
{kind: Workload, metadata: {name: a}, spec: {queueName: q, podSets: [{name: main, count: 2, template:
  {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}}}]}}`

func TestTheKeeper(t *testing.T) {
	t.Run("pods take the places of stand-ins", func(t *testing.T) {
		w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(queue)
		w.Step()
		if got := standing(w.Model); got != "n1 n1" {
			t.Errorf("after the admission stand-ins are on %q", got)
		}
		if w.Rest(20); standing(w.Model) != "" || w.Running("a")["n1"] != 2 {
			t.Errorf("at rest stand-ins are on %q, and pods on %v", standing(w.Model), w.Running("a"))
		}
	})

	t.Run("a pod that is gone gets a stand-in again", func(t *testing.T) {
		w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(queue).Rest(20)
		w.RemovePod("a-main-1")
		if w.Step(); standing(w.Model) != "n1" {
			t.Errorf("stand-ins are on %q", standing(w.Model))
		}
	})

	t.Run("stand-ins go with the admission", func(t *testing.T) {
		w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(queue)
		w.Step()
		w.Switch(false)
		if w.Step(); standing(w.Model) != "" {
			t.Errorf("without the action stand-ins are on %q", standing(w.Model))
		}
	})
}
