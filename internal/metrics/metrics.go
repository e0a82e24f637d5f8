package metrics

import (
	"net/http"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"hekla.sh/hekla/internal/edge"
	"hekla.sh/hekla/internal/edge/binder"
	"hekla.sh/hekla/internal/edge/intake"
	"hekla.sh/hekla/internal/edge/plans"
	"hekla.sh/hekla/internal/process"
	"hekla.sh/hekla/pkg/actions/admit"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
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
	jobs     jobs
	pending  pendingWorkloads

	cycleLatency, openLatency prometheus.Observer
	actionLatency             *prometheus.HistogramVec
	pluginLatency             *prometheus.HistogramVec
	stageLatency, taskLatency *prometheus.HistogramVec
	jobLatency                prometheus.Observer
	attempts, binds           *prometheus.CounterVec

	victims                      prometheus.Gauge
	preemptions, reclaims        prometheus.Counter
	reclaimVictims               prometheus.Observer
	transactions, evictions      *prometheus.CounterVec
	plansStarted, plansCancelled prometheus.Counter
	evictionsByRule              *prometheus.CounterVec
	evictionsByRuleBefore        *prometheus.CounterVec // under the name of earlier builds
	victimQueues                 map[string]bool        // that have series of these; touched by the owner of the model only
	evictionToStart              prometheus.Observer
	promises                     promises // touched by the owner of the model only

	admissions admissions // touched by the owner of the model only

	cycles, cyclePanics, audits, auditMismatches prometheus.Counter
	configurationFailures                        prometheus.Counter
	configurationValid, leading                  prometheus.Gauge
}

// Volcano counts in milliseconds from 5 ms, in which most of our cycles are over.
var milliseconds = prometheus.ExponentialBuckets(0.125, 2, 18) // to 16 s

// New returns metrics that are all zero.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	// What the last garbage collection has left says whether memory leaks; the size of the heap says when it collects.
	live := collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: regexp.MustCompile("^/gc/heap/live:bytes$")})
	m.registry.MustRegister(collectors.NewGoCollector(live), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&m.totals, &m.jobs, &m.pending)
	m.cycleLatency = m.histogram("e2e_scheduling_latency_milliseconds", "Duration of a scheduling cycle.", milliseconds).With(nil)
	m.openLatency = m.histogram("open_session_duration_milliseconds", "Duration of opening a session.", milliseconds).With(nil)
	m.actionLatency = m.histogram("action_scheduling_latency_milliseconds", "Duration of an action.", milliseconds, "action")
	m.pluginLatency = m.histogram("plugin_scheduling_latency_milliseconds", "Duration of telling a plugin that a session begins.",
		milliseconds, "plugin", "OnSession")
	m.stageLatency = m.histogram("scheduling_stage_duration_milliseconds", "Duration of a stage of binding a pod: PreBind, until "+
		"what it takes besides room is written and its volumes are bound, and Bind, from there until it is bound.",
		milliseconds, "stage")
	m.taskLatency = m.histogram("task_scheduling_latency_milliseconds", "Time from the creation of a pod until it was Watched, had "+
		"a node Assumed, was PreBound, and Bound.", prometheus.ExponentialBucketsRange(50, 60000, 30), "stage")
	m.jobLatency = m.histogram("e2e_job_scheduling_latency_milliseconds",
		"Time from the creation of a PodGroup until the first of its pods had nodes.",
		prometheus.ExponentialBucketsRange(100, 120000, 30)).With(nil)
	m.attempts = m.counter(volcano, "schedule_attempts_total",
		"Attempts to schedule pods by result: scheduled, unschedulable, or error if the API server refused.", "result")
	m.binds = m.counter(hekla, "binds_total", "Bindings by how they ended.", "result")
	for _, result := range binder.Results {
		m.binds.WithLabelValues(string(result))
	}
	m.victims = m.gauge(volcano, "pod_preemption_victims", "Victims of the newest plan.")
	m.preemptions = m.counter(volcano, "total_preemption_attempts", "Plans with evictions.").With(nil)
	m.reclaims = m.counter(volcano, "total_reclaim_attempts", "Those of them that take from other queues.").With(nil)
	m.reclaimVictims = prometheus.Observer(m.histogram("pod_reclaim_victims", "Victims of each of those.",
		[]float64{0, 1, 2, 5, 10, 20, 50}).With(nil))
	m.transactions = m.counter(volcano, "eviction_transactions_total", "Plans with evictions, by action.", "action")
	m.evictions = m.counter(hekla, "evictions_total", "Evictions by how they ended.", "result")
	for _, result := range plans.EvictionResults {
		m.evictions.WithLabelValues(string(result))
	}
	m.evictionsByRule = m.counter(hekla, "evictions_by_rule_total", "Evictions that were decided, by the rule and the queue of the pod.",
		"rule", "queue")
	m.evictionsByRuleBefore = m.counter(hekla, "evictions_by_law_total", "Deprecated, gone with the next release: see hekla_evictions_by_rule_total.",
		"law", "queue")
	toStart := prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: hekla, Name: "eviction_to_start_seconds",
		Help: "Time from the plan that evicts pods for a job until its pods have nodes.", Buckets: prometheus.ExponentialBuckets(0.5, 2, 12)})
	m.registry.MustRegister(toStart)
	m.evictionToStart, m.promises, m.victimQueues = toStart, promises{}, map[string]bool{}
	m.admissions = m.newAdmissions()
	m.plansStarted = m.counter(hekla, "plans_started_total", "Plans that began.").With(nil)
	m.plansCancelled = m.counter(hekla, "plans_cancelled_total",
		"Plans that were cancelled, those of an earlier process included.").With(nil)
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

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: volcano, Name: name, Help: help, Buckets: buckets}, labels)
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

// Handler serves the metrics, see [process.Metrics].
func (m *Metrics) Handler() http.Handler { return process.Metrics(m.registry) }

// Check returns what a scrape could not show, nil if it could show all.
func (m *Metrics) Check() error {
	_, err := m.registry.Gather()
	return err
}

// Describe names every series that there may be.
func (m *Metrics) Describe(descriptions chan<- *prometheus.Desc) { m.registry.Describe(descriptions) }

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
	case "plugin":
		observer = m.pluginLatency.WithLabelValues(name, "OnSessionOpen")
	default:
		return func() {}
	}
	begin := time.Now()
	return func() {
		took := time.Since(begin)
		if observer.Observe(inMilliseconds(took)); part == "action" && name == admit.Name {
			m.admissions.lasted = took
		}
	}
}

func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Watched times a pod of ours that has come to be known.
func (m *Metrics) Watched(created time.Time) { m.taskStage("Watched", time.Since(created)) }

func (m *Metrics) taskStage(stage string, after time.Duration) {
	// The API server's clock has whole seconds and is not ours.
	m.taskLatency.WithLabelValues(stage).Observe(max(inMilliseconds(after), 0))
}

// Bind counts a binding; it is edge.OutboxOptions.Observe.
func (m *Metrics) Bind(outcome binder.Outcome) {
	m.binds.WithLabelValues(string(outcome.Result)).Inc()
	switch outcome.Result {
	case binder.Bound:
		m.attempts.WithLabelValues("scheduled").Inc()
		since := time.Since(outcome.Created)
		m.taskStage("PreBound", since-outcome.Took+outcome.Prepared)
		m.taskStage("Bound", since)
		m.stageLatency.WithLabelValues("PreBind").Observe(inMilliseconds(outcome.Prepared))
		m.stageLatency.WithLabelValues("Bind").Observe(inMilliseconds(outcome.Took - outcome.Prepared))
	case binder.Refused:
		m.attempts.WithLabelValues("error").Inc()
	}
}

// Plans counts the plans of a cycle. It runs on the goroutine that owns the model.
func (m *Metrics) Plans(c *model.Cluster, started []decision.PlanStart, ended []decision.PlanEnd) {
	m.plansStarted.Add(float64(len(started)))
	m.plansCancelled.Add(float64(len(ended)))
	m.promises.follow(started, ended)
	for i := range started {
		p := &started[i]
		if len(p.Evictions) == 0 {
			continue
		}
		m.transactions.WithLabelValues(p.Action).Inc()
		for k := range p.Evictions {
			queue := ""
			if j := c.Job(p.Evictions[k].VictimJob); j != nil {
				queue = j.QueueName
			}
			m.evictionsByRule.WithLabelValues(p.Evictions[k].Rule, queue).Inc()
			m.evictionsByRuleBefore.WithLabelValues(p.Evictions[k].Rule, queue).Inc()
			m.victimQueues[queue] = true
		}
		if p.Job != (cluster.JobID{}) {
			m.preemptions.Inc()
			m.victims.Set(float64(len(p.Evictions)))
			if p.Scope == decision.BetweenQueues {
				m.reclaims.Inc()
				m.reclaimVictims.Observe(float64(len(p.Evictions)))
			}
		}
	}
}

// forgetQueues drops the series of victims in queues that are gone.
func (m *Metrics) forgetQueues(c *model.Cluster) {
	for name := range m.victimQueues {
		if name != "" && c.Queue(name) == nil {
			m.evictionsByRule.DeletePartialMatch(prometheus.Labels{"queue": name})
			m.evictionsByRuleBefore.DeletePartialMatch(prometheus.Labels{"queue": name})
			delete(m.victimQueues, name)
		}
	}
}

// Eviction counts an eviction; it is edge.OutboxOptions.ObserveEviction.
func (m *Metrics) Eviction(result plans.EvictionResult) {
	m.evictions.WithLabelValues(string(result)).Inc()
}

// Cycle counts a cycle, and the pods of jobs that it has looked at in vain.
func (m *Metrics) Cycle(hasPanicked bool, unplaced int) {
	m.cycles.Inc()
	m.attempts.WithLabelValues("unschedulable").Add(float64(unplaced))
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
func (m *Metrics) Watch(inbox func() intake.Stats, outbox func() edge.OutboxStats) {
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
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: volcano, Name: "goroutines", Help: "Goroutines that bind pods.", ConstLabels: prometheus.Labels{"operation": "binding"},
	}, func() float64 { return float64(outbox().InFlight) }))
	counter("outbox_bind_repeats_total", "Steps of bindings that had to be repeated.",
		func() float64 { return float64(outbox().Repeated) })
	gauge("outbox_plans", "Plans that are not carried out yet.",
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
	counter("events_dropped_total", "Events not shown because there were too many, or because the API server did not take them.",
		func() float64 { return float64(outbox().EventsDropped) })
}
