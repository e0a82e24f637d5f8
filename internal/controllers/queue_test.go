package controllers_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/cli"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

func awaitQueue(t *testing.T, name string, condition func(*scheduling.Queue) bool) *scheduling.Queue {
	t.Helper()
	queue := &scheduling.Queue{}
	apitest.Eventually(t, func(ctx context.Context) error {
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
	if err := api.Delete(apitest.Context(t), standard); err != nil {
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
	if err := api.Delete(apitest.Context(t), groups[4]); err != nil {
		t.Fatal(err)
	}
	awaitQueue(t, queue.Name, func(queue *scheduling.Queue) bool {
		return queue.Status.State == scheduling.QueueStateClosed && queue.Status.Completed == 5 && queue.Status.Running == 0
	})
}

// newQueue makes a queue below the parent and waits until it is open. It is removed after the test.
func newQueue(t *testing.T, name, parent string) *scheduling.Queue {
	t.Helper()
	queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: scheduling.QueueSpec{Weight: 1, Parent: parent}}
	create(t, queue)
	t.Cleanup(func() { _ = api.Delete(context.Background(), queue) })
	awaitState(t, name, scheduling.QueueStateOpen, false)
	return queue
}

// awaitState waits until the queue is in the state, and marked as closed by its parent or not.
func awaitState(t *testing.T, name string, state scheduling.QueueState, isMarked bool) {
	t.Helper()
	awaitQueue(t, name, func(queue *scheduling.Queue) bool {
		return queue.Status.State == state && (queue.Annotations["volcano.sh/closed-by-parent"] == "true") == isMarked
	})
}

// operate runs vcctl queue operate.
func operate(t *testing.T, name, action string) {
	t.Helper()
	t.Setenv("KUBECONFIG", cluster.KubeconfigPath())
	var said bytes.Buffer
	vcctl := cli.ForName("vcctl", genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &said, ErrOut: &said})
	vcctl.SetArgs([]string{"queue", "operate", "-n", name, "-a", action})
	vcctl.SetOut(&said)
	vcctl.SetErr(&said)
	if err := vcctl.ExecuteContext(apitest.Context(t)); err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
}

// commandQueue issues a Command for the queue in the namespace.
func commandQueue(t *testing.T, namespace string, queue *scheduling.Queue, action bus.Action) *bus.Command {
	t.Helper()
	issued := &bus.Command{
		ObjectMeta:   metav1.ObjectMeta{Namespace: namespace, GenerateName: queue.Name + "-"},
		Action:       string(action),
		TargetObject: metav1.NewControllerRef(queue, scheduling.GroupVersion.WithKind("Queue")),
	}
	create(t, issued)
	return issued
}

func noCommandsAreLeft(t *testing.T) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		list := &bus.CommandList{}
		if err := api.List(ctx, list, client.InNamespace("default")); err != nil {
			return err
		}
		if len(list.Items) > 0 {
			return fmt.Errorf("%d Commands are left, the first is %+v", len(list.Items), list.Items[0])
		}
		return nil
	})
}

func TestABusyQueueIsCountedOnceASecond(t *testing.T) {
	namespace := namespaceFor(t, "busy")
	queue := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: "busy"}, Spec: scheduling.QueueSpec{Weight: 1}}
	create(t, queue)
	t.Cleanup(func() { _ = api.Delete(context.Background(), queue) })
	const groups, rate = 60, 20 // a second
	began := time.Now()
	for i := range groups {
		create(t, &scheduling.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("g%d", i)},
			Spec: scheduling.PodGroupSpec{Queue: queue.Name, MinMember: 1}})
		time.Sleep(time.Second / rate)
	}
	awaitQueue(t, queue.Name, func(queue *scheduling.Queue) bool { return queue.Status.Pending == groups })
	var writes int
	for _, asked := range requestsFor(t, func(object *auditv1.ObjectReference) bool { return object.Name == queue.Name }) {
		if asked == (request{"patch", "queues/status", 200}) {
			writes++
		}
	}
	// The state, the first groups, and the others.
	if took := time.Since(began); writes < 2 || writes > 3+int(took.Seconds()) {
		t.Errorf("the status was written %d times in %s, want once a second", writes, took)
	}
}

func TestAQueueIsClosedAndOpenedFromTheCommandLine(t *testing.T) {
	namespace := namespaceFor(t, "operated")
	queue := newQueue(t, "operated", "root")
	group := &scheduling.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "g"},
		Spec:       scheduling.PodGroupSpec{Queue: queue.Name, MinMember: 1},
	}
	create(t, group)
	awaitQueue(t, queue.Name, func(queue *scheduling.Queue) bool { return queue.Status.Pending == 1 })
	operate(t, queue.Name, "close")
	awaitState(t, queue.Name, scheduling.QueueStateClosing, false)
	setPhase(t, group, scheduling.PodGroupCompleted)
	awaitState(t, queue.Name, scheduling.QueueStateClosed, false)
	operate(t, queue.Name, "open")
	awaitState(t, queue.Name, scheduling.QueueStateOpen, false)
	for range 5 {
		operate(t, queue.Name, "close")
		operate(t, queue.Name, "open")
	}
	noCommandsAreLeft(t)
	awaitState(t, queue.Name, scheduling.QueueStateOpen, false)
}

func TestQueuesCloseAndOpenWithTheirParent(t *testing.T) {
	const open, closed = scheduling.QueueStateOpen, scheduling.QueueStateClosed
	parent := newQueue(t, "family", "root")
	newQueue(t, "family-a", parent.Name)
	newQueue(t, "family-b", parent.Name)
	newQueue(t, "family-a-deep", "family-a")
	newQueue(t, "family-away", "root")
	operate(t, "family-b", "close")
	awaitState(t, "family-b", closed, false)

	operate(t, parent.Name, "close")
	awaitState(t, parent.Name, closed, false)
	awaitState(t, "family-a", closed, true)
	awaitState(t, "family-a-deep", closed, true)
	awaitState(t, "family-b", closed, false)
	awaitState(t, "family-away", open, false)

	born := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: "family-c"}, Spec: scheduling.QueueSpec{Weight: 1, Parent: parent.Name}}
	create(t, born)
	t.Cleanup(func() { _ = api.Delete(context.Background(), born) })
	awaitState(t, born.Name, closed, true)
	operate(t, born.Name, "close")
	awaitState(t, born.Name, closed, false)
	operate(t, born.Name, "open")
	awaitEvent(t, born, "OpensWithParent", "queue family-c opens when its parent family does")
	awaitState(t, born.Name, closed, true)

	operate(t, parent.Name, "open")
	for _, name := range []string{parent.Name, "family-a", "family-a-deep", born.Name} {
		awaitState(t, name, open, false)
	}
	awaitState(t, "family-b", closed, false)
	noCommandsAreLeft(t)
}

func TestCommandsThatAQueueCannotFollowAreToldAndDropped(t *testing.T) {
	namespace := namespaceFor(t, "foreign")
	queue := newQueue(t, "steadfast", "root")
	root := awaitQueue(t, "root", func(*scheduling.Queue) bool { return true })
	earlier := queue.DeepCopy()
	earlier.UID = "another"
	for _, test := range []struct {
		namespace string
		queue     *scheduling.Queue
		action    bus.Action
		told      string
	}{
		{"default", queue, bus.AbortJobAction, `"AbortJob" is not an action of queues; those are OpenQueue and CloseQueue`},
		{"default", earlier, bus.CloseQueueAction, "it is for an earlier queue of this name, with UID another"},
		{"default", root, bus.CloseQueueAction, "queue root cannot be closed"},
		{namespace, queue, bus.CloseQueueAction, "Commands for queues are followed in namespace default only"},
	} {
		awaitGone(t, commandQueue(t, test.namespace, test.queue, test.action))
		about := queue
		if test.queue.Name == "root" {
			about = root
		}
		awaitEvent(t, about, "CommandIgnored", test.told)
	}
	gone := &scheduling.Queue{ObjectMeta: metav1.ObjectMeta{Name: "gone", UID: "gone"}}
	awaitGone(t, commandQueue(t, "default", gone, bus.CloseQueueAction))
	awaitState(t, queue.Name, scheduling.QueueStateOpen, false)
	awaitState(t, "root", scheduling.QueueStateOpen, false)
}
