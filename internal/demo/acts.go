package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	if err := d.submit(ctx, hekla.Examples, gangOf(s.nodes, size), "gang"); err != nil {
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
	if err := d.submit(ctx, hekla.Examples, asItIs, "several-tasks"); err != nil {
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
		size = s.job("gang").size
		return isRunning("gang")(s)
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
	if err := d.submit(ctx, hekla.Examples, asItIs, "production", "research", "nightly-report", "experiment"); err != nil {
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

// evicts lets a gang of higher priority take the room of another, which waits then.
func (d *Demo) evicts(ctx context.Context) error {
	isOurs, err := d.configure(ctx)
	if err != nil {
		return err
	}
	s, err := d.look(ctx)
	if err != nil {
		return err
	}
	size := len(s.nodes)
	if err := d.stage.say(fmt.Sprintf("Job %s (example/demo/training.yaml): a gang of %d that fills the %d nodes, and may be evicted.", evicted, size, size)); err != nil {
		return err
	}
	if err := d.submit(ctx, hekla.Demo, gangOf(s.nodes, size), evicted); err != nil {
		return err
	}
	if _, err := d.until(ctx, evicted+" runs", isRunning(evicted)); err != nil {
		return err
	}
	if err := d.rest(ctx); err != nil {
		return err
	}
	text := "Job %s (example/demo/urgent.yaml): a gang of the same size and of higher priority, which says how long it runs. "
	if isOurs {
		text += "Gang %s leaves for it as a whole."
	} else {
		text += "Whether gang %s leaves for it is up to your configuration of the scheduler, which stays as it is."
	}
	if err := d.stage.say(fmt.Sprintf(text, preemptor, evicted)); err != nil {
		return err
	}
	if err := d.submit(ctx, hekla.Demo, gangOf(s.nodes, size), preemptorClass, preemptor); err != nil {
		return err
	}
	_, err = d.until(ctx, "one of the two gangs runs, and the other says why it waits", func(s scene) bool {
		for _, pair := range [][2]string{{preemptor, evicted}, {evicted, preemptor}} {
			if isRunning(pair[0])(s) && lacksRoom(s.job(pair[1])) {
				d.waits = pair[1]
				return !isOurs || d.waits == evicted
			}
		}
		return false
	})
	return err
}

// configure switches on evictions, unless the configuration is neither the default nor that of a demo before.
func (d *Demo) configure(ctx context.Context) (isOurs bool, err error) {
	wanted, err := configMap(hekla.Demo)
	if err != nil {
		return false, err
	}
	standard, err := configMap(hekla.Configuration)
	if err != nil {
		return false, err
	}
	api := d.core.CoreV1().ConfigMaps(wanted.Namespace)
	current, err := api.Get(ctx, wanted.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		_, err = api.Create(ctx, wanted, metav1.CreateOptions{})
	case err != nil:
	case maps.Equal(current.Data, wanted.Data):
	case !maps.Equal(current.Data, standard.Data):
		return false, nil
	default:
		current.Data = wanted.Data
		_, err = api.Update(ctx, current, metav1.UpdateOptions{})
	}
	if err != nil {
		return false, fmt.Errorf("configure the scheduler in ConfigMap %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return true, nil
}

// configMap returns the only ConfigMap among embedded files.
func configMap(files fs.FS) (*corev1.ConfigMap, error) {
	objects, err := localcluster.ReadManifests(files)
	if err != nil {
		return nil, fmt.Errorf("the embedded configuration: %w", err)
	}
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ConfigMap" })
	if i < 0 {
		return nil, errors.New("the embedded files have no ConfigMap")
	}
	found := &corev1.ConfigMap{}
	return found, bounds.FromUnstructured(objects[i].Object, found)
}

func isRunning(name string) func(scene) bool {
	return func(s scene) bool {
		j := s.job(name)
		return j.phase == batchv1alpha1.Running && j.running == j.size
	}
}

// submit applies the objects of these names from embedded examples, jobs in the demo's namespace, after change has made
// of the jobs what it likes.
func (d *Demo) submit(ctx context.Context, files fs.FS, change func(*unstructured.Unstructured) error, names ...string) error {
	all, err := localcluster.ReadManifests(files)
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
			if err := change(object); err != nil {
				return fmt.Errorf("the example %s: %w", object.GetName(), err)
			}
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

// gangOf makes each pod of a gang larger than half of the largest node, so that a node holds at most one. One with a
// pod more than there are nodes waits on any cluster. On that of `hekla up --nodes 2` the first example stays as it is
// written.
func gangOf(nodes []node, pods int) func(*unstructured.Unstructured) error {
	return func(object *unstructured.Unstructured) error {
		var job batchv1alpha1.Job
		if err := bounds.FromUnstructured(object.Object, &job); err != nil {
			return err
		}
		size := int32(pods)
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
