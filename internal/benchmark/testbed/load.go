package testbed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

const (
	// Namespace is where the pods of the loads are.
	Namespace = "hekla-bench"
	// loadLabel says of a pod which load it belongs to.
	loadLabel = "hekla.sh/benchmark-load"
	// Creators is how many objects are created at once: enough to keep a small API server busy.
	Creators = 16
	// RemovalPatience bounds the removal of a load, in which the API server deletes some hundred pods a second.
	RemovalPatience = 10 * time.Minute
	// RemovalPoll is how often is looked whether a load is gone.
	RemovalPoll = 500 * time.Millisecond
	// noNodeLabel is a label that no node has.
	noNodeLabel = "hekla.sh/benchmark-no-node"
)

// Load is the pods of one measurement and their PodGroups.
type Load struct {
	Name          string
	SchedulerName string
	Gangs         int
	Members       int // of each gang
	// Queues are those that the gangs go to in turn; none means the default queue.
	Queues []string
	// FitsNoNode is true of pods that select nodes which do not exist. They ask for no more than others, so that they
	// leave room for the admission of others.
	FitsNoNode bool
	// Nodes are those that the pods are created with, in turn; none means that they wait for a scheduler.
	Nodes []string
}

// Pods is the number of all pods.
func (l *Load) Pods() int { return l.Gangs * l.Members }

func (l *Load) selector() string { return labels.Set{loadLabel: l.Name}.String() }

// PodName returns the name of the pod with this number, from 0.
func (l *Load) PodName(number int) string { return l.Name + "-" + strconv.Itoa(number) }

func (l *Load) gangName(gang int) string { return l.Name + "-gang-" + strconv.Itoa(gang) }

// PodRequests is what each pod asks for.
func PodRequests() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(PodCPUs, resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse(PodMemory),
	}
}

func (l *Load) pod(number int) *corev1.Pod {
	var nodes map[string]string
	if l.FitsNoNode {
		nodes = map[string]string{noNodeLabel: ""}
	}
	var node string
	if len(l.Nodes) > 0 {
		node = l.Nodes[number%len(l.Nodes)]
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: l.PodName(number), Labels: map[string]string{loadLabel: l.Name},
			Annotations: map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: l.gangName(number / l.Members)},
		},
		Spec: corev1.PodSpec{
			SchedulerName: l.SchedulerName,
			NodeName:      node,
			NodeSelector:  nodes,
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "work", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{Requests: PodRequests()},
			}},
		},
	}
}

func (l *Load) podGroup(gang int) *schedulingv1beta1.PodGroup {
	minResources := corev1.ResourceList{}
	for name, quantity := range PodRequests() {
		quantity.Mul(int64(l.Members))
		minResources[name] = quantity
	}
	queue := schedulingv1beta1.DefaultQueue
	if len(l.Queues) > 0 {
		queue = l.Queues[gang%len(l.Queues)]
	}
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: l.gangName(gang), Labels: map[string]string{loadLabel: l.Name}},
		Spec:       schedulingv1beta1.PodGroupSpec{MinMember: int32(l.Members), MinResources: &minResources, Queue: queue},
	}
}

// CreatePlaces makes the namespace of the loads, and the queues. The controllers, which would make the default queue,
// need not run.
func (t *Testbed) CreatePlaces(ctx context.Context, queues []string) error {
	if err := t.Cluster.CreateNamespace(ctx, Namespace); err != nil {
		return err
	}
	for _, name := range append([]string{schedulingv1beta1.DefaultQueue}, queues...) {
		queue := &schedulingv1beta1.Queue{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       schedulingv1beta1.QueueSpec{Weight: 1, Parent: schedulingv1beta1.RootQueue},
		}
		_, err := t.Clients.Batch.SchedulingV1beta1().Queues().Create(ctx, queue, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create the queue %s: %w", name, err)
		}
	}
	return nil
}

// QueueNames returns the names of that many queues in addition to the default queue.
func QueueNames(count int) []string {
	var names []string
	for i := range count {
		names = append(names, "bench-"+strconv.Itoa(i))
	}
	return names
}

// Create makes the gangs, then the pods.
func (t *Testbed) Create(ctx context.Context, l *Load) error {
	err := InParallel(ctx, Creators, l.Gangs, func(i int) error { return t.createPodGroup(ctx, l, i) })
	if err == nil {
		err = InParallel(ctx, Creators, l.Pods(), func(i int) error { return t.createPod(ctx, l, i) })
	}
	return err
}

// CreateGang makes one gang of a load: its PodGroup, then its pods.
func (t *Testbed) CreateGang(ctx context.Context, l *Load, gang int) error {
	if err := t.createPodGroup(ctx, l, gang); err != nil {
		return err
	}
	return InParallel(ctx, Creators, l.Members, func(i int) error { return t.createPod(ctx, l, gang*l.Members+i) })
}

func (t *Testbed) createPodGroup(ctx context.Context, l *Load, gang int) error {
	_, err := t.Clients.Batch.SchedulingV1beta1().PodGroups(Namespace).Create(ctx, l.podGroup(gang), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the PodGroup %s: %w", l.gangName(gang), err)
	}
	return nil
}

func (t *Testbed) createPod(ctx context.Context, l *Load, number int) error {
	_, err := t.Clients.Core.CoreV1().Pods(Namespace).Create(ctx, l.pod(number), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the pod %s: %w", l.PodName(number), err)
	}
	return nil
}

// InParallel calls do with 0 up to count, so many at once, and returns an error of one of them.
func InParallel(ctx context.Context, atOnce, count int, do func(int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, atOnce, count, func(i int) {
		if err := do(i); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

// Remove deletes the load and returns when it is gone. It is repeated until then: the API server breaks off a deletion
// of thousands that lasts longer than a minute.
func (t *Testbed) Remove(ctx context.Context, l *Load) error {
	pods, groups := t.Clients.Core.CoreV1().Pods(Namespace), t.Clients.Batch.SchedulingV1beta1().PodGroups(Namespace)
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	selection := metav1.ListOptions{LabelSelector: l.selector()}
	err := UntilGone(ctx, func(ctx context.Context) (left int, err error) {
		err = errors.Join(pods.DeleteCollection(ctx, now, selection), groups.DeleteCollection(ctx, metav1.DeleteOptions{}, selection))
		if err != nil {
			return 0, err
		}
		list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: l.selector(), Limit: 1})
		if err != nil {
			return 0, err
		}
		return len(list.Items), nil
	})
	if err != nil {
		return fmt.Errorf("remove the pods of %s: %w", l.Name, err)
	}
	return nil
}

// UntilGone removes objects, again and again until none is left. An API server may break off a request that deletes
// thousands of them. It returns an error if some are left after RemovalPatience.
func UntilGone(ctx context.Context, remove func(context.Context) (left int, err error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, RemovalPatience, errors.New("not within "+RemovalPatience.String()))
	defer cancel()
	for {
		left, err := remove(ctx)
		if err == nil && left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(RemovalPoll):
		}
	}
}
