package metrics

import (
	"testing"

	"hekla.sh/hekla/pkg/cluster/workloads"
)

func TestAttemptsToAdmitWorkloadsAreCounted(t *testing.T) {
	m := New()
	m.Workloads(&workloads.Tally{}) // none was tried
	m.Observe("action", "admit")()
	m.Workloads(&workloads.Tally{Rounds: 3, Reserved: 2, NodeMisses: map[string]int{"q": 1}})
	m.Workloads(&workloads.Tally{Rounds: 1, NodeMisses: map[string]int{"q": 2}})
	expect(t, m, "kueue_admission_attempts_total", map[string]string{
		`kueue_admission_attempts_total{result="success"}`: "1", `kueue_admission_attempts_total{result="inadmissible"}`: "1"})
	expect(t, m, "hekla_admit_node_misses_total", map[string]string{`hekla_admit_node_misses_total{cluster_queue="q"}`: "3"})
	expect(t, m, "hekla_admit_rounds_sum", map[string]string{"hekla_admit_rounds_sum": "4"})
	expect(t, m, "kueue_admission_attempt_duration_seconds_count", map[string]string{
		`kueue_admission_attempt_duration_seconds_count{result="success"}`: "1", `kueue_admission_attempt_duration_seconds_count{result="inadmissible"}`: "1"})
}
