package benchmark

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

// trialRequests are the numbers of requests at once that are tried.
var trialRequests = [...]int{1, 4, 8, 16, 32, 64}

const (
	// trialPods is how many pods are bound in each trial: about half a second.
	trialPods = 400
	// trialRounds is how often each number is tried, in one order and in the other. The fastest of its trials counts: a garbage collection
	// of the API server lasts longer than a trial.
	trialRounds = 6
)

// Trial is a number of requests at once, and how fast the loop is with it.
type Trial struct {
	Requests      int     `json:"requests"`
	PodsPerSecond float64 `json:"podsPerSecond"`
}

// calibrate finds how many requests at once make the loop fastest.
func (b *bench) calibrate(ctx context.Context) error {
	pods := min(trialPods, testbed.Room(b.Nodes)/(trialRounds*len(trialRequests)))
	l := &testbed.Load{Name: "trial", SchedulerName: loop.schedulerName, Gangs: trialRounds * len(trialRequests), Members: pods}
	b.Say("Trying with how many requests at once the loop is fastest …")
	if err := b.Create(ctx, l); err != nil {
		return err
	}
	if err := b.Rest(ctx); err != nil {
		return err
	}
	trials := make([]Trial, len(trialRequests))
	for round := range trialRounds {
		for i := range trialRequests {
			turn := i
			if round%2 == 1 {
				turn = len(trialRequests) - 1 - i
			}
			begin := time.Now()
			from := (round*len(trialRequests) + i) * pods
			if err := b.bind(ctx, l, from, pods, trialRequests[turn]); err != nil {
				return err
			}
			rate := float64(pods) / time.Since(begin).Seconds()
			trials[turn] = Trial{Requests: trialRequests[turn], PodsPerSecond: max(rate, trials[turn].PodsPerSecond)}
		}
	}
	best := trials[0]
	for _, t := range trials {
		if t.PodsPerSecond > best.PodsPerSecond {
			best = t
		}
	}
	b.report.Trials, b.report.RequestsAtOnce = trials, best.Requests
	b.Say("The loop is fastest with %d requests at once: %.0f pods/s.", best.Requests, best.PodsPerSecond)
	if err := b.Remove(ctx, l); err != nil {
		return err
	}
	return b.Rest(ctx)
}

// bind binds some pods of a load, so many at once, over the nodes in turn.
func (b *bench) bind(ctx context.Context, l *testbed.Load, from, count, atOnce int) error {
	pods := b.Restricted.Core.CoreV1().Pods(testbed.Namespace)
	return testbed.InParallel(ctx, atOnce, count, func(i int) error {
		number := from + i
		err := pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: testbed.Namespace, Name: l.PodName(number)},
			Target:     corev1.ObjectReference{Kind: "Node", Name: b.NodeNames[number%len(b.NodeNames)]},
		}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("bind the pod %s: %w", l.PodName(number), err)
		}
		return nil
	})
}

// runLoop binds all pods of a load.
func (b *bench) runLoop(ctx context.Context, l *testbed.Load, w *window) (*ProcessUse, error) {
	if err := b.bind(ctx, l, 0, l.Pods(), b.report.RequestsAtOnce); err != nil {
		return nil, err
	}
	if err := w.awaitBound(ctx); err != nil {
		return nil, err
	}
	return &ProcessUse{CPUSeconds: w.atLast.Own - w.begin.Usage.Own}, nil
}
