package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"hekla.sh/hekla/internal/answers/charts"
	"hekla.sh/hekla/internal/answers/diagnosis"
	"hekla.sh/hekla/internal/edge"
	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/edge/intake"
	"hekla.sh/hekla/internal/edge/leader"
	"hekla.sh/hekla/internal/edge/load"
	"hekla.sh/hekla/internal/metrics"
	"hekla.sh/hekla/internal/process"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topology "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	"hekla.sh/hekla/pkg/client/definitions"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/scheduler"
)

const (
	// While bindings wait to be sent, a thousand events a second make fifty cycles. Otherwise a pod that comes waits
	// for a few milliseconds at most. After a pause the first four cycles do not wait at all: a PodGroup, its first
	// pod, the rest of its gang.
	coalesce, leastPause, cyclesAtOnce = 20 * time.Millisecond, 2 * time.Millisecond, 4
	// auditPeriod is how often the totals of the model are compared with its pods.
	auditPeriod = 5 * time.Minute
	// drainPatience bounds an orderly stop. Kubernetes gives a pod thirty seconds.
	drainPatience = 20 * time.Second
	// syncPatience is how long the lists of the cluster may take before the log says what is missing.
	syncPatience = 10 * time.Second
	// stuckAfter is how long the loop may show no sign of life. A cycle takes milliseconds.
	stuckAfter = 2 * time.Minute
)

// runner is the scheduler from the moment it leads.
type runner struct {
	options   *options
	clients   *apiserver.Clients
	source    source
	policies  *policies
	metrics   *metrics.Metrics
	logger    logr.Logger
	inbox     *intake.Inbox
	outbox    *edge.Outbox
	scheduler *scheduler.Scheduler
	kinds     *definitions.Presence
	meter     *load.Meter
	leader    func() string // which process leads, nil without an election
	recorder  *diagnosis.Recorder
	charts    *charts.Store          // what the page shows over hours and days
	announce  atomic.Pointer[func()] // tells the API server at once that this process answers questions, nil as long as it does not

	policy    atomic.Pointer[framework.Policy] // offered and not taken
	isOpening atomic.Bool                      // the addresses for questions are not open yet
	isLeading atomic.Bool
	isSynced  atomic.Bool
	since     atomic.Int64 // when it began to lead, in nanoseconds since 1970
	lastCycle atomic.Int64 // in nanoseconds since 1970, 0 before the loop

	lastTotals, lastAudit time.Time
}

// newRunner puts the parts together. Nothing runs yet.
func newRunner(o *options, clients *apiserver.Clients, src source, p *policies, m *metrics.Metrics, logger logr.Logger) (*runner, error) {
	r := &runner{options: o, clients: clients, source: src, policies: p, metrics: m, logger: logger, recorder: diagnosis.NewRecorder(), charts: charts.New()}
	var err error
	r.inbox, err = intake.New(clients, intake.Options{
		NodeSelector: o.nodeSelector, IgnorePriorityClasses: !o.usePriorityClasses, Observe: r.watched,
		Unreadable: func(n decision.Notice) { r.outbox.Show(n) },
		KueueRuns: func(n decision.Notice) {
			logger.Info(n.Message, "lease", n.Regarding.Namespace+"/"+n.Regarding.Name)
			r.outbox.Show(n)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("--node-selector: %w", err)
	}
	r.outbox = edge.NewOutbox(clients, edge.OutboxOptions{
		Name: o.schedulerNames[0], Refuse: r.inbox.Refuse, Fail: r.inbox.Fail, Workload: r.inbox.Workload, Observe: m.Bind, ObserveEviction: m.Eviction,
		Logger: logger.WithName("outbox"),
	})
	r.scheduler = scheduler.New(scheduler.Options{
		Cluster: cache.Options{SchedulerNames: o.schedulerNames, DefaultQueue: o.defaultQueue, LongestHold: o.maxPlaceholderTimeout,
			OpensQueueGates: o.featureGates[process.QueueAdmissionGates]},
		Observe: r.observe, Begin: begin, BeginAnswer: func() (func() bool, func()) { return process.Spend(answerBudget) },
	})
	r.kinds = definitions.NewPresence(clients.Core.Discovery(), needed, logger, func() {}) // what is back is watched again
	r.meter = load.New(clients.API(), r.inbox.Measure, logger.WithName("load"))
	p.offer, p.show = r.offer, func(n decision.Notice) { r.outbox.Show(n) }
	m.Watch(r.inbox.Stats, r.outbox.Stats)
	return r, nil
}

// cycleBudget is how long a cycle may last until Workloads whose turn comes late in it are left to the next one. Events
// of the cluster are not taken in meanwhile.
const cycleBudget = time.Second

// answerBudget is how much processor time of the loop the work for one answer may take.
const answerBudget = 50 * time.Millisecond

func begin() (isOver func() bool) {
	begun := time.Now()
	return func() bool { return time.Since(begun) >= cycleBudget }
}

// observe times a part of a cycle.
func (r *runner) observe(part, name string) (end func()) {
	measured, recorded := r.metrics.Observe(part, name), r.recorder.Observe(part, name)
	return func() {
		measured()
		recorded()
	}
}

// watched times a pod that has come and is to be scheduled here.
func (r *runner) watched(pod *cluster.Pod) {
	if pod.NodeName == "" && slices.Contains(r.options.schedulerNames, pod.Spec.SchedulerName) {
		r.metrics.Watched(pod.CreationTimestamp.Time)
	}
}

func (r *runner) offer(policy *framework.Policy) {
	r.policy.Store(policy)
	r.meter.Use(policy.Configuration.Metrics)
	r.inbox.Poke()
}

// lead runs the scheduler until the context ends, then finishes what was begun; or until leadership is lost, then ends
// at once.
func (r *runner) lead(ctx, leading context.Context) error {
	r.since.Store(time.Now().UnixNano())
	r.isLeading.Store(true)
	r.metrics.Leading(true)
	defer r.metrics.Leading(false)
	// Two lives: what decides ends when the context does, what writes goes on until that is written or leadership ends.
	leading, end := context.WithCancel(leading)
	defer r.outbox.Wait()
	defer end()
	running, stop := context.WithCancel(leading)
	defer context.AfterFunc(ctx, stop)()
	r.outbox.Start(leading)
	first := r.source.read(running)
	if err := r.policies.begin(first); err != nil {
		return err
	}
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer stop()
	watchers.Go(func() { r.source.watch(running, first, r.policies.update) })
	watchers.Go(func() { r.meter.Run(running) })
	watchers.Go(func() { r.kinds.Run(running, definitions.PresencePeriod) })
	if r.options.featureGates[process.QueueAdmissionGates] {
		watchers.Go(func() { r.awaitGateRight(running) })
	}
	watchers.Go(func() {
		definitions.Watch(running, r.clients.Core.Discovery(), definitions.Written, definitions.Period, r.lacksStatus)
	})
	r.inbox.Start(running)
	defer r.inbox.Wait()
	defer stop()
	if err := r.sync(running); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	watchers.Go(func() {
		r.outbox.TakeDevicesBack(running, func() []intake.Held { return r.inbox.HeldDevices(r.options.schedulerNames) })
	})
	if announce := r.announce.Load(); announce != nil {
		(*announce)()
	}
	if r.options.answersAddress != "" || r.options.webAddress != "" {
		c := &chartist{store: r.charts, questions: r.scheduler.Questions(), saved: r.clients.Core.CoreV1().ConfigMaps(r.options.election.ResourceNamespace),
			right: chartsRight(r.options.election.ResourceNamespace), reviews: r.clients.Core.AuthorizationV1(), logger: r.logger.WithName("charts")}
		watchers.Go(func() { c.run(running, leading) })
	}
	pace := scheduler.Pace{Coalesce: coalesce, Least: leastPause, Burst: cyclesAtOnce, Period: r.options.schedulePeriod}
	r.scheduler.Run(running, clock.RealClock{}, eventSource{r}, reporter{r}, pace)
	if leading.Err() != nil {
		return leader.ErrLeadershipLost
	}
	r.logger.Info("Stopping", "bindsToFinish", r.outbox.Stats().InFlight)
	patience, cancel := context.WithTimeout(leading, drainPatience)
	defer cancel()
	return r.outbox.Drain(patience)
}

// rightsInterval is how often is looked whether a right that was missing is there.
const rightsInterval = time.Minute

// awaitGateRight tells, once, that the right to remove scheduling gates is missing, and looks until it is there.
func (r *runner) awaitGateRight(ctx context.Context) {
	isTold := false
	_ = wait.PollUntilContextCancel(ctx, rightsInterval, true, func(ctx context.Context) (bool, error) {
		may, err := apiserver.GateRight.IsThere(ctx, r.clients.Core.AuthorizationV1())
		if err != nil || may {
			return may, nil
		}
		if !isTold {
			isTold = true
			r.logger.Error(errors.New(apiserver.GateRight.Missing), "A right is missing")
			if r.policies.self != nil {
				r.outbox.Show(decision.Notice{Regarding: *r.policies.self, Type: corev1.EventTypeWarning, Reason: "MissingPermission",
					Message: upperFirst(apiserver.GateRight.Missing)})
			}
		}
		return false, nil
	})
}

// needed are the kinds of Hekla's definitions without which the scheduler cannot decide.
var needed = []schema.GroupVersionResource{
	scheduling.GroupVersion.WithResource("podgroups"), scheduling.GroupVersion.WithResource("queues"), topology.GroupVersion.WithResource("hypernodes"),
}

// lacksStatus tells that statuses of a kind cannot be written as they should be.
func (r *runner) lacksStatus(resource schema.GroupVersionResource) {
	message := definitions.Message(resource)
	if resource.Resource == "podgroups" {
		message += "; the scheduler writes statuses into the PodGroups themselves meanwhile"
	}
	r.logger.Error(errors.New(message), "A definition cannot hold statuses")
	r.outbox.Show(decision.Notice{Regarding: definitions.Reference(resource), Type: corev1.EventTypeWarning, Reason: definitions.Reason, Message: message})
}

// sync waits for the caches.
func (r *runner) sync(ctx context.Context) error {
	begin := time.Now()
	if patience := r.options.resourceSyncTimeout; patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, patience, fmt.Errorf("not within --resource-sync-timeout=%s", patience))
		defer cancel()
	}
	tell := time.AfterFunc(syncPatience, func() { r.logger.Info("Still waiting for the caches", "missing", fmt.Sprint(r.inbox.Missing())) })
	defer tell.Stop()
	if err := r.inbox.WaitSynced(ctx); err != nil {
		return err
	}
	r.isSynced.Store(true)
	r.lastCycle.Store(time.Now().UnixNano())
	r.logger.Info("Caches are complete", "objects", r.inbox.Stats().Waiting, "took", time.Since(begin).String())
	return nil
}

// isAlive is an error if the loop is stuck.
func (r *runner) isAlive() error {
	last := r.lastCycle.Load()
	if since := time.Since(time.Unix(0, last)); last != 0 && since > stuckAfter+r.options.schedulePeriod {
		return fmt.Errorf("the last cycle ended %s ago", since.Round(time.Second))
	}
	return nil
}

// isReady is an error while this process leads and cannot decide, because it does not know all yet or because kinds are
// missing, or cannot be asked yet. One that waits for leadership is ready for that.
func (r *runner) isReady() error {
	if r.isOpening.Load() {
		return errors.New("the addresses for questions are not open yet")
	}
	if !r.isLeading.Load() {
		return nil
	}
	if !r.isSynced.Load() {
		return errors.Join(errors.New("the caches are not complete yet"), r.inbox.Missing())
	}
	return r.kinds.Check()
}

// eventSource is the inbox as the loop sees it.
type eventSource struct{ *runner }

func (t eventSource) Wake() <-chan struct{} { return t.inbox.Wake() }

// Take takes the events first: that uses up the wake-up, and a policy offered after it brings a new one.
func (t eventSource) Take() ([]cache.Event, *framework.Policy) {
	events := t.inbox.Take()
	return events, t.policy.Swap(nil)
}

// reporter is the outbox as the loop sees it. It runs on the goroutine that owns the model.
type reporter struct{ *runner }

func (r reporter) Do(decisions decision.Decisions) {
	r.metrics.Plans(r.scheduler.Cluster(), decisions.Plans, decisions.Ended)
	r.metrics.Placed(r.scheduler.Cluster(), decisions.Binds, time.Now())
	r.outbox.Do(decisions)
}

func (r reporter) IsBusy() bool { return r.outbox.IsBusy() }

func (r reporter) Report(result scheduler.Result, refused error) {
	now := time.Now()
	r.lastCycle.Store(now.UnixNano())
	r.metrics.Cycle(result.Panic != "", result.Unplaced)
	r.metrics.Workloads(&result.Workloads)
	r.recorder.Cycle(&result, now)
	if refused != nil {
		r.policies.rejected(refused, r.scheduler.Policy() != nil)
	}
	if result.Panic != "" {
		r.logger.Error(errors.New(result.Panic), "A cycle broke; its decisions were dropped")
		return
	}
	if now.Sub(r.lastTotals) >= metrics.TotalsPeriod {
		r.runner.lastTotals = now
		r.metrics.Totals(r.scheduler.Cluster(), r.scheduler.Policy())
		r.pendingWorkloads()
	}
	if r.lastAudit.IsZero() {
		r.runner.lastAudit = now
	}
	if now.Sub(r.lastAudit) >= auditPeriod {
		r.runner.lastAudit = now
		r.audit()
	}
}

// pendingWorkloads counts the Workloads that wait, by the reasons of answers. A bug in these must not end the
// scheduler.
func (r reporter) pendingWorkloads() {
	defer func() {
		if cause := recover(); cause != nil {
			r.logger.Error(fmt.Errorf("%v", cause), "Workloads that wait could not be counted")
		}
	}()
	// Without a policy, or if questions cannot be answered under it, it is not known why a Workload waits.
	if reader, err := r.scheduler.Reader(); err == nil {
		r.metrics.PendingWorkloads(reader)
	}
}

// longestAuditLog bounds how many differences of one audit are logged: the first tell what is wrong.
const longestAuditLog = 20

func (r *runner) audit() {
	mismatches := r.scheduler.Cache().Audit()
	r.metrics.Audit(len(mismatches))
	if len(mismatches) > 0 {
		r.logger.Error(errors.New("the model does not add up"), "Audit", "mismatches", len(mismatches),
			"first", mismatches[:min(len(mismatches), longestAuditLog)])
	}
}
