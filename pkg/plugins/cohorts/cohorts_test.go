package cohorts_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/cluster/workloads/shapes"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/plugins/cohorts"
	"hekla.sh/hekla/test/harness"
)

var both = []workload.Strategy{workload.LessThanOrEqualToFinalShare, workload.LessThanInitialShare}

func TestTheRulesOfArguments(t *testing.T) {
	for name, test := range map[string]struct {
		arguments string
		want      framework.WorkloadRules
	}{
		"the defaults are Kueue's": {"", framework.WorkloadRules{Options: workloads.Defaults(), Strategies: both}},
		"fair sharing by one strategy": {"{fairSharing: true, preemptionStrategies: [LessThanInitialShare], maxRounds: 3}",
			framework.WorkloadRules{Options: workloads.Defaults(), FairSharing: true, Strategies: both[1:], MaxRounds: 3}},
		"admission that waits for pods": {"{waitForPodsReady: {enable: true, blockAdmission: true, requeuingStrategy: {timestamp: Creation}}}",
			framework.WorkloadRules{Options: workloads.Options{ByPriority: true}, Strategies: both, BlocksAdmission: true}},
		"blocking that is not enabled": {"{waitForPodsReady: {blockAdmission: true}}",
			framework.WorkloadRules{Options: workloads.Defaults(), Strategies: both}},
		"what of requests counts": {"{prioritySortingWithinCohort: false, resources: {quotaCheckStrategy: IgnoreUndeclared, excludeResourcePrefixes: [a/]," +
			" transformations: [{input: b, strategy: Replace}]}, integrations: {externalFrameworks: [Kind.v1.group]}}",
			framework.WorkloadRules{Options: workloads.Options{EvictionTimestamp: true, External: []schema.GroupVersionKind{{Group: "group", Version: "v1", Kind: "Kind"}},
				Counted: shapes.Counted{ExcludePrefixes: []string{"a/"}, Transformations: []shapes.Transformation{{Input: "b", Replaces: true}}}},
				Strategies: both, IgnoreUndeclared: true}},
	} {
		t.Run(name, func(t *testing.T) {
			h := harness.ForPlugins(t, harness.Entry{Factory: cohorts.Factory(), Arguments: test.arguments})
			if diff := cmp.Diff(&test.want, h.Policy.WorkloadRules()); diff != "" {
				t.Errorf("the rules (-want +got):\n%s", diff)
			}
		})
	}
}
