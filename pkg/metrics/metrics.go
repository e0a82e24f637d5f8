package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/edge"
)

// The prefixes of the names.
const (
	volcano = "volcano"
	hekla   = "hekla"
)

// Metrics are all numbers of one scheduler.
type Metrics struct {
	registry *prometheus.Registry
	totals   totals

	cycleLatency, openLatency prometheus.Observer
	actionLatency             *prometheus.HistogramVec
	bindLatency               prometheus.Observer
	attempts, binds           *prometheus.CounterVec

	victims                      prometheus.Gauge
	preemptions                  prometheus.Counter
	transactions, evictions      *prometheus.CounterVec
	plansStarted, plansCancelled prometheus.Counter

	cycles, cyclePanics, audits, auditMismatches prometheus.Counter
	configurationFailures                        prometheus.Counter
	configurationValid, leading                  prometheus.Gauge
}

// Volcano counts in milliseconds from 5 ms, in which most of our cycles are over.
var milliseconds = prometheus.ExponentialBuckets(0.125, 2, 18) // to 16 s

// New returns metrics that are all zero.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&m.totals)
	m.cycleLatency = m.histogram(volcano, "e2e_scheduling_latency_milliseconds", "Duration of a scheduling cycle.").With(nil)
	m.openLatency = m.histogram(volcano, "open_session_duration_milliseconds", "Duration of opening a session.").With(nil)
	m.actionLatency = m.histogram(volcano, "action_scheduling_latency_milliseconds", "Duration of an action.", "action")
	m.bindLatency = m.histogram(volcano, "scheduling_stage_duration_milliseconds",
		"Duration of a stage of scheduling a pod; Bind is from the decision until the API server has bound it.", "stage").
		WithLabelValues("Bind")
	m.attempts = m.counter(volcano, "schedule_attempts_total",
		"Attempts to schedule pods by result: scheduled, or error if the API server refused.", "result")
	m.binds = m.counter(hekla, "binds_total", "Bindings by how they ended.", "result")
	for _, result := range edge.BindResults {
		m.binds.WithLabelValues(string(result))
	}
	m.victims = m.gauge(volcano, "pod_preemption_victims", "Victims of the newest plan to make room.")
	m.preemptions = m.counter(volcano, "total_preemption_attempts", "Plans to make room for a job that evict somebody.").With(nil)
	m.transactions = m.counter(volcano, "eviction_transactions_total", "Plans that evict somebody, by action.", "action")
	m.evictions = m.counter(hekla, "evictions_total", "Evictions by how they ended.", "result")
	for _, result := range edge.EvictionResults {
		m.evictions.WithLabelValues(string(result))
	}
	m.plansStarted = m.counter(hekla, "plans_started_total", "Plans to make room that began.").With(nil)
	m.plansCancelled = m.counter(hekla, "plans_cancelled_total",
		"Plans to make room that were cancelled, those of an earlier process included.").With(nil)
	m.cycles = m.counter(hekla, "cycles_total", "Scheduling cycles.").With(nil)
	m.cyclePanics = m.counter(hekla, "cycle_panics_total", "Cycles that broke and whose decisions were dropped.").With(nil)
	m.audits = m.counter(hekla, "audits_total", "Comparisons of the model's totals with its pods.").With(nil)
	m.auditMismatches = m.counter(hekla, "audit_mismatches_total", "Totals that an audit found wrong.").With(nil)
	m.configurationFailures = m.counter(hekla, "configuration_reload_failures_total",
		"Configurations that could not be used; the one before stayed in force.").With(nil)
	m.configurationValid = m.gauge(hekla, "configuration_valid", "Whether the newest configuration is the one in force.")
	m.leading = m.gauge(hekla, "leading", "Whether this process is the leader.")
	return m
}

func (m *Metrics) histogram(prefix, name, help string, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: prefix, Name: name, Help: help, Buckets: milliseconds}, labels)
	m.registry.MustRegister(h)
	return h
}

func (m *Metrics) counter(prefix, name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: prefix, Name: name, Help: help}, labels)
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) gauge(prefix, name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: prefix, Name: name, Help: help})
	m.registry.MustRegister(g)
	return g
}

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2, Registry: m.registry})
}

// Observe times a part of a cycle; it is scheduler.Options.Observe.
func (m *Metrics) Observe(part, name string) (end func()) {
	var observer prometheus.Observer
	switch part {
	case "cycle":
		observer = m.cycleLatency
	case "open":
		observer = m.openLatency
	case "action":
		observer = m.actionLatency.WithLabelValues(name)
	default:
		return func() {}
	}
	begin := time.Now()
	return func() { observer.Observe(inMilliseconds(time.Since(begin))) }
}

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Bind counts a binding; it is edge.OutboxOptions.Observe.
func (m *Metrics) Bind(result edge.BindResult, took time.Duration) {
	m.binds.WithLabelValues(string(result)).Inc()
	switch result {
	case edge.Bound:
		m.attempts.WithLabelValues("scheduled").Inc()
		m.bindLatency.Observe(inMilliseconds(took))
	case edge.Refused:
		m.attempts.WithLabelValues("error").Inc()
	}
}

// Plans counts the plans of a cycle.
func (m *Metrics) Plans(started []cluster.PlanStart, ended []cluster.PlanEnd) {
	m.plansStarted.Add(float64(len(started)))
	m.plansCancelled.Add(float64(len(ended)))
	for i := range started {
		p := &started[i]
		if len(p.Evictions) == 0 {
			continue
		}
		m.transactions.WithLabelValues(p.Evictions[0].Action).Inc()
		if p.Job != (cluster.JobID{}) {
			m.preemptions.Inc()
			m.victims.Set(float64(len(p.Evictions)))
		}
	}
}

// Eviction counts an eviction; it is edge.OutboxOptions.ObserveEviction.
func (m *Metrics) Eviction(result edge.EvictionResult) {
	m.evictions.WithLabelValues(string(result)).Inc()
}

// Cycle counts a cycle.
func (m *Metrics) Cycle(hasPanicked bool) {
	m.cycles.Inc()
	if hasPanicked {
		m.cyclePanics.Inc()
	}
}

// Audit counts an audit and what it found wrong.
func (m *Metrics) Audit(mismatches int) {
	m.audits.Inc()
	m.auditMismatches.Add(float64(mismatches))
}

// ConfigurationRefused counts a configuration that could not be used.
func (m *Metrics) ConfigurationRefused() {
	m.configurationFailures.Inc()
	m.configurationValid.Set(0)
}

// ConfigurationUsed notes that the newest configuration can be used.
func (m *Metrics) ConfigurationUsed() { m.configurationValid.Set(1) }

// Leading notes whether this process is the leader.
func (m *Metrics) Leading(isLeader bool) {
	if isLeader {
		m.leading.Set(1)
	} else {
		m.leading.Set(0)
	}
}

// Watch shows the state of the edge, read whenever the metrics are asked for. It is called once.
func (m *Metrics) Watch(inbox func() edge.InboxStats, outbox func() edge.OutboxStats) {
	gauge := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: hekla, Name: name, Help: help}, value))
	}
	counter := func(name, help string, value func() float64) {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Namespace: hekla, Name: name, Help: help}, value))
	}
	gauge("inbox_objects", "Objects with events that no cycle has taken in yet.",
		func() float64 { return float64(inbox().Waiting) })
	counter("events_coalesced_total", "Events that took the place of an older one no cycle had taken in.",
		func() float64 { return float64(inbox().Coalesced) })
	gauge("outbox_binds_waiting", "Bindings decided and not under way.",
		func() float64 { return float64(outbox().Waiting) })
	gauge("outbox_binds_in_flight", "Bindings under way.",
		func() float64 { return float64(outbox().InFlight) })
	counter("outbox_bind_repeats_total", "Steps of bindings that had to be repeated.",
		func() float64 { return float64(outbox().Repeated) })
	gauge("outbox_plans", "Plans to make room that are not carried out yet.",
		func() float64 { return float64(outbox().Plans) })
	gauge("outbox_plan_steps_waiting", "Steps of plans, begun or cancelled, that are not written yet.",
		func() float64 { s := outbox(); return float64(s.StepsWaiting + s.StepsInFlight) })
	counter("outbox_plan_step_repeats_total", "Steps of plans that had to be repeated.",
		func() float64 { return float64(outbox().StepsRepeated) })
	gauge("outbox_statuses_waiting", "Objects whose newest status is not written.",
		func() float64 { return float64(outbox().StatusesWaiting) })
	counter("outbox_statuses_written_total", "Statuses written.",
		func() float64 { return float64(outbox().StatusesWritten) })
	counter("outbox_status_failures_total", "Attempts to write a status that failed and were or will be repeated.",
		func() float64 { return float64(outbox().StatusesFailed) })
	counter("events_dropped_total", "Events not shown because there were too many.",
		func() float64 { return float64(outbox().EventsDropped) })
}
