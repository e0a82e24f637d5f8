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

// observer sees from outside when each pod of a load gets its node.
type observer struct {
	wanted int
	all    chan struct{} // closed when all pods have a node
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mutex       sync.Mutex
	nodes       map[types.UID]string // of the pods that have one
	first, last time.Time            // when the first of them got it, and the last
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
	return &observer{wanted: wanted, all: make(chan struct{}), nodes: make(map[types.UID]string, wanted)}
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
	switch node := o.nodes[pod.UID]; {
	case pod.Spec.NodeName == node:
	case node == "":
		if len(o.nodes) == 0 {
			o.first = now
		}
		o.last = now
		o.nodes[pod.UID] = pod.Spec.NodeName
		if len(o.nodes) == o.wanted {
			close(o.all)
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

// progress returns how many pods have a node, when the last of them got it, and why nothing more can be seen.
func (o *observer) progress() (bound int, last time.Time, err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return len(o.nodes), o.last, o.err
}
