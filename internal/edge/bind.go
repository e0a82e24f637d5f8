package edge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/workqueue"

	"hekla.sh/hekla/pkg/cluster"
)

// BindResult is how a binding ended.
type BindResult string

// How a binding ends.
const (
	// Bound: the pod has its node.
	Bound BindResult = "bound"
	// Gone: the pod was deleted, is being deleted, or another one has its name.
	Gone BindResult = "gone"
	// Elsewhere: somebody else has bound the pod to another node.
	Elsewhere BindResult = "elsewhere"
	// Refused: the API server does not bind it, and a live read showed that it is not bound.
	Refused BindResult = "refused"
	// Unsent: the outbox was closed before the first request.
	Unsent BindResult = "unsent"
)

// BindResults are all results there are.
var BindResults = []BindResult{Bound, Gone, Elsewhere, Refused, Unsent}

// BindOutcome is how a binding ended, and how long it took.
type BindOutcome struct {
	Result BindResult
	// Created is when the pod was.
	Created time.Time
	// Prepared is how long after the binding was handed over what the pod takes besides room was written, and its volumes were
	// bound: zero if it takes nothing, or if that was never done. Took is how long it took in all.
	Prepared, Took time.Duration
}

const (
	// bindWorkers is how many bindings are under way at once. The API server takes a millisecond or two for each and works
	// on as many as it has cores; a few more on their way keep it busy, and many more only make each of them slower.
	bindWorkers = 32
	// requestTimeout bounds one request, here and at the server. A healthy server answers within a second.
	requestTimeout = 15 * time.Second
	// maxBindRequests is how often one binding is sent. With the back-off it outlasts a restart of the API server; then
	// the job is better placed anew than kept waiting for a node that was good half a minute ago.
	maxBindRequests = 8
	// longestPause bounds the back-off and what a server may ask for with Retry-After.
	longestPause = 10 * time.Second
)

// bindBackOff is the pause after a request that has to be repeated.
var bindBackOff = wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.25, Steps: 20, Cap: longestPause}

// binding is one pod on its way to its node.
type binding struct {
	cluster.Bind
	gang    *gang
	handed  time.Time
	backOff wait.Backoff

	// isWritten is set once what is to be written of volumes was, isPrepared when they are bound and the devices ready as well.
	isWritten, isPrepared bool
	prepared              time.Time

	requests int
	// problem is the answer to the last request, nil once it is understood. As long as it is set nothing is sent: what the
	// API server shows is read first.
	problem error
}

// gang is what the bindings of a job have in common that were decided together.
type gang struct {
	begun atomic.Bool // one of them was sent
}

// binder carries out bindings, in the order given.
type binder struct {
	pods     typedcorev1.CoreV1Interface
	preparer preparer
	queue    workqueue.TypedDelayingInterface[*binding]
	settle   func(context.Context, cluster.Bind) // waits until no other write to the pod is under way
	finished func(*binding, BindResult, error)
	logger   logr.Logger
	backOff  wait.Backoff
	workers  sync.WaitGroup

	inFlight, repeated atomic.Int64

	mutex       sync.Mutex
	outstanding int // handed over and not finished
	isClosed    bool
	idle        chan struct{} // closed once isClosed and nothing is outstanding
}

func newBinder(client kubernetes.Interface, logger logr.Logger) *binder {
	return &binder{pods: client.CoreV1(), preparer: preparer{client}, logger: logger, backOff: bindBackOff, idle: make(chan struct{}),
		queue: workqueue.NewTypedDelayingQueue[*binding]()}
}

func (b *binder) start(ctx context.Context) {
	for range bindWorkers {
		b.workers.Go(func() {
			for b.next(ctx) {
			}
		})
	}
	context.AfterFunc(ctx, b.queue.ShutDown)
}

// add takes over bindings. After close it takes none.
func (b *binder) add(binds []cluster.Bind) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.isClosed {
		return
	}
	var last *binding
	now := time.Now()
	for _, bind := range binds {
		t := &binding{Bind: bind, handed: now, prepared: now, backOff: b.backOff, isPrepared: bind.Reservation == nil}
		if last != nil && last.Job == bind.Job {
			t.gang = last.gang
		} else {
			t.gang = &gang{}
		}
		last = t
		b.outstanding++
		b.queue.Add(t)
	}
}

// next takes one step with one binding. It returns false when there will be nothing more.
func (b *binder) next(ctx context.Context) bool {
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

// isUnwanted reports whether a binding is not to be begun any more. The rest of a gang of which some are bound already is
// still sent, so that a stop leaves no gang in halves.
func (b *binder) isUnwanted(t *binding) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	// Who waits for volumes would hold up the stop for minutes. The next leader finds the claims as they are.
	if b.isClosed && (!t.gang.begun.Load() || !t.isPrepared) {
		return true
	}
	if t.isPrepared {
		t.gang.begun.Store(true)
	}
	return false
}

func (b *binder) finish(t *binding, result BindResult, err error) {
	b.finished(t, result, err)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.outstanding--
	b.announceIdle()
}

func (b *binder) announceIdle() {
	if b.isClosed && b.outstanding == 0 {
		close(b.idle)
	}
}

// close makes idle close when all that was begun is finished. Nothing new is begun. It is called once.
func (b *binder) close() {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.isClosed = true
	b.announceIdle()
}

// advance sends a binding, or finds out what became of it. An empty result means that it must be called again after the
// pause. err is why a binding was refused.
func (b *binder) advance(ctx context.Context, t *binding) (result BindResult, pause time.Duration, err error) {
	if !t.isPrepared {
		return b.prepare(ctx, t)
	}
	if t.problem == nil {
		b.settle(ctx, t.Bind)
		t.requests++
		if t.problem = b.send(ctx, t); t.problem == nil {
			return Bound, 0, nil
		}
		b.logger.V(1).Info("Binding was not confirmed", "pod", t.Pod, "node", t.Node, "request", t.requests, "error", t.problem)
	}
	pause = pauseAfter(t.problem, &t.backOff)
	if apierrors.IsTooManyRequests(t.problem) && t.requests < maxBindRequests {
		// Turned away at the door: certainly not bound, and a read would only add to the load.
		t.problem = nil
		return "", pause, nil
	}
	// Anything else may hide a success: the reply was lost, or a request before this one arrived after all.
	pod, err := readPod(ctx, b.pods, t.Pod)
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
	case isFinal(t.problem) || t.requests >= maxBindRequests:
		b.giveBack(ctx, t)
		return Refused, 0, t.problem
	}
	t.problem = nil
	return "", pause, nil
}

func (b *binder) send(ctx context.Context, t *binding) error {
	if t.IsHeld {
		if err := openGate(ctx, b.pods, t.Pod, t.UID); err != nil {
			return err
		}
	}
	return b.pods.RESTClient().Post().Namespace(t.Pod.Namespace).Resource("pods").Name(t.Pod.Name).SubResource("binding").
		Body(&corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.Pod.Namespace, Name: t.Pod.Name, UID: t.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: t.Node},
		}).
		Timeout(requestTimeout).MaxRetries(0).Do(ctx).Error()
}

// prepare takes one step towards what the pod takes besides room. It is what advance does first.
func (b *binder) prepare(ctx context.Context, t *binding) (BindResult, time.Duration, error) {
	reached, err := b.preparer.prepare(ctx, t)
	t.isWritten = t.isWritten || err == nil
	spent := time.Since(t.handed)
	var hopeless impossible
	switch {
	case err == nil && reached == isPrepared:
		t.isPrepared, t.prepared, t.backOff = true, time.Now(), b.backOff
		return "", 0, nil
	case errors.As(err, &hopeless) || err != nil && isFinal(err):
	case reached == awaitsVolumes && spent > t.Reservation.Patience:
		if err == nil {
			err = fmt.Errorf("its volumes were not bound within %s", t.Reservation.Patience)
		}
	// How long devices take is counted from when they were given out. This is for who cannot reach the API server.
	case err != nil && spent > t.Reservation.Patience+t.Reservation.DevicePatience:
	default:
		if err != nil {
			b.logger.V(1).Info("Volumes and devices of a pod were not written", "pod", t.Pod, "node", t.Node, "error", err)
		}
		// The pod may be gone long before its volumes are there.
		pod, err := readPod(ctx, b.pods, t.Pod)
		if apierrors.IsNotFound(err) || err == nil && (pod.UID != t.UID || pod.DeletionTimestamp != nil) {
			return Gone, 0, nil
		}
		return "", min(t.backOff.Step(), longestLook), nil
	}
	b.giveBack(ctx, t)
	return Refused, 0, err
}

// giveBack takes back what devices were given to a pod that is not bound.
func (b *binder) giveBack(ctx context.Context, t *binding) {
	if t.Reservation == nil {
		return
	}
	if err := b.preparer.release(ctx, &t.Bind); err != nil {
		b.logger.Error(err, "Devices were not taken back", "pod", t.Pod)
	}
}

// readPod reads a pod itself, past all caches.
func readPod(ctx context.Context, pods typedcorev1.CoreV1Interface, name types.NamespacedName) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := pods.RESTClient().Get().Namespace(name.Namespace).Resource("pods").Name(name.Name).
		VersionedParams(&metav1.GetOptions{}, scheme.ParameterCodec).
		Timeout(requestTimeout).MaxRetries(0).Do(ctx).Into(pod)
	return pod, err
}

// isFinal reports whether the API server understood a request and will answer the same again. Without an answer, and
// where it or what it needs was not able to answer, it is not; nor is a conflict, which may be with an older write.
func isFinal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly,
		http.StatusTooManyRequests:
		return false
	default:
		return code >= 400 && code < 500
	}
}

// pauseAfter is how long to wait after an error: as long as the server asks for, but not less than the back-off.
func pauseAfter(err error, backOff *wait.Backoff) time.Duration {
	pause := backOff.Step()
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		pause = max(pause, time.Duration(seconds)*time.Second)
	}
	return min(pause, longestPause)
}
