package cohorts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/test/cohorts/world"
)

// sharing is two queues without quota of their own, which share that of their Cohort.
func sharing(cpu int, strategy string) string {
	const queue = `
---
{kind: ClusterQueue, metadata: {name: %[1]s}, spec: {cohortName: both, queueingStrategy: %[2]s, namespaceSelector: {},
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: 0}]}]}]}}
---
{kind: LocalQueue, metadata: {name: %[1]s}, spec: {clusterQueue: %[1]s}}`
	return fmt.Sprintf(`
{kind: ResourceFlavor, metadata: {name: default}}
---
{kind: Cohort, metadata: {name: both}, spec: {resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: %d}]}]}]}}`,
		cpu) + fmt.Sprintf(queue, "a", strategy) + fmt.Sprintf(queue, "b", strategy)
}

func TestTheNextHeadOfAQueueEntersTheOrderAtOnce(t *testing.T) {
	w := func(name, queue string, priority, cpu int) string {
		return workloadOf(name, queue, priority, 1, fmt.Sprint(cpu))
	}
	for name, test := range map[string]struct {
		arguments string
		cpu       int
		first     []string // they come before, and are admitted
		then      []string // they come at once
		want      string   // who of them are admitted in the first cycle
	}{
		"two of high priority before one of low": {"", 2, nil,
			[]string{w("low", "a", 0, 1), w("b0", "b", 100, 1), w("b1", "b", 100, 1)}, "b0 b1"},
		"fair sharing gives two and two": {"{fairSharing: true}", 4, []string{w("a0", "a", 0, 1), w("a1", "a", 0, 1)},
			[]string{w("a2", "a", 0, 1), w("b0", "b", 0, 1), w("b1", "b", 0, 1)}, "b0 b1"},
		"three small ones before a large one that is above its share": {"{fairSharing: true}", 5, []string{w("a0", "a", 0, 1), w("a1", "a", 0, 1)},
			[]string{w("a2", "a", 0, 2), w("b0", "b", 0, 1), w("b1", "b", 0, 1), w("b2", "b", 0, 1)}, "b0 b1 b2"},
		"one that fits nowhere holds up no other": {"{fairSharing: true}", 4, []string{w("a0", "a", 0, 1), w("a1", "a", 0, 1)},
			[]string{w("a2", "a", 0, 1), w("b0", "b", 0, 9), w("b1", "b", 0, 1), w("b2", "b", 0, 1)}, "b1 b2"},
		"a round of one head each, as Kueue has it": {"{fairSharing: true, maxRounds: 1}", 4, []string{w("a0", "a", 0, 1), w("a1", "a", 0, 1)},
			[]string{w("a2", "a", 0, 1), w("b0", "b", 0, 1), w("b1", "b", 0, 1)}, "a2 b0"},
	} {
		for _, strategy := range []string{"BestEffortFIFO", "StrictFIFO"} {
			if strategy == "StrictFIFO" && strings.HasPrefix(name, "one that fits") {
				continue // it does hold up those behind it
			}
			t.Run(name+", "+strategy, func(t *testing.T) {
				c := world.New(t, world.Configuration(test.arguments)).AddNode("n1", "cpu=16").Apply(sharing(test.cpu, strategy))
				for _, text := range test.first {
					c.Apply(text).Rest(20)
				}
				for _, text := range test.then {
					c.Apply(text)
				}
				c.Step()
				var got []string
				for _, said := range c.Said {
					if admitted, is := strings.CutPrefix(said, "admit "); is {
						got = append(got, admitted)
					}
				}
				slices.Sort(got)
				if admitted := strings.Join(got, " "); admitted != test.want {
					t.Errorf("admitted are %s, want %s", admitted, test.want)
				}
				if c.Rest(40); c.Evictions > 0 {
					t.Errorf("%d evictions", c.Evictions)
				}
			})
		}
	}
}
