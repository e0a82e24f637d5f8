package edge

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/edge/binder"
	"hekla.sh/hekla/internal/edge/plans"
	"hekla.sh/hekla/internal/edge/status"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
)

const (
	// statusWorkers is the number of writers for PodGroups and queues, and again for the conditions of pods. They are
	// separate, so that the conditions of ten thousand waiting pods do not delay the phase of a PodGroup.
	statusWorkers = 3
	// admissionWorkers is the number of writers for Workloads. A job starts only after its Workload is written, so they
	// are as many as keep an API server busy.
	admissionWorkers = 16
	// busyShare is the part of the allowed requests that statuses may use for which pods wait, while binds wait: one in
	// twenty, a hundred a second by default. Less would delay the next jobs: their pods are created only after their
	// new phase is written.
	busyShare = 20
	// The limit of Events about PodGroups and failures: ten a second after a first hundred. Users read no more.
	eventsPerSecond, eventsAtOnce = 10, 100
	// Events about victims have a larger limit of their own, because the user of each victim needs the reason.
	evictionEventsPerSecond, evictionEventsAtOnce = 50, 1000
)

// OutboxOptions are what an outbox needs besides the connection.
type OutboxOptions struct {
	// Name is the name of the scheduler, the source of its Events.
	Name string
	// Refuse receives bindings that were refused for good; see [Inbox.Refuse].
	Refuse func(cache.BindFailed)
	// Fail receives plans that cannot be carried out; see [Inbox.Fail].
	Fail func(cache.PlanFailed)
	// Workload receives what became of decisions about Workloads; see [Inbox.Workload].
	Workload func(cache.Event)
	// Observe receives the result of each binding. It may be nil.
	Observe func(binder.Outcome)
	// ObserveEviction receives the result of each eviction. It may be nil.
	ObserveEviction func(result plans.EvictionResult)
	Logger          logr.Logger

	backOff *wait.Backoff // for bindings in tests; nil is the usual one
}

// Outbox carries out decisions.
type Outbox struct {
	options   OutboxOptions
	binder    *binder.Binder
	plans     *plans.Executor
	jobs      *status.Writer // PodGroups and queues
	pods      *status.Writer
	workloads *status.Writer
	diary     *diary

	events        *eventWriter
	eventLimit    flowcontrol.RateLimiter
	evictionLimit flowcontrol.RateLimiter // of events about victims
	droppedEvents atomic.Uint64
	isClosed      atomic.Bool
	stop          context.CancelFunc
}

// NewOutbox returns an outbox that queues decisions until [Outbox.Start].
func NewOutbox(clients *apiserver.Clients, options OutboxOptions) *Outbox {
	o := &Outbox{
		options:       options,
		eventLimit:    flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventsAtOnce),
		evictionLimit: flowcontrol.NewTokenBucketRateLimiter(evictionEventsPerSecond, evictionEventsAtOnce),
		stop:          func() {},
		diary:         newDiary(options.Logger.WithName("decisions")),
	}
	backOff := apiserver.RequestBackOff
	if options.backOff != nil {
		backOff = *options.backOff
	}
	o.binder = binder.New(clients.Bindings, binder.Options{Settle: o.settle, Finished: o.finished, BackOff: backOff, Logger: options.Logger})
	trickle := clients.Share(busyShare)
	o.events = newEventWriter(clients.Core.CoreV1(), options.Name, func() bool { return o.binder.IsBusy() || o.workloads.IsBusy() }, options.Logger)
	o.jobs = status.New(clients, trickle, o.binder.IsBusy, options.Logger)
	o.pods = status.New(clients, trickle, o.binder.IsBusy, options.Logger)
	o.workloads = status.New(clients, trickle, o.binder.IsBusy, options.Logger)
	o.plans = plans.New(clients, plans.Options{
		Record: func(group decision.GroupStatus, told func(error) bool) { o.jobs.PutObserved(status.Group(group), told) },
		Fail:   options.Fail, Evicted: o.evicted, IsBusy: o.binder.IsBusy, Logger: options.Logger,
	})
	return o
}

// Start begins to write. When the context ends, every request in flight is cancelled and none is started.
func (o *Outbox) Start(ctx context.Context) {
	ctx, o.stop = context.WithCancel(ctx)
	o.binder.Start(ctx)
	o.plans.Start(ctx)
	o.jobs.Start(ctx, statusWorkers)
	o.pods.Start(ctx, statusWorkers)
	o.workloads.Start(ctx, admissionWorkers)
	o.events.start(ctx)
	o.diary.start(ctx)
}

// Do queues decisions. It never waits. After [Outbox.Drain] it does nothing.
func (o *Outbox) Do(d decision.Decisions) {
	if o.isClosed.Load() {
		return
	}
	for i := range d.Ended {
		o.diary.ended(&d.Ended[i])
		o.plans.End(&d.Ended[i])
	}
	// First, because there may be others of the same name.
	for _, name := range d.GoneGroups {
		o.jobs.Void(name)
	}
	for _, name := range d.GonePods {
		o.pods.Void(name)
	}
	for i := range d.Groups {
		if d.Groups[i].IsAdmission {
			o.diary.admitted(&d.Groups[i])
		}
		o.jobs.Put(status.Group(d.Groups[i]))
	}
	for _, c := range d.Places {
		o.jobs.Put(status.Place(c))
	}
	for _, c := range d.Awaits {
		o.jobs.Put(status.StandIns(c))
	}
	for _, c := range d.Fails {
		o.pods.Put(status.Failure(c))
	}
	// After the statuses, because the status of a plan is the newer one of this cycle.
	for i := range d.Plans {
		o.diary.begun(&d.Plans[i])
		o.plans.Begin(&d.Plans[i])
	}
	for _, c := range d.Queues {
		o.jobs.Put(status.Queue(c))
	}
	for _, c := range d.Pods {
		o.pods.Put(status.Pod(c))
		if c.Note != "" {
			o.events.tell(c.Pod, c.UID, corev1.EventTypeWarning, "FailedScheduling", c.Note)
		}
	}
	for _, c := range d.Gates {
		o.pods.Put(status.Gate(c))
	}
	for i := range d.WorkloadPlans {
		o.recordPlan(&d.WorkloadPlans[i])
	}
	for i := range d.Workloads {
		o.writeWorkload(&d.Workloads[i])
	}
	for _, b := range d.Binds {
		o.pods.DropPod(b.Pod, b.UID)
		o.plans.Bound(b)
	}
	o.binder.Add(d.Binds)
	for i := range d.Events {
		o.diary.noticed(&d.Events[i])
		o.Show(d.Events[i])
	}
}

// IsBusy reports whether bindings wait to be sent.
func (o *Outbox) IsBusy() bool { return o.binder.IsBusy() }

// Show writes an Event and returns true, unless the limit is reached.
func (o *Outbox) Show(n decision.Notice) bool {
	if !o.eventLimit.TryAccept() {
		o.droppedEvents.Add(1)
		return false
	}
	e := o.events.event(n.Regarding, n.Type, n.Reason, n.Message)
	if n.Type == corev1.EventTypeNormal && n.Regarding.UID != "" {
		// That all goes well is no news for which others' bindings should wait.
		o.events.putOff(subject{n.Regarding.UID, n.Reason}, e)
	} else {
		o.events.show(e)
	}
	return true
}

// Settle waits until neither a condition nor the nominated node of a pod is being written. A write after the binding
// would say that the pod has no node.
func (o *Outbox) settle(ctx context.Context, b decision.Bind) {
	for _, sending := range []<-chan struct{}{
		o.pods.DropPod(b.Pod, b.UID), o.plans.Sending(b.UID),
	} {
		if sending == nil {
			continue
		}
		select {
		case <-sending:
		case <-ctx.Done():
		}
	}
}

// evicted writes an Event about a victim with its preemptor and the reason.
func (o *Outbox) evicted(e *decision.Eviction, result plans.EvictionResult) {
	if o.options.ObserveEviction != nil {
		o.options.ObserveEviction(result)
	}
	if result != plans.EvictionSent && result != plans.EvictionForced {
		return
	}
	o.diary.evicted(e, result)
	if !o.evictionLimit.TryAccept() {
		o.droppedEvents.Add(1)
		return
	}
	// The reason is kube-scheduler's, which tools know.
	shown := o.events.event(corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: e.Pod.Namespace, Name: e.Pod.Name, UID: e.UID},
		corev1.EventTypeNormal, "Preempted", e.Message)
	if e.For != (cluster.JobID{}) {
		shown.Related = &corev1.ObjectReference{APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Kind: "PodGroup",
			Namespace: e.For.Namespace, Name: e.For.Name}
	}
	o.events.show(shown)
}

// finished reports the result of a binding.
func (o *Outbox) finished(b decision.Bind, outcome binder.Outcome) {
	if o.options.Observe != nil {
		o.options.Observe(outcome)
	}
	if outcome.Result == binder.Bound {
		o.events.tell(b.Pod, b.UID, corev1.EventTypeNormal, reasonScheduled,
			fmt.Sprintf("Successfully assigned %s/%s to %s", b.Pod.Namespace, b.Pod.Name, b.Node))
	}
	if outcome.Result != binder.Refused {
		return
	}
	isShown := o.Show(decision.Notice{
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: b.Pod.Namespace, Name: b.Pod.Name, UID: b.UID},
		Type:      corev1.EventTypeWarning, Reason: "FailedBinding", Message: fmt.Sprintf("binding to node %s: %v", b.Node, outcome.Err),
	})
	// The cause of one refusal, such as a missing permission, may refuse thousands of pods.
	if isShown {
		o.options.Logger.Error(outcome.Err, "Binding was refused", "pod", b.Pod, "node", b.Node, "requests", outcome.Requests)
	}
	o.options.Refuse(cache.BindFailed{Pod: b.Pod, UID: b.UID, At: time.Now(), Reason: outcome.Err.Error()})
}

// Drain closes the outbox in order. It begins nothing new. It drops statuses, which the next leader works out again. It
// finishes the bindings under way with the rest of their gangs, so that no gang is left incomplete. Of plans it
// finishes only the requests under way, and the next leader continues them. Drain returns when all that is over, or
// with an error when the context ends before.
func (o *Outbox) Drain(ctx context.Context) error {
	o.isClosed.Store(true)
	o.jobs.Close()
	o.pods.Close()
	o.workloads.Close()
	plansIdle, bindsIdle := o.plans.Close(), o.binder.Close()
	var err error
	for _, idle := range []<-chan struct{}{bindsIdle, plansIdle} {
		select {
		case <-idle:
			continue
		case <-ctx.Done():
		}
		s := o.Stats()
		err = fmt.Errorf("%d bindings and %d steps of plans were not finished in time: %w", s.Waiting+s.InFlight, s.StepsInFlight,
			context.Cause(ctx))
		break
	}
	o.stop()
	o.Wait()
	return err
}

// Wait waits for the workers to end, after the context of Start has ended.
func (o *Outbox) Wait() {
	o.binder.Wait()
	o.plans.Wait()
	o.jobs.Wait()
	o.pods.Wait()
	o.workloads.Wait()
	o.events.workers.Wait()
	o.diary.writer.Wait()
}

// OutboxStats are the numbers of an outbox.
type OutboxStats struct {
	Waiting  int `json:"waiting"`  // bindings that wait, before the first request or a repetition
	InFlight int `json:"inFlight"` // bindings under way
	Repeated int `json:"repeated"` // repeated requests so far

	Plans         int `json:"plans"`        // unfinished plans
	StepsWaiting  int `json:"stepsWaiting"` // steps of plans that wait
	StepsInFlight int `json:"stepsInFlight"`
	StepsRepeated int `json:"stepsRepeated"` // so far

	StatusesWaiting int    `json:"statusesWaiting"`
	StatusesWritten uint64 `json:"statusesWritten"`
	StatusesFailed  uint64 `json:"statusesFailed"` // attempts
	EventsDropped   uint64 `json:"eventsDropped"`
}

// Stats returns the current numbers.
func (o *Outbox) Stats() OutboxStats {
	s := OutboxStats{StatusesWaiting: o.jobs.Waiting() + o.pods.Waiting() + o.workloads.Waiting(),
		EventsDropped: o.droppedEvents.Load() + o.events.droppedCount()}
	s.Waiting, s.InFlight, s.Repeated = o.binder.Stats()
	s.Plans, s.StepsWaiting, s.StepsInFlight, s.StepsRepeated = o.plans.Stats()
	for _, w := range []*status.Writer{o.jobs, o.pods, o.workloads} {
		written, failed := w.Counts()
		s.StatusesWritten += written
		s.StatusesFailed += failed
	}
	return s
}
