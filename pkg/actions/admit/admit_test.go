package admit_test

import (
	"strings"
	"testing"

	"hekla.sh/hekla/test/cohorts/world"
)

const queue = `
{kind: ResourceFlavor, metadata: {name: default}}
---
{kind: ClusterQueue, metadata: {name: q}, spec: {namespaceSelector: {}, preemption: {withinClusterQueue: LowerPriority},
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 4}]}]}]}}
---
{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}`

// workload has one pod of four cores.
func workload(name, priority string) string {
	return "{kind: Workload, metadata: {name: " + name + "}, spec: {queueName: q, priority: " + priority + ", podSets: [{name: main, count: 1," +
		" template: {spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 4}}}]}}}]}}"
}

func TestAdmit(t *testing.T) {
	for name, test := range map[string]struct {
		arguments string
		nodes     string
		want      string // what is decided, in order
	}{
		"what fits is admitted, also by evicting what matters less": {"", "cpu=4", "admit low, evict low InClusterQueue, admit high"},
		"without nodes nothing is":                                  {"", "cpu=3", ""},
		"nor while pods are not ready":                              {"{waitForPodsReady: {enable: true, blockAdmission: true}}", "cpu=4", "admit low"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world.New(t, world.Configuration(test.arguments)).AddNode("n1", test.nodes).Apply(queue).Apply(workload("low", "0"))
			var said []string
			for step := range 12 {
				if step == 3 {
					w.Apply(workload("high", "5"))
				}
				w.Step()
				said = append(said, w.Said...)
			}
			if got := strings.Join(said, ", "); got != test.want {
				t.Errorf("decided is %q, want %q", got, test.want)
			}
		})
	}
}
