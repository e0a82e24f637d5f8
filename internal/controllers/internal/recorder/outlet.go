package recorder

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// eventsPerSecond limits the Events of a controller after the first eventsAtOnce. Without a limit every third
	// request would be an Event while thousands of jobs are started. Users of few jobs wait for none.
	eventsPerSecond, eventsAtOnce = 20, 100
	// maxWaiting is how many Events may wait: ten megabytes. Further ones are dropped.
	maxWaiting = 10_000
	// staleAfter is how long an Event that is no warning waits while more than eventsAtOnce do. In that time more are
	// written than a user reads. Then it is dropped: an Event that comes minutes late helps no user, and the status of
	// its object says the same.
	staleAfter = time.Minute
	// maxRequests limits how often an Event is sent to an API server that does not answer, each time after a longer
	// pause.
	maxRequests = 4
	firstPause  = time.Second
)

// outlet keeps Events until they are sent. Warnings are sent first. Of many others the newest are: a user who creates
// one job behind thousands of another user does not wait for the Events of these.
type outlet struct {
	sink   record.EventSink
	limit  flowcontrol.RateLimiter
	logger logr.Logger

	mutex            sync.Mutex
	wake             *sync.Cond
	warnings, others []*waiting
	created          map[types.NamespacedName]*waiting // those that are still to be created
	isClosed         bool
}

// waiting is an Event that is to be sent.
type waiting struct {
	event *corev1.Event
	patch []byte // what has changed of one that exists; nil if it is to be created
	since time.Time
}

func newOutlet(sink record.EventSink, logger logr.Logger) *outlet {
	o := &outlet{sink: sink, logger: logger, limit: flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventsAtOnce),
		created: map[types.NamespacedName]*waiting{}}
	o.wake = sync.NewCond(&o.mutex)
	return o
}

// Create implements [record.EventSink].
func (o *outlet) Create(event *corev1.Event) (*corev1.Event, error) { return o.put(event, nil) }

// Update implements [record.EventSink].
func (o *outlet) Update(event *corev1.Event) (*corev1.Event, error) { return o.put(event, nil) }

// Patch implements [record.EventSink].
func (o *outlet) Patch(event *corev1.Event, patch []byte) (*corev1.Event, error) {
	return o.put(event, patch)
}

// put keeps an Event to be sent. One that is not created yet is created as it is last.
func (o *outlet) put(event *corev1.Event, patch []byte) (*corev1.Event, error) {
	name := types.NamespacedName{Namespace: event.Namespace, Name: event.Name}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if before := o.created[name]; before != nil {
		before.event = event
		return event, nil
	}
	if len(o.warnings)+len(o.others) >= maxWaiting {
		o.logger.V(1).Info("An Event was dropped: too many wait", "object", event.InvolvedObject, "reason", event.Reason)
		return event, nil
	}
	w := &waiting{event, patch, time.Now()}
	if patch == nil {
		o.created[name] = w
	}
	if event.Type == corev1.EventTypeWarning {
		o.warnings = append(o.warnings, w)
	} else {
		o.others = append(o.others, w)
	}
	o.wake.Signal()
	return event, nil
}

// run sends Events until the context ends.
func (o *outlet) run(ctx context.Context) {
	context.AfterFunc(ctx, func() {
		o.mutex.Lock()
		defer o.mutex.Unlock()
		o.isClosed = true
		o.wake.Broadcast()
	})
	for o.await() && o.limit.Wait(ctx) == nil {
		o.send(ctx, o.take(time.Now()))
	}
}

// await waits for an Event. It reports false when there will be no more.
func (o *outlet) await() bool {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for !o.isClosed && len(o.warnings)+len(o.others) == 0 {
		o.wake.Wait()
	}
	return !o.isClosed
}

// take returns the Event that is sent next. There is one.
func (o *outlet) take(now time.Time) waiting {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	for len(o.others) > eventsAtOnce && now.Sub(o.others[0].since) > staleAfter {
		w := o.first(&o.others)
		o.logger.V(1).Info("An Event was dropped: newer ones are written first", "object", w.event.InvolvedObject, "reason", w.event.Reason)
	}
	switch last := len(o.others) - 1; {
	case len(o.warnings) > 0:
		return *o.first(&o.warnings)
	case last >= eventsAtOnce:
		w := o.others[last]
		o.others[last], o.others = nil, o.others[:last]
		return *o.forget(w)
	default:
		return *o.first(&o.others)
	}
}

// first takes the oldest of a list.
func (o *outlet) first(from *[]*waiting) *waiting {
	w := (*from)[0]
	(*from)[0], *from = nil, (*from)[1:]
	return o.forget(w)
}

// forget notes that an Event does not wait any more.
func (o *outlet) forget(w *waiting) *waiting {
	if w.patch == nil {
		delete(o.created, types.NamespacedName{Namespace: w.event.Namespace, Name: w.event.Name})
	}
	return w
}

// send sends an Event, again if the API server does not answer.
func (o *outlet) send(ctx context.Context, w waiting) {
	pause := firstPause
	for requests := 1; ; requests++ {
		err := o.request(w)
		var answer apierrors.APIStatus
		switch {
		case err == nil:
			return
		case errors.As(err, &answer) || requests == maxRequests:
			o.logger.V(1).Info("An Event was not written", "object", w.event.InvolvedObject, "reason", w.event.Reason, "error", err.Error())
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
			pause *= 2
		}
	}
}

func (o *outlet) request(w waiting) error {
	if w.patch != nil {
		if _, err := o.sink.Patch(w.event, w.patch); !apierrors.IsNotFound(err) {
			return err
		}
	}
	// It is the first of its kind, or the one before has expired. The library still reads the Event that it gave.
	event := *w.event
	event.ResourceVersion = ""
	_, err := o.sink.Create(&event)
	return err
}
