package jobs

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/internal/benchmark/testbed"
	"hekla.sh/hekla/internal/localcluster"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// arrivals sees from outside when the pods of a namespace are made.
type arrivals struct {
	wanted  int
	started time.Time     // when the contender was
	all     chan struct{} // closed when all pods are there
	stop    func()

	mutex       sync.Mutex
	pods        map[types.UID]bool
	first, last time.Time
	err         error // why there is nothing more to see
}

// awaitPods begins to watch a namespace without pods.
func (b *bench) awaitPods(ctx context.Context, namespace string, wanted int) (*arrivals, error) {
	pods := b.Clients.Core.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	a := &arrivals{wanted: wanted, all: make(chan struct{}), pods: make(map[types.UID]bool, wanted)}
	a.stop, err = watchAll(ctx, list.ResourceVersion, pods.Watch, func(event watch.Event) { a.see(event, time.Now()) })
	return a, err
}

// watchAll hands on every event until stop is called.
func watchAll(ctx context.Context, from string, start func(context.Context, metav1.ListOptions) (watch.Interface, error), see func(watch.Event)) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, from, &cache.ListWatch{WatchFuncWithContext: start})
	if err != nil {
		cancel()
		return nil, err
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		for event := range watcher.ResultChan() {
			see(event)
		}
	})
	return func() {
		cancel()
		watcher.Stop()
		ended.Wait()
	}, nil
}

// see takes in one event of the watch.
func (a *arrivals) see(event watch.Event, now time.Time) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	pod, isPod := event.Object.(*corev1.Pod)
	switch {
	case !isPod:
		a.err = fmt.Errorf("the watch of the pods broke: %w", apierrors.FromObject(event.Object))
		return
	case event.Type != watch.Added || a.pods[pod.UID]:
		return
	case len(a.pods) == 0:
		a.first = now
	}
	a.last, a.pods[pod.UID] = now, true
	if len(a.pods) == a.wanted {
		close(a.all)
	}
}

// await returns when all pods are there, or when none has come for so long that none will; process is the contender's own, nil
// if it has none.
func (a *arrivals) await(ctx context.Context, process *localcluster.Process) error {
	ticker := time.NewTicker(testbed.StallPoll)
	defer ticker.Stop()
	for begin := time.Now(); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-a.all:
			return nil
		case now := <-ticker.C:
			a.mutex.Lock()
			last, err := a.last, a.err
			a.mutex.Unlock()
			switch {
			case err != nil:
				return err
			case process != nil && !process.IsAlive():
				return fmt.Errorf("%s ended by itself; see %s", process.Name, process.LogPath)
			case now.Sub(last) > testbed.StallPatience && now.Sub(begin) > testbed.StallPatience:
				return nil
			}
		}
	}
}

// tell puts what was seen into a measurement.
func (a *arrivals) tell(m *Measurement) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	m.PodsMade = len(a.pods)
	if len(a.pods) == 0 {
		return
	}
	m.StartToFirstSeconds, m.StartToLastSeconds = a.first.Sub(a.started).Seconds(), a.last.Sub(a.started).Seconds()
	m.PodsPerSecondFromStart = float64(len(a.pods)) / m.StartToLastSeconds
	m.WritesPerSecond = float64(m.APIWrites.Total()) / m.StartToLastSeconds
	if seconds := a.last.Sub(a.first).Seconds(); seconds > 0 {
		m.PodsPerSecond = float64(len(a.pods)-1) / seconds // the first pod opens the time in which the others are made
	}
}

// admitAll admits every PodGroup of a namespace, as the scheduler does when there is room. The function that it returns ends
// that and says what went wrong.
func (b *bench) admitAll(ctx context.Context, namespace string) (end func() error, err error) {
	groups := b.Clients.Batch.SchedulingV1beta1().PodGroups(namespace)
	list, err := groups.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var patches errgroup.Group
	patches.SetLimit(testbed.Creators)
	admitted := []byte(fmt.Sprintf(`{"status":{"phase":%q}}`, schedulingv1beta1.PodGroupInqueue))
	stop, err := watchAll(ctx, list.ResourceVersion, groups.Watch, func(event watch.Event) {
		group, isGroup := event.Object.(*schedulingv1beta1.PodGroup)
		if !isGroup || event.Type != watch.Added {
			return
		}
		patches.Go(func() error {
			_, err := groups.Patch(ctx, group.Name, types.MergePatchType, admitted, metav1.PatchOptions{}, "status")
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return func() error {
		stop()
		if err := patches.Wait(); err != nil {
			return fmt.Errorf("admit the PodGroups: %w", err)
		}
		return nil
	}, nil
}

// removeJobs deletes everything of a namespace and returns when it is gone.
func (b *bench) removeJobs(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, testbed.RemovalPatience, errors.New("not within "+testbed.RemovalPatience.String()))
	defer cancel()
	pods := b.Clients.Core.CoreV1().Pods(namespace)
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	for {
		err := errors.Join(
			b.Clients.Batch.BatchV1alpha1().Jobs(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
			b.Clients.Batch.SchedulingV1beta1().PodGroups(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}),
			pods.DeleteCollection(ctx, now, metav1.ListOptions{}))
		left, listErr := pods.List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil && listErr == nil && len(left.Items) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove the pods: %w", errors.Join(context.Cause(ctx), err, listErr))
		case <-time.After(testbed.RemovalPoll):
		}
	}
}
