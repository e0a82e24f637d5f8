package edge

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
)

const (
	// statusWorkers write the statuses of PodGroups and queues, as many again the conditions of pods, apart from them so
	// that ten thousand pods that wait do not hold up the phase of a PodGroup.
	statusWorkers = 3
	// busyShare is the part of the allowed requests that statuses may take while binds wait: one in twenty, a hundred a
	// second by default. Less would hold up the jobs behind: their pods are made only when it is written that they were
	// let in.
	busyShare = 20
	// The events that are shown of PodGroups and failures: ten a second after a first hundred. Nobody reads more.
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
	Observe func(BindOutcome)
	// ObserveEviction is told how each eviction ended. Nil observes nothing.
	ObserveEviction func(result EvictionResult)
	Logger          logr.Logger
}

// Outbox carries decisions out.
type Outbox struct {
	options OutboxOptions
	binder  *binder
	plans   *planner
	jobs    *statusWriter // PodGroups and queues
	pods    *statusWriter

	events        *eventWriter
	eventLimit    flowcontrol.RateLimiter
	evictionLimit flowcontrol.RateLimiter // of events about victims
	droppedEvents atomic.Uint64
	isClosed      atomic.Bool
	stop          context.CancelFunc
}

// NewOutbox returns an outbox that keeps what it is given until [Outbox.Start].
func NewOutbox(clients *Clients, options OutboxOptions) *Outbox {
	o := &Outbox{
		options:       options,
		binder:        newBinder(clients.Core, options.Logger),
		eventLimit:    flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventsAtOnce),
		evictionLimit: flowcontrol.NewTokenBucketRateLimiter(evictionEventsPerSecond, evictionEventsAtOnce),
		stop:          func() {},
	}
	trickle := flowcontrol.NewTokenBucketRateLimiter(max(clients.qps/busyShare, 1), 1)
	isBusy := func() bool { return o.binder.queue.Len() > 0 }
	o.events = newEventWriter(clients.Core.CoreV1(), options.Name, isBusy, options.Logger)
	o.jobs = newStatusWriter(clients, trickle, isBusy, options.Logger)
	o.pods = newStatusWriter(clients, trickle, isBusy, options.Logger)
	o.binder.settle, o.binder.finished = o.settle, o.finished
	planTrickle := flowcontrol.NewTokenBucketRateLimiter(max(clients.qps/busyPlanShare, 1), 1)
	o.plans = newPlanner(planTrickle, isBusy, options.Logger)
	o.plans.send, o.plans.fail, o.plans.evicted = messenger{clients}.do, options.Fail, o.evicted
	o.plans.record = func(status cluster.GroupStatus, told attemptObserver) { o.jobs.attest(groupChange(status), told) }
	return o
}

// Start begins to write. When the context ends, every request under way is broken off and none is started.
func (o *Outbox) Start(ctx context.Context) {
	ctx, o.stop = context.WithCancel(ctx)
	o.binder.start(ctx)
	o.plans.start(ctx)
	o.jobs.start(ctx, statusWorkers)
	o.pods.start(ctx, statusWorkers)
	o.events.start(ctx)
}

// Do takes over decisions. It never waits; after [Outbox.Drain] it does nothing.
func (o *Outbox) Do(d cluster.Decisions) {
	if o.isClosed.Load() {
		return
	}
	for i := range d.Ended {
		o.plans.end(&d.Ended[i])
	}
	for _, c := range d.Groups {
		o.jobs.put(groupChange(c))
	}
	for _, c := range d.Places {
		o.jobs.put(placeChange(c))
	}
	// After the statuses, which are of the same cycle and not newer than a plan's.
	for i := range d.Plans {
		o.plans.begin(&d.Plans[i])
	}
	for _, c := range d.Queues {
		o.jobs.put(queueChange(c))
	}
	for _, c := range d.Pods {
		o.pods.put(podChange(c))
		if c.Note != "" {
			o.events.tell(c.Pod, c.UID, corev1.EventTypeWarning, "FailedScheduling", c.Note)
		}
	}
	for _, c := range d.Gates {
		o.pods.put(gateChange(c))
	}
	for _, b := range d.Binds {
		o.pods.drop(key{podKind, b.Pod.Namespace, b.Pod.Name}, b.UID)
		o.pods.drop(key{gateKind, b.Pod.Namespace, b.Pod.Name}, b.UID)
		o.plans.bound(b.UID)
	}
	o.binder.add(d.Binds)
	for _, n := range d.Events {
		o.Show(n)
	}
}

// Show writes an event and returns true, unless there were too many lately.
func (o *Outbox) Show(n cluster.Notice) bool {
	if !o.eventLimit.TryAccept() {
		o.droppedEvents.Add(1)
		return false
	}
	o.events.show(o.events.event(n.Regarding, n.Type, n.Reason, n.Message))
	return true
}

// settle waits until neither a condition of a pod nor what it is promised is being written: one that arrived after the
// binding would say of a pod that has its node that it has none.
func (o *Outbox) settle(ctx context.Context, b cluster.Bind) {
	for _, sending := range []<-chan struct{}{
		o.pods.drop(key{podKind, b.Pod.Namespace, b.Pod.Name}, b.UID), o.plans.sending(b.UID),
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

// evicted shows on a victim who takes its room, and why.
func (o *Outbox) evicted(e *cluster.Eviction, result EvictionResult) {
	if o.options.ObserveEviction != nil {
		o.options.ObserveEviction(result)
	}
	if result != EvictionSent && result != EvictionForced {
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

func (o *Outbox) finished(t *binding, result BindResult, err error) {
	now := time.Now()
	if o.options.Observe != nil {
		outcome := BindOutcome{Result: result, Created: t.Created, Took: now.Sub(t.handed)}
		if t.isPrepared {
			outcome.Prepared = t.prepared.Sub(t.handed)
		}
		o.options.Observe(outcome)
	}
	if result == Bound {
		o.events.tell(t.Pod, t.UID, corev1.EventTypeNormal, "Scheduled",
			fmt.Sprintf("Successfully assigned %s/%s to %s", t.Pod.Namespace, t.Pod.Name, t.Node))
	}
	if result != Refused {
		return
	}
	isShown := o.Show(cluster.Notice{
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: t.Pod.Namespace, Name: t.Pod.Name, UID: t.UID},
		Type:      corev1.EventTypeWarning, Reason: "FailedBinding", Message: fmt.Sprintf("binding to node %s: %v", t.Node, err),
	})
	// What refuses one pod, a missing permission for instance, refuses thousands.
	if isShown {
		o.options.Logger.Error(err, "Binding was refused", "pod", t.Pod, "node", t.Node, "requests", t.requests)
	}
	o.options.Refuse(cluster.BindFailed{Pod: t.Pod, UID: t.UID, At: now, Reason: err.Error()})
}

// Drain closes the outbox in good order: nothing new is begun, statuses are dropped, for the next leader works them out
// anew, and the bindings under way are finished together with the rest of their gangs, so that none is left in halves. Of
// plans only the requests under way are finished: the next leader takes them up where they are. Drain returns when all that
// is over, or with an error when the context ends before.
func (o *Outbox) Drain(ctx context.Context) error {
	o.isClosed.Store(true)
	o.jobs.queue.ShutDown()
	o.pods.queue.ShutDown()
	o.plans.close()
	o.binder.close()
	var err error
	for _, idle := range []<-chan struct{}{o.binder.idle, o.plans.idle} {
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
	o.binder.workers.Wait()
	o.plans.workers.Wait()
	o.jobs.workers.Wait()
	o.pods.workers.Wait()
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
	o.binder.mutex.Lock()
	outstanding := o.binder.outstanding
	o.binder.mutex.Unlock()
	inFlight := int(o.binder.inFlight.Load())
	s := OutboxStats{
		Waiting: max(outstanding-inFlight, 0), InFlight: inFlight,
		Repeated:        int(o.binder.repeated.Load()),
		StepsRepeated:   int(o.plans.repeated.Load()),
		StatusesWaiting: o.jobs.waiting() + o.pods.waiting(), EventsDropped: o.droppedEvents.Load() + o.events.droppedCount(),
	}
	s.Plans, s.StepsWaiting, s.StepsInFlight = o.plans.stats()
	for _, w := range []*statusWriter{o.jobs, o.pods} {
		written, failed := w.counts()
		s.StatusesWritten += written
		s.StatusesFailed += failed
	}
	return s
}
