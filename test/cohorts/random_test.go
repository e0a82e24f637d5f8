package cohorts

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"hekla.sh/hekla/test/harness"
)

// worlds is how many random cases a property is tried on.
func worlds(t *testing.T, few int) int { return harness.Number(t, "HEKLA_COHORT_WORLDS", few) }

func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// random makes a case: up to seven nodes in up to three levels, one or two flavors, and up to twelve Workloads that
// wait. It goes through JSON, so that it can be printed and kept.
func random(t *testing.T, r *rand.Rand, withNodes bool) *theCase {
	fair := r.IntN(2) == 0
	made := map[string]any{"id": "random", "kind": "termination", "fairSharing": fair,
		"preemptionStrategies": pick(r, []string{"LessThanOrEqualToFinalShare", "LessThanInitialShare"}, []string{"LessThanOrEqualToFinalShare"}, []string{"LessThanInitialShare"})}
	var cohorts []map[string]any
	names := []string{"c0"}
	for i := range 1 + r.IntN(3) {
		name, parent := fmt.Sprintf("c%d", i), ""
		if i > 0 {
			parent = names[r.IntN(len(names))]
			names = append(names, name)
		}
		cohorts = append(cohorts, map[string]any{"name": name, "parentName": parent, "resourceGroups": randomGroups(r, 2, parent != ""),
			"fairSharing": map[string]any{"weight": pick(r, "1", "1", "1", "2", "0.5", "0")}})
	}
	var queues []map[string]any
	flavors := 1 + r.IntN(2)
	for i := range 2 + r.IntN(4) {
		queues = append(queues, randomQueue(r, i, pick(r, append(names, names...)...), flavors))
	}
	made["cohorts"], made["clusterQueues"] = cohorts, queues
	var pending []map[string]any
	for i := range 2 + r.IntN(11) {
		pending = append(pending, randomWorkload(r, i, len(queues)))
	}
	made["pending"] = pending
	if withNodes {
		var nodes []map[string]any
		for i := range 1 + r.IntN(5) {
			nodes = append(nodes, map[string]any{"name": fmt.Sprintf("n%d", i), "flavors": pick(r, []string{"f0"}, []string{"f1"}, []string{"f0", "f1"}),
				"allocatable": map[string]any{"cpu": strconv.Itoa(1 + r.IntN(6))}})
		}
		made["nodes"] = nodes
	}
	text, err := json.Marshal(made)
	if err != nil {
		t.Fatal(err)
	}
	c := &theCase{}
	decode(t, text, c)
	c.Note = string(text)
	return c
}

func randomGroups(r *rand.Rand, flavors int, hasParent bool) []map[string]any {
	if r.IntN(2) == 0 {
		return []map[string]any{}
	}
	return []map[string]any{{"coveredResources": []string{"cpu"}, "flavors": randomFlavors(r, flavors, hasParent)}}
}

func randomFlavors(r *rand.Rand, flavors int, hasParent bool) (all []map[string]any) {
	for i := range flavors {
		nominal := r.IntN(6)
		quota := map[string]any{"name": "cpu", "nominalQuota": strconv.Itoa(nominal)}
		if hasParent && r.IntN(4) == 0 {
			quota["borrowingLimit"] = strconv.Itoa(r.IntN(4))
		}
		if hasParent && r.IntN(4) == 0 {
			quota["lendingLimit"] = strconv.Itoa(r.IntN(nominal + 1))
		}
		all = append(all, map[string]any{"name": fmt.Sprintf("f%d", i), "resources": []any{quota}})
	}
	return all
}

func randomQueue(r *rand.Rand, i int, parent string, flavors int) map[string]any {
	preemption := map[string]any{"withinClusterQueue": pick(r, "Never", "LowerPriority", "LowerOrNewerEqualPriority"),
		"reclaimWithinCohort": pick(r, "Never", "LowerPriority", "Any", "Any")}
	if preemption["reclaimWithinCohort"] != "Never" && r.IntN(2) == 0 {
		preemption["borrowWithinCohort"] = map[string]any{"policy": "LowerPriority"}
	}
	fungibility := map[string]any{"whenCanBorrow": pick(r, "MayStopSearch", "TryNextFlavor"), "whenCanPreempt": pick(r, "MayStopSearch", "TryNextFlavor")}
	if fungibility["whenCanBorrow"] == "TryNextFlavor" && fungibility["whenCanPreempt"] == "TryNextFlavor" {
		fungibility["preference"] = pick(r, "BorrowingOverPreemption", "PreemptionOverBorrowing")
	}
	return map[string]any{"name": fmt.Sprintf("q%d", i), "cohortName": parent, "preemption": preemption, "flavorFungibility": fungibility,
		"fairSharing":    map[string]any{"weight": pick(r, "1", "1", "1", "2", "0.5", "0")},
		"resourceGroups": []any{map[string]any{"coveredResources": []string{"cpu"}, "flavors": randomFlavors(r, flavors, true)}}}
}

func randomWorkload(r *rand.Rand, i, queues int) map[string]any {
	var sets []map[string]any
	for j := range 1 + r.IntN(2) {
		set := map[string]any{"name": fmt.Sprintf("ps%d", j), "count": 1 + r.IntN(3), "requests": map[string]any{"cpu": strconv.Itoa(1 + r.IntN(3))}}
		if j == 0 && r.IntN(4) == 0 {
			set["minCount"] = 1
		}
		sets = append(sets, set)
	}
	return map[string]any{"name": fmt.Sprintf("w%d", i), "clusterQueue": fmt.Sprintf("q%d", r.IntN(queues)), "priority": r.IntN(4) - 1,
		"createdSeconds": r.IntN(8), "podSets": sets}
}
