package testbed

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"hekla.sh/hekla/internal/localcluster"
)

// Observer sees from outside when each pod of a load is created, gets its node, and runs.
type Observer struct {
	wanted  int
	bound   chan struct{} // closed when all pods have a node
	running chan struct{} // closed when all pods run
	stop    func()

	mutex sync.Mutex
	seen  Seen
	nodes map[types.UID]string // of the pods that have one
	runs  map[types.UID]bool   // the pods that have been Running
	made  map[types.UID]time.Time
	err   error // why there is nothing more to see
}

// Seen is what an observer has seen.
type Seen struct {
	Bound       int       // the pods that have a node
	First, Last time.Time // when the first of them got it, and the last
	Running     int       // the pods that have been Running
	LastRun     time.Time // when the last of them became so
	RunsAtLast  int       // how many they were when the last pod got its node
	// Waits are how long each pod was there before it got its node, of those that came after the observer.
	Waits []time.Duration
	// Problems are what no pod may do.
	Problems []string
}

// Observe begins to watch a load, of whose pods so many are there and have no node.
func (t *Testbed) Observe(ctx context.Context, l *Load, there int) (*Observer, error) {
	pods := t.Clients.Core.CoreV1().Pods(Namespace)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: l.selector()})
	if err != nil {
		return nil, fmt.Errorf("list the pods of %s: %w", l.Name, err)
	}
	if len(list.Items) != there {
		return nil, fmt.Errorf("%s has %d pods, and not %d", l.Name, len(list.Items), there)
	}
	o := newObserver(l.Pods())
	ofLoad := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.LabelSelector = l.selector()
		return pods.Watch(ctx, options)
	}
	o.stop, err = Watch(ctx, list.ResourceVersion, ofLoad, func(event watch.Event) { o.see(event, time.Now()) })
	return o, err
}

func newObserver(wanted int) *Observer {
	return &Observer{
		wanted: wanted, bound: make(chan struct{}), running: make(chan struct{}), made: map[types.UID]time.Time{},
		nodes: make(map[types.UID]string, wanted), runs: make(map[types.UID]bool, wanted),
	}
}

// Stop ends the watch.
func (o *Observer) Stop() { o.stop() }

// Seen returns what was seen so far.
func (o *Observer) Seen() Seen {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	seen := o.seen
	seen.Waits, seen.Problems = slices.Clone(seen.Waits), slices.Clone(seen.Problems)
	return seen
}

// see takes in one event of the watch.
func (o *Observer) see(event watch.Event, now time.Time) {
	pod, isPod := event.Object.(*corev1.Pod)
	if !isPod {
		o.fail(fmt.Errorf("the watch of the pods broke: %w", apierrors.FromObject(event.Object)))
		return
	}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	switch event.Type {
	case watch.Deleted:
		o.seen.Problems = append(o.seen.Problems, fmt.Sprintf("pod %s was deleted", pod.Name))
		return
	case watch.Added:
		o.made[pod.UID] = now
	}
	o.seeNode(pod, now)
	if pod.Status.Phase == corev1.PodRunning && !o.runs[pod.UID] {
		o.runs[pod.UID] = true
		o.seen.Running++
		o.seen.LastRun = now
		if len(o.runs) == o.wanted {
			close(o.running)
		}
	}
}

// seeNode takes in which node a pod has. The caller holds the mutex.
func (o *Observer) seeNode(pod *corev1.Pod, now time.Time) {
	switch node := o.nodes[pod.UID]; {
	case pod.Spec.NodeName == node:
	case node == "":
		if len(o.nodes) == 0 {
			o.seen.First = now
		}
		if made, isKnown := o.made[pod.UID]; isKnown {
			o.seen.Waits = append(o.seen.Waits, now.Sub(made))
		}
		o.seen.Last, o.seen.RunsAtLast = now, len(o.runs)
		o.nodes[pod.UID] = pod.Spec.NodeName
		o.seen.Bound++
		if len(o.nodes) == o.wanted {
			close(o.bound)
		}
	default:
		o.seen.Problems = append(o.seen.Problems, fmt.Sprintf("pod %s was bound to %q, then to %q", pod.Name, node, pod.Spec.NodeName))
	}
}

func (o *Observer) fail(err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.err == nil {
		o.err = err
	}
}

// progress returns when anything was seen last that brings a pod on, and why nothing more can be seen.
func (o *Observer) progress() (last time.Time, err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.seen.LastRun.After(o.seen.Last) {
		return o.seen.LastRun, o.err
	}
	return o.seen.Last, o.err
}

// AwaitBound returns when all pods have a node, or when none has got one for so long that none will. The check finds
// what was left behind. process is that of who binds them, nil if it has none.
func (o *Observer) AwaitBound(ctx context.Context, process *localcluster.Process) error {
	return await(ctx, o.bound, process, o.progress)
}

// AwaitRunning does the same for pods that run.
func (o *Observer) AwaitRunning(ctx context.Context) error {
	return await(ctx, o.running, nil, o.progress)
}
