package status

import (
	"context"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/turns"
)

// Change is a status that is to be written.
type Change interface {
	// key names the object.
	key() key
	uid() types.UID
	// urgent reports whether users wait for this change after the one written last.
	urgent(last Change) bool
	// awaited reports whether further pods can only be placed after this is written, so that it must not wait for
	// bindings.
	awaited() bool
	// refresh reports whether only a message has changed since the last change of the object.
	refresh() bool
	// write writes it; ErrObjectGone says that the object it is for does not exist any more, ErrOutdated that the
	// decision does not hold for it any more.
	write(ctx context.Context, clients *apiserver.Clients) error
}

// AttemptObserver is told how an attempt to write a change, or a newer one of the same object, ended. It returns
// whether it wants to be told of the next attempt, if this one failed.
type AttemptObserver func(error) bool

const (
	// Rest is how long an object rests after its status was written, unless users wait for the next one. The
	// pods of a gang of a hundred start one by one; that needs no hundred numbers.
	Rest = time.Second
	// settle is how long the first status of an object waits for newer ones, unless pods wait for it. Most jobs are
	// admitted, placed and bound within it, so that one status is written instead of two.
	settle = 200 * time.Millisecond
	// The back-off of a status that could not be written.
	firstStatusRetry, lastStatusRetry = 500 * time.Millisecond, time.Minute
	// While bindings wait, one deferred status is written per deferral: it takes an API server as much as two or three
	// bindings. A burst of bindings takes seconds, and after it each object needs only its newest status. So one write
	// is saved for nearly all. If bindings never end, no status waits for longer than the longestDeferral.
	deferral        = 300 * time.Millisecond
	longestDeferral = time.Minute
	// Of changes that only refresh a message one is written per refreshPause. Ten thousand jobs may wait for the same
	// quota, and each pod that ends changes the numbers in all their messages.
	refreshPause = 50 * time.Millisecond
	// A request that takes longer than this lets another one begin, up to so many. An API server that takes a second
	// for each request answers many at once, and pods of new jobs wait for their phases.
	slowRequest   = 100 * time.Millisecond
	maxAssistants = 24
)

// slot is what is known of an object whose status waits, is being written, or was written a moment ago.
type slot struct {
	next       Change        // what to write next, nil if nothing
	last       Change        // what was written last, nil if that failed
	isSettling bool          // it is looked at after the time settle, and not before
	isResting  bool          // it is looked at again without being asked
	isVoid     bool          // what is being written must not be tried again
	deferred   deferredState // whether it waits until no bindings do
	isNews     bool          // next is more than a refresh of what was written last
	sending    chan struct{} // closed when the request under way has returned; nil while there is none

	attemptObservers []AttemptObserver // of next
	present          []AttemptObserver // of what is being written
}

// deferredState says how far the deferral of a status is.
type deferredState uint8

const (
	notDeferred deferredState = iota
	isDeferred                // it is among the deferred keys
	isRefresh                 // it is among the keys whose message is refreshed
	isReleased                // it is to be written even if bindings wait
)

// later is an object whose status is deferred, and since when.
type later struct {
	key
	since time.Time
}

// Writer writes statuses, for each object one at a time and the newest.
type Writer struct {
	clients *apiserver.Clients
	queue   workqueue.TypedRateLimitingInterface[key]
	// trickle bounds the writes while IsBusy; it is shared by all writers.
	trickle flowcontrol.RateLimiter
	isBusy  func() bool
	settle  time.Duration
	logger  logr.Logger
	workers sync.WaitGroup

	assistants atomic.Int32 // in addition to the workers

	mutex   sync.Mutex
	slots   map[key]*slot
	later   []later // the oldest first
	refresh []key   // whose messages are refreshed, the oldest first
	written uint64
	failed  uint64
}

// New returns a writer that keeps what it is given until [Writer.Start]. The trickle bounds its writes while isBusy is
// true; several writers share it.
func New(clients *apiserver.Clients, trickle flowcontrol.RateLimiter, isBusy func() bool, logger logr.Logger) *Writer {
	return &Writer{
		clients: clients, trickle: trickle, isBusy: isBusy, settle: settle, logger: logger, slots: map[key]*slot{},
		queue: turns.NewQueue("", workqueue.NewTypedItemExponentialFailureRateLimiter[key](firstStatusRetry, lastStatusRetry),
			func(k key) string { return k.name.Namespace }),
	}
}

// Start begins to write, until the context ends.
func (w *Writer) Start(ctx context.Context, workers int) {
	for range workers {
		w.workers.Go(func() {
			for w.next(ctx) {
			}
		})
	}
	context.AfterFunc(ctx, w.queue.ShutDown)
}

// Put makes a change the one to be written next for its object.
func (w *Writer) Put(c Change) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.take(c)
}

// PutObserved is put for a change whose attempts are observed. It is written without a rest.
func (w *Writer) PutObserved(c Change, told AttemptObserver) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	s := w.take(c)
	s.attemptObservers = append(s.attemptObservers, told)
	if s.isSettling || s.isResting && s.last != nil || s.deferred == isDeferred || s.deferred == isRefresh {
		w.queue.Add(c.key())
	}
}

func (w *Writer) take(c Change) *slot {
	k := c.key()
	s := w.slots[k]
	if s == nil {
		s = &slot{isSettling: !c.awaited()}
		w.slots[k] = s
		if s.isSettling {
			w.queue.AddAfter(k, w.settle)
		} else {
			w.queue.Add(k)
		}
	} else if s.isSettling && c.awaited() || s.isResting && s.last != nil && c.urgent(s.last) || s.deferred == isDeferred && c.awaited() {
		w.queue.Add(k)
	} else if s.deferred == isRefresh && !c.refresh() {
		s.deferred = notDeferred
		w.queue.Add(k)
	}
	s.next, s.isNews = c, s.isNews || !c.refresh()
	return s
}

// DropPod forgets what waits for a pod, and returns what closes when a condition of it has been written, nil if none is
// being written.
func (w *Writer) DropPod(pod types.NamespacedName, uid types.UID) <-chan struct{} {
	w.drop(key{ofGate, pod}, uid)
	return w.drop(key{ofPod, pod}, uid)
}

// Void forgets all that waits for an object that is gone, whatever it is. Otherwise an object would be asked for that
// does not exist, and before that what is put off would be kept: there is no limit to the objects that come and go
// meanwhile.
func (w *Writer) Void(name types.NamespacedName) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for _, what := range [...]string{ofGroup, ofPlace, ofWait, ofPod, ofGate, ofEnd} {
		k := key{what, name}
		switch s := w.slots[k]; {
		case s == nil || len(s.attemptObservers) > 0: // an observer hears that the object is gone
		case s.sending != nil:
			s.next, s.isVoid = nil, true
		default:
			delete(w.slots, k)
			w.queue.Forget(k)
		}
	}
}

// drop forgets what waits for an object, and returns what closes when a write under way has returned, nil if none is.
func (w *Writer) drop(k key, uid types.UID) <-chan struct{} {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	s := w.slots[k]
	if s == nil {
		return nil
	}
	if s.next != nil && s.next.uid() == uid {
		s.next = nil
	}
	s.isVoid = s.sending != nil
	return s.sending
}

// next writes one status. It returns false when there will be nothing more.
func (w *Writer) next(ctx context.Context) bool {
	k, isOver := w.queue.Get()
	if isOver {
		return false
	}
	defer w.queue.Done(k)
	if w.isToRefresh(k) || w.isBusy() && !w.mayWriteNow(ctx, k) {
		return true
	}
	c, sent := w.begin(k)
	if c == nil {
		return true
	}
	err := w.send(ctx, c)
	close(sent)
	w.end(ctx, k, c, err, w.tell(k, err))
	return true
}

// send sends a change. If that takes long, an assistant writes the next one meanwhile.
func (w *Writer) send(ctx context.Context, c Change) error {
	answered := make(chan struct{})
	defer close(answered)
	w.workers.Go(func() {
		select {
		case <-answered:
		case <-time.After(slowRequest):
			if w.assistants.Add(1) <= maxAssistants {
				w.next(ctx)
			}
			w.assistants.Add(-1)
		}
	})
	return c.write(ctx, w.clients)
}

// mayWriteNow reports whether the status of an object is written although bindings wait. If others wait for it, the
// trickle decides when. All others are deferred.
func (w *Writer) mayWriteNow(ctx context.Context, k key) bool {
	w.mutex.Lock()
	s := w.slots[k]
	if s == nil || s.next == nil || s.deferred == isReleased {
		w.mutex.Unlock()
		return true
	}
	isAwaited := s.next.awaited() || len(s.attemptObservers) > 0
	if !isAwaited && s.deferred == notDeferred {
		s.deferred = isDeferred
		if w.later = append(w.later, later{k, time.Now()}); len(w.later) == 1 {
			time.AfterFunc(deferral, w.release)
		}
	}
	w.mutex.Unlock()
	return isAwaited && w.trickle.Wait(ctx) == nil
}

// isToRefresh reports whether only the message of an object is to be written, and puts it off.
func (w *Writer) isToRefresh(k key) bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	s := w.slots[k]
	if s == nil || s.next == nil || s.isNews || s.deferred == isReleased || len(s.attemptObservers) > 0 {
		return false
	}
	if s.deferred != isRefresh {
		s.deferred = isRefresh
		if w.refresh = append(w.refresh, k); len(w.refresh) == 1 {
			time.AfterFunc(refreshPause, w.releaseRefresh)
		}
	}
	return true
}

// releaseRefresh passes on one of the objects whose message is to be written.
func (w *Writer) releaseRefresh() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for !w.queue.ShuttingDown() && len(w.refresh) > 0 {
		k := w.refresh[0]
		w.refresh = w.refresh[1:]
		if s := w.slots[k]; s != nil && s.deferred == isRefresh {
			s.deferred = isReleased
			w.queue.Add(k)
			break
		}
	}
	if len(w.refresh) > 0 {
		time.AfterFunc(refreshPause, w.releaseRefresh)
	} else {
		w.refresh = nil
	}
}

// release passes the deferred statuses on: all of them once no bindings wait. Before, one of them, and those that were
// deferred long ago.
func (w *Writer) release() {
	count := 1
	if !w.isBusy() {
		count = math.MaxInt
	}
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.queue.ShuttingDown() {
		return
	}
	for now := time.Now(); len(w.later) > 0 && (count > 0 || now.Sub(w.later[0].since) >= longestDeferral); w.later = w.later[1:] {
		k := w.later[0].key
		if s := w.slots[k]; s != nil && s.deferred == isDeferred {
			s.deferred = isReleased
			w.queue.Add(k)
			count--
		}
	}
	if len(w.later) > 0 {
		time.AfterFunc(deferral, w.release)
	} else {
		w.later = nil
	}
}

// Begin returns what is to be written for an object, nil if nothing is, and what to close when the request has
// returned.
func (w *Writer) begin(k key) (Change, chan struct{}) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	s := w.slots[k]
	if s == nil {
		return nil, nil
	}
	c := s.next
	if c == nil {
		delete(w.slots, k)
		w.queue.Forget(k)
		return nil, nil
	}
	s.next, s.isNews, s.isSettling, s.isResting, s.isVoid, s.deferred, s.sending = nil, false, false, false, false, notDeferred, make(chan struct{})
	s.attemptObservers, s.present = nil, s.attemptObservers
	return c, s.sending
}

// tell tells those who wait for a write how it ended, and returns who waits on.
func (w *Writer) tell(k key, err error) []AttemptObserver {
	w.mutex.Lock()
	s := w.slots[k]
	present := s.present
	s.present = nil
	w.mutex.Unlock()
	return slices.DeleteFunc(present, func(told AttemptObserver) bool { return !told(err) || err == nil })
}

// End decides how it goes on with an object after a write.
func (w *Writer) end(ctx context.Context, k key, c Change, err error, waiting []AttemptObserver) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	s := w.slots[k]
	s.sending, s.isResting, s.last = nil, true, nil
	s.attemptObservers = append(waiting, s.attemptObservers...)
	switch {
	case err == nil:
		w.written++
		w.queue.Forget(k)
		s.last = c
		if s.next != nil && (len(s.attemptObservers) > 0 || s.next.urgent(c)) {
			w.queue.Add(k)
		} else {
			w.queue.AddAfter(k, Rest)
		}
	case err == apiserver.ErrObjectGone || err == ErrOutdated || (k.what == ofWorkload || k.what == ofPlan) && isOver(err):
		// The loop decides again about a Workload whose status is refused.
		w.queue.Forget(k)
		w.queue.Add(k)
	case ctx.Err() == nil:
		w.failed++
		w.logger.V(1).Info("Status was not written; it will be tried again", "what", k.what, "name", k.name, "error", err)
		if s.next == nil && !s.isVoid {
			s.next = c
		}
		s.isNews = true
		w.queue.AddRateLimited(k)
	}
}

// Waiting is how many objects have a status that is not written yet.
func (w *Writer) Waiting() int {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	count := 0
	for _, s := range w.slots {
		if s.next != nil || s.sending != nil {
			count++
		}
	}
	return count
}

// IsBusy reports whether a change waits for a worker.
func (w *Writer) IsBusy() bool { return w.queue.Len() > 0 }

// Close ends the intake, and drops what waits.
func (w *Writer) Close() { w.queue.ShutDown() }

// Wait returns when the last worker has ended, after the context of start did.
func (w *Writer) Wait() { w.workers.Wait() }

// Counts returns how many statuses were written so far, and how many attempts have failed.
func (w *Writer) Counts() (written, failed uint64) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.written, w.failed
}
