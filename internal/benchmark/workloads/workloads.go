package workloads

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"hekla.sh/hekla/internal/benchmark/testbed"
)

// WritesEach is how many requests the loop sends for each Workload: as many as an admission takes.
const WritesEach = 3

// Options say what is measured.
type Options struct {
	testbed.Options // its component is the scheduler
	// Controllers are hekla-controllers.
	Controllers testbed.Component
	// Workloads is how many there are in each measurement, and Runs how often both contenders are measured.
	Workloads, Runs int
}

func (o *Options) validate() error {
	if err := testbed.Validate(testbed.Number{Name: "nodes", Value: o.Nodes, Least: 1}, testbed.Number{Name: "workloads", Value: o.Workloads, Least: 2}, testbed.Number{Name: "runs", Value: o.Runs, Least: 1}); err != nil {
		return err
	}
	if room := testbed.Room(o.Nodes); o.Workloads > room {
		return fmt.Errorf("%d workloads do not fit: %d nodes have room for %d", o.Workloads, o.Nodes, room)
	}
	return nil
}

// The contenders, in names of namespaces and sentences.
const loop, hekla = "loop", "hekla"

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
		b := &bench{Testbed: bed, options: options, report: &Report{About: bed.About, Findings: testbed.NoFindings(),
			Parameters: Parameters{Nodes: options.Nodes, Workloads: options.Workloads, Runs: options.Runs}}}
		return b.report, b.measureAll(ctx)
	})
}

// measureAll measures both contenders as often as asked, and begins with the one and the other in turn.
func (b *bench) measureAll(ctx context.Context) error {
	if err := b.CreatePlaces(ctx, nil); err != nil {
		return err
	}
	if err := b.createQueues(ctx); err != nil {
		return err
	}
	if err := b.calibrate(ctx); err != nil {
		return err
	}
	for number := 1; number <= b.options.Runs; number++ {
		run := Pair{LoopFirst: number%2 == 1}
		err := testbed.InTurn(run.LoopFirst, func() (err error) {
			run.Loop, err = b.runLoop(ctx, fmt.Sprintf("%s-%d", loop, number))
			return err
		}, func() (err error) {
			run.Hekla, err = b.runHekla(ctx, fmt.Sprintf("%s-%d", hekla, number))
			return err
		})
		if err != nil {
			return err
		}
		run.Ratio = testbed.Ratio(run.Hekla.AdmissionsPerSecond, run.Loop.AdmissionsPerSecond)
		b.report.Runs = append(b.report.Runs, run)
	}
	return nil
}

// runHekla lets the controllers make the Workloads of Jobs, and then starts the scheduler.
func (b *bench) runHekla(ctx context.Context, namespace string) (m Measurement, err error) {
	fail := func(err error) (Measurement, error) { return Measurement{}, fmt.Errorf("%s: %w", namespace, err) }
	b.Say("%s: creating %d Jobs …", namespace, b.options.Workloads)
	if err := b.createJobs(ctx, namespace, queueName); err != nil {
		return fail(err)
	}
	controllers, err := b.options.Controllers.Start(ctx, b.Cluster)
	if err != nil {
		return fail(err)
	}
	defer func() { err = errors.Join(err, controllers.Stop()) }()
	if err := b.awaitWorkloads(ctx, namespace, b.options.Workloads); err != nil {
		return fail(err)
	}
	seen, err := b.watchStarts(ctx, namespace)
	if err != nil {
		return fail(err)
	}
	defer seen.Stop()
	if m, err = b.admit(ctx, namespace, seen); err != nil {
		return fail(err)
	}
	b.Say("%s: %.0f admissions/s.", namespace, m.AdmissionsPerSecond)
	if err := b.remove(ctx, namespace); err != nil {
		return fail(err)
	}
	return m, b.Rest(ctx)
}

// admit starts the scheduler, and stops it when all Jobs have been started.
func (b *bench) admit(ctx context.Context, namespace string, seen *testbed.Collector) (m Measurement, err error) {
	if err := b.Rest(ctx); err != nil {
		return m, err
	}
	before, err := b.Begin(ctx, nil)
	if err != nil {
		return m, err
	}
	scheduler, err := b.Component.Start(ctx, b.Cluster)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, scheduler.Stop()) }()
	if err := seen.Await(ctx, scheduler); err != nil {
		return m, err
	}
	now, cost, err := b.End(ctx, before, scheduler, 0)
	if err != nil {
		return m, err
	}
	count, first, last, perSecond := seen.Result()
	m = Measurement{Admissions: count, AdmissionsPerSecond: perSecond, StartToFirstSeconds: first.Sub(before.At).Seconds(),
		StartToLastSeconds: last.Sub(before.At).Seconds(), SchedulerCPUSeconds: now.Process, Cost: cost}
	b.judge(namespace, &m)
	return m, nil
}

// judge notes what must not be.
func (b *bench) judge(name string, m *Measurement) {
	b.report.FindRefused(name, m.APIWrites)
	if m.Admissions != b.options.Workloads {
		b.report.Find(fmt.Sprintf("%s: %d Jobs were started, and not %d", name, m.Admissions, b.options.Workloads))
	}
}

// watchStarts begins to watch the Jobs of a namespace, none of which is started.
func (b *bench) watchStarts(ctx context.Context, namespace string) (*testbed.Collector, error) {
	jobs := b.Clients.Core.BatchV1().Jobs(namespace)
	list, err := jobs.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("list the Jobs: %w", err)
	}
	return testbed.Collect(ctx, list.ResourceVersion, jobs.Watch, b.options.Workloads, func(event watch.Event) bool {
		j, isJob := event.Object.(*batchv1.Job)
		return isJob && event.Type == watch.Modified && hasStarted(j)
	})
}

// awaitWorkloads returns when there are so many Workloads in a namespace, and the cluster has nothing to do.
func (b *bench) awaitWorkloads(ctx context.Context, namespace string, count int) error {
	for deadline := time.Now().Add(testbed.RemovalPatience); ; {
		list, err := b.Clients.Batch.KueueV1beta2().Workloads(namespace).List(ctx, metav1.ListOptions{})
		switch {
		case err != nil:
			return fmt.Errorf("list the Workloads: %w", err)
		case len(list.Items) == count:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("there are %d Workloads, and not %d", len(list.Items), count)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(testbed.RemovalPoll):
		}
	}
}

// remove deletes the Jobs of a namespace, and returns when no Workload is left.
func (b *bench) remove(ctx context.Context, namespace string) error {
	propagation := metav1.DeletePropagationBackground
	jobs, workloads := b.Clients.Core.BatchV1().Jobs(namespace), b.Clients.Batch.KueueV1beta2().Workloads(namespace)
	err := testbed.UntilGone(ctx, func(ctx context.Context) (left int, err error) {
		err = errors.Join(jobs.DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &propagation}, metav1.ListOptions{}),
			workloads.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
		if err != nil {
			return 0, err
		}
		list, err := workloads.List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return 0, err
		}
		return len(list.Items), nil
	})
	if err != nil {
		return fmt.Errorf("remove the Jobs: %w", err)
	}
	return nil
}

// hasStarted reports whether a Job may make pods.
func hasStarted(j *batchv1.Job) bool { return j.Spec.Suspend != nil && !*j.Spec.Suspend }
