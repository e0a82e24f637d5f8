package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// moves count Workloads that get quota, are admitted and are preempted, and measure how long they waited, under Kueue's
// names.
type moves struct {
	cluster, local     queueMoves             // by ClusterQueue, and by LocalQueue
	preempted          *prometheus.CounterVec // by the ClusterQueue of the one that has preempted, and the reason
	evictedOnce        *prometheus.CounterVec // by ClusterQueue and reason
	share, cohortShare *prometheus.GaugeVec
}

// queueMoves count and measure by one kind of queue.
type queueMoves struct {
	reserved, admitted                     *prometheus.CounterVec
	reservedWait, admittedWait, checksWait *prometheus.HistogramVec
	readyWait, readySinceAdmission         *prometheus.HistogramVec
}

func newMoves() *moves {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "kueue", Name: name, Help: help}, labels)
	}
	return &moves{
		cluster:     newQueueMoves("", "cluster_queue"),
		local:       newQueueMoves("local_queue_", "name", "namespace"),
		evictedOnce: newCounter("evicted_workloads_once_total", "Workloads that were stopped for the first time.", "cluster_queue", "reason", "detailed_reason"),
		preempted:   newCounter("preempted_workloads_total", "Workloads that were preempted.", "preempting_cluster_queue", "reason"),
		share:       gauge("cluster_queue_weighted_share", "The weighted share of fair sharing, in thousandths.", "cluster_queue", "cohort"),
		cohortShare: gauge("cohort_weighted_share", "The weighted share of fair sharing, in thousandths.", "cohort"),
	}
}

func newQueueMoves(prefix string, labels ...string) queueMoves {
	wait := func(name, help string) *prometheus.HistogramVec {
		// From a second to three hours.
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "kueue", Name: prefix + name, Help: help,
			Buckets: append([]float64{1}, prometheus.ExponentialBuckets(2.5, 2, 13)...)}, labels)
	}
	return queueMoves{
		reserved:            newCounter(prefix+"quota_reserved_workloads_total", "Reservations of quota.", labels...),
		admitted:            newCounter(prefix+"admitted_workloads_total", "Admissions.", labels...),
		reservedWait:        wait("quota_reserved_wait_time_seconds", "Time from when the workload was queued until its quota was reserved."),
		admittedWait:        wait("admission_wait_time_seconds", "Time from when the workload was queued until it was admitted."),
		readyWait:           wait("ready_wait_time_seconds", "Time from when the workload was queued until its pods were ready."),
		readySinceAdmission: wait("admitted_until_ready_wait_time_seconds", "Time from when the workload was admitted until its pods were ready."),
		checksWait:          wait("admission_checks_wait_time_seconds", "Time from the reservation of quota until the workload was admitted."),
	}
}

func newCounter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "kueue", Name: name, Help: help}, labels)
}

func (m *moves) collectors() []prometheus.Collector {
	all := []prometheus.Collector{m.preempted, m.evictedOnce, m.share, m.cohortShare}
	for _, q := range []*queueMoves{&m.cluster, &m.local} {
		all = append(all, q.reserved, q.admitted, q.reservedWait, q.admittedWait, q.checksWait, q.readyWait, q.readySinceAdmission)
	}
	return all
}

// deleter ends series.
type deleter interface {
	DeletePartialMatch(prometheus.Labels) int
}

func (m *queueMoves) end(of prometheus.Labels) {
	for _, series := range []deleter{m.reserved, m.admitted, m.reservedWait, m.admittedWait, m.checksWait, m.readyWait, m.readySinceAdmission} {
		series.DeletePartialMatch(of)
	}
}

func (m *moves) clusterQueueGone(name string) {
	m.cluster.end(prometheus.Labels{"cluster_queue": name})
	m.share.DeletePartialMatch(prometheus.Labels{"cluster_queue": name})
	m.evictedOnce.DeletePartialMatch(prometheus.Labels{"cluster_queue": name})
	m.preempted.DeletePartialMatch(prometheus.Labels{"preempting_cluster_queue": name})
}

func (m *moves) localQueueGone(name types.NamespacedName) {
	m.local.end(prometheus.Labels{"name": name.Name, "namespace": name.Namespace})
}

// WorkloadMoved counts what has become of a Workload between two versions of it.
func (m *Metrics) WorkloadMoved(before, after *v1beta2.Workload) {
	q := m.quotas.moves
	if becomes(before, after, v1beta2.Preempted) {
		c := conditions.Of(after, v1beta2.Preempted)
		q.preempted.WithLabelValues(conditions.PreemptionOf(c.Message).PreemptorQueue(), c.Reason).Inc()
	}
	if queue := heldIn(before); queue != "" && conditions.Of(before, v1beta2.Evicted) == nil && conditions.Is(after, v1beta2.Evicted) {
		detail := ""
		if c := conditions.Of(after, v1beta2.Preempted); c != nil && conditions.Is(after, v1beta2.Preempted) {
			detail = c.Reason
		}
		q.evictedOnce.WithLabelValues(queue, conditions.Of(after, v1beta2.Evicted).Reason, detail).Inc()
	}
	queue := heldIn(after)
	if queue == "" {
		return
	}
	q.cluster.count(before, after, queue)
	q.local.count(before, after, after.Spec.QueueName, after.Namespace)
}

// count counts what has become of a Workload in one queue, named by the values of its labels.
func (m *queueMoves) count(before, after *v1beta2.Workload, queue ...string) {
	queued := queuedAt(before)
	if becomes(before, after, v1beta2.QuotaReserved) {
		m.reserved.WithLabelValues(queue...).Inc()
		m.reservedWait.WithLabelValues(queue...).Observe(at(after, v1beta2.QuotaReserved).Sub(queued).Seconds())
	}
	if becomes(before, after, v1beta2.Admitted) {
		m.admitted.WithLabelValues(queue...).Inc()
		admitted := at(after, v1beta2.Admitted)
		m.admittedWait.WithLabelValues(queue...).Observe(admitted.Sub(queued).Seconds())
		if len(after.Status.AdmissionChecks) > 0 {
			m.checksWait.WithLabelValues(queue...).Observe(admitted.Sub(at(after, v1beta2.QuotaReserved)).Seconds())
		}
	}
	if becomes(before, after, v1beta2.PodsReady) && conditions.Is(after, v1beta2.Admitted) {
		ready := at(after, v1beta2.PodsReady)
		m.readyWait.WithLabelValues(queue...).Observe(ready.Sub(queuedAt(after)).Seconds())
		m.readySinceAdmission.WithLabelValues(queue...).Observe(ready.Sub(at(after, v1beta2.Admitted)).Seconds())
	}
}

func becomes(before, after *v1beta2.Workload, kind string) bool {
	return !conditions.Is(before, kind) && conditions.Is(after, kind)
}

func heldIn(w *v1beta2.Workload) string {
	if w.Status.Admission == nil {
		return ""
	}
	return w.Status.Admission.ClusterQueue
}

func at(w *v1beta2.Workload, kind string) time.Time {
	return conditions.Of(w, kind).LastTransitionTime.Time
}

// queuedAt is since when a Workload waits: it was created then, or came back after an eviction.
func queuedAt(w *v1beta2.Workload) time.Time {
	since := w.CreationTimestamp.Time
	for _, kind := range []string{v1beta2.Requeued, v1beta2.Evicted} {
		if c := conditions.Of(w, kind); c != nil && conditions.Is(w, kind) && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since
}

// ClusterQueueShare shows the weighted share of a ClusterQueue.
func (m *Metrics) ClusterQueueShare(name, cohort string, share int64) {
	m.quotas.moves.share.DeletePartialMatch(prometheus.Labels{"cluster_queue": name})
	m.quotas.moves.share.WithLabelValues(name, cohort).Set(float64(share))
}

// CohortShare shows the weighted share of a Cohort.
func (m *Metrics) CohortShare(name string, share int64) {
	m.quotas.moves.cohortShare.WithLabelValues(name).Set(float64(share))
}

// CohortGone ends the series of a Cohort that does not exist any more.
func (m *Metrics) CohortGone(name string) { m.quotas.moves.cohortShare.DeleteLabelValues(name) }

// SharesGone ends the series of all shares: there is no fair sharing.
func (m *Metrics) SharesGone() {
	m.quotas.moves.share.Reset()
	m.quotas.moves.cohortShare.Reset()
}
