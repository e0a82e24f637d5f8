package benchmark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/prometheus/procfs"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/localcluster"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// What a node has and a pod asks for, as on the rig on which Volcano, Kueue and YuniKorn are compared with each other.
const (
	nodeCPUs, nodeMemory, nodePods = 32, "256Gi", 110
	podCPUs, podMemory             = 1, "1Gi"
)

// unlimited is a rate that no API server reaches.
const unlimited = 1_000_000

// Options say what is measured.
type Options struct {
	// Nodes and Pods are how many there are, in each measurement; Gang is how many pods form a gang, and divides Pods.
	Nodes, Pods, Gang int
	// Runs is how often both contenders are measured.
	Runs int
	// PodsRun lets kwok make every bound pod Running. It takes from the API server what kubelets would, in both
	// measurements. Without, bound pods stay Pending.
	PodsRun bool
	// Manifests are what the installer applies: our kinds, and the scheduler's rights and configuration.
	Manifests []*unstructured.Unstructured
	// ServiceAccount is the one that the scheduler runs as. The plain loop uses it too.
	ServiceAccount types.NamespacedName
	// StartScheduler starts the scheduler and returns when it is ready.
	StartScheduler func(context.Context, *localcluster.Cluster) (*localcluster.Process, error)
	// Version is the scheduler's.
	Version string
	// Progress receives sentences for a person.
	Progress io.Writer
}

func (o *Options) validate() error {
	for _, given := range []struct {
		name  string
		value int
	}{{"nodes", o.Nodes}, {"pods", o.Pods}, {"gang", o.Gang}, {"runs", o.Runs}} {
		if given.value < 1 {
			return fmt.Errorf("%s is %d; it must be 1 or more", given.name, given.value)
		}
	}
	if o.Pods%o.Gang != 0 {
		return fmt.Errorf("%d pods cannot be divided into gangs of %d", o.Pods, o.Gang)
	}
	if o.Pods < 2 {
		return errors.New("the time from the first binding to the last needs 2 pods or more")
	}
	if room := o.Nodes * (nodeCPUs / podCPUs); o.Pods > room {
		return fmt.Errorf("%d pods do not fit: %d nodes have room for %d", o.Pods, o.Nodes, room)
	}
	return nil
}

// bench is one execution of Run.
type bench struct {
	Options
	proc    procfs.FS
	cluster *localcluster.Cluster
	// controlPlane is the processes of the cluster.
	controlPlane []*localcluster.Process
	clients      *apiserver.Clients // with all rights
	binder       *apiserver.Clients // with those of the scheduler
	nodes        []string
	report       *Report
}

// Run measures. What was measured wrongly, and why, is in [Report.Violations]; an error means that there is no report.
func Run(ctx context.Context, options Options) (*Report, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return nil, fmt.Errorf("the benchmark reads CPU times from /proc, which Linux has: %w", err)
	}
	b := &bench{Options: options, proc: proc}
	if err := b.start(ctx); err != nil {
		return nil, err
	}
	if err := errors.Join(b.measureAll(ctx), b.cluster.Stop()); err != nil {
		return nil, err
	}
	return b.report, nil
}

// start brings up the cluster with all that stays the same through the measurements.
func (b *bench) start(ctx context.Context) (err error) {
	b.say("Starting a cluster of %d nodes …", b.Nodes)
	b.cluster, err = localcluster.Start(ctx, localcluster.Options{
		Name: "bench", Nodes: b.Nodes, WithoutKwok: !b.PodsRun, Manifests: b.Manifests, Progress: b.Progress,
		NodeTemplate: localcluster.NodeTemplate{Capacity: corev1.ResourceList{
			corev1.ResourceCPU:    *resource.NewQuantity(nodeCPUs, resource.DecimalSI),
			corev1.ResourceMemory: resource.MustParse(nodeMemory),
			corev1.ResourcePods:   *resource.NewQuantity(nodePods, resource.DecimalSI),
		}},
	})
	if err != nil {
		return err
	}
	if err := b.prepare(ctx); err != nil {
		return errors.Join(err, b.cluster.Stop())
	}
	return nil
}

func (b *bench) prepare(ctx context.Context) (err error) {
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
	if b.nodes, err = b.cluster.Nodes(ctx); err != nil {
		return err
	}
	if err := b.cluster.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	// The controllers, which would make the queue, do not run here.
	queue := &schedulingv1beta1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: schedulingv1beta1.DefaultQueue},
		Spec:       schedulingv1beta1.QueueSpec{Weight: 1, Parent: schedulingv1beta1.RootQueue},
	}
	if _, err := b.clients.Batch.SchedulingV1beta1().Queues().Create(ctx, queue, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the queue %s: %w", queue.Name, err)
	}
	b.report, err = b.newReport()
	return err
}

// measureAll measures both contenders as often as asked: A B, B A, A B …, so that a machine or a cluster that becomes
// slower with time favours neither.
func (b *bench) measureAll(ctx context.Context) error {
	for number := 1; number <= b.Runs; number++ {
		run := Pair{PlainLoopFirst: number%2 == 1}
		contenders := []func() error{
			func() (err error) {
				run.PlainLoop, err = b.measure(ctx, number, plainLoop, b.runPlainLoop)
				return err
			},
			func() (err error) {
				run.Hekla, err = b.measure(ctx, number, hekla, b.runScheduler)
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
		run.RunningRatio = ratio(run.Hekla.PodsRunningPerSecond, run.PlainLoop.PodsRunningPerSecond)
		b.report.Runs = append(b.report.Runs, run)
	}
	b.report.Median = medianOf(b.report.Runs)
	return nil
}

// ratio is 0 of what was not measured.
func ratio(of, to float64) float64 {
	if to == 0 {
		return 0
	}
	return of / to
}

func (b *bench) say(format string, values ...any) {
	_, _ = fmt.Fprintf(b.Progress, format+"\n", values...)
}
