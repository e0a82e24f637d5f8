package benchmark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/localcluster"
	"hekla.sh/hekla/pkg/apis/batch/builder"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// JobOptions say what is measured of the controllers.
type JobOptions struct {
	// Jobs is how many Jobs there are in each measurement, Pods how many pods each has.
	Jobs, Pods int
	// Runs is how often both contenders are measured.
	Runs int
	// Manifests are what the installer applies: our kinds, and the controllers' rights.
	Manifests []*unstructured.Unstructured
	// ServiceAccount is the one that the controllers run as. The plain loop uses it too.
	ServiceAccount types.NamespacedName
	// StartControllers starts the controllers and returns when they are ready.
	StartControllers func(context.Context, *localcluster.Cluster) (*localcluster.Process, error)
	// Version is the controllers'.
	Version string
	// Progress receives sentences for a person.
	Progress io.Writer
}

func (o *JobOptions) validate() error {
	for _, given := range []struct {
		name  string
		value int
	}{{"jobs", o.Jobs}, {"pods", o.Pods}, {"runs", o.Runs}} {
		if given.value < 1 {
			return fmt.Errorf("%s is %d; it must be 1 or more", given.name, given.value)
		}
	}
	if o.Jobs*o.Pods < 2 {
		return errors.New("the time from the first pod to the last needs 2 pods or more")
	}
	return nil
}

// jobBench is one execution of RunJobs.
type jobBench struct {
	*bench
	options JobOptions
	report  *JobReport
}

// RunJobs measures how many pods a second the controllers make of Jobs, beside a plain loop that sends one request after the
// other for the same objects. What was wrong is in [JobReport.Violations]; an error means that there is no report.
func RunJobs(ctx context.Context, options JobOptions) (*JobReport, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, fmt.Errorf("the benchmark reads CPU times from /proc, which Linux has: %w", err)
	}
	b := &jobBench{options: options, bench: &bench{proc: proc, Options: Options{
		Runs: options.Runs, ServiceAccount: options.ServiceAccount, Version: options.Version, Progress: options.Progress,
	}}}
	b.say("Starting a cluster …")
	b.cluster, err = localcluster.Start(ctx, localcluster.Options{
		Name: "bench", WithoutKwok: true, Manifests: options.Manifests, Progress: options.Progress,
	})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(b.measureAll(ctx), b.cluster.Stop()); err != nil {
		return nil, err
	}
	return b.report, nil
}

// measureAll measures both contenders as often as asked, and begins with the one and the other in turn.
func (b *jobBench) measureAll(ctx context.Context) (err error) {
	b.controlPlane = b.cluster.Processes()
	if b.clients, err = apiserver.Connect(b.cluster.Config(), unlimited, unlimited); err != nil {
		return err
	}
	restricted, err := b.cluster.ServiceAccountConfig(ctx, b.ServiceAccount.Namespace, b.ServiceAccount.Name)
	if err != nil {
		return err
	}
	if b.binder, err = apiserver.Connect(restricted, unlimited, unlimited); err != nil {
		return err
	}
	about, err := b.newReport()
	if err != nil {
		return err
	}
	b.report = &JobReport{Machine: about.Machine, Versions: about.Versions, Violations: []string{},
		Parameters: JobParameters{Jobs: b.options.Jobs, Pods: b.options.Pods, Runs: b.Runs}}
	for number := 1; number <= b.Runs; number++ {
		run := JobPair{PlainLoopFirst: number%2 == 1}
		contenders := []func() error{
			func() (err error) {
				run.PlainLoop, err = b.measure(ctx, fmt.Sprintf("%s-%d", plainLoop.name, number), b.runPlainLoop)
				return err
			},
			func() (err error) {
				run.Hekla, err = b.measure(ctx, fmt.Sprintf("%s-%d", hekla.name, number), b.runControllers)
				return err
			},
		}
		if !run.PlainLoopFirst {
			slices.Reverse(contenders)
		}
		for _, measure := range contenders {
			if err := measure(); err != nil {
				return err
			}
		}
		run.Ratio = ratio(run.Hekla.PodsPerSecond, run.PlainLoop.PodsPerSecond)
		b.report.Runs = append(b.report.Runs, run)
	}
	return nil
}

// measure lets a contender make the pods of all Jobs in a namespace of its own, and leaves nothing of them behind.
func (b *jobBench) measure(ctx context.Context, name string, run func(context.Context, string, *arrivals) (*JobMeasurement, error)) (JobMeasurement, error) {
	fail := func(err error) (JobMeasurement, error) { return JobMeasurement{}, fmt.Errorf("%s: %w", name, err) }
	if err := b.cluster.CreateNamespace(ctx, name); err != nil {
		return fail(err)
	}
	pods, err := b.awaitPods(ctx, name, b.options.Jobs*b.options.Pods)
	if err != nil {
		return fail(err)
	}
	defer pods.stop()
	m, err := run(ctx, name, pods)
	if err != nil {
		return fail(err)
	}
	pods.tell(m)
	b.say("%s: %.0f pods/s.", name, m.PodsPerSecond)
	if err := b.removeJobs(ctx, name); err != nil {
		return fail(err)
	}
	return *m, b.rest(ctx)
}

// job is one of the Jobs of a measurement.
func (b *jobBench) job(namespace string, number int) *batchv1alpha1.Job {
	return &batchv1alpha1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("job-%d", number)},
		Spec: batchv1alpha1.JobSpec{
			MinAvailable: int32(b.options.Pods),
			Tasks: []batchv1alpha1.TaskSpec{{
				Name: "work", Replicas: int32(b.options.Pods),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{
						Name: "work", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{Requests: podRequests()},
					}},
				}},
			}},
		},
	}
}

// runPlainLoop makes what the controllers would make, one object after the other, and decides nothing.
func (b *jobBench) runPlainLoop(ctx context.Context, namespace string, pods *arrivals) (*JobMeasurement, error) {
	if err := b.rest(ctx); err != nil {
		return nil, err
	}
	before, err := b.usage(nil)
	if err != nil {
		return nil, err
	}
	writes, err := b.writes(ctx)
	if err != nil {
		return nil, err
	}
	pods.started = time.Now()
	for number := range b.options.Jobs {
		j := b.job(namespace, number)
		j.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", number))
		batchv1alpha1.SetDefaults(j)
		group := builder.PodGroup(j, func(string) int32 { return 0 })
		group.OwnerReferences = nil // no such Job exists: the garbage collector would take them
		if _, err := b.binder.Batch.SchedulingV1beta1().PodGroups(namespace).Create(ctx, group, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
		for index := range b.options.Pods {
			pod := builder.Pod(j, &j.Spec.Tasks[0], index)
			pod.OwnerReferences = nil
			if _, err := b.binder.Core.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				return nil, err
			}
		}
	}
	if err := pods.await(ctx, nil); err != nil {
		return nil, err
	}
	return b.finish(ctx, namespace, nil, before, writes)
}

// runControllers starts the controllers when all Jobs are there, and admits PodGroups as the scheduler would: each one when
// it is seen.
func (b *jobBench) runControllers(ctx context.Context, namespace string, pods *arrivals) (m *JobMeasurement, err error) {
	jobs := b.clients.Batch.BatchV1alpha1().Jobs(namespace)
	err = inParallel(ctx, b.options.Jobs, func(i int) error {
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
	if err := b.rest(ctx); err != nil {
		return nil, err
	}
	before, err := b.usage(nil)
	if err != nil {
		return nil, err
	}
	writes, err := b.writes(ctx)
	if err != nil {
		return nil, err
	}
	pods.started = time.Now()
	process, err := b.options.StartControllers(ctx, b.cluster)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, process.Stop()) }()
	if err := pods.await(ctx, process); err != nil {
		return nil, err
	}
	if m, err = b.finish(ctx, namespace, process, before, writes); err != nil {
		return nil, err
	}
	return m, b.checkJobs(ctx, namespace)
}

// finish reads the meters when the last pod is there.
func (b *jobBench) finish(ctx context.Context, namespace string, process *localcluster.Process, before usage, writes Writes) (*JobMeasurement, error) {
	now, err := b.usage(process)
	if err != nil {
		return nil, err
	}
	after, err := b.writes(ctx)
	if err != nil {
		return nil, err
	}
	list, err := b.clients.Core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, problem := range after.since(writes).refused() {
		b.report.Violations = append(b.report.Violations, namespace+": "+problem)
	}
	if want := b.options.Jobs * b.options.Pods; len(list.Items) != want {
		b.report.Violations = append(b.report.Violations, fmt.Sprintf("%s: there are %d pods, and not %d", namespace, len(list.Items), want))
	}
	return &JobMeasurement{
		ProcessCPUSeconds: now.process, PeakMemoryBytes: now.peakMemory,
		ControlPlaneCPUSeconds: now.controlPlane - before.controlPlane, OtherCPUSeconds: max(now.other-before.other, 0),
		APIWrites: after.since(writes),
	}, nil
}

// checkJobs looks until the status of every Job counts its pods. A Job that does not is a violation.
func (b *jobBench) checkJobs(ctx context.Context, namespace string) error {
	for deadline := time.Now().Add(stallPatience); ; {
		list, err := b.clients.Batch.BatchV1alpha1().Jobs(namespace).List(ctx, metav1.ListOptions{})
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
			b.report.Violations = append(b.report.Violations, wrong...)
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(stallPoll):
		}
	}
}
