package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/workloads"
)

// admissions are the numbers of the attempts to admit Workloads.
type admissions struct {
	attempts   *prometheus.CounterVec
	took       *prometheus.HistogramVec
	byLocal    *prometheus.CounterVec // the same of the Workloads of a LocalQueue
	tookLocal  *prometheus.HistogramVec
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
	duration := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: kueue, Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(0.0005, 2, 15)}, labels)
	}
	took := duration("admission_attempt_duration_seconds", "Duration of an attempt to admit workloads.", "result")
	tookLocal := duration("local_queue_admission_attempt_duration_seconds", "Duration of an attempt in which workloads of the local queue were tried.",
		"name", "namespace", "result")
	rounds := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: hekla, Name: "admit_rounds",
		Help: "Rounds of heads in a cycle that tries workloads.", Buckets: prometheus.ExponentialBuckets(1, 2, 12)})
	m.registry.MustRegister(took, tookLocal, rounds)
	a := admissions{took: took, tookLocal: tookLocal, rounds: rounds,
		byLocal: m.counter(kueue, "local_queue_admission_attempts_total",
			"Attempts in which workloads of the local queue were tried: success if at least one got quota, else inadmissible.", "name", "namespace", "result"),
		attempts: m.counter(kueue, "admission_attempts_total", "Cycles that tried to admit workloads: success if at least one got quota, else inadmissible.", "result"),
		nodeMisses: m.counter(hekla, "admit_node_misses_total", "Workloads that were refused because of nodes although there was quota.",
			"cluster_queue")}
	for _, result := range []string{attemptSucceeded, attemptFailed} {
		a.attempts.WithLabelValues(result)
	}
	return a
}

// Workloads counts an attempt to admit Workloads, after the action that made it was observed. A cycle in which none was
// tried is no attempt.
func (m *Metrics) Workloads(t *workloads.Tally) {
	a := &m.admissions
	for _, q := range t.Gone {
		a.byLocal.DeletePartialMatch(prometheus.Labels{"name": q.Name, "namespace": q.Namespace})
		a.tookLocal.DeletePartialMatch(prometheus.Labels{"name": q.Name, "namespace": q.Namespace})
	}
	for _, name := range t.GoneQueues {
		a.nodeMisses.DeleteLabelValues(name)
	}
	if t.Rounds == 0 {
		return
	}
	result := resultOf(t.Reserved > 0)
	a.attempts.WithLabelValues(result).Inc()
	a.took.WithLabelValues(result).Observe(a.lasted.Seconds())
	a.rounds.Observe(float64(t.Rounds))
	for queue, count := range t.NodeMisses {
		a.nodeMisses.WithLabelValues(queue).Add(float64(count))
	}
	for q, isReserved := range t.LocalQueues {
		a.byLocal.WithLabelValues(q.Name, q.Namespace, resultOf(isReserved)).Inc()
		a.tookLocal.WithLabelValues(q.Name, q.Namespace, resultOf(isReserved)).Observe(a.lasted.Seconds())
	}
}

// workloadStandIns counts the places that are held for pods of Workloads, by ClusterQueue. One that holds none has no
// series.
func (r *reader) workloadStandIns(c *model.Cluster) {
	held := map[string]int{}
	for _, n := range c.Nodes() {
		for _, t := range n.Tasks() {
			if t.Status == cluster.Awaited && t.Job != nil && t.Job.Workload != nil && t.Job.Workload.Queue != nil {
				held[t.Job.Workload.Queue.Name]++
			}
		}
	}
	for name, count := range held {
		r.add(standInsOf, float64(count), "", name)
	}
}

// waitingWorkloads are those of a ClusterQueue.
var waitingWorkloads = prometheus.NewDesc(hekla+"_cluster_queue_pending_workloads", "Workloads of the ClusterQueue that wait, by the reason.",
	[]string{"cluster_queue", "reason"}, nil)

// pendingWorkloads shows how many Workloads wait, and why.
type pendingWorkloads struct{ handed }

// Describe names the series that there may be.
func (*pendingWorkloads) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- waitingWorkloads
}

// PendingWorkloads reads how many Workloads of each ClusterQueue wait, by the reason that explain gives, on the
// goroutine that owns the model. It should be called as often as [Metrics.Totals].
func (m *Metrics) PendingWorkloads(of *explain.Model) {
	type kind struct{ queue, reason string }
	counts := map[kind]int{}
	of.EachWorkload(func(e *workloads.Entry, _ string, cause explain.Cause) {
		if cause.Waits {
			counts[kind{e.ClusterQueue(), cause.Code}]++
		}
	})
	r := reader{}
	for k, count := range counts {
		r.add(waitingWorkloads, float64(count), k.queue, k.reason)
	}
	m.pending.hand(r.samples)
}

func resultOf(isReserved bool) string {
	if isReserved {
		return attemptSucceeded
	}
	return attemptFailed
}
