package metrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	flow "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Metrics are all numbers of the controllers of one process.
type Metrics struct {
	inqueue, pending, running, unknown, completed *prometheus.GaugeVec // PodGroups by queue

	podCreation             prometheus.Histogram
	jobCompleted, jobFailed *prometheus.CounterVec
	flowSucceed, flowFailed *prometheus.CounterVec

	jobs, flows lives

	waiting waiting
	quotas  *quotas
}

// New returns metrics that are all zero, and registers them. With a nil registerer they are counted and not shown.
func New(registerer prometheus.Registerer) (*Metrics, error) {
	groups := func(phase string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "volcano", Name: "queue_pod_group_" + phase + "_count",
			Help: "PodGroups of the queue that are " + phase + "."}, []string{"queue_name"})
	}
	ends := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "volcano", Name: name, Help: help}, labels)
	}
	m := &Metrics{
		inqueue: groups("inqueue"), pending: groups("pending"), running: groups("running"), unknown: groups("unknown"),
		completed: groups("completed"),
		podCreation: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "volcano", Name: "controller_job_to_pod_creation_latency_milliseconds",
			Help:    "Time from the creation of a Job until one of the pods that it starts with is created.",
			Buckets: prometheus.ExponentialBucketsRange(50, 60000, 30),
		}),
		jobCompleted: ends("job_completed_phase_count", "How often the Job was Completed.", "job_name", "queue_name"),
		jobFailed:    ends("job_failed_phase_count", "How often the Job was Failed.", "job_name", "queue_name"),
		flowSucceed:  ends("jobflow_succeed_phase_count", "JobFlows of the namespace that have succeeded.", "jobflow_namespace"),
		flowFailed:   ends("jobflow_failed_phase_count", "JobFlows of the namespace that have failed.", "jobflow_namespace"),
		jobs:         lives{known: map[types.NamespacedName]*life{}},
		flows:        lives{known: map[types.NamespacedName]*life{}},
		waiting:      newWaiting(),
		quotas:       newQuotas(),
	}
	if registerer == nil {
		return m, nil
	}
	for _, collector := range append(m.quotas.collectors(), m.inqueue, m.pending, m.running, m.unknown, m.completed, m.podCreation,
		m.jobCompleted, m.jobFailed, m.flowSucceed, m.flowFailed, m.waiting.jobs) {
		if err := registerer.Register(collector); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Queue shows how many PodGroups of a queue are in which phase.
func (m *Metrics) Queue(name string, status *scheduling.QueueStatus) {
	m.inqueue.WithLabelValues(name).Set(float64(status.Inqueue))
	m.pending.WithLabelValues(name).Set(float64(status.Pending))
	m.running.WithLabelValues(name).Set(float64(status.Running))
	m.unknown.WithLabelValues(name).Set(float64(status.Unknown))
	m.completed.WithLabelValues(name).Set(float64(status.Completed))
}

// QueueGone ends the series of a queue that does not exist any more.
func (m *Metrics) QueueGone(name string) {
	for _, groups := range []*prometheus.GaugeVec{m.inqueue, m.pending, m.running, m.unknown, m.completed} {
		groups.DeleteLabelValues(name)
	}
}

// PodCreated notes how long after its Job a pod was created. It is for the pods that a Job starts with: what is made
// again later, or by a change of the size, says nothing of how fast Jobs start.
func (m *Metrics) PodCreated(after time.Duration) {
	m.podCreation.Observe(max(float64(after)/float64(time.Millisecond), 0))
}

// Job notes in which phase a Job is. It is called whenever that is known, as often as one likes.
func (m *Metrics) Job(job *batch.Job, phase batch.JobPhase) {
	name := types.NamespacedName{Namespace: job.Namespace, Name: job.Name}
	isFinal := phase == batch.Completed || phase == batch.Failed || phase == batch.Terminated
	m.jobs.follow(name, job.UID, isFinal, m.dropJob, func(l *life) {
		l.queue = job.Spec.Queue
		switch phase {
		case batch.Completed:
			m.jobCompleted.WithLabelValues(name.String(), l.queue).Inc()
		case batch.Failed:
			m.jobFailed.WithLabelValues(name.String(), l.queue).Inc()
		}
	})
}

// JobGone ends the series of a Job that does not exist any more.
func (m *Metrics) JobGone(name types.NamespacedName) {
	m.jobs.forget(name, m.dropJob)
	m.waiting.set(name, place{})
}

func (m *Metrics) dropJob(name types.NamespacedName, l *life) {
	m.jobCompleted.DeleteLabelValues(name.String(), l.queue)
	m.jobFailed.DeleteLabelValues(name.String(), l.queue)
}

// JobFlow notes in which phase a JobFlow is. It is called whenever that is known, as often as one likes.
func (m *Metrics) JobFlow(jobFlow *flow.JobFlow, phase flow.Phase) {
	name := types.NamespacedName{Namespace: jobFlow.Namespace, Name: jobFlow.Name}
	isFinal := phase == flow.Succeed || phase == flow.Failed || phase == flow.Terminating
	m.flows.follow(name, jobFlow.UID, isFinal, keep, func(*life) {
		switch phase {
		case flow.Succeed:
			m.flowSucceed.WithLabelValues(name.Namespace).Inc()
		case flow.Failed:
			m.flowFailed.WithLabelValues(name.Namespace).Inc()
		}
	})
}

// JobFlowGone forgets a JobFlow that does not exist any more. The series are of its namespace and stay.
func (m *Metrics) JobFlowGone(name types.NamespacedName) { m.flows.forget(name, keep) }

func keep(types.NamespacedName, *life) {}

// NamespaceGone ends the series of a namespace that does not exist any more.
func (m *Metrics) NamespaceGone(name string) {
	m.flowSucceed.DeleteLabelValues(name)
	m.flowFailed.DeleteLabelValues(name)
}

// lives remembers which objects were seen before they ended, and of which the end was counted.
type lives struct {
	mutex sync.Mutex
	known map[types.NamespacedName]*life
}

// life is what is known of one object. There is none of an object that was never seen unfinished.
type life struct {
	uid       types.UID
	isCounted bool
	queue     string // under which the end was counted
}

// follow counts the end of an object if it is the first that is heard of it. If another object had the name, that is
// dropped first.
func (l *lives) follow(
	name types.NamespacedName, uid types.UID, isFinal bool, drop func(types.NamespacedName, *life), count func(*life),
) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known := l.known[name]
	if known != nil && known.uid != uid {
		drop(name, known)
		delete(l.known, name)
		known = nil
	}
	switch {
	case known == nil && !isFinal:
		l.known[name] = &life{uid: uid}
	case known != nil && isFinal && !known.isCounted:
		known.isCounted = true
		count(known)
	}
}

// forget drops an object that is gone.
func (l *lives) forget(name types.NamespacedName, drop func(types.NamespacedName, *life)) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if known := l.known[name]; known != nil {
		drop(name, known)
		delete(l.known, name)
	}
}
