package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"hekla.sh/hekla/internal/benchmark/testbed"
	"hekla.sh/hekla/internal/localcluster"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// Options say what is measured of the controllers.
type Options struct {
	testbed.Options
	// Jobs is how many Jobs there are in each measurement, Pods how many pods each has.
	Jobs, Pods int
	// Runs is how often both contenders are measured.
	Runs int
}

func (o *Options) validate() error {
	if err := testbed.Validate(testbed.Number{Name: "jobs", Value: o.Jobs, Least: 1}, testbed.Number{Name: "pods", Value: o.Pods, Least: 1}, testbed.Number{Name: "runs", Value: o.Runs, Least: 1}); err != nil {
		return err
	}
	if o.Jobs*o.Pods < 2 {
		return errors.New("the time from the first pod to the last needs 2 pods or more")
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

// Run measures how many pods a second the controllers make of Jobs, compared with a loop of concurrent requests for the
// same objects. What was wrong is in [Report.Violations]; an error means that there is no report.
func Run(ctx context.Context, options Options) (*Report, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	return testbed.Run(ctx, options.Options, func(bed *testbed.Testbed) (*Report, error) {
		b := &bench{Testbed: bed, options: options, report: &Report{About: bed.About, Findings: testbed.NoFindings(),
			Parameters: Parameters{Jobs: options.Jobs, Pods: options.Pods, Runs: options.Runs}}}
		return b.report, b.measureAll(ctx)
	})
}

// measureAll measures both contenders as often as asked, and begins with the one and the other in turn.
func (b *bench) measureAll(ctx context.Context) (err error) {
	if err := b.calibrate(ctx); err != nil {
		return err
	}
	for number := 1; number <= b.options.Runs; number++ {
		run := Pair{LoopFirst: number%2 == 1}
		err := testbed.InTurn(run.LoopFirst, func() (err error) {
			run.Loop, err = b.measure(ctx, fmt.Sprintf("%s-%d", loop, number), b.runLoop)
			return err
		}, func() (err error) {
			run.Hekla, err = b.measure(ctx, fmt.Sprintf("%s-%d", hekla, number), b.runControllers)
			return err
		})
		if err != nil {
			return err
		}
		run.Ratio = testbed.Ratio(run.Hekla.PodsPerSecond, run.Loop.PodsPerSecond)
		b.report.Runs = append(b.report.Runs, run)
	}
	return nil
}

// measure lets a contender make the pods of all Jobs in a namespace of its own, and leaves nothing of them behind.
func (b *bench) measure(ctx context.Context, name string, run func(context.Context, string, *testbed.Collector) (*Measurement, error)) (Measurement, error) {
	fail := func(err error) (Measurement, error) { return Measurement{}, fmt.Errorf("%s: %w", name, err) }
	if err := b.Cluster.CreateNamespace(ctx, name); err != nil {
		return fail(err)
	}
	pods, err := b.watchPods(ctx, name)
	if err != nil {
		return fail(err)
	}
	defer pods.Stop()
	m, err := run(ctx, name, pods)
	if err != nil {
		return fail(err)
	}
	b.Say("%s: %.0f pods/s.", name, m.PodsPerSecond)
	if err := b.removeJobs(ctx, name); err != nil {
		return fail(err)
	}
	return *m, b.Rest(ctx)
}

// watchPods begins to watch a namespace without pods.
func (b *bench) watchPods(ctx context.Context, namespace string) (*testbed.Collector, error) {
	pods := b.Clients.Core.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return testbed.Collect(ctx, list.ResourceVersion, pods.Watch, b.options.Jobs*b.options.Pods,
		func(event watch.Event) bool { return event.Type == watch.Added })
}

// job is one of the Jobs of a measurement.
func (b *bench) job(namespace string, number int) *batchv1alpha1.Job {
	return &batchv1alpha1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("job-%d", number)},
		Spec: batchv1alpha1.JobSpec{
			MinAvailable: int32(b.options.Pods),
			Tasks: []batchv1alpha1.TaskSpec{{
				Name: "work", Replicas: int32(b.options.Pods),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{
						Name: "work", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{Requests: testbed.PodRequests()},
					}},
				}},
			}},
		},
	}
}

// runControllers starts the controllers when all Jobs are there, and admits PodGroups as the scheduler would: each one
// when it is seen.
func (b *bench) runControllers(ctx context.Context, namespace string, pods *testbed.Collector) (m *Measurement, err error) {
	jobs := b.Clients.Batch.BatchV1alpha1().Jobs(namespace)
	err = testbed.InParallel(ctx, testbed.Creators, b.options.Jobs, func(i int) error {
		_, err := jobs.Create(ctx, b.job(namespace, i), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("create the Jobs: %w", err)
	}
	stop, err := b.admitAll(ctx, namespace)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := b.Rest(ctx); err != nil {
		return nil, err
	}
	before, err := b.Begin(ctx, nil)
	if err != nil {
		return nil, err
	}
	process, err := b.Component.Start(ctx, b.Cluster)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()
	if err := pods.Await(ctx, process); err != nil {
		return nil, err
	}
	if m, err = b.finish(ctx, namespace, pods, process, before); err != nil {
		return nil, err
	}
	return m, b.checkJobs(ctx, namespace)
}

// finish reads the meters when the last pod is there.
func (b *bench) finish(ctx context.Context, namespace string, pods *testbed.Collector, process *localcluster.Process, before testbed.Reading) (*Measurement, error) {
	now, cost, err := b.End(ctx, before, process, 0)
	if err != nil {
		return nil, err
	}
	list, err := b.Clients.Core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	b.report.FindRefused(namespace, cost.APIWrites)
	if want := b.options.Jobs * b.options.Pods; len(list.Items) != want {
		b.report.Find(fmt.Sprintf("%s: there are %d pods, and not %d", namespace, len(list.Items), want))
	}
	m := &Measurement{ProcessCPUSeconds: now.Process, PeakMemoryBytes: now.PeakMemory, Cost: cost}
	count, first, last, perSecond := pods.Result()
	m.PodsMade, m.PodsPerSecond = count, perSecond
	if count > 0 {
		m.StartToFirstSeconds, m.StartToLastSeconds = first.Sub(before.At).Seconds(), last.Sub(before.At).Seconds()
		m.PodsPerSecondFromStart = float64(count) / m.StartToLastSeconds
		m.WritesPerSecond = float64(cost.APIWrites.Total()) / m.StartToLastSeconds
	}
	return m, nil
}

// checkJobs looks until the status of every Job counts its pods. A Job that does not is a violation.
func (b *bench) checkJobs(ctx context.Context, namespace string) error {
	for deadline := time.Now().Add(testbed.StallPatience); ; {
		list, err := b.Clients.Batch.BatchV1alpha1().Jobs(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var wrong []string
		for i := range list.Items {
			if s := &list.Items[i].Status; s.Pending != int32(b.options.Pods) || s.State.Phase != batchv1alpha1.Pending {
				wrong = append(wrong, fmt.Sprintf("%s: Job %s is %s with %d pods that wait, and not %d",
					namespace, list.Items[i].Name, s.State.Phase, s.Pending, b.options.Pods))
			}
		}
		if len(wrong) == 0 || time.Now().After(deadline) {
			b.report.Find(wrong...)
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(testbed.StallPoll):
		}
	}
}
