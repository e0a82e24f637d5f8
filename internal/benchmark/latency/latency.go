package latency

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"hekla.sh/hekla/internal/benchmark/testbed"
	"hekla.sh/hekla/internal/localcluster"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

const (
	// warmUpGangs are created before the first rate: the first requests of a process take longer than all others.
	warmUpGangs = 20
	// mostAtOnce is how many gangs may be in the making at once: more than a second's at the highest rates.
	mostAtOnce = 1000
)

// Options say what is measured.
type Options struct {
	testbed.Options
	// Rates are pods created per second, one after the other.
	Rates []int
	// Duration is how long pods are created at each rate.
	Duration time.Duration
	// Gang is how many pods form a gang.
	Gang int
	// Queues is how many queues the gangs are in, in turn.
	Queues int
	// Backlog is how many gangs of one pod wait besides, which fit no node.
	Backlog int
}

func (o *Options) validate() error {
	if err := testbed.Validate(testbed.Number{Name: "nodes", Value: o.Nodes, Least: 1}, testbed.Number{Name: "gang", Value: o.Gang, Least: 1}, testbed.Number{Name: "queues", Value: o.Queues, Least: 1}, testbed.Number{Name: "backlog", Value: o.Backlog, Least: 0}); err != nil {
		return err
	}
	if len(o.Rates) == 0 {
		return errors.New("no rate is given")
	}
	for _, rate := range o.Rates {
		if rate < 1 {
			return fmt.Errorf("rate %d: it must be 1 pod a second or more", rate)
		}
		gangs := o.gangs(rate)
		if gangs < 1 {
			return fmt.Errorf("rate %d: no gang of %d pods arrives within %s", rate, o.Gang, o.Duration)
		}
		if room := testbed.Room(o.Nodes); gangs*o.Gang+o.Backlog > room {
			return fmt.Errorf("rate %d: %d pods do not fit: %d nodes have room for %d", rate, gangs*o.Gang+o.Backlog, o.Nodes, room)
		}
	}
	return nil
}

// gangs is how many gangs arrive at a rate.
func (o *Options) gangs(rate int) int {
	return int(float64(rate) * o.Duration.Seconds() / float64(o.Gang))
}

// bench is one execution of Run.
type bench struct {
	*testbed.Testbed
	options Options
	queues  []string
	process *localcluster.Process
	report  *Report
}

// Run measures. What was wrong is in [Report.Violations]; an error means that there is no report.
func Run(ctx context.Context, options Options) (*Report, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	return testbed.Run(ctx, options.Options, func(bed *testbed.Testbed) (*Report, error) {
		b := &bench{Testbed: bed, options: options, report: newReport(&options, bed.About)}
		if options.Queues > 1 {
			b.queues = testbed.QueueNames(options.Queues)
		}
		return b.report, b.measureAll(ctx)
	})
}

func (b *bench) measureAll(ctx context.Context) (err error) {
	if err := b.CreatePlaces(ctx, b.queues); err != nil {
		return err
	}
	if b.options.Backlog > 0 {
		b.Say("Creating %d pods that fit no node …", b.options.Backlog)
		if err := b.Create(ctx, b.load("backlog", b.options.Backlog, 1, true)); err != nil {
			return err
		}
	}
	if b.process, err = b.Component.Start(ctx, b.Cluster); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.process.Stop()) }()
	if err := b.warmUp(ctx); err != nil {
		return err
	}
	for _, rate := range b.options.Rates {
		if err := b.measure(ctx, rate); err != nil {
			return fmt.Errorf("%d pods a second: %w", rate, err)
		}
	}
	return nil
}

func (b *bench) load(name string, gangs, members int, fitsNoNode bool) *testbed.Load {
	return &testbed.Load{Name: name, SchedulerName: schedulingv1beta1.DefaultSchedulerName, Gangs: gangs, Members: members, Queues: b.queues,
		FitsNoNode: fitsNoNode}
}

func (b *bench) warmUp(ctx context.Context) error {
	l := b.load("warm-up", warmUpGangs, 1, false)
	o, err := b.Observe(ctx, l, 0)
	if err != nil {
		return err
	}
	defer o.Stop()
	if err := b.Create(ctx, l); err != nil {
		return err
	}
	if err := o.AwaitBound(ctx, b.process); err != nil {
		return err
	}
	if err := b.Remove(ctx, l); err != nil {
		return err
	}
	return b.Rest(ctx)
}

// measure lets pods arrive at a rate, and leaves the cluster without them and at rest.
func (b *bench) measure(ctx context.Context, rate int) error {
	l := b.load(fmt.Sprintf("rate-%d", rate), b.options.gangs(rate), b.options.Gang, false)
	o, err := b.Observe(ctx, l, 0)
	if err != nil {
		return err
	}
	defer o.Stop()
	b.Say("%d pods/s: creating %d pods …", rate, l.Pods())
	before, err := b.Begin(ctx, b.process)
	if err != nil {
		return err
	}
	if err := b.arrive(ctx, l, rate); err != nil {
		return err
	}
	created := time.Since(before.At)
	if err := o.AwaitBound(ctx, b.process); err != nil {
		return err
	}
	took := time.Since(before.At).Seconds()
	after, cost, err := b.End(ctx, before, b.process, l.Pods())
	if err != nil {
		return err
	}
	seen := o.Seen()
	m := Measurement{
		PodsPerSecond: rate, Pods: l.Pods(), CreatedPerSecond: float64(l.Pods()) / created.Seconds(), WaitMillis: waitsOf(seen.Waits),
		ProcessCPUMillisPerPod: 1000 * (after.Process - before.Usage.Process) / float64(l.Pods()), PeakMemoryBytes: after.PeakMemory,
		ControlPlaneCPUs: cost.ControlPlaneCPUSeconds / took, OtherCPUs: cost.OtherCPUSeconds / took, APIWrites: cost.APIWrites,
		BusyPercent: 100 * (after.All() - before.Usage.All()) / took / float64(runtime.NumCPU()),
	}
	b.Say("%d pods/s: half of the pods waited for %.0f ms or less.", rate, m.WaitMillis.P50)
	problems, err := b.Check(ctx, l, seen, m.APIWrites)
	if err != nil {
		return err
	}
	b.report.Rates = append(b.report.Rates, m)
	b.report.Find(problems...)
	b.report.Find(overBudget(m.APIWrites, l, b.options.Backlog, took)...)
	if err := b.Remove(ctx, l); err != nil {
		return err
	}
	return b.Rest(ctx)
}

// The budget of the scheduler's statuses. A gang has one when it is admitted, when it is placed, and when it runs. Of a
// job or pod that waits, only numbers change, which are written after restInterval at the soonest.
const (
	statusesPerGang = 3
	statusesPerPod  = 1
	restInterval    = 10.0 // seconds
)

// overBudget says which statuses were written more often than the gangs of a load, and the pods that wait besides,
// allow in so many seconds.
func overBudget(writes testbed.Writes, l *testbed.Load, backlog int, seconds float64) []string {
	waiting := float64(backlog) * (1 + seconds/restInterval)
	var over []string
	for _, b := range []struct {
		resource string
		budget   float64
	}{
		{"podgroups/status", float64(statusesPerGang*l.Gangs) + waiting},
		{"pods/status", float64(statusesPerPod*l.Pods()) + waiting},
	} {
		if written := writes.Of(b.resource); float64(written) > b.budget {
			over = append(over, fmt.Sprintf("%s: %d writes of %s, and the budget is %.0f", l.Name, written, b.resource, b.budget))
		}
	}
	return over
}

// arrive creates the gangs of a load at equal distances.
func (b *bench) arrive(ctx context.Context, l *testbed.Load, rate int) error {
	var gangs errgroup.Group
	gangs.SetLimit(mostAtOnce)
	distance := time.Duration(float64(time.Second) * float64(l.Members) / float64(rate))
	begin := time.Now()
	for gang := range l.Gangs {
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), gangs.Wait())
		case <-time.After(time.Until(begin.Add(time.Duration(gang) * distance))):
		}
		gangs.Go(func() error { return b.CreateGang(ctx, l, gang) })
	}
	return gangs.Wait()
}

// waitsOf sums waits up.
func waitsOf(waits []time.Duration) Waits {
	if len(waits) == 0 {
		return Waits{}
	}
	sorted := slices.Sorted(slices.Values(waits))
	// The smallest wait that so many of a hundred pods do not exceed.
	percentile := func(percent int) float64 {
		return float64(sorted[(len(sorted)*percent+99)/100-1].Microseconds()) / 1000
	}
	return Waits{P50: percentile(50), P90: percentile(90), P99: percentile(99), Most: percentile(100)}
}
