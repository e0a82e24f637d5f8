package benchmark

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hekla.sh/hekla/internal/benchmark/testbed"
	"hekla.sh/hekla/internal/localcluster"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// idleTime is how long the scheduler is watched after its work is done: what it put off costs too.
const idleTime = 5 * time.Second

// contender is who binds the pods of a load.
type contender struct {
	name          string // in object names and sentences
	schedulerName string
}

var (
	loop  = contender{name: "loop", schedulerName: "loop"}
	hekla = contender{name: "hekla", schedulerName: schedulingv1beta1.DefaultSchedulerName}
)

// window is the time from the start of a contender until the last pod has its node.
type window struct {
	bench    *bench
	observer *testbed.Observer
	process  *localcluster.Process // the contender's own, nil if it has none

	begin  testbed.Reading
	atLast testbed.Usage
}

// measure lets a contender bind a load, and leaves the cluster without it and at rest.
func (b *bench) measure(ctx context.Context, number int, s Shape, c contender,
	run func(context.Context, *testbed.Load, *window) (*ProcessUse, error)) (m Measurement, err error) {
	l := &testbed.Load{Name: fmt.Sprintf("%s-%d", c.name, number), SchedulerName: c.schedulerName, Gangs: s.Gangs, Members: s.Members, Queues: b.queues}
	about := fmt.Sprintf("Run %d of %d, %s, %s", number, b.options.Runs, s, c.name)
	b.Say("%s: creating %d pods …", about, l.Pods())
	if err := b.Create(ctx, l); err != nil {
		return m, err
	}
	o, err := b.Observe(ctx, l, l.Pods())
	if err != nil {
		return m, err
	}
	defer o.Stop()
	if err := b.Rest(ctx); err != nil {
		return m, err
	}
	w := &window{bench: b, observer: o}
	if w.begin, err = b.Begin(ctx, nil); err != nil {
		return m, err
	}
	process, err := run(ctx, l, w)
	if err != nil {
		return m, fmt.Errorf("%s: %w", about, err)
	}
	if b.PodsRun {
		if err := o.AwaitRunning(ctx); err != nil {
			return m, err
		}
	}
	seen := o.Seen()
	m = w.measurement(&seen)
	m.Process = process
	if m.APIWrites, err = b.WritesOfBindings(ctx, w.begin.Writes, l.Pods()); err != nil {
		return m, err
	}
	b.Say("%s: %.0f pods/s.", about, m.PodsPerSecond)
	problems, err := b.Check(ctx, l, seen, m.APIWrites)
	if err != nil {
		return m, err
	}
	b.report.Find(problems...)
	if err := b.Remove(ctx, l); err != nil {
		return m, err
	}
	return m, b.Rest(ctx)
}

// runScheduler starts the scheduler, lets it work and then idle, and stops it.
func (b *bench) runScheduler(ctx context.Context, _ *testbed.Load, w *window) (use *ProcessUse, err error) {
	if w.process, err = b.Component.Start(ctx, b.Cluster); err != nil {
		return nil, err
	}
	defer func() {
		err = errors.Join(err, w.process.Stop())
		w.process = nil
	}()
	if err := w.awaitBound(ctx); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(idleTime):
	}
	idle, err := b.Usage(w.process)
	if err != nil {
		return nil, err
	}
	return &ProcessUse{
		CPUSeconds: w.atLast.Process, CPUSecondsAfterIdle: idle.Process,
		PeakMemoryBytes: w.atLast.PeakMemory, PeakMemoryBytesAfterIdle: idle.PeakMemory,
	}, nil
}

// awaitBound returns when all pods have a node, or will get none, and takes the meters' readings at that moment.
func (w *window) awaitBound(ctx context.Context) (err error) {
	if err := w.observer.AwaitBound(ctx, w.process); err != nil {
		return err
	}
	w.atLast, err = w.bench.Usage(w.process)
	return err
}

// measurement is what was seen through the window.
func (w *window) measurement(seen *testbed.Seen) Measurement {
	m := Measurement{
		PodsBound: seen.Bound, PodsRunningAtLast: seen.RunsAtLast, Cost: w.begin.Until(w.atLast),
	}
	if seen.Bound == 0 {
		return m
	}
	m.StartToFirstSeconds = seen.First.Sub(w.begin.At).Seconds()
	m.StartToLastSeconds = seen.Last.Sub(w.begin.At).Seconds()
	m.FirstToLastSeconds = seen.Last.Sub(seen.First).Seconds()
	m.PodsPerSecondFromStart = float64(seen.Bound) / m.StartToLastSeconds
	if m.FirstToLastSeconds > 0 {
		// The first pod opens the time in which the others are bound.
		m.PodsPerSecond = float64(seen.Bound-1) / m.FirstToLastSeconds
	}
	if seen.Running > 0 {
		m.PodsRunningPerSecond = float64(seen.Running) / seen.LastRun.Sub(w.begin.At).Seconds()
	}
	return m
}
