package restart

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/benchmark/testbed"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Options say what is measured.
type Options struct {
	testbed.Options
	// Pods is how many pods have nodes, in gangs of Gang.
	Pods int
	// Gang is how many pods form a gang, and how many wait while no scheduler runs.
	Gang int
	// Runs is how often the scheduler is restarted.
	Runs int
	// Bound creates the pods with their nodes, so that no scheduler fills the cluster. A large cluster is there sooner
	// then.
	Bound bool
}

func (o *Options) validate() error {
	if err := testbed.Validate(testbed.Number{Name: "nodes", Value: o.Nodes, Least: 1}, testbed.Number{Name: "pods", Value: o.Pods, Least: 1}, testbed.Number{Name: "gang", Value: o.Gang, Least: 1}, testbed.Number{Name: "runs", Value: o.Runs, Least: 1}); err != nil {
		return err
	}
	if o.Pods%o.Gang != 0 {
		return fmt.Errorf("%d pods are no gangs of %d", o.Pods, o.Gang)
	}
	if room := testbed.Room(o.Nodes); o.Pods+o.Gang > room {
		return fmt.Errorf("%d pods and a gang of %d do not fit: %d nodes have room for %d", o.Pods, o.Gang, o.Nodes, room)
	}
	return nil
}

// bench is one execution of Run.
type bench struct {
	*testbed.Testbed
	options Options
	report  *Report
}

// Run measures. What was measured wrongly, and why, is in [Report.Violations]; an error means that there is no report.
func Run(ctx context.Context, options Options) (*Report, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	return testbed.Run(ctx, options.Options, func(bed *testbed.Testbed) (*Report, error) {
		b := &bench{Testbed: bed, options: options, report: newReport(&options, bed.About)}
		return b.report, b.measureAll(ctx)
	})
}

func (b *bench) measureAll(ctx context.Context) error {
	if err := b.CreatePlaces(ctx, nil); err != nil {
		return err
	}
	if err := b.fill(ctx); err != nil {
		return err
	}
	for number := 1; number <= b.options.Runs; number++ {
		l := b.load(fmt.Sprintf("arrival-%d", number), 1)
		started, err := b.start(ctx, l)
		if err != nil {
			return fmt.Errorf("run %d: %w", number, err)
		}
		b.report.Runs = append(b.report.Runs, *started)
		b.Say("Run %d: the lists took %.2f s, the first pod had its node after %.2f s.", number, started.ListsSeconds, started.FirstSeconds)
		if err := b.Remove(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// fill gives all pods but the later gangs their nodes.
func (b *bench) fill(ctx context.Context) error {
	l := b.load("fill", b.options.Pods/b.options.Gang)
	b.Say("Creating %d pods …", l.Pods())
	if b.options.Bound {
		l.Nodes = b.NodeNames
		return b.Create(ctx, l)
	}
	started, err := b.start(ctx, l)
	if err != nil {
		return err
	}
	b.report.Fill = started
	b.Say("The fill took %.1f s.", started.LastSeconds)
	return nil
}

func (b *bench) load(name string, gangs int) *testbed.Load {
	return &testbed.Load{Name: name, SchedulerName: schedulingv1beta1.DefaultSchedulerName, Gangs: gangs, Members: b.options.Gang}
}

// start creates the pods of a load, starts the scheduler when the cluster is at rest, waits until they have nodes, and
// stops it.
func (b *bench) start(ctx context.Context, l *testbed.Load) (m *Measurement, err error) {
	if err := b.Create(ctx, l); err != nil {
		return nil, err
	}
	if err := b.Rest(ctx); err != nil {
		return nil, err
	}
	m = &Measurement{Pods: l.Pods()}
	if m.ListsSeconds, err = b.list(ctx); err != nil {
		return nil, err
	}
	o, err := b.Observe(ctx, l, l.Pods())
	if err != nil {
		return nil, err
	}
	defer o.Stop()
	before, err := b.Begin(ctx, nil)
	if err != nil {
		return nil, err
	}
	process, err := b.Component.Start(ctx, b.Cluster)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()
	if err := o.AwaitBound(ctx, process); err != nil {
		return nil, err
	}
	used, cost, err := b.End(ctx, before, process, l.Pods())
	if err != nil {
		return nil, err
	}
	seen := o.Seen()
	m.FirstSeconds, m.LastSeconds = seen.First.Sub(before.At).Seconds(), seen.Last.Sub(before.At).Seconds()
	m.CPUSeconds, m.MemoryBytes, m.PeakMemoryBytes = used.Process, used.Memory, used.PeakMemory
	problems, err := b.Check(ctx, l, seen, cost.APIWrites)
	b.report.Find(problems...)
	return m, err
}

// list lists what a scheduler must know before it decides, and returns the seconds that this took.
func (b *bench) list(ctx context.Context) (seconds float64, err error) {
	// From the cache of the API server, as the watches of every client begin.
	fromCache := metav1.ListOptions{ResourceVersion: "0"}
	lists, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	core, batch := b.Restricted.Core.CoreV1(), b.Restricted.Batch.SchedulingV1beta1()
	lists.Go(func() error { _, err := core.Nodes().List(ctx, fromCache); return err })
	lists.Go(func() error { _, err := core.Pods(metav1.NamespaceAll).List(ctx, fromCache); return err })
	lists.Go(func() error { _, err := batch.PodGroups(metav1.NamespaceAll).List(ctx, fromCache); return err })
	lists.Go(func() error { _, err := batch.Queues().List(ctx, fromCache); return err })
	err = lists.Wait()
	return time.Since(began).Seconds(), err
}
