package metrics

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// quotas are the numbers of ClusterQueues, LocalQueues and Workloads, under Kueue's names.
type quotas struct {
	pending, reserving, admitted, state             *prometheus.GaugeVec // by ClusterQueue
	nominal, borrowing, lending, reservation, usage *prometheus.GaugeVec // by ClusterQueue, flavor and resource

	localPending, localReserving, localAdmitted, localState *prometheus.GaugeVec // by LocalQueue
	localReservation, localUsage                            *prometheus.GaugeVec // by LocalQueue, flavor and resource

	finished, evicted, localFinished, localEvicted *prometheus.CounterVec

	moves *moves

	mutex sync.Mutex
	shown map[string]string // the series of quotas that each ClusterQueue has
}

// The states of a ClusterQueue in kueue_cluster_queue_status.
var clusterQueueStates = []string{"pending", "active", "terminating"}

func newQuotas() *quotas {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "kueue", Name: name, Help: help}, labels)
	}
	amount := func(name, help string) *prometheus.GaugeVec {
		return gauge("cluster_queue_"+name, help, "cohort", "cluster_queue", "flavor", "resource")
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "kueue", Name: name, Help: help}, labels)
	}
	return &quotas{
		pending:          gauge("pending_workloads", "Workloads that are not admitted: active ones are tried, inadmissible ones wait for a change.", "cluster_queue", "status"),
		reserving:        gauge("reserving_active_workloads", "Workloads with reserved quota that have not finished.", "cluster_queue"),
		admitted:         gauge("admitted_active_workloads", "Admitted workloads that have not finished.", "cluster_queue"),
		state:            gauge("cluster_queue_status", "1 for the state that the ClusterQueue is in, 0 for the others.", "cluster_queue", "status"),
		nominal:          amount("nominal_quota", "The nominal quota."),
		borrowing:        amount("borrowing_limit", "How much may be borrowed; no series means no limit."),
		lending:          amount("lending_limit", "How much others may borrow; no series means all."),
		reservation:      amount("resource_reservation", "What workloads with reserved quota hold."),
		usage:            amount("resource_usage", "What admitted workloads hold."),
		localPending:     gauge("local_queue_pending_workloads", "Workloads that are not admitted.", "name", "namespace", "status"),
		localReserving:   gauge("local_queue_reserving_active_workloads", "Workloads with reserved quota that have not finished.", "name", "namespace"),
		localAdmitted:    gauge("local_queue_admitted_active_workloads", "Admitted workloads that have not finished.", "name", "namespace"),
		localState:       gauge("local_queue_status", "1 for the status of the condition Active of the LocalQueue, 0 for the others.", "name", "namespace", "active"),
		localReservation: gauge("local_queue_resource_reservation", "What workloads with reserved quota hold.", "name", "namespace", "flavor", "resource"),
		localUsage:       gauge("local_queue_resource_usage", "What admitted workloads hold.", "name", "namespace", "flavor", "resource"),
		localFinished:    counter("local_queue_finished_workloads_total", "Workloads whose job has ended.", "name", "namespace"),
		localEvicted:     counter("local_queue_evicted_workloads_total", "Workloads that were stopped, by the reason of their eviction.", "name", "namespace", "reason"),
		finished:         counter("finished_workloads_total", "Workloads whose job has ended.", "cluster_queue"),
		evicted:          counter("evicted_workloads_total", "Workloads that were stopped, by the reason of their eviction.", "cluster_queue", "reason"),
		moves:            newMoves(),
		shown:            map[string]string{},
	}
}

func (q *quotas) collectors() []prometheus.Collector {
	return append(q.moves.collectors(), q.pending, q.reserving, q.admitted, q.state, q.nominal, q.borrowing, q.lending, q.reservation, q.usage,
		q.localPending, q.localReserving, q.localAdmitted, q.localState, q.localReservation, q.localUsage, q.finished, q.evicted, q.localFinished,
		q.localEvicted)
}

// ClusterQueue shows the status of a ClusterQueue. inadmissible of its pending workloads wait for a change.
func (m *Metrics) ClusterQueue(object *v1beta2.ClusterQueue, read *settings.ClusterQueue, inadmissible int32, isActive bool) {
	q, name, status := m.quotas, object.Name, &object.Status
	q.pending.WithLabelValues(name, "active").Set(float64(status.PendingWorkloads - inadmissible))
	q.pending.WithLabelValues(name, "inadmissible").Set(float64(inadmissible))
	q.reserving.WithLabelValues(name).Set(float64(status.ReservingWorkloads))
	q.admitted.WithLabelValues(name).Set(float64(status.AdmittedWorkloads))
	state := "pending"
	switch {
	case object.DeletionTimestamp != nil:
		state = "terminating"
	case isActive:
		state = "active"
	}
	for _, s := range clusterQueueStates {
		is := 0.0
		if s == state {
			is = 1
		}
		q.state.WithLabelValues(name, s).Set(is)
	}
	q.amounts(read, status)
}

// amounts shows quotas, limits, and what is held. Series of flavors and cohorts that the queue has no more go first.
func (q *quotas) amounts(read *settings.ClusterQueue, status *v1beta2.ClusterQueueStatus) {
	var series []string
	type cell struct {
		labels []string
		quota  settings.Quota
	}
	var cells []cell
	for _, group := range read.Groups {
		for _, flavor := range group.Flavors {
			for i, name := range group.Resources {
				c := cell{[]string{read.Cohort, read.Name, flavor.Name, string(name)}, flavor.Quotas[i]}
				cells = append(cells, c)
				limited := map[bool]string{true: "limited"}
				series = append(series, strings.Join(c.labels, "/")+limited[c.quota.Borrowing != nil]+limited[c.quota.Lending != nil])
			}
		}
	}
	q.mutex.Lock()
	defer q.mutex.Unlock()
	if now := strings.Join(series, " "); q.shown[read.Name] != now {
		q.drop(read.Name)
		q.shown[read.Name] = now
	}
	set := func(gauge *prometheus.GaugeVec, labels []string, amount *resource.Quantity) {
		if amount != nil {
			gauge.WithLabelValues(labels...).Set(amount.AsApproximateFloat64())
		}
	}
	for _, c := range cells {
		set(q.nominal, c.labels, &c.quota.Nominal)
		set(q.borrowing, c.labels, c.quota.Borrowing)
		set(q.lending, c.labels, c.quota.Lending)
	}
	for gauge, usages := range map[*prometheus.GaugeVec][]v1beta2.FlavorUsage{q.reservation: status.FlavorsReservation, q.usage: status.FlavorsUsage} {
		for i := range usages {
			for j := range usages[i].Resources {
				r := &usages[i].Resources[j]
				set(gauge, []string{read.Cohort, read.Name, usages[i].Name, string(r.Name)}, &r.Total)
			}
		}
	}
}

func (q *quotas) drop(name string) {
	for _, gauge := range []*prometheus.GaugeVec{q.nominal, q.borrowing, q.lending, q.reservation, q.usage} {
		gauge.DeletePartialMatch(prometheus.Labels{"cluster_queue": name})
	}
}

// ClusterQueueGone ends the series of a ClusterQueue that does not exist any more.
func (m *Metrics) ClusterQueueGone(name string) {
	q := m.quotas
	for _, gauge := range []*prometheus.GaugeVec{q.pending, q.reserving, q.admitted, q.state} {
		gauge.DeletePartialMatch(prometheus.Labels{"cluster_queue": name})
	}
	q.finished.DeleteLabelValues(name)
	q.evicted.DeletePartialMatch(prometheus.Labels{"cluster_queue": name})
	q.moves.clusterQueueGone(name)
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.drop(name)
	delete(q.shown, name)
}

// LocalQueue shows the status of a LocalQueue.
func (m *Metrics) LocalQueue(object *v1beta2.LocalQueue, inadmissible int32) {
	q, status := m.quotas, &object.Status
	q.localPending.WithLabelValues(object.Name, object.Namespace, "active").Set(float64(status.PendingWorkloads - inadmissible))
	q.localPending.WithLabelValues(object.Name, object.Namespace, "inadmissible").Set(float64(inadmissible))
	q.localReserving.WithLabelValues(object.Name, object.Namespace).Set(float64(status.ReservingWorkloads))
	q.localAdmitted.WithLabelValues(object.Name, object.Namespace).Set(float64(status.AdmittedWorkloads))
	active := metav1.ConditionUnknown
	if c := meta.FindStatusCondition(status.Conditions, v1beta2.ActiveCondition); c != nil {
		active = c.Status
	}
	for _, s := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown} {
		is := 0.0
		if s == active {
			is = 1
		}
		q.localState.WithLabelValues(object.Name, object.Namespace, string(s)).Set(is)
	}
	of := prometheus.Labels{"name": object.Name, "namespace": object.Namespace}
	for gauge, usages := range map[*prometheus.GaugeVec][]v1beta2.FlavorUsage{q.localReservation: status.FlavorsReservation, q.localUsage: status.FlavorsUsage} {
		gauge.DeletePartialMatch(of) // of flavors that the ClusterQueue has no more
		for i := range usages {
			for j := range usages[i].Resources {
				r := &usages[i].Resources[j]
				gauge.WithLabelValues(object.Name, object.Namespace, usages[i].Name, string(r.Name)).Set(r.Total.AsApproximateFloat64())
			}
		}
	}
}

// LocalQueueGone ends the series of a LocalQueue that does not exist any more.
func (m *Metrics) LocalQueueGone(name types.NamespacedName) {
	q := m.quotas
	for _, series := range []deleter{q.localPending, q.localReserving, q.localAdmitted, q.localState, q.localReservation, q.localUsage, q.localFinished, q.localEvicted} {
		series.DeletePartialMatch(prometheus.Labels{"name": name.Name, "namespace": name.Namespace})
	}
	m.quotas.moves.localQueueGone(name)
}

// WorkloadFinished counts a Workload whose job has ended, in the ClusterQueue of which it holds quota and in its
// LocalQueue.
func (m *Metrics) WorkloadFinished(clusterQueue string, localQueue types.NamespacedName) {
	m.quotas.finished.WithLabelValues(clusterQueue).Inc()
	m.quotas.localFinished.WithLabelValues(localQueue.Name, localQueue.Namespace).Inc()
}

// WorkloadEvicted counts a Workload that was stopped likewise.
func (m *Metrics) WorkloadEvicted(clusterQueue string, localQueue types.NamespacedName, reason string) {
	m.quotas.evicted.WithLabelValues(clusterQueue, reason).Inc()
	m.quotas.localEvicted.WithLabelValues(localQueue.Name, localQueue.Namespace, reason).Inc()
}
