package demo

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// scene is what there is to see at one moment. Everything is ordered by name, jobs by age.
type scene struct {
	nodes  []node
	jobs   []job
	queues []queue
}

// node is how full a node is, in thousandths of a CPU.
type node struct {
	name              string
	used, allocatable int64
}

// job is how far a job has come.
type job struct {
	name                         string
	phase                        batchv1alpha1.JobPhase
	running, done, minimum, size int32
	reason, message              string
}

// queue is what a queue holds, in thousandths of a CPU.
type queue struct {
	name   string
	weight int32
	used   int64
}

// job returns the job of this name, the zero value if there is none.
func (s scene) job(name string) job {
	for _, j := range s.jobs {
		if j.name == name {
			return j
		}
	}
	return job{}
}

// look reads the scene.
func (d *Demo) look(ctx context.Context) (scene, error) {
	var s scene
	if err := d.lookAtNodes(ctx, &s); err != nil {
		return s, err
	}
	jobs, err := d.batch.BatchV1alpha1().Jobs(Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	slices.SortFunc(jobs.Items, func(a, b batchv1alpha1.Job) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for i := range jobs.Items {
		s.jobs = append(s.jobs, jobOf(&jobs.Items[i]))
	}
	queues, err := d.batch.SchedulingV1beta1().Queues().List(ctx, metav1.ListOptions{})
	if err != nil {
		return s, err
	}
	for i := range queues.Items {
		q := &queues.Items[i]
		if q.Name == "root" {
			continue
		}
		s.queues = append(s.queues, queue{name: q.Name, weight: q.Spec.Weight, used: q.Status.Allocated.Cpu().MilliValue()})
	}
	slices.SortFunc(s.queues, func(a, b queue) int { return cmp.Compare(a.name, b.name) })
	return s, nil
}

func (d *Demo) lookAtNodes(ctx context.Context, s *scene) error {
	nodes, err := d.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	pods, err := d.core.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	used := map[string]int64{}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
			used[pod.Spec.NodeName] += requests.Cpu().MilliValue()
		}
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		s.nodes = append(s.nodes, node{name: n.Name, used: used[n.Name], allocatable: n.Status.Allocatable.Cpu().MilliValue()})
	}
	slices.SortFunc(s.nodes, func(a, b node) int {
		return cmp.Or(cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
	})
	return nil
}

func jobOf(j *batchv1alpha1.Job) job {
	state := j.Status.State
	result := job{name: j.Name, phase: state.Phase, running: j.Status.Running, done: j.Status.Succeeded,
		minimum: j.Spec.MinAvailable, reason: state.Reason, message: state.Message}
	for _, task := range j.Spec.Tasks {
		result.size += task.Replicas
	}
	if result.phase == "" {
		result.phase = batchv1alpha1.Pending
	}
	return result
}
