package metrics

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/test/fixture"
)

func TestAttemptsToAdmitWorkloadsAreCounted(t *testing.T) {
	m := New()
	m.Workloads(&workloads.Tally{}) // none was tried
	m.Observe("action", "admit")()
	a, b := types.NamespacedName{Namespace: "lab", Name: "a"}, types.NamespacedName{Namespace: "lab", Name: "b"}
	m.Workloads(&workloads.Tally{Rounds: 3, Reserved: 2, NodeMisses: map[string]int{"q": 1}, LocalQueues: map[types.NamespacedName]bool{a: true, b: false}})
	m.Workloads(&workloads.Tally{Rounds: 1, NodeMisses: map[string]int{"q": 2}, LocalQueues: map[types.NamespacedName]bool{b: false}})
	expect(t, m, "kueue_admission_attempts_total", map[string]string{
		`kueue_admission_attempts_total{result="success"}`: "1", `kueue_admission_attempts_total{result="inadmissible"}`: "1"})
	expect(t, m, "hekla_admit_node_misses_total", map[string]string{`hekla_admit_node_misses_total{cluster_queue="q"}`: "3"})
	expect(t, m, "hekla_admit_rounds_sum", map[string]string{"hekla_admit_rounds_sum": "4"})
	expect(t, m, "kueue_admission_attempt_duration_seconds_count", map[string]string{
		`kueue_admission_attempt_duration_seconds_count{result="success"}`: "1", `kueue_admission_attempt_duration_seconds_count{result="inadmissible"}`: "1"})
	const attempts, took = "kueue_local_queue_admission_attempts_total", "kueue_local_queue_admission_attempt_duration_seconds_count"
	ofA, ofB := `{name="a",namespace="lab",result="success"}`, `{name="b",namespace="lab",result="inadmissible"}`
	expect(t, m, attempts, map[string]string{attempts + ofA: "1", attempts + ofB: "2"})
	expect(t, m, took, map[string]string{took + ofA: "1", took + ofB: "2"})
	m.Workloads(&workloads.Tally{Gone: []types.NamespacedName{b}, GoneQueues: []string{"q"}})
	expect(t, m, "hekla_admit_node_misses_total", map[string]string{})
	expect(t, m, attempts, map[string]string{attempts + ofA: "1"})
	expect(t, m, took, map[string]string{took + ofA: "1"})
}

func TestPlacesForPodsToComeAreCountedByClusterQueue(t *testing.T) {
	c := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	c.Apply(cache.Set{Object: fixture.Node("n", "cpu=4")})
	c.Settle()
	w := &workload.Workload{Queue: &workload.Queue{}}
	w.Queue.Name = "q"
	n := c.Node("n")
	for _, status := range []cluster.Status{cluster.Awaited, cluster.Awaited, cluster.Running} {
		n.Internal.Tasks = append(n.Internal.Tasks, &cluster.Task{Status: status, Job: &cluster.Job{Workload: w}})
	}
	m := New()
	m.Totals(c.Cluster, nil)
	expect(t, m, "hekla_standins{", map[string]string{`hekla_standins{cluster_queue="q",queue=""}`: "2"})
}
