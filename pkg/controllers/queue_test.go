package controllers_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func awaitQueue(t *testing.T, name string, condition func(*scheduling.Queue) bool) *scheduling.Queue {
	t.Helper()
	queue := &scheduling.Queue{}
	eventually(t, func(ctx context.Context) error {
		err := api.Get(ctx, client.ObjectKey{Name: name}, queue)
		if err == nil && !condition(queue) {
			err = fmt.Errorf("queue %s is %+v, %+v", name, queue.Spec, queue.Status)
		}
		return err
	})
	return queue
}

func TestRootAndDefaultAreAlwaysThere(t *testing.T) {
	isOpen := func(queue *scheduling.Queue) bool { return queue.Status.State == scheduling.QueueStateOpen }
	root := awaitQueue(t, "root", isOpen)
	if root.Spec.Reclaimable == nil || *root.Spec.Reclaimable || root.Spec.Parent != "" {
		t.Errorf("root is %+v", root.Spec)
	}
	standard := awaitQueue(t, "default", isOpen)
	if standard.Spec.Parent != "root" {
		t.Errorf("default is %+v", standard.Spec)
	}
	if err := api.Delete(testContext(t), standard); err != nil {
		t.Fatal(err)
	}
	awaitQueue(t, "default", func(queue *scheduling.Queue) bool { return queue.UID != standard.UID && isOpen(queue) })
}

func TestAQueueCountsItsPodGroupsAndClosesBehindTheLast(t *testing.T) {
	namespace := namespaceFor(t, "counting")
	queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: "counting"}, Spec: scheduling.QueueSpec{Weight: 1}}
	create(t, queue)
	t.Cleanup(func() { _ = api.Delete(context.Background(), queue) })
	awaitQueue(t, queue.Name, func(queue *scheduling.Queue) bool {
		return queue.Spec.Parent == "root" && queue.Status.State == scheduling.QueueStateOpen
	})
	allocated := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7")}
	changeStatus(t, queue, func(queue *scheduling.Queue) { queue.Status.Allocated = allocated })

	var groups []*scheduling.PodGroup
	for i, phase := range []scheduling.PodGroupPhase{
		"", scheduling.PodGroupInqueue, scheduling.PodGroupRunning, scheduling.PodGroupRunning, scheduling.PodGroupUnknown,
		scheduling.PodGroupCompleted,
	} {
		group := &scheduling.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("g%d", i)},
			Spec:       scheduling.PodGroupSpec{Queue: queue.Name, MinMember: 1},
		}
		create(t, group)
		if phase != "" {
			setPhase(t, group, phase)
		}
		groups = append(groups, group)
	}
	counted := awaitQueue(t, queue.Name, func(queue *scheduling.Queue) bool {
		status := queue.Status
		return status.Pending == 1 && status.Inqueue == 1 && status.Running == 2 && status.Unknown == 1 && status.Completed == 1
	})
	if got := counted.Status.Allocated[corev1.ResourceCPU]; got.Value() != 7 {
		t.Errorf("the scheduler's allocated is now %v", counted.Status.Allocated)
	}

	changeStatus(t, queue, func(queue *scheduling.Queue) { queue.Status.State = scheduling.QueueStateClosed })
	awaitQueue(t, queue.Name, func(queue *scheduling.Queue) bool { return queue.Status.State == scheduling.QueueStateClosing })
	for _, group := range groups[:4] {
		setPhase(t, group, scheduling.PodGroupCompleted)
	}
	if err := api.Delete(testContext(t), groups[4]); err != nil {
		t.Fatal(err)
	}
	awaitQueue(t, queue.Name, func(queue *scheduling.Queue) bool {
		return queue.Status.State == scheduling.QueueStateClosed && queue.Status.Completed == 5 && queue.Status.Running == 0
	})
}
