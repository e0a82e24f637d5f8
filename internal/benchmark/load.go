package benchmark

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

const (
	namespace = "hekla-bench"
	// loadLabel says of a pod which load it belongs to.
	loadLabel = "hekla.sh/benchmark-load"
	// creators is how many objects are created at once: enough to keep a small API server busy.
	creators = 16
	// removalPatience bounds the removal of a load, in which the API server deletes some hundred pods a second.
	removalPatience = 10 * time.Minute
	// removalPoll is how often is looked whether a load is gone.
	removalPoll = 500 * time.Millisecond
)

// load is the pods of one measurement and their PodGroups.
type load struct {
	name          string
	schedulerName string
	pods, gang    int
}

func (l *load) selector() string { return labels.Set{loadLabel: l.name}.String() }

// podName returns the name of the pod with this number, from 0.
func (l *load) podName(number int) string { return l.name + "-" + strconv.Itoa(number) }

func (l *load) gangName(number int) string { return l.name + "-gang-" + strconv.Itoa(number/l.gang) }

func podRequests() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(podCPUs, resource.DecimalSI),
		corev1.ResourceMemory: resource.MustParse(podMemory),
	}
}

func (l *load) pod(number int) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: l.podName(number), Labels: map[string]string{loadLabel: l.name},
			Annotations: map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: l.gangName(number)},
		},
		Spec: corev1.PodSpec{
			SchedulerName: l.schedulerName,
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "work", Image: "registry.k8s.io/pause:3.10", Resources: corev1.ResourceRequirements{Requests: podRequests()},
			}},
		},
	}
}

// podGroup returns the gang of the pod with this number.
func (l *load) podGroup(number int) *schedulingv1beta1.PodGroup {
	minResources := corev1.ResourceList{}
	for name, quantity := range podRequests() {
		quantity.Mul(int64(l.gang))
		minResources[name] = quantity
	}
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: l.gangName(number), Labels: map[string]string{loadLabel: l.name}},
		Spec: schedulingv1beta1.PodGroupSpec{
			MinMember: int32(l.gang), MinResources: &minResources, Queue: schedulingv1beta1.DefaultQueue,
		},
	}
}

// create makes the gangs, then the pods.
func (b *bench) create(ctx context.Context, l *load) error {
	err := inParallel(ctx, l.pods/l.gang, func(i int) error {
		_, err := b.clients.Batch.SchedulingV1beta1().PodGroups(namespace).Create(ctx, l.podGroup(i*l.gang), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create the PodGroups of %s: %w", l.name, err)
	}
	err = inParallel(ctx, l.pods, func(i int) error {
		_, err := b.clients.Core.CoreV1().Pods(namespace).Create(ctx, l.pod(i), metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("create the pods of %s: %w", l.name, err)
	}
	return nil
}

// inParallel calls do with 0 up to count and returns an error of one of them.
func inParallel(ctx context.Context, count int, do func(int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	workqueue.ParallelizeUntil(ctx, creators, count, func(i int) {
		if err := do(i); err != nil {
			cancel(err)
		}
	})
	return context.Cause(ctx)
}

// remove deletes the load and returns when it is gone. It is repeated until then: the API server breaks off a deletion
// of thousands that lasts longer than a minute.
func (b *bench) remove(ctx context.Context, l *load) error {
	ctx, cancel := context.WithTimeoutCause(ctx, removalPatience, errors.New("not within "+removalPatience.String()))
	defer cancel()
	pods, groups := b.clients.Core.CoreV1().Pods(namespace), b.clients.Batch.SchedulingV1beta1().PodGroups(namespace)
	now := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	selection := metav1.ListOptions{LabelSelector: l.selector()}
	for {
		podsErr := pods.DeleteCollection(ctx, now, selection)
		groupsErr := groups.DeleteCollection(ctx, metav1.DeleteOptions{}, selection)
		left, err := pods.List(ctx, metav1.ListOptions{LabelSelector: l.selector(), Limit: 1})
		if err == nil && podsErr == nil && groupsErr == nil && len(left.Items) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("remove the pods of %s: %w", l.name, errors.Join(context.Cause(ctx), podsErr, groupsErr, err))
		case <-time.After(removalPoll):
		}
	}
}
