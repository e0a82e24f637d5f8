package binder

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// Result is how a binding ended.
type Result string

// How a binding ends.
const (
	// Bound: the pod has its node.
	Bound Result = "bound"
	// Gone: the pod is deleted or being deleted, or another pod has its name.
	Gone Result = "gone"
	// Elsewhere: another program has bound the pod to another node.
	Elsewhere Result = "elsewhere"
	// Refused: the API server has refused the binding, and a live read shows that the pod has no node.
	Refused Result = "refused"
	// Unsent: the binder was closed before the first request.
	Unsent Result = "unsent"
)

// Results are all results there are.
var Results = []Result{Bound, Gone, Elsewhere, Refused, Unsent}

// Outcome is the result of a binding, with the times that it took.
type Outcome struct {
	Result Result
	// Created is when the pod was created.
	Created time.Time
	// Err is why the binding was refused, nil if it was not. Requests is how often it was sent.
	Err      error
	Requests int
	// Prepared is the time until the volumes and devices of the pod were ready; zero if it needs none, or if they never
	// were. Took is the time of the whole binding.
	Prepared, Took time.Duration
}

// Workers is the number of parallel requests.
const Workers = apiserver.BindingConnections

// binding is one pod on its way to its node.
type binding struct {
	decision.Bind
	gang    *gang
	handed  time.Time
	backOff wait.Backoff

	// isWritten is set once the volumes are written, isPrepared once they are bound and the devices are ready.
	isWritten, isPrepared bool
	prepared              time.Time

	requests int
	// problem is the error of the last request, nil once it is resolved. While it is set, the pod is read before
	// anything else is sent.
	problem error
}

// gang is shared by the bindings of a job that were decided together.
type gang struct {
	begun atomic.Bool // one of them was sent
}

// Binder sends bindings in the given order.
type Binder struct {
	pods     typedcorev1.CoreV1Interface
	preparer preparer
	queue    workqueue.TypedDelayingInterface[*binding]
	options  Options
	workers  sync.WaitGroup

	inFlight, repeated atomic.Int64

	mutex       sync.Mutex
	outstanding int // added and not finished
	// underWay counts these by pod. Devices of the pods in takesBack are being taken back, and their bindings wait.
	underWay  map[types.UID]int
	takesBack map[types.UID]bool
	isClosed  bool
	idle      chan struct{} // closed once isClosed and nothing is outstanding
}

// Options are what a binder needs apart from the connection.
type Options struct {
	// Settle waits until no other write to the pod is in flight.
	Settle func(context.Context, decision.Bind)
	// Finished receives the result of each binding.
	Finished func(decision.Bind, Outcome)
	// BackOff is the pause before a request is repeated.
	BackOff wait.Backoff
	Logger  logr.Logger
}

// New returns a binder that queues bindings until [Binder.Start].
func New(client kubernetes.Interface, options Options) *Binder {
	return &Binder{pods: client.CoreV1(), preparer: preparer{client}, options: options, idle: make(chan struct{}),
		underWay: map[types.UID]int{}, takesBack: map[types.UID]bool{},
		queue: workqueue.NewTypedDelayingQueue[*binding]()}
}

// Start sends bindings until the context ends.
func (b *Binder) Start(ctx context.Context) {
	for range Workers {
		b.workers.Go(func() {
			for b.next(ctx) {
			}
		})
	}
	context.AfterFunc(ctx, b.queue.ShutDown)
}

// Add queues bindings. After Close it drops them.
func (b *Binder) Add(binds []decision.Bind) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.isClosed {
		return
	}
	var last *binding
	now := time.Now()
	for _, bind := range binds {
		t := &binding{Bind: bind, handed: now, prepared: now, backOff: b.options.BackOff, isPrepared: bind.Reservation == nil}
		if last != nil && last.Job == bind.Job {
			t.gang = last.gang
		} else {
			t.gang = &gang{}
		}
		last = t
		b.outstanding++
		b.underWay[bind.UID]++
		b.queue.Add(t)
	}
}

// next does one step of one binding. It returns false after the queue was closed.
func (b *Binder) next(ctx context.Context) bool {
	t, isOver := b.queue.Get()
	if isOver {
		return false
	}
	defer b.queue.Done(t)
	if ctx.Err() != nil {
		return true
	}
	if b.isUnwanted(t) {
		b.finish(t, Unsent, nil)
		return true
	}
	if b.isTakenBackFrom(t.UID) {
		b.queue.AddAfter(t, whileTakenBack)
		return true
	}
	b.inFlight.Add(1)
	isSent := t.isPrepared
	result, pause, err := b.advance(ctx, t)
	b.inFlight.Add(-1)
	if result == "" {
		if isSent {
			b.repeated.Add(1)
		}
		b.queue.AddAfter(t, pause)
		return true
	}
	b.finish(t, result, err)
	return true
}

// IsBusy reports whether any binding waits to be sent.
func (b *Binder) IsBusy() bool { return b.queue.Len() > 0 }

// Stats counts the bindings that wait and those in flight, and the repeated requests so far.
func (b *Binder) Stats() (waiting, inFlight, repeated int) {
	b.mutex.Lock()
	outstanding := b.outstanding
	b.mutex.Unlock()
	inFlight = int(b.inFlight.Load())
	return max(outstanding-inFlight, 0), inFlight, int(b.repeated.Load())
}

// Wait waits for the workers to end, after the context of Start has ended.
func (b *Binder) Wait() { b.workers.Wait() }

// isUnwanted reports whether a binding must no longer be sent. The rest of a gang with bound pods is still sent, so
// that a stop leaves no incomplete gang.
func (b *Binder) isUnwanted(t *binding) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	// A pod that waits for volumes would delay the stop for minutes. The next leader continues with the claims.
	if b.isClosed && (!t.gang.begun.Load() || !t.isPrepared) {
		return true
	}
	if t.isPrepared {
		t.gang.begun.Store(true)
	}
	return false
}

func (b *Binder) finish(t *binding, result Result, err error) {
	now := time.Now()
	outcome := Outcome{Result: result, Err: err, Requests: t.requests, Created: t.Created, Took: now.Sub(t.handed)}
	if t.isPrepared {
		outcome.Prepared = t.prepared.Sub(t.handed)
	}
	b.options.Finished(t.Bind, outcome)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.outstanding--
	if b.underWay[t.UID]--; b.underWay[t.UID] == 0 {
		delete(b.underWay, t.UID)
	}
	b.announceIdle()
}

func (b *Binder) announceIdle() {
	if b.isClosed && b.outstanding == 0 {
		close(b.idle)
	}
}

// Close stops new bindings. The returned channel closes when the started ones are finished. Close is called once.
func (b *Binder) Close() <-chan struct{} {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.isClosed = true
	b.announceIdle()
	return b.idle
}

// advance sends a binding, or reads its result. An empty result means that it must be called again after the pause. err
// is why a binding was refused.
func (b *Binder) advance(ctx context.Context, t *binding) (result Result, pause time.Duration, err error) {
	if !t.isPrepared {
		return b.prepare(ctx, t)
	}
	if t.problem == nil {
		b.options.Settle(ctx, t.Bind)
		t.requests++
		if t.problem = b.send(ctx, t); t.problem == nil {
			return Bound, 0, nil
		}
		b.options.Logger.V(1).Info("Binding was not confirmed", "pod", t.Pod, "node", t.Node, "request", t.requests, "error", t.problem)
	}
	pause = apiserver.PauseAfter(t.problem, &t.backOff)
	if apierrors.IsTooManyRequests(t.problem) && t.requests < apiserver.MaxRequests {
		// The API server has not processed it, so the pod is not bound, and a read would only add to the load.
		t.problem = nil
		return "", pause, nil
	}
	// Any other error may hide a success: the reply was lost, or an earlier request was processed after all.
	pod, err := apiserver.ReadPod(ctx, b.pods, t.Pod)
	switch {
	case apierrors.IsNotFound(err):
		return Gone, 0, nil
	case err != nil:
		return "", pause, nil
	case pod.UID != t.UID || pod.DeletionTimestamp != nil:
		return Gone, 0, nil
	case pod.Spec.NodeName == t.Node:
		return Bound, 0, nil
	case pod.Spec.NodeName != "":
		return Elsewhere, 0, nil
	case apiserver.IsFinal(t.problem) || t.requests >= apiserver.MaxRequests:
		b.giveBack(ctx, t)
		return Refused, 0, t.problem
	}
	t.problem = nil
	return "", pause, nil
}

func (b *Binder) send(ctx context.Context, t *binding) error {
	if t.IsHeld {
		if err := apiserver.OpenGate(ctx, b.pods, t.Pod, t.UID); err != nil {
			return err
		}
	}
	return b.pods.RESTClient().Post().Namespace(t.Pod.Namespace).Resource("pods").Name(t.Pod.Name).SubResource("binding").
		Body(&corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.Pod.Namespace, Name: t.Pod.Name, UID: t.UID,
				Annotations: map[string]string{decision.AccountAnnotation: t.Account}}, // the API server adds it to the pod
			Target: corev1.ObjectReference{Kind: "Node", Name: t.Node},
		}).
		Timeout(apiserver.RequestTimeout).MaxRetries(0).Do(ctx).Error()
}

// prepare does one step for the volumes and devices of the pod. advance calls it first.
func (b *Binder) prepare(ctx context.Context, t *binding) (Result, time.Duration, error) {
	reached, err := b.preparer.prepare(ctx, t)
	t.isWritten = t.isWritten || err == nil
	spent := time.Since(t.handed)
	var final impossible
	switch {
	case err == nil && reached == isPrepared:
		t.isPrepared, t.prepared, t.backOff = true, time.Now(), b.options.BackOff
		return "", 0, nil
	case errors.As(err, &final) || err != nil && apiserver.IsFinal(err):
	case reached == awaitsVolumes && spent > t.Reservation.Patience:
		if err == nil {
			err = fmt.Errorf("its volumes were not bound within %s", t.Reservation.Patience)
		}
	// The patience for devices counts from their allocation. This limit is for an API server that does not answer.
	case err != nil && spent > t.Reservation.Patience+t.Reservation.DevicePatience:
	default:
		if err != nil {
			b.options.Logger.V(1).Info("Volumes and devices of a pod were not written", "pod", t.Pod, "node", t.Node, "error", err)
		}
		// The pod may be deleted long before its volumes are bound.
		pod, err := apiserver.ReadPod(ctx, b.pods, t.Pod)
		if apierrors.IsNotFound(err) || err == nil && (pod.UID != t.UID || pod.DeletionTimestamp != nil) {
			return Gone, 0, nil
		}
		return "", min(t.backOff.Step(), longestLook), nil
	}
	b.giveBack(ctx, t)
	return Refused, 0, err
}

// giveBack releases the devices of a pod that is not bound.
func (b *Binder) giveBack(ctx context.Context, t *binding) {
	if t.Reservation == nil {
		return
	}
	if err := b.preparer.release(ctx, &t.Bind); err != nil {
		b.options.Logger.Error(err, "Devices were not taken back", "pod", t.Pod)
	}
}
