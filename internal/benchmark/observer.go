package benchmark

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// observer sees from outside when each pod of a load gets its node, and when it runs.
type observer struct {
	wanted  int
	bound   chan struct{} // closed when all pods have a node
	running chan struct{} // closed when all pods run
	cancel  context.CancelFunc
	ended   sync.WaitGroup

	mutex       sync.Mutex
	nodes       map[types.UID]string // of the pods that have one
	first, last time.Time            // when the first of them got it, and the last
	runs        map[types.UID]bool   // the pods that have been Running
	lastRun     time.Time            // when the last of them became so
	runsAtLast  int                  // how many they were when the last pod got its node
	problems    []string             // what no pod may do
	err         error                // why there is nothing more to see
}

// observe begins to watch the load, none of whose pods has a node yet.
func (b *bench) observe(ctx context.Context, l *load) (*observer, error) {
	pods := b.clients.Core.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: l.selector()})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", l.name, err)
	}
	if len(list.Items) != l.pods {
		return nil, fmt.Errorf("%s has %d pods, and not %d", l.name, len(list.Items), l.pods)
	}
	ctx, cancel := context.WithCancel(ctx)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.LabelSelector = l.selector()
			return pods.Watch(ctx, options)
		},
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch the pods of %s: %w", l.name, err)
	}
	o := newObserver(l.pods)
	o.cancel = func() {
		cancel()
		watcher.Stop()
	}
	o.ended.Go(func() {
		for event := range watcher.ResultChan() {
			o.see(event, time.Now())
		}
		o.fail(errors.New("the watch of the pods ended"))
	})
	return o, nil
}

func newObserver(wanted int) *observer {
	return &observer{
		wanted: wanted, bound: make(chan struct{}), running: make(chan struct{}),
		nodes: make(map[types.UID]string, wanted), runs: make(map[types.UID]bool, wanted),
	}
}

// stop ends the watch.
func (o *observer) stop() {
	o.cancel()
	o.ended.Wait()
}

// see takes in one event of the watch.
func (o *observer) see(event watch.Event, now time.Time) {
	pod, isPod := event.Object.(*corev1.Pod)
	if !isPod {
		o.fail(fmt.Errorf("the watch of the pods broke: %w", apierrors.FromObject(event.Object)))
		return
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if event.Type == watch.Deleted {
		o.problems = append(o.problems, fmt.Sprintf("pod %s was deleted", pod.Name))
		return
	}
	o.seeNode(pod, now)
	if pod.Status.Phase == corev1.PodRunning && !o.runs[pod.UID] {
		o.runs[pod.UID] = true
		o.lastRun = now
		if len(o.runs) == o.wanted {
			close(o.running)
		}
	}
}

// seeNode takes in which node a pod has. The caller holds the mutex.
func (o *observer) seeNode(pod *corev1.Pod, now time.Time) {
	switch node := o.nodes[pod.UID]; {
	case pod.Spec.NodeName == node:
	case node == "":
		if len(o.nodes) == 0 {
			o.first = now
		}
		o.last, o.runsAtLast = now, len(o.runs)
		o.nodes[pod.UID] = pod.Spec.NodeName
		if len(o.nodes) == o.wanted {
			close(o.bound)
		}
	default:
		o.problems = append(o.problems, fmt.Sprintf("pod %s was bound to %q, then to %q", pod.Name, node, pod.Spec.NodeName))
	}
}

func (o *observer) fail(err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.err == nil {
		o.err = err
	}
}

// progress returns when anything was seen last that brings a pod on, and why nothing more can be seen.
func (o *observer) progress() (last time.Time, err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.lastRun.After(o.last) {
		return o.lastRun, o.err
	}
	return o.last, o.err
}
