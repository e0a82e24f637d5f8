package edge

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	eventutil "k8s.io/client-go/tools/record/util"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/pkg/cluster/decision"
)

const (
	// eventWorkers write Events. Each request takes milliseconds, and the limits below are a few hundred a second.
	eventWorkers = 4
	// laterEventsPerSecond limits the Events that come after all other writes: that a pod got a node or waits, that a
	// job was scheduled, and that a Workload was admitted. It is one in twenty of the requests that are allowed by
	// default. While such writes wait, the limit is busyLaterEventsPerSecond.
	laterEventsPerSecond, busyLaterEventsPerSecond = 100, 3
	// maxLaterEvents is how many of these may wait: ten megabytes, and two minutes of writes. Further ones are dropped
	// and counted.
	maxLaterEvents = 10_000
	// maxEventRequests limits how often an Event is sent if the API server does not accept it. Nothing depends on
	// Events.
	maxEventRequests = 4
	// longestNote limits the message of an Event: the most that events.k8s.io accepts, and more than users read.
	longestNote = 1024
	// reasonScheduled is the reason of the Event about a pod that has got its node.
	reasonScheduled = "Scheduled"
)

// eventWriter writes Events in the form of core/v1: unlike those that are made by events.k8s.io/v1 these carry the
// times of their first and last occurrence and a count, which kubectl sorts by and scripts read. Of an object there is
// one Event for each reason, with the newest message: by default the library would begin to merge those with other
// numbers only after the tenth. About one object it lets 25 Events pass at once, and then one in five minutes.
type eventWriter struct {
	core       typedcorev1.CoreV1Interface
	source     string
	correlator *record.EventCorrelator
	isBusy     func() bool // bindings or admissions wait
	calm, busy flowcontrol.RateLimiter
	logger     logr.Logger
	workers    sync.WaitGroup

	mutex     sync.Mutex
	wake      *sync.Cond
	few       []*corev1.Event // Events that users wait for; the callers of show limit their number
	later     []*laterEvent
	bySubject map[subject]*laterEvent // those of later
	dropped   uint64
	isClosed  bool
}

// subject is what an Event that may come later is about. Only the newest of each is written.
type subject struct {
	uid    types.UID
	reason string // of those of a Workload or PodGroup, about which each reason is told; "" of pods
}

// laterEvent is the newest Event about a subject.
type laterEvent struct {
	subject subject
	event   *corev1.Event
}

func newEventWriter(core typedcorev1.CoreV1Interface, source string, isBusy func() bool, logger logr.Logger) *eventWriter {
	w := &eventWriter{
		core: core, source: source, isBusy: isBusy, logger: logger, bySubject: map[subject]*laterEvent{},
		correlator: record.NewEventCorrelatorWithOptions(record.CorrelatorOptions{Clock: clock.RealClock{}, MaxEvents: 1,
			MessageFunc: func(e *corev1.Event) string { return e.Message }}),
		calm: flowcontrol.NewTokenBucketRateLimiter(laterEventsPerSecond, laterEventsPerSecond),
		busy: flowcontrol.NewTokenBucketRateLimiter(busyLaterEventsPerSecond, 1),
	}
	w.wake = sync.NewCond(&w.mutex)
	return w
}

func (w *eventWriter) start(ctx context.Context) {
	for range eventWorkers {
		w.workers.Go(func() {
			for w.next(ctx) {
			}
		})
	}
	context.AfterFunc(ctx, w.close)
}

// close ends the workers, and drops the Events that wait.
func (w *eventWriter) close() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.isClosed = true
	w.wake.Broadcast()
}

// show writes an Event as soon as possible.
func (w *eventWriter) show(e *corev1.Event) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.few = append(w.few, e)
	w.wake.Signal()
}

// tell writes an Event about a pod after all other Events, unless a newer one of the pod replaces it.
func (w *eventWriter) tell(pod types.NamespacedName, uid types.UID, kind, reason, message string) {
	regarding := corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: uid}
	w.putOff(subject{uid: uid}, w.event(regarding, kind, reason, message))
}

// tellAdmission writes an Event about a Workload after all other Events, unless a newer one with the same reason
// replaces it.
func (w *eventWriter) tellAdmission(n decision.Notice) {
	w.putOff(subject{n.Regarding.UID, n.Reason}, w.event(n.Regarding, n.Type, n.Reason, n.Message))
}

func (w *eventWriter) putOff(of subject, e *corev1.Event) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if waiting := w.bySubject[of]; waiting != nil {
		waiting.event = e
		return
	}
	if len(w.later) >= maxLaterEvents {
		w.dropped++
		return
	}
	waiting := &laterEvent{subject: of, event: e}
	w.later, w.bySubject[of] = append(w.later, waiting), waiting
	w.wake.Signal()
}

// event makes an Event of this moment.
func (w *eventWriter) event(regarding corev1.ObjectReference, kind, reason, message string) *corev1.Event {
	now := metav1.Now()
	namespace := regarding.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: eventutil.GenerateEventName(regarding.Name, now.UnixNano()), Namespace: namespace},
		InvolvedObject: regarding, Type: kind, Reason: reason, Message: cut(message),
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: w.source}, ReportingController: w.source,
	}
}

// cut limits the length of a message.
func cut(message string) string {
	if len(message) <= longestNote {
		return message
	}
	return strings.ToValidUTF8(message[:longestNote-len("…")], "") + "…"
}

// next writes one Event. It returns false after the writer was closed.
func (w *eventWriter) next(ctx context.Context) bool {
	e, isLater := w.take()
	if e == nil {
		return false
	}
	if isLater {
		limit := w.calm
		if w.isBusy() {
			limit = w.busy
		}
		if limit.Wait(ctx) != nil {
			return true
		}
	}
	correlated := &record.EventCorrelateResult{Event: e}
	if isRepeatable(e) {
		var err error
		if correlated, err = w.correlator.EventCorrelate(e); err != nil || correlated.Skip {
			return true
		}
		// The library leaves these out of what it merges.
		correlated.Event.ReportingController, correlated.Event.Related = e.ReportingController, e.Related
	}
	backOff := apiserver.RequestBackOff
	for requests := 1; ; requests++ {
		err := w.send(ctx, correlated)
		switch {
		case err == nil:
			if isRepeatable(e) {
				w.correlator.UpdateState(correlated.Event)
			}
			return true
		case ctx.Err() != nil:
			return true
		case apiserver.IsFinal(err) || requests == maxEventRequests:
			w.logger.V(1).Info("An Event was not written", "object", e.InvolvedObject, "reason", e.Reason, "error", err.Error())
			w.mutex.Lock()
			w.dropped++
			w.mutex.Unlock()
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(apiserver.PauseAfter(err, &backOff)):
		}
	}
}

// take waits for an Event; nil says that the writer is closed.
func (w *eventWriter) take() (e *corev1.Event, isLater bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for {
		switch {
		case w.isClosed:
			return nil, false
		case len(w.few) > 0:
			e, w.few = w.few[0], w.few[1:]
			return e, false
		case len(w.later) > 0:
			first := w.later[0]
			w.later[0], w.later = nil, w.later[1:]
			delete(w.bySubject, first.subject)
			return first.event, true
		}
		w.wake.Wait()
	}
}

// isRepeatable is false of an Event that comes once for each pod, and most Events are such. To look for an earlier one
// costs as much as to write it.
func isRepeatable(e *corev1.Event) bool { return e.Reason != reasonScheduled }

// send creates an Event, or increases the count of an existing one. The answer of the API server is not decoded,
// because it says nothing new.
func (w *eventWriter) send(ctx context.Context, c *record.EventCorrelateResult) error {
	client := w.core.RESTClient()
	if c.Event.Count > 1 {
		err := client.Patch(types.StrategicMergePatchType).Namespace(c.Event.Namespace).Resource("events").Name(c.Event.Name).Body(c.Patch).
			Timeout(apiserver.RequestTimeout).MaxRetries(0).Do(ctx).Error()
		if !apierrors.IsNotFound(err) {
			return err
		}
	}
	// It is the first of its kind, or the one before has expired.
	c.Event.ResourceVersion = ""
	return client.Post().Namespace(c.Event.Namespace).Resource("events").Body(c.Event).
		Timeout(apiserver.RequestTimeout).MaxRetries(0).Do(ctx).Error()
}

// droppedCount is how many Events were not written.
func (w *eventWriter) droppedCount() uint64 {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.dropped
}
