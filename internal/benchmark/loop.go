package benchmark

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"hekla.sh/hekla/internal/benchmark/testbed"
	"hekla.sh/hekla/internal/edge/apiserver"
)

// trialRequests are the numbers of requests at once that are tried.
var trialRequests = [...]int{1, 4, 8, 16, 32, 64}

const (
	// trialPods is how many pods are bound in each trial: about half a second.
	trialPods = 400
	// trialRounds is how often each number is tried.
	trialRounds = 6
)

// Trial is a number of requests at once, and how fast the loop is with it.
type Trial struct {
	Requests      int     `json:"requests"`
	PodsPerSecond float64 `json:"podsPerSecond"`
}

// way is how bindings are sent: over which connections, and how many at once.
type way struct {
	client kubernetes.Interface
	atOnce int
}

// loopsWay is that of the loop with so many requests at once.
func (b *bench) loopsWay(atOnce int) way { return way{b.Restricted.Core, atOnce} }

// calibrate finds how many requests at once make the loop fastest, and how fast it would be in the way of the
// scheduler.
func (b *bench) calibrate(ctx context.Context) error {
	var ways []way
	for _, atOnce := range trialRequests {
		ways = append(ways, b.loopsWay(atOnce))
	}
	ways = append(ways, way{b.Restricted.Bindings, apiserver.BindingConnections})
	pods := min(trialPods, testbed.Room(b.Nodes)/(trialRounds*len(ways)))
	l := &testbed.Load{Name: "trial", SchedulerName: loop.schedulerName, Gangs: trialRounds * len(ways), Members: pods}
	b.Say("Trying with how many requests at once the loop is fastest …")
	if err := b.Create(ctx, l); err != nil {
		return err
	}
	if err := b.Rest(ctx); err != nil {
		return err
	}
	rates, err := testbed.Fastest(len(ways), trialRounds, pods, func(way, number int) error { return b.bind(ctx, l, number*pods, pods, ways[way]) })
	if err != nil {
		return err
	}
	trials := make([]Trial, len(ways))
	for i, rate := range rates {
		trials[i] = Trial{Requests: ways[i].atOnce, PodsPerSecond: rate}
	}
	b.report.Trials, b.report.SchedulersWay = trials[:len(trialRequests)], trials[len(trialRequests)]
	best := b.report.Trials[testbed.Best(rates[:len(trialRequests)])]
	b.report.RequestsAtOnce = best.Requests
	b.Say("The loop is fastest with %d requests at once: %.0f pods/s.", best.Requests, best.PodsPerSecond)
	if err := b.Remove(ctx, l); err != nil {
		return err
	}
	return b.Rest(ctx)
}

// bind binds some pods of a load in a way, over the nodes in turn.
func (b *bench) bind(ctx context.Context, l *testbed.Load, from, count int, w way) error {
	pods := w.client.CoreV1().Pods(testbed.Namespace)
	return testbed.InParallel(ctx, w.atOnce, count, func(i int) error {
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
	if err := b.bind(ctx, l, 0, l.Pods(), b.loopsWay(b.report.RequestsAtOnce)); err != nil {
		return nil, err
	}
	if err := w.awaitBound(ctx); err != nil {
		return nil, err
	}
	return &ProcessUse{CPUSeconds: w.atLast.Own - w.begin.Usage.Own}, nil
}
