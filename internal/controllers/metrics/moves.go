package metrics

import (
	"path"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// moves count Workloads that get quota, are admitted and are preempted, and measure how long they waited, under Kueue's names.
type moves struct {
	reserved, admitted                     *prometheus.CounterVec   // by ClusterQueue
	reservedWait, admittedWait, checksWait *prometheus.HistogramVec // by ClusterQueue
	localReserved, localAdmitted           *prometheus.CounterVec   // by LocalQueue
	localReservedWait, localAdmittedWait   *prometheus.HistogramVec // by LocalQueue
	localChecksWait                        *prometheus.HistogramVec // by LocalQueue
	preempted                              *prometheus.CounterVec   // by the ClusterQueue of the one that has preempted, and the reason
	share, cohortShare                     *prometheus.GaugeVec
}

func newMoves() *moves {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "kueue", Name: name, Help: help}, labels)
	}
	wait := func(name, help string, labels ...string) *prometheus.HistogramVec {
		// From a second to three hours.
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "kueue", Name: name, Help: help, Buckets: append([]float64{1}, prometheus.ExponentialBuckets(2.5, 2, 13)...)}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "kueue", Name: name, Help: help}, labels)
	}
	const untilReserved, untilAdmitted, ofChecks = "Time from when the workload was queued until its quota was reserved.",
		"Time from when the workload was queued until it was admitted.", "Time from the reservation of quota until the workload was admitted."
	return &moves{
		reserved:          counter("quota_reserved_workloads_total", "Reservations of quota.", "cluster_queue"),
		admitted:          counter("admitted_workloads_total", "Admissions.", "cluster_queue"),
		reservedWait:      wait("quota_reserved_wait_time_seconds", untilReserved, "cluster_queue"),
		admittedWait:      wait("admission_wait_time_seconds", untilAdmitted, "cluster_queue"),
		checksWait:        wait("admission_checks_wait_time_seconds", ofChecks, "cluster_queue"),
		localReserved:     counter("local_queue_quota_reserved_workloads_total", "Reservations of quota.", "name", "namespace"),
		localAdmitted:     counter("local_queue_admitted_workloads_total", "Admissions.", "name", "namespace"),
		localReservedWait: wait("local_queue_quota_reserved_wait_time_seconds", untilReserved, "name", "namespace"),
		localAdmittedWait: wait("local_queue_admission_wait_time_seconds", untilAdmitted, "name", "namespace"),
		localChecksWait:   wait("local_queue_admission_checks_wait_time_seconds", ofChecks, "name", "namespace"),
		preempted:         counter("preempted_workloads_total", "Workloads that were preempted.", "preempting_cluster_queue", "reason"),
		share:             gauge("cluster_queue_weighted_share", "The weighted share of fair sharing, in thousandths.", "cluster_queue", "cohort"),
		cohortShare:       gauge("cohort_weighted_share", "The weighted share of fair sharing, in thousandths.", "cohort"),
	}
}

func (m *moves) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.reserved, m.admitted, m.reservedWait, m.admittedWait, m.checksWait, m.localReserved, m.localAdmitted,
		m.localReservedWait, m.localAdmittedWait, m.localChecksWait, m.preempted, m.share, m.cohortShare}
}

// deleter ends series.
type deleter interface {
	DeletePartialMatch(prometheus.Labels) int
}

func (m *moves) clusterQueueGone(name string) {
	for _, of := range []deleter{m.reserved, m.admitted, m.reservedWait, m.admittedWait, m.checksWait, m.share} {
		of.DeletePartialMatch(prometheus.Labels{"cluster_queue": name})
	}
	m.preempted.DeletePartialMatch(prometheus.Labels{"preempting_cluster_queue": name})
}

func (m *moves) localQueueGone(name types.NamespacedName) {
	for _, of := range []deleter{m.localReserved, m.localAdmitted, m.localReservedWait, m.localAdmittedWait, m.localChecksWait} {
		of.DeletePartialMatch(prometheus.Labels{"name": name.Name, "namespace": name.Namespace})
	}
}

// WorkloadMoved counts what has become of a Workload between two versions of it.
func (m *Metrics) WorkloadMoved(before, after *v1beta2.Workload) {
	q := m.quotas.moves
	becomes := func(kind string) bool { return !conditions.Is(before, kind) && conditions.Is(after, kind) }
	if becomes(v1beta2.Preempted) {
		c := conditions.Of(after, v1beta2.Preempted)
		q.preempted.WithLabelValues(preemptor(c.Message), c.Reason).Inc()
	}
	queue := heldIn(after)
	if queue == "" {
		return
	}
	queued := queuedAt(before)
	if becomes(v1beta2.QuotaReserved) {
		q.reserved.WithLabelValues(queue).Inc()
		q.localReserved.WithLabelValues(after.Spec.QueueName, after.Namespace).Inc()
		waited := at(after, v1beta2.QuotaReserved).Sub(queued).Seconds()
		q.reservedWait.WithLabelValues(queue).Observe(waited)
		q.localReservedWait.WithLabelValues(after.Spec.QueueName, after.Namespace).Observe(waited)
	}
	if becomes(v1beta2.Admitted) {
		q.admitted.WithLabelValues(queue).Inc()
		q.localAdmitted.WithLabelValues(after.Spec.QueueName, after.Namespace).Inc()
		admitted := at(after, v1beta2.Admitted)
		q.admittedWait.WithLabelValues(queue).Observe(admitted.Sub(queued).Seconds())
		q.localAdmittedWait.WithLabelValues(after.Spec.QueueName, after.Namespace).Observe(admitted.Sub(queued).Seconds())
		if len(after.Status.AdmissionChecks) > 0 {
			checked := admitted.Sub(at(after, v1beta2.QuotaReserved)).Seconds()
			q.checksWait.WithLabelValues(queue).Observe(checked)
			q.localChecksWait.WithLabelValues(after.Spec.QueueName, after.Namespace).Observe(checked)
		}
	}
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

// preemptor is the ClusterQueue of the Workload for which another was preempted, as the condition Preempted says.
func preemptor(message string) string {
	_, rest, _ := strings.Cut(message, "preemptor path: ")
	name, _, _ := strings.Cut(rest, ";")
	if name == "" {
		return "UNKNOWN"
	}
	return path.Base(name)
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
