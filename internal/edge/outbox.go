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
	"hekla.sh/hekla/pkg/cluster/decision"
)

const (
	// statusWorkers write the statuses of PodGroups and queues, as many again the conditions of pods, apart from them so
	// that ten thousand pods that wait do not hold up the phase of a PodGroup.
	statusWorkers = 3
	// busyShare is the part of the allowed requests that statuses may take while binds wait: one in twenty, a hundred a
	// second by default. Less would delay the next jobs: their pods are created only after their new phase is written.
	busyShare = 20
	// The events that are shown of PodGroups and failures: ten a second after a first hundred. No reader needs more.
	eventsPerSecond, eventsAtOnce = 10, 100
	// Of events about victims there are more, and apart from the others: each owner wants to know who took the room.
	evictionEventsPerSecond, evictionEventsAtOnce = 50, 1000
)

// OutboxOptions are what an outbox needs beside the connection.
type OutboxOptions struct {
	// Name is the scheduler's, shown as the source of events.
	Name string
	// Refuse is told of bindings that were refused for good; see [Inbox.Refuse].
	Refuse func(cluster.BindFailed)
	// Fail is told of plans that cannot be carried out; see [Inbox.Fail].
	Fail func(cluster.PlanFailed)
	// Observe is told how each binding ended. Nil observes nothing.
	Observe func(binder.Outcome)
	// ObserveEviction is told how each eviction ended. Nil observes nothing.
	ObserveEviction func(result plans.EvictionResult)
	Logger          logr.Logger

	backOff *wait.Backoff // of bindings, where a test does not want to wait; nil is the usual one
}

// Outbox carries decisions out.
type Outbox struct {
	options OutboxOptions
	binder  *binder.Binder
	plans   *plans.Executor
	jobs    *status.Writer // PodGroups and queues
	pods    *status.Writer

	events        *eventWriter
	eventLimit    flowcontrol.RateLimiter
	evictionLimit flowcontrol.RateLimiter // of events about victims
	droppedEvents atomic.Uint64
	isClosed      atomic.Bool
	stop          context.CancelFunc
}

// NewOutbox returns an outbox that keeps what it is given until [Outbox.Start].
func NewOutbox(clients *apiserver.Clients, options OutboxOptions) *Outbox {
	o := &Outbox{
		options:       options,
		eventLimit:    flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventsAtOnce),
		evictionLimit: flowcontrol.NewTokenBucketRateLimiter(evictionEventsPerSecond, evictionEventsAtOnce),
		stop:          func() {},
	}
	backOff := apiserver.RequestBackOff
	if options.backOff != nil {
		backOff = *options.backOff
	}
	o.binder = binder.New(clients.Core, binder.Options{Settle: o.settle, Finished: o.finished, BackOff: backOff, Logger: options.Logger})
	trickle := clients.Share(busyShare)
	o.events = newEventWriter(clients.Core.CoreV1(), options.Name, o.binder.IsBusy, options.Logger)
	o.jobs = status.New(clients, trickle, o.binder.IsBusy, options.Logger)
	o.pods = status.New(clients, trickle, o.binder.IsBusy, options.Logger)
	o.plans = plans.New(clients, plans.Options{
		Record: func(group decision.GroupStatus, told func(error) bool) { o.jobs.PutObserved(status.Group(group), told) },
		Fail:   options.Fail, Evicted: o.evicted, IsBusy: o.binder.IsBusy, Logger: options.Logger,
	})
	return o
}

// Start begins to write. When the context ends, every request under way is broken off and none is started.
func (o *Outbox) Start(ctx context.Context) {
	ctx, o.stop = context.WithCancel(ctx)
	o.binder.Start(ctx)
	o.plans.Start(ctx)
	o.jobs.Start(ctx, statusWorkers)
	o.pods.Start(ctx, statusWorkers)
	o.events.start(ctx)
}

// Do takes over decisions. It never waits; after [Outbox.Drain] it does nothing.
func (o *Outbox) Do(d decision.Decisions) {
	if o.isClosed.Load() {
		return
	}
	for i := range d.Ended {
		o.plans.End(&d.Ended[i])
	}
	for _, c := range d.Groups {
		o.jobs.Put(status.Group(c))
	}
	for _, c := range d.Places {
		o.jobs.Put(status.Place(c))
	}
	// After the statuses, which are of the same cycle and not newer than a plan's.
	for i := range d.Plans {
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
	for _, b := range d.Binds {
		o.pods.DropPod(b.Pod, b.UID)
		o.plans.Bound(b.UID)
	}
	o.binder.Add(d.Binds)
	for _, n := range d.Events {
		o.Show(n)
	}
}

// Show writes an event and returns true, unless there were too many lately.
func (o *Outbox) Show(n decision.Notice) bool {
	if !o.eventLimit.TryAccept() {
		o.droppedEvents.Add(1)
		return false
	}
	o.events.show(o.events.event(n.Regarding, n.Type, n.Reason, n.Message))
	return true
}

// Settle waits until neither a condition nor the nominated node of a pod is being written. A write after the binding would
// say that the pod has no node.
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

// Evicted shows on a victim who takes its room, and why.
func (o *Outbox) evicted(e *decision.Eviction, result plans.EvictionResult) {
	if o.options.ObserveEviction != nil {
		o.options.ObserveEviction(result)
	}
	if result != plans.EvictionSent && result != plans.EvictionForced {
		return
	}
	if !o.evictionLimit.TryAccept() {
		o.droppedEvents.Add(1)
		return
	}
	// The words of kube-scheduler, which tools that look for evictions know.
	shown := o.events.event(corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: e.Pod.Namespace, Name: e.Pod.Name, UID: e.UID},
		corev1.EventTypeNormal, "Preempted", e.Message)
	if e.For != (cluster.JobID{}) {
		shown.Related = &corev1.ObjectReference{APIVersion: schedulingv1beta1.SchemeGroupVersion.String(), Kind: "PodGroup",
			Namespace: e.For.Namespace, Name: e.For.Name}
	}
	o.events.show(shown)
}

// Finished shows how a binding ended.
func (o *Outbox) finished(b decision.Bind, outcome binder.Outcome) {
	if o.options.Observe != nil {
		o.options.Observe(outcome)
	}
	if outcome.Result == binder.Bound {
		o.events.tell(b.Pod, b.UID, corev1.EventTypeNormal, "Scheduled",
			fmt.Sprintf("Successfully assigned %s/%s to %s", b.Pod.Namespace, b.Pod.Name, b.Node))
	}
	if outcome.Result != binder.Refused {
		return
	}
	isShown := o.Show(decision.Notice{
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: b.Pod.Namespace, Name: b.Pod.Name, UID: b.UID},
		Type:      corev1.EventTypeWarning, Reason: "FailedBinding", Message: fmt.Sprintf("binding to node %s: %v", b.Node, outcome.Err),
	})
	// What refuses one pod, a missing permission for instance, refuses thousands.
	if isShown {
		o.options.Logger.Error(outcome.Err, "Binding was refused", "pod", b.Pod, "node", b.Node, "requests", outcome.Requests)
	}
	o.options.Refuse(cluster.BindFailed{Pod: b.Pod, UID: b.UID, At: time.Now(), Reason: outcome.Err.Error()})
}

// Drain closes the outbox in order. It begins nothing new. It drops statuses, which the next leader works out again. It
// finishes the bindings under way with the rest of their gangs, so that no gang is left incomplete. Of plans it finishes
// only the requests under way, and the next leader continues them. Drain returns when all that is over, or with an error
// when the context ends before.
func (o *Outbox) Drain(ctx context.Context) error {
	o.isClosed.Store(true)
	o.jobs.Close()
	o.pods.Close()
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

// Wait returns when the last worker has ended, after the context of Start did.
func (o *Outbox) Wait() {
	o.binder.Wait()
	o.plans.Wait()
	o.jobs.Wait()
	o.pods.Wait()
	o.events.workers.Wait()
}

// OutboxStats are what an outbox has to do, and what it has done.
type OutboxStats struct {
	Waiting  int // bindings not under way: not begun, or pausing
	InFlight int // bindings under way
	Repeated int // steps that had to be repeated so far

	Plans         int // that began and are not carried out yet
	StepsWaiting  int // steps of plans that begin or end, each with one pod, that are not under way
	StepsInFlight int
	StepsRepeated int // so far

	StatusesWaiting int
	StatusesWritten uint64
	StatusesFailed  uint64 // attempts
	EventsDropped   uint64
}

// Stats returns the numbers at this moment.
func (o *Outbox) Stats() OutboxStats {
	s := OutboxStats{StatusesWaiting: o.jobs.Waiting() + o.pods.Waiting(), EventsDropped: o.droppedEvents.Load() + o.events.droppedCount()}
	s.Waiting, s.InFlight, s.Repeated = o.binder.Stats()
	s.Plans, s.StepsWaiting, s.StepsInFlight, s.StepsRepeated = o.plans.Stats()
	for _, w := range []*status.Writer{o.jobs, o.pods} {
		written, failed := w.Counts()
		s.StatusesWritten += written
		s.StatusesFailed += failed
	}
	return s
}
