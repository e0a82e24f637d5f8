package demo

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"hekla.sh/hekla"
	"hekla.sh/hekla/internal/localcluster"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/verdict"
)

func (d *Demo) gangWaits(ctx context.Context) error {
	s, err := d.look(ctx)
	if err != nil {
		return err
	}
	size := len(s.nodes) + 1
	if err := d.stage.say(fmt.Sprintf("Job gang (example/01-gang-job.yaml): %d pods that start together or not at all. Each takes "+
		"more than half of a node, and there are %d nodes: no pod starts, and the job says what it lacks.", size, len(s.nodes))); err != nil {
		return err
	}
	if err := d.submit(ctx, oneTooMany(s.nodes), "gang"); err != nil {
		return err
	}
	if _, err := d.until(ctx, "gang says why it waits", func(s scene) bool {
		return lacksRoom(s.job("gang"))
	}); err != nil {
		return err
	}
	return d.rest(ctx)
}

func (d *Demo) smallJobPasses(ctx context.Context) error {
	if err := d.stage.say("Job several-tasks (example/02-several-tasks.yaml): a launcher and six workers, all of them small. It fits " +
		"next to the gang that waits, and starts at once."); err != nil {
		return err
	}
	if err := d.submit(ctx, asItIs, "several-tasks"); err != nil {
		return err
	}
	_, err := d.until(ctx, "several-tasks is Completed", isCompleted("several-tasks"))
	return err
}

func (d *Demo) nodeJoins(ctx context.Context) error {
	if err := d.stage.say("A node joins the cluster."); err != nil {
		return err
	}
	began := time.Now()
	if _, err := d.cluster.AddNodes(ctx, 1, localcluster.NodeTemplate{}); err != nil {
		return err
	}
	var size int32
	if _, err := d.until(ctx, "gang runs", func(s scene) bool {
		gang := s.job("gang")
		size = gang.size
		return gang.phase == batchv1alpha1.Running && gang.running == gang.size
	}); err != nil {
		return err
	}
	if err := d.stage.say(fmt.Sprintf("All %d pods of gang ran %.1f s later.", size, time.Since(began).Seconds())); err != nil {
		return err
	}
	_, err := d.until(ctx, "gang is Completed", isCompleted("gang"))
	return err
}

func (d *Demo) queuesShare(ctx context.Context) error {
	if err := d.stage.say("Two queues (example/03-two-queues.yaml), each with more work than the cluster has room for. They share it three " +
		"to one, by their weights; what one does not use is the other's."); err != nil {
		return err
	}
	if err := d.submit(ctx, asItIs, "production", "research", "nightly-report", "experiment"); err != nil {
		return err
	}
	_, err := d.until(ctx, "both jobs are Completed and their queues empty", func(s scene) bool {
		isInUse := func(q queue) bool { return q.used > 0 && (q.name == "production" || q.name == "research") }
		return isCompleted("nightly-report")(s) && isCompleted("experiment")(s) && !slices.ContainsFunc(s.queues, isInUse)
	})
	return err
}

// lacksRoom reports whether a job waits for room, and not for its own pods to be made.
func lacksRoom(j job) bool {
	early := []string{"", batchv1alpha1.PodGroupPendingReason, string(verdict.NotEnoughTasks)}
	return j.phase == batchv1alpha1.Pending && !slices.Contains(early, j.reason)
}

func isCompleted(name string) func(scene) bool {
	return func(s scene) bool { return s.job(name).phase == batchv1alpha1.Completed }
}

// submit applies the objects of these names from the folder example, jobs in the demo's namespace, after change has
// made of them what it likes.
func (d *Demo) submit(ctx context.Context, change func(*unstructured.Unstructured) error, names ...string) error {
	all, err := localcluster.ReadManifests(hekla.Examples)
	if err != nil {
		return fmt.Errorf("the embedded examples: %w", err)
	}
	var chosen []*unstructured.Unstructured
	for _, object := range all {
		if !slices.Contains(names, object.GetName()) {
			continue
		}
		if object.GetKind() == "Job" {
			object.SetNamespace(Namespace)
		}
		if err := change(object); err != nil {
			return fmt.Errorf("the example %s: %w", object.GetName(), err)
		}
		chosen = append(chosen, object)
	}
	if len(chosen) != len(names) {
		return fmt.Errorf("the embedded examples have %d of the objects %v", len(chosen), names)
	}
	return d.cluster.Apply(ctx, chosen)
}

// asItIs changes nothing.
func asItIs(*unstructured.Unstructured) error { return nil }

// oneTooMany makes the gang one pod larger than there are nodes, and each pod larger than half of the largest node. So
// the gang waits on any cluster. On that of `hekla up --nodes 2` it stays as it is written.
func oneTooMany(nodes []node) func(*unstructured.Unstructured) error {
	return func(object *unstructured.Unstructured) error {
		var job batchv1alpha1.Job
		if err := bounds.FromUnstructured(object.Object, &job); err != nil {
			return err
		}
		size := int32(len(nodes) + 1)
		job.Spec.MinAvailable, job.Spec.Tasks[0].Replicas = size, size
		requests := job.Spec.Tasks[0].Template.Spec.Containers[0].Resources.Requests
		requests[corev1.ResourceCPU] = *resource.NewMilliQuantity(moreThanHalf(nodes), resource.DecimalSI)
		changed, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&job)
		if err != nil {
			return err
		}
		delete(changed, "status")
		object.Object = changed
		return nil
	}
}

// moreThanHalf is five eighths of the largest node, in thousandths of a CPU.
func moreThanHalf(nodes []node) int64 {
	var largest int64
	for _, n := range nodes {
		largest = max(largest, n.allocatable)
	}
	return largest * 5 / 8
}
