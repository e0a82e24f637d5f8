package testbed

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"hekla.sh/hekla/internal/localcluster"
)

const (
	// StallPatience is how long nothing may happen before the rest counts as left behind. It outlasts the Lease of a
	// process that was killed, and every back-off.
	StallPatience = time.Minute
	// StallPoll is how often is looked for that.
	StallPoll = time.Second
)

// Watch hands every event since a resource version to see, one after the other, until stop is called.
func Watch(ctx context.Context, from string, start func(context.Context, metav1.ListOptions) (watch.Interface, error), see func(watch.Event)) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, from, &cache.ListWatch{WatchFuncWithContext: start})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("start a watch: %w", err)
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

// Collector sees from outside when objects come into the state that a contender brings them into.
type Collector struct {
	wanted int
	counts func(watch.Event) bool
	all    chan struct{} // closed when so many objects are in it
	stop   func()

	mutex       sync.Mutex
	objects     map[types.UID]bool // those that are in it
	first, last time.Time
	err         error // why there is nothing more to see
}

// Collect begins to watch, from a resource version at which no object is in the state. counts reports whether an event
// shows its object in it.
func Collect(ctx context.Context, from string, start func(context.Context, metav1.ListOptions) (watch.Interface, error), wanted int,
	counts func(watch.Event) bool) (c *Collector, err error) {
	c = newCollector(wanted, counts)
	c.stop, err = Watch(ctx, from, start, func(event watch.Event) { c.see(event, time.Now()) })
	return c, err
}

func newCollector(wanted int, counts func(watch.Event) bool) *Collector {
	return &Collector{wanted: wanted, counts: counts, all: make(chan struct{}), objects: make(map[types.UID]bool, wanted)}
}

// Stop ends the watch.
func (c *Collector) Stop() { c.stop() }

// see takes in one event of the watch.
func (c *Collector) see(event watch.Event, now time.Time) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	object, err := meta.Accessor(event.Object)
	switch {
	case event.Type == watch.Error || err != nil:
		c.err = fmt.Errorf("the watch broke: %w", apierrors.FromObject(event.Object))
		return
	case c.objects[object.GetUID()] || !c.counts(event):
		return
	case len(c.objects) == 0:
		c.first = now
	}
	c.last, c.objects[object.GetUID()] = now, true
	if len(c.objects) == c.wanted {
		close(c.all)
	}
}

// Await returns when all objects are in the state, or when none has come into it for so long that none will. process is
// that of the contender, nil if it has none.
func (c *Collector) Await(ctx context.Context, process *localcluster.Process) error {
	return await(ctx, c.all, process, func() (time.Time, error) {
		c.mutex.Lock()
		defer c.mutex.Unlock()
		return c.last, c.err
	})
}

// Result returns how many objects have come into the state, when the first and the last did, and how many a second did
// between.
func (c *Collector) Result() (count int, first, last time.Time, perSecond float64) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if seconds := c.last.Sub(c.first).Seconds(); seconds > 0 {
		perSecond = float64(len(c.objects)-1) / seconds // the first opens the time in which the others come
	}
	return len(c.objects), c.first, c.last, perSecond
}

// await returns when all is closed, or when progress was made so long ago that no more will be. progress also says why
// no more can be seen.
func await(ctx context.Context, all <-chan struct{}, process *localcluster.Process, progress func() (last time.Time, err error)) error {
	ticker := time.NewTicker(StallPoll)
	defer ticker.Stop()
	for begin := time.Now(); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-all:
			return nil
		case now := <-ticker.C:
			last, err := progress()
			switch {
			case err != nil:
				return err
			case process != nil && !process.IsAlive():
				return fmt.Errorf("%s ended by itself; see %s", process.Name, process.LogPath)
			case now.Sub(last) > StallPatience && now.Sub(begin) > StallPatience:
				return nil
			}
		}
	}
}
