package jobs

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/benchmark/testbed"
	"hekla.sh/hekla/pkg/apis/batch/builder"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// trialRequests are the numbers of requests at once that are tried, each for trialPods pods at most, trialRounds times.
var trialRequests = [...]int{1, 4, 8, 16, 32, 64}

const trialPods, trialRounds = 200, 3

// calibrate finds how many requests at once make the loop fastest.
func (b *bench) calibrate(ctx context.Context) error {
	b.Say("Trying with how many requests at once the loop is fastest …")
	const namespace = "trial"
	if err := b.Cluster.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	pods := min(trialPods, b.options.Jobs*b.options.Pods)
	rates, err := testbed.Fastest(len(trialRequests), trialRounds, pods, func(way, number int) error {
		j := b.loopsJob(namespace, number)
		return testbed.InParallel(ctx, trialRequests[way], pods, func(i int) error { return b.createPod(ctx, j, i) })
	})
	if err != nil {
		return err
	}
	b.report.RequestsAtOnce = trialRequests[testbed.Best(rates)]
	b.Say("The loop is fastest with %d requests at once.", b.report.RequestsAtOnce)
	if err := b.removeJobs(ctx, namespace); err != nil {
		return err
	}
	return b.Rest(ctx)
}

// loopsJob is a Job that the loop makes the objects of, and which does not exist.
func (b *bench) loopsJob(namespace string, number int) *batchv1alpha1.Job {
	j := b.job(namespace, number)
	j.UID = types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", number))
	batchv1alpha1.SetDefaults(j)
	return j
}

// runLoop makes what the controllers would make, a PodGroup and its pods after the other, and decides nothing.
func (b *bench) runLoop(ctx context.Context, namespace string, pods *testbed.Collector) (*Measurement, error) {
	if err := b.Rest(ctx); err != nil {
		return nil, err
	}
	before, err := b.Begin(ctx, nil)
	if err != nil {
		return nil, err
	}
	jobs := make([]*batchv1alpha1.Job, b.options.Jobs)
	for number := range jobs {
		jobs[number] = b.loopsJob(namespace, number)
	}
	objects := 1 + b.options.Pods // of each Job
	err = testbed.InParallel(ctx, b.report.RequestsAtOnce, len(jobs)*objects, func(i int) error {
		j, index := jobs[i/objects], i%objects
		if index == 0 {
			return b.createPodGroup(ctx, j)
		}
		return b.createPod(ctx, j, index-1)
	})
	if err != nil {
		return nil, err
	}
	if err := pods.Await(ctx, nil); err != nil {
		return nil, err
	}
	return b.finish(ctx, namespace, pods, nil, before)
}

// createPodGroup makes the PodGroup of a Job without its owner, which does not exist: the garbage collector would
// delete it.
func (b *bench) createPodGroup(ctx context.Context, j *batchv1alpha1.Job) error {
	group := builder.PodGroup(j, func(string) int32 { return 0 }, builder.FromTemplate)
	group.OwnerReferences = nil
	_, err := b.Restricted.Batch.SchedulingV1beta1().PodGroups(j.Namespace).Create(ctx, group, metav1.CreateOptions{})
	return err
}

// createPod makes a pod of a Job, in the same way.
func (b *bench) createPod(ctx context.Context, j *batchv1alpha1.Job, index int) error {
	pod := builder.Pod(j, &j.Spec.Tasks[0], index)
	pod.OwnerReferences = nil
	_, err := b.Restricted.Core.CoreV1().Pods(j.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}
