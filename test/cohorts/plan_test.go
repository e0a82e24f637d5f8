package cohorts

import (
	"fmt"
	"strings"
	"testing"

	"hekla.sh/hekla/test/cohorts/world"
)

func TestAPlanIsCheckedAgainWhenItsGroundsChange(t *testing.T) {
	queue := func(nominal int, more string) string {
		return fmt.Sprintf(`
{kind: ClusterQueue, metadata: {name: q}, spec: {cohortName: all, namespaceSelector: {}, preemption: {withinClusterQueue: LowerPriority,
  reclaimWithinCohort: LowerPriority, borrowWithinCohort: {policy: LowerPriority}}%s,
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: default, resources: [{name: cpu, nominalQuota: %d}]}]}]}}`, more, nominal)
	}
	lent := func(cpu int) string {
		return fmt.Sprintf(`{kind: Cohort, metadata: {name: all}, spec: {resourceGroups: [{coveredResources: [cpu],
  flavors: [{name: default, resources: [{name: cpu, nominalQuota: %d}]}]}]}}`, cpu)
	}
	flavor := func(spec string) string {
		return "{kind: ResourceFlavor, metadata: {name: default}, spec: {" + spec + "}}"
	}
	for name, test := range map[string]struct {
		nominal, lent int
		change        string
		holds         bool // it starts on the nodes that it was promised
		want          string
	}{
		"nothing changes":                {3, 0, flavor(""), true, "admitted"},
		"quota grows":                    {3, 0, queue(4, ""), true, "admitted"},
		"quota is cut and it still fits": {4, 0, queue(3, ""), true, "admitted"},
		"quota is cut":                   {3, 0, queue(1, ""), false, "ExceedsMaxQuota"},
		"the quota of the Cohort is cut": {1, 2, lent(1), false, "ExceedsMaxQuota"},
		"the queue leaves its Cohort":    {1, 2, strings.Replace(queue(1, ""), "cohortName: all, ", "", 1), false, "ExceedsMaxQuota"},
		"a borrowing limit is set":       {1, 2, strings.Replace(queue(1, ""), "nominalQuota: 1", "nominalQuota: 1, borrowingLimit: 1", 1), false, "ExceedsMaxQuota"},
		"its flavor has a taint":         {3, 0, flavor("nodeTaints: [{key: k, value: v, effect: NoSchedule}]"), false, "NoMatchingFlavor"},
		"its flavor has other nodes":     {3, 0, flavor("nodeLabels: {zone: b}"), false, "TopologyPlacementFailed"},
		"the queue is stopped":           {3, 0, queue(3, ", stopPolicy: Hold"), false, "Suspended"},
	} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, scheduler restarts %t", name, crash), func(t *testing.T) {
				w := world.New(t, world.Configuration("")).AddNode("n1", "cpu=4").Apply(flavor("")).Apply(lent(test.lent)).Apply(queue(test.nominal, "")).
					Apply("{kind: LocalQueue, metadata: {name: q}, spec: {clusterQueue: q}}")
				w.Apply(workloadOf("low", "q", 0, 1, "3")).Rest(20)
				w.Grace = 6
				w.Apply(workloadOf("high", "q", 5, 1, "3"))
				for i := 0; w.Evictions == 0; i++ {
					if w.Step(); i > 50 {
						t.Fatal("it has no plan: ", w.Says("high"))
					}
				}
				w.Apply(test.change)
				if crash {
					w.Restart(nil)
				}
				w.Step()
				if plans := w.Plans().InOrder(); (len(plans) == 1) != test.holds {
					t.Errorf("the plans are %v", plans)
				}
				if w.Rest(60); !strings.HasPrefix(w.Says("high"), test.want) {
					t.Errorf("it says %q, want %s", w.Says("high"), test.want)
				}
			})
		}
	}
}
