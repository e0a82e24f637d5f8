package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hekla.sh/hekla/pkg/cluster/workloads"
)

// admissions are the numbers of the attempts to admit Workloads.
type admissions struct {
	attempts   *prometheus.CounterVec
	took       *prometheus.HistogramVec
	rounds     prometheus.Observer
	nodeMisses *prometheus.CounterVec

	lasted time.Duration // of the last run of the action
}

// The results of attempts, as Kueue calls them.
const (
	attemptSucceeded = "success"
	attemptFailed    = "inadmissible"
)

func (m *Metrics) newAdmissions() admissions {
	const kueue = "kueue"
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: kueue, Name: "admission_attempt_duration_seconds",
		Help: "Duration of an attempt to admit workloads.", Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15)}, []string{"result"})
	rounds := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: hekla, Name: "admit_rounds",
		Help: "Rounds of heads in a cycle that tries workloads.", Buckets: prometheus.ExponentialBuckets(1, 2, 12)})
	m.registry.MustRegister(took, rounds)
	a := admissions{took: took, rounds: rounds,
		attempts: m.counter(kueue, "admission_attempts_total", "Cycles that tried to admit workloads: success if at least one got quota, else inadmissible.", "result"),
		nodeMisses: m.counter(hekla, "admit_node_misses_total", "Workloads that were refused because of nodes although there was quota.",
			"cluster_queue")}
	for _, result := range []string{attemptSucceeded, attemptFailed} {
		a.attempts.WithLabelValues(result)
	}
	return a
}

// Workloads counts an attempt to admit Workloads, after the action that made it was observed. A cycle in which none was tried is no
// attempt.
func (m *Metrics) Workloads(t *workloads.Tally) {
	if t.Rounds == 0 {
		return
	}
	result := attemptFailed
	if t.Reserved > 0 {
		result = attemptSucceeded
	}
	a := &m.admissions
	a.attempts.WithLabelValues(result).Inc()
	a.took.WithLabelValues(result).Observe(a.lasted.Seconds())
	a.rounds.Observe(float64(t.Rounds))
	for queue, count := range t.NodeMisses {
		a.nodeMisses.WithLabelValues(queue).Add(float64(count))
	}
}
