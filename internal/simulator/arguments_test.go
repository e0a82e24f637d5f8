package simulator_test

import (
	"fmt"
	"strings"
	"testing"

	"hekla.sh/hekla/internal/simulator"
)

// world is a node, flavors, and two ClusterQueues of a Cohort that has two CPUs for both, besides what they have of
// their own.
func world(groups string) string {
	queue := func(name string) string {
		return fmt.Sprintf(`
{apiVersion: kueue.x-k8s.io/v1beta1, kind: ClusterQueue, metadata: {name: %[1]s}, spec: {cohort: all, namespaceSelector: {}, resourceGroups: %[2]s}}
---
{apiVersion: kueue.x-k8s.io/v1beta1, kind: LocalQueue, metadata: {namespace: work, name: %[1]s}, spec: {clusterQueue: %[1]s}}
---
`, name, groups)
	}
	return `
{apiVersion: v1, kind: Node, metadata: {name: n1}, status: {allocatable: {cpu: "40", memory: 16Gi, pods: "60", example.com/gpu: "9", example.com/slice: "9"}}}
---
{apiVersion: kueue.x-k8s.io/v1beta1, kind: ResourceFlavor, metadata: {name: any}}
---
{apiVersion: kueue.x-k8s.io/v1beta1, kind: ResourceFlavor, metadata: {name: credits}}
---
{apiVersion: kueue.x-k8s.io/v1beta1, kind: WorkloadPriorityClass, metadata: {name: urgent}, value: 100}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Cohort
metadata: {name: all}
spec: {resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 2}]}]}]}
---
` + queue("a") + queue("b")
}

const (
	ofCPU     = "[{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 9}]}]}]"
	ofCredits = "[{coveredResources: [credits], flavors: [{name: credits, resources: [{name: credits, nominalQuota: 14}]}]}]"
	nothing   = "[{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 0}]}]}]"
)

func TestTheArgumentsOfCohortsSayWhatCounts(t *testing.T) {
	both := strings.TrimSuffix(ofCPU, "]") + ", " + strings.TrimPrefix(ofCredits, "[")
	withMemory := strings.Replace(queuedJob("first", "a", 1, "1", ""), "{cpu: 1}", "{cpu: 1, memory: 1Gi}", 1)
	withSlices := strings.Replace(queuedJob("first", "a", 1, "1", ""), "{cpu: 1}", "{cpu: 1, example.com/gpu: 2, example.com/slice: 3}", 1)
	at := func(job, time string) string {
		return strings.Replace(job, "metadata: {", "metadata: {creationTimestamp: '2026-03-02T"+time+"Z', ", 1)
	}
	old, urgent := at(queuedJob("old", "a", 2, "1", ""), "06:00:00"), at(queuedJob("new", "b", 2, "1", ", kueue.x-k8s.io/priority-class: urgent"), "07:00:00")
	for name, test := range map[string]struct {
		arguments, text string
		want            string // the names of jobs whose Workloads are admitted
	}{
		"a resource without quota":                    {"", world(ofCPU) + withMemory, ""},
		"one that is excluded":                        {"resources: {excludeResourcePrefixes: [mem]}", world(ofCPU) + withMemory, "first"},
		"one that is ignored":                         {"resources: {quotaCheckStrategy: IgnoreUndeclared}", world(ofCPU) + withMemory, "first"},
		"one that is excluded counts for other rules": {"resources: {excludeResourcePrefixes: [example.com/]}", world(ofCPU) + withMemory, ""},
		"credits and what costs them": {"resources: {transformations: [{input: cpu, strategy: Retain, outputs: {credits: 1}}]}",
			world(both) + queuedJob("first", "a", 9, "1", "") + queuedJob("later", "a", 5, "1", ""), "first later"},
		"credits of three for each": {"resources: {transformations: [{input: cpu, strategy: Retain, outputs: {credits: 3}}]}",
			world(both) + queuedJob("first", "a", 9, "1", "") + queuedJob("later", "a", 10, "1", ""), "first"},
		"credits in place of what costs them": {"resources: {transformations: [{input: cpu, strategy: Replace, outputs: {credits: 2}}]}",
			world(ofCredits) + queuedJob("first", "a", 7, "1", "") + queuedJob("later", "a", 15, "1", ""), "first"},
		"an amount times another, within the quota": {"resources: {excludeResourcePrefixes: [cpu], transformations: [{input: example.com/slice, strategy: Replace, multiplyBy: example.com/gpu, outputs: {credits: 4}}, {input: example.com/gpu, strategy: Replace}]}",
			world(ofCredits) + withSlices, "first"},
		"an amount times another, beyond it": {"resources: {excludeResourcePrefixes: [cpu], transformations: [{input: example.com/slice, strategy: Replace, multiplyBy: example.com/gpu, outputs: {credits: 5}}, {input: example.com/gpu, strategy: Replace}]}",
			world(ofCredits) + withSlices, ""},
		"the higher priority comes first":           {"", world(nothing) + old + urgent, "new"},
		"the earlier, where priority does not sort": {"prioritySortingWithinCohort: false", world(nothing) + old + urgent, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			configured := strings.Replace(withCapacity, "{name: cohorts}", "{name: cohorts, arguments: {"+test.arguments+"}}", 1)
			r := simulateUnder(t, configured, test.text, simulator.Options{Cycles: 8})
			var admitted []string
			for _, w := range r.Workloads {
				if w.Admitted {
					admitted = append(admitted, strings.Split(w.Workload, "-")[1])
				}
			}
			if got := strings.Join(admitted, " "); got != test.want {
				t.Errorf("admitted are %q, want %q:\n%s", got, test.want, stands(r))
			}
		})
	}
}
