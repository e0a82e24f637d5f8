package benchmark

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/localcluster"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

const (
	// stallPatience is how long no pod may get a node before the rest counts as left behind. It outlasts the Lease of a
	// scheduler that was killed, and every back-off.
	stallPatience = time.Minute
	// stallPoll is how often is looked for that.
	stallPoll = time.Second
	// idleTime is how long the scheduler is watched after its work is done: what it put off costs too.
	idleTime = 5 * time.Second
)

// contender is who binds the pods of a load.
type contender struct {
	name          string // in object names and sentences
	schedulerName string
}

var (
	plainLoop = contender{name: "plain-loop", schedulerName: "plain-loop"}
	hekla     = contender{name: "hekla", schedulerName: schedulingv1beta1.DefaultSchedulerName}
)

// window is the time from the start of a contender until the last pod has its node.
type window struct {
	bench    *bench
	observer *observer
	process  *localcluster.Process // the contender's own, nil if it has none

	started        time.Time
	before, atLast usage
}

// measure lets a contender bind a load, and leaves the cluster without it and at rest.
func (b *bench) measure(ctx context.Context, number int, c contender, run func(context.Context, *load, *window) (*ProcessUse, error)) (Measurement, error) {
	l := &load{name: fmt.Sprintf("%s-%d", c.name, number), schedulerName: c.schedulerName, pods: b.Pods, gang: b.Gang}
	b.say("Run %d of %d, %s: creating %d pods …", number, b.Runs, c.name, b.Pods)
	if err := b.create(ctx, l); err != nil {
		return Measurement{}, err
	}
	o, err := b.observe(ctx, l)
	if err != nil {
		return Measurement{}, err
	}
	defer o.stop()
	before, err := b.writes(ctx)
	if err != nil {
		return Measurement{}, err
	}
	if err := b.rest(ctx); err != nil {
		return Measurement{}, err
	}
	b.say("Run %d of %d, %s: binding …", number, b.Runs, c.name)
	w := &window{bench: b, observer: o, started: time.Now()}
	if w.before, err = b.usage(nil); err != nil {
		return Measurement{}, err
	}
	process, err := run(ctx, l, w)
	if err != nil {
		return Measurement{}, fmt.Errorf("%s, run %d: %w", c.name, number, err)
	}
	if b.PodsRun {
		if err := w.await(ctx, o.running); err != nil {
			return Measurement{}, err
		}
	}
	after, err := b.writes(ctx)
	if err != nil {
		return Measurement{}, err
	}
	m := w.measurement()
	m.Process, m.APIWrites = process, after.since(before)
	b.say("Run %d of %d, %s: %.0f pods/s.", number, b.Runs, c.name, m.PodsPerSecond)
	if err := b.check(ctx, l, w, m.APIWrites); err != nil {
		return Measurement{}, err
	}
	if err := b.remove(ctx, l); err != nil {
		return Measurement{}, err
	}
	return m, b.rest(ctx)
}

// runPlainLoop binds one pod after the other, over the nodes in turn.
func (b *bench) runPlainLoop(ctx context.Context, l *load, w *window) (*ProcessUse, error) {
	pods := b.binder.Core.CoreV1().Pods(namespace)
	for i := range l.pods {
		err := pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: l.podName(i)},
			Target:     corev1.ObjectReference{Kind: "Node", Name: b.nodes[i%len(b.nodes)]},
		}, metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("bind the pod %s: %w", l.podName(i), err)
		}
	}
	return nil, w.awaitBound(ctx)
}

// runScheduler starts the scheduler, lets it work and then idle, and stops it.
func (b *bench) runScheduler(ctx context.Context, _ *load, w *window) (use *ProcessUse, err error) {
	if w.process, err = b.StartScheduler(ctx, b.cluster); err != nil {
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
	idle, err := b.usage(w.process)
	if err != nil {
		return nil, err
	}
	return &ProcessUse{
		CPUSeconds: w.atLast.process, CPUSecondsAfterIdle: idle.process,
		PeakMemoryBytes: w.atLast.peakMemory, PeakMemoryBytesAfterIdle: idle.peakMemory,
	}, nil
}

// awaitBound returns when all pods have a node, or will get none, and takes the meters' readings at that moment.
func (w *window) awaitBound(ctx context.Context) (err error) {
	if err := w.await(ctx, w.observer.bound); err != nil {
		return err
	}
	w.atLast, err = w.bench.usage(w.process)
	return err
}

// await returns when all pods are as far as they should be, or when nothing has come on for so long that nothing will;
// the check finds what was left behind.
func (w *window) await(ctx context.Context, all <-chan struct{}) error {
	ticker := time.NewTicker(stallPoll)
	defer ticker.Stop()
	begin := time.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-all:
			return nil
		case now := <-ticker.C:
			last, err := w.observer.progress()
			if err != nil {
				return err
			}
			if w.process != nil && !w.process.IsAlive() {
				return fmt.Errorf("%s ended by itself; see %s", w.process.Name, w.process.LogPath)
			}
			if now.Sub(last) > stallPatience && now.Sub(begin) > stallPatience {
				return nil
			}
		}
	}
}

// measurement is what was seen through the window.
func (w *window) measurement() Measurement {
	o := w.observer
	o.mutex.Lock()
	defer o.mutex.Unlock()
	m := Measurement{
		PodsBound:              len(o.nodes),
		PodsRunningAtLast:      o.runsAtLast,
		ControlPlaneCPUSeconds: w.atLast.controlPlane - w.before.controlPlane,
		// The kernel counts a machine in ticks and a process exactly, so that of a quiet machine less than nothing may be left.
		OtherCPUSeconds: max(w.atLast.other-w.before.other, 0),
	}
	if len(o.nodes) == 0 {
		return m
	}
	m.StartToFirstSeconds = o.first.Sub(w.started).Seconds()
	m.StartToLastSeconds = o.last.Sub(w.started).Seconds()
	m.FirstToLastSeconds = o.last.Sub(o.first).Seconds()
	m.PodsPerSecondFromStart = float64(len(o.nodes)) / m.StartToLastSeconds
	if m.FirstToLastSeconds > 0 {
		// The first pod opens the time in which the others are bound.
		m.PodsPerSecond = float64(len(o.nodes)-1) / m.FirstToLastSeconds
	}
	if len(o.runs) > 0 {
		m.PodsRunningPerSecond = float64(len(o.runs)) / o.lastRun.Sub(w.started).Seconds()
	}
	return m
}
