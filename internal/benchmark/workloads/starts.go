package workloads

import (
	"context"
	"fmt"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"hekla.sh/hekla/internal/benchmark/testbed"
	"hekla.sh/hekla/internal/localcluster"
)

// starts sees from outside when Jobs are started.
type starts struct {
	wanted int
	all    chan struct{} // closed when all are
	stop   func()

	mutex       sync.Mutex
	started     map[string]bool
	first, last time.Time
	err         error // why there is nothing more to see
}

// watchStarts begins to watch the Jobs of a namespace, none of which is started.
func (b *bench) watchStarts(ctx context.Context, namespace string, wanted int) (*starts, error) {
	jobs := b.Clients.Core.BatchV1().Jobs(namespace)
	list, err := jobs.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("list the Jobs: %w", err)
	}
	s := &starts{wanted: wanted, all: make(chan struct{}), started: make(map[string]bool, wanted)}
	ctx, cancel := context.WithCancel(ctx)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{WatchFuncWithContext: jobs.Watch})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("watch the Jobs: %w", err)
	}
	var ended sync.WaitGroup
	ended.Go(func() {
		for event := range watcher.ResultChan() {
			s.see(event, time.Now())
		}
	})
	s.stop = func() {
		cancel()
		watcher.Stop()
		ended.Wait()
	}
	return s, nil
}

// see takes in one event of the watch.
func (s *starts) see(event watch.Event, now time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	j, isJob := event.Object.(*batchv1.Job)
	switch {
	case !isJob:
		s.err = fmt.Errorf("the watch of the Jobs broke: %w", apierrors.FromObject(event.Object))
		return
	case event.Type != watch.Modified || s.started[j.Name] || !hasStarted(j):
		return
	case len(s.started) == 0:
		s.first = now
	}
	s.last, s.started[j.Name] = now, true
	if len(s.started) == s.wanted {
		close(s.all)
	}
}

// await returns when all Jobs are started, or when none has been for so long that none will.
func (s *starts) await(ctx context.Context, scheduler *localcluster.Process) error {
	ticker := time.NewTicker(testbed.StallPoll)
	defer ticker.Stop()
	for begin := time.Now(); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.all:
			return nil
		case now := <-ticker.C:
			s.mutex.Lock()
			last, err := s.last, s.err
			s.mutex.Unlock()
			switch {
			case err != nil:
				return err
			case !scheduler.IsAlive():
				return fmt.Errorf("%s ended by itself; see %s", scheduler.Name, scheduler.LogPath)
			case now.Sub(last) > testbed.StallPatience && now.Sub(begin) > testbed.StallPatience:
				return nil
			}
		}
	}
}

// result is how many Jobs were started, and when the first and the last were.
func (s *starts) result() (count int, first, last time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return len(s.started), s.first, s.last
}
