package edge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/config"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/edge/binder"
	"hekla.sh/hekla/internal/edge/intake"
	"hekla.sh/hekla/internal/edge/leader"
	"hekla.sh/hekla/internal/edge/status"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/fixture"
)

// space makes a namespace for one test.
func space(t *testing.T, clients *apiserver.Clients) string {
	t.Helper()
	made, err := clients.Core.CoreV1().Namespaces().Create(apitest.Context(t),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made.Name
}

func createPod(t *testing.T, clients *apiserver.Clients, namespace, name string, requests ...corev1.ResourceList) *corev1.Pod {
	t.Helper()
	var resources corev1.ResourceRequirements
	for _, list := range requests {
		resources.Requests, resources.Limits = list, list
	}
	made, err := clients.Core.CoreV1().Pods(namespace).Create(apitest.Context(t), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{
			Name: "main", Image: "image", Env: []corev1.EnvVar{{Name: "A", Value: "b"}}, Resources: resources,
		}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func deletePod(t *testing.T, clients *apiserver.Clients, pod *corev1.Pod) {
	t.Helper()
	if err := clients.Core.CoreV1().Pods(pod.Namespace).Delete(apitest.Context(t), pod.Name, *metav1.NewDeleteOptions(0)); err != nil {
		t.Fatal(err)
	}
}

func createGroup(t *testing.T, clients *apiserver.Clients, namespace, name string) *schedulingv1beta1.PodGroup {
	t.Helper()
	made, err := clients.Batch.SchedulingV1beta1().PodGroups(namespace).Create(apitest.Context(t), &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: schedulingv1beta1.PodGroupSpec{MinMember: 1},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func createQueue(t *testing.T, clients *apiserver.Clients) *schedulingv1beta1.Queue {
	t.Helper()
	made, err := clients.Batch.SchedulingV1beta1().Queues().Create(apitest.Context(t), &schedulingv1beta1.Queue{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Spec: schedulingv1beta1.QueueSpec{Weight: 3},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// startInbox starts an inbox and returns when its caches are complete.
func startInbox(t *testing.T, clients *apiserver.Clients, options intake.Options) *intake.Inbox {
	t.Helper()
	inbox, err := intake.New(clients, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(inbox.Wait)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	inbox.Start(ctx)
	if err := inbox.WaitSynced(apitest.Context(t)); err != nil {
		t.Fatal(err)
	}
	return inbox
}

// await takes events until one is as wanted.
func await(t *testing.T, inbox *intake.Inbox, what string, isIt func(cache.Event) bool) cache.Event {
	t.Helper()
	deadline := time.After(apitest.Patience)
	for {
		for _, e := range inbox.Take() {
			if isIt(e) {
				return e
			}
		}
		select {
		case <-inbox.Wake():
		case <-deadline:
			t.Fatalf("%s was never delivered", what)
		}
	}
}

// isSet matches the state of an object that fulfils a condition.
func isSet[T metav1.Object](uid types.UID, condition func(T) bool) func(cache.Event) bool {
	return func(e cache.Event) bool {
		set, ok := e.(cache.Set)
		if !ok {
			return false
		}
		o, ok := set.Object.(T)
		return ok && o.GetUID() == uid && condition(o)
	}
}

func TestTheFirstTakeIsTheWholeClusterAndTheNextWhatChanged(t *testing.T) {
	clients, _ := adminClients(t)
	ctx := apitest.Context(t)
	namespace := space(t, clients)
	pod, group, queue := createPod(t, clients, namespace, "pod"), createGroup(t, clients, namespace, "group"), createQueue(t, clients)
	class, err := clients.Core.SchedulingV1().PriorityClasses().Create(ctx,
		&schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}, Value: 7}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node, err := clients.Core.CoreV1().Nodes().Create(ctx,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: map[string]string{"pool": "a"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	budget, err := clients.Core.PolicyV1().PodDisruptionBudgets(namespace).Create(ctx,
		&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "budget"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	quota, err := clients.Core.CoreV1().ResourceQuotas(namespace).Create(ctx,
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	hyperNode := fixture.HyperNode("", 1, "test")
	hyperNode.ObjectMeta = metav1.ObjectMeta{GenerateName: "test-"}
	if hyperNode, err = clients.Batch.TopologyV1alpha1().HyperNodes().Create(ctx, hyperNode, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	inbox := startInbox(t, clients, intake.Options{})
	first := map[types.UID]metav1.Object{}
	for _, e := range inbox.Take() {
		o := e.(cache.Set).Object.(metav1.Object)
		first[o.GetUID()] = o
		if o.GetManagedFields() != nil {
			t.Errorf("%T %s has managed fields", o, o.GetName())
		}
	}
	for _, made := range []metav1.Object{pod, group, queue, class, node, budget, quota, hyperNode} {
		if first[made.GetUID()] == nil {
			t.Errorf("%T %s is missing", made, made.GetName())
		}
	}
	if seen, ok := first[pod.UID].(*cluster.Pod); !ok || seen.Object().Spec.Containers[0].Env != nil {
		t.Errorf("the pod is a %T, or carries its environment", first[pod.UID])
	}

	deletePod(t, clients, pod)
	await(t, inbox, "the deletion", func(e cache.Event) bool {
		deletion, ok := e.(cache.Delete)
		return ok && deletion.Object.(metav1.Object).GetUID() == pod.UID
	})
	budgets := clients.Core.PolicyV1().PodDisruptionBudgets(namespace)
	budget.Status = policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: 3, DisruptedPods: map[string]metav1.Time{"a": metav1.Now()},
		Conditions: []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now()}}}
	if _, err := budgets.UpdateStatus(ctx, budget, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, inbox, "what is left of the budget", isSet(budget.UID, func(b *policyv1.PodDisruptionBudget) bool {
		return b.Status.DisruptionsAllowed == 3 && len(b.Status.DisruptedPods) == 1 && b.Status.Conditions == nil
	}))
	again := createPod(t, clients, namespace, "pod")
	await(t, inbox, "the pod of the same name", isSet(again.UID, func(*cluster.Pod) bool { return true }))
}

func TestNodesThatTheSelectorLeavesOutAreNotThere(t *testing.T) {
	clients, _ := adminClients(t)
	ctx := apitest.Context(t)
	nodes := clients.Core.CoreV1().Nodes()
	create := func(pool string) *corev1.Node {
		node, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: map[string]string{"pool": pool}}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return node
	}
	inside, outside := create("in"), create("out")
	inbox := startInbox(t, clients, intake.Options{NodeSelector: []string{"zone: x", "pool: in"}})
	for _, e := range inbox.Take() {
		if o := e.(cache.Set).Object.(metav1.Object); o.GetUID() == outside.UID {
			t.Error("a node without the label is there")
		}
	}
	move := func(node *corev1.Node, pool string) {
		patch := []byte(`{"metadata":{"labels":{"pool":"` + pool + `"}}}`)
		if _, err := nodes.Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	move(outside, "in")
	await(t, inbox, "the node that joined", isSet(outside.UID, func(*corev1.Node) bool { return true }))
	move(inside, "out")
	await(t, inbox, "the node that left", func(e cache.Event) bool {
		deletion, ok := e.(cache.Delete)
		return ok && deletion.Object.(metav1.Object).GetUID() == inside.UID
	})
	if _, err := intake.New(clients, intake.Options{NodeSelector: []string{"pool"}}); err == nil || !strings.Contains(err.Error(), `"pool"`) {
		t.Errorf("a selector without value: got %v", err)
	}
}

// startOutbox starts an outbox and returns a channel with the result of each binding.
func startOutbox(t *testing.T, clients *apiserver.Clients) (*Outbox, <-chan binder.Result) {
	t.Helper()
	results := make(chan binder.Result, 100)
	o := NewOutbox(clients, OutboxOptions{
		Name: "volcano", Logger: logr.Discard(), Refuse: func(cache.BindFailed) {},
		Observe: func(outcome binder.Outcome) { results <- outcome.Result },
	})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(o.Wait)
	t.Cleanup(cancel)
	o.Start(ctx)
	return o, results
}

func bindOf(pod *corev1.Pod, node string) decision.Decisions {
	return decision.Decisions{Binds: []decision.Bind{{
		Pod: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, UID: pod.UID, Node: node,
	}}}
}

func expectResult(t *testing.T, results <-chan binder.Result, want binder.Result) {
	t.Helper()
	select {
	case got := <-results:
		if got != want {
			t.Errorf("the binding ended as %s, want %s", got, want)
		}
	case <-time.After(apitest.Patience):
		t.Fatalf("the binding did not end, want %s", want)
	}
}

func nodeOf(t *testing.T, clients *apiserver.Clients, pod *corev1.Pod) string {
	t.Helper()
	live, err := clients.Core.CoreV1().Pods(pod.Namespace).Get(apitest.Context(t), pod.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live.Spec.NodeName
}

func TestAPodIsBoundOnceAndNeverItsSuccessor(t *testing.T) {
	clients, _ := adminClients(t)
	namespace := space(t, clients)
	o, results := startOutbox(t, clients)
	pod := createPod(t, clients, namespace, "pod")
	o.Do(bindOf(pod, "one"))
	expectResult(t, results, binder.Bound)
	o.Do(bindOf(pod, "one"))
	expectResult(t, results, binder.Bound)
	o.Do(bindOf(pod, "two"))
	expectResult(t, results, binder.Elsewhere)
	if node := nodeOf(t, clients, pod); node != "one" {
		t.Errorf("the pod is on %s", node)
	}
	deletePod(t, clients, pod)
	o.Do(bindOf(pod, "one"))
	expectResult(t, results, binder.Gone)
	successor := createPod(t, clients, namespace, "pod")
	o.Do(bindOf(pod, "one"))
	expectResult(t, results, binder.Gone)
	if node := nodeOf(t, clients, successor); node != "" {
		t.Errorf("the successor was bound to %s", node)
	}
}

// createHeldPod is createPod for a pod with the gate of queue admission and others.
func createHeldPod(t *testing.T, clients *apiserver.Clients, namespace, name string, others ...string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{SchedulerName: "volcano", Containers: []corev1.Container{{Name: "main", Image: "image"}}}}
	for _, gate := range append([]string{schedulingv1beta1.QueueAllocationGateKey}, others...) {
		pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: gate})
	}
	made, err := clients.Core.CoreV1().Pods(namespace).Create(apitest.Context(t), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestGatesOfQueueAdmissionAreTakenOffAndNoOthers(t *testing.T) {
	clients, _ := adminClients(t)
	namespace := space(t, clients)
	o, results := startOutbox(t, clients)
	open := func(pod *corev1.Pod) {
		name := types.NamespacedName{Namespace: namespace, Name: pod.Name}
		o.Do(decision.Decisions{Gates: []decision.GateOpening{{Pod: name, UID: pod.UID}}})
	}
	gatesOf := func(ctx context.Context, pod *corev1.Pod) string {
		live, err := clients.Core.CoreV1().Pods(namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		var names []string
		for _, gate := range live.Spec.SchedulingGates {
			names = append(names, gate.Name)
		}
		return strings.Join(names, " ")
	}
	alone, both := createHeldPod(t, clients, namespace, "alone"), createHeldPod(t, clients, namespace, "both", "example.com/quota")
	predecessor := createHeldPod(t, clients, namespace, "again")
	deletePod(t, clients, predecessor)
	successor := createHeldPod(t, clients, namespace, "again")
	for _, pod := range []*corev1.Pod{predecessor, alone, both} {
		open(pod)
	}
	eventually(t, func(ctx context.Context) string {
		if left := gatesOf(ctx, alone); left != "" {
			return "the pod has the gates " + left
		}
		if left := gatesOf(ctx, both); left != "example.com/quota" {
			return "the pod of two gates has now " + left
		}
		return ""
	})
	settled(t, o)
	if left := gatesOf(apitest.Context(t), successor); left != schedulingv1beta1.QueueAllocationGateKey {
		t.Errorf("the gate of another pod was opened: left is %q", left)
	}
	// What gets a node is opened on the way.
	bind := bindOf(successor, "one")
	bind.Binds[0].IsHeld = true
	o.Do(bind)
	expectResult(t, results, binder.Bound)
	if node := nodeOf(t, clients, successor); node != "one" {
		t.Errorf("the pod is on %q", node)
	}
	bind = bindOf(both, "one")
	bind.Binds[0].IsHeld = true
	o.Do(bind)
	expectResult(t, results, binder.Refused)
}

// eventually polls a condition until it returns "".
func eventually(t *testing.T, condition func(ctx context.Context) string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		if problem := condition(ctx); problem != "" {
			return errors.New(problem)
		}
		return nil
	})
}

// settled waits until nothing is left to write.
func settled(t *testing.T, o *Outbox) {
	t.Helper()
	eventually(t, func(context.Context) string {
		if o.Stats().StatusesWaiting > 0 {
			return "statuses are still waiting"
		}
		return ""
	})
}

func TestThePodGroupGetsItsWholeStatusAndItsNamesakeNone(t *testing.T) {
	clients, _ := adminClients(t)
	namespace := space(t, clients)
	o, _ := startOutbox(t, clients)
	group := createGroup(t, clients, namespace, "group")
	groups := clients.Batch.SchedulingV1beta1().PodGroups(namespace)
	status := schedulingv1beta1.PodGroupStatus{Phase: schedulingv1beta1.PodGroupInqueue, Conditions: []schedulingv1beta1.PodGroupCondition{{
		Type: schedulingv1beta1.PodGroupUnschedulableType, Status: corev1.ConditionTrue, TransitionID: "1",
		LastTransitionTime: metav1.Now().Rfc3339Copy(), Reason: "NotEnoughResources", Message: "2 short",
	}}}
	write := func(uid types.UID, status schedulingv1beta1.PodGroupStatus) schedulingv1beta1.PodGroupStatus {
		t.Helper()
		o.Do(decision.Decisions{Groups: []decision.GroupStatus{{
			Job: cluster.JobID{Namespace: namespace, Name: "group"}, UID: uid, Status: status,
		}}})
		settled(t, o)
		live, err := groups.Get(apitest.Context(t), "group", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return live.Status
	}
	if diff := cmp.Diff(status, write(group.UID, status)); diff != "" {
		t.Errorf("first status (-want +got):\n%s", diff)
	}
	// The conditions are gone in the next one, and with the new phase it does not rest.
	running := schedulingv1beta1.PodGroupStatus{Phase: schedulingv1beta1.PodGroupRunning, Running: 1}
	if diff := cmp.Diff(running, write(group.UID, running)); diff != "" {
		t.Errorf("second status (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(running, write("another", status)); diff != "" {
		t.Errorf("status after a write for another UID (-want +got):\n%s", diff)
	}
	if err := groups.Delete(apitest.Context(t), "group", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	o.Do(decision.Decisions{Groups: []decision.GroupStatus{{
		Job: cluster.JobID{Namespace: namespace, Name: "group"}, UID: group.UID, Status: status,
	}}})
	settled(t, o)
	if failed := o.Stats().StatusesFailed; failed != 0 {
		t.Errorf("%d attempts failed; that an object is gone is no failure", failed)
	}
}

func TestThePodGroupIsToldWhereItIsAndItsNamesakeIsNot(t *testing.T) {
	clients, _ := adminClients(t)
	namespace := space(t, clients)
	o, _ := startOutbox(t, clients)
	group := createGroup(t, clients, namespace, "group")
	write := func(uid types.UID, hyperNode string) string {
		t.Helper()
		o.Do(decision.Decisions{Places: []decision.GroupPlace{{Job: cluster.JobID{Namespace: namespace, Name: "group"}, UID: uid, HyperNode: hyperNode}}})
		settled(t, o)
		live, err := clients.Batch.SchedulingV1beta1().PodGroups(namespace).Get(apitest.Context(t), "group", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		place, has := live.Annotations[schedulingv1beta1.JobAllocatedHyperNodeKey]
		if has != (place != "") {
			t.Errorf("the annotation is there and empty")
		}
		return place
	}
	for _, step := range []struct {
		uid           types.UID
		write, expect string
	}{{group.UID, "s0", "s0"}, {"another", "s1", "s0"}, {group.UID, "s2", "s2"}, {group.UID, "", ""}} {
		if got := write(step.uid, step.write); got != step.expect {
			t.Errorf("after %q was written for %s it says %q, want %q", step.write, step.uid, got, step.expect)
		}
	}
	if failed := o.Stats().StatusesFailed; failed != 0 {
		t.Errorf("%d attempts failed; that an object is gone is no failure", failed)
	}
}

func TestOfAQueueOnlyWhatItHoldsIsWritten(t *testing.T) {
	clients, _ := adminClients(t)
	o, _ := startOutbox(t, clients)
	queue := createQueue(t, clients)
	queues := clients.Batch.SchedulingV1beta1().Queues()
	write := func(uid types.UID, allocated corev1.ResourceList) schedulingv1beta1.QueueStatus {
		t.Helper()
		for _, hasStatus := range []bool{false, true} { // whatever the scheduler has seen
			o.Do(decision.Decisions{Queues: []decision.QueueStatus{{Queue: queue.Name, UID: uid, Allocated: allocated, HasStatus: hasStatus}}})
			settled(t, o)
		}
		live, err := queues.Get(apitest.Context(t), queue.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return live.Status
	}
	both := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), "example.com/gpu": resource.MustParse("1")}
	got := write(queue.UID, both)
	if diff := cmp.Diff(schedulingv1beta1.QueueStatus{Allocated: both}, got); diff != "" {
		t.Fatalf("of a queue that had no status (-want +got):\n%s", diff)
	}
	patch := []byte(`{"status":{"state":"Open","running":4}}`)
	if _, err := queues.Patch(apitest.Context(t), queue.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	less := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	want := schedulingv1beta1.QueueStatus{State: "Open", Running: 4, Allocated: less}
	if diff := cmp.Diff(want, write(queue.UID, less)); diff != "" {
		t.Errorf("with the controllers' fields kept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, write("another", both)); diff != "" {
		t.Errorf("after a write for another UID (-want +got):\n%s", diff)
	}
	want.Allocated = corev1.ResourceList{}
	if diff := cmp.Diff(want, write(queue.UID, nil)); diff != "" {
		t.Errorf("of an empty queue (-want +got):\n%s", diff)
	}
}

func TestOfAPodOneConditionIsWrittenAndNoneOnceItIsBound(t *testing.T) {
	clients, _ := adminClients(t)
	namespace := space(t, clients)
	o, results := startOutbox(t, clients)
	pod := createPod(t, clients, namespace, "pod")
	pods := clients.Core.CoreV1().Pods(namespace)
	foreign := []byte(`{"status":{"conditions":[{"type":"Foreign","status":"True"}]}}`)
	if _, err := pods.Patch(apitest.Context(t), "pod", types.StrategicMergePatchType, foreign, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	decide := func(uid types.UID, message string) decision.Decisions {
		return decision.Decisions{Pods: []decision.PodCondition{{
			Pod: types.NamespacedName{Namespace: namespace, Name: "pod"}, UID: uid,
			Condition: corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message},
		}}}
	}
	conditions := func() map[string]string {
		settled(t, o)
		live, err := pods.Get(apitest.Context(t), "pod", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, c := range live.Status.Conditions {
			found[string(c.Type)] = string(c.Status) + " " + c.Message
		}
		return found
	}
	o.Do(decide(pod.UID, "no room"))
	want := map[string]string{"Foreign": "True ", "PodScheduled": "False no room"}
	if diff := cmp.Diff(want, conditions()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	o.Do(decide("another", "somebody else's"))
	if diff := cmp.Diff(want, conditions()); diff != "" {
		t.Errorf("conditions after a write for another UID (-want +got):\n%s", diff)
	}
	o.Do(decide(pod.UID, "still no room"))
	o.Do(bindOf(pod, "node"))
	expectResult(t, results, binder.Bound)
	time.Sleep(2 * status.Rest)
	want["PodScheduled"] = "True "
	if diff := cmp.Diff(want, conditions()); diff != "" {
		t.Errorf("conditions of the bound pod (-want +got):\n%s", diff)
	}
}

func TestEventsAreShownWithTheirObject(t *testing.T) {
	clients, _ := adminClients(t)
	namespace := space(t, clients)
	o, _ := startOutbox(t, clients)
	pod := createPod(t, clients, namespace, "pod")
	notice := decision.Notice{
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: "pod", UID: pod.UID},
		Type:      corev1.EventTypeWarning, Reason: "Waiting", Message: strings.Repeat("é", 1000),
	}
	o.Do(decision.Decisions{Events: []decision.Notice{notice}})
	e := eventOf(t, clients, namespace, "pod", "Waiting", 1)
	if e.Source.Component != "volcano" || e.ReportingController != "volcano" || e.InvolvedObject.UID != pod.UID || !strings.HasSuffix(e.Message, "é…") {
		t.Errorf("the event is %+v", e)
	}
	if e.FirstTimestamp.IsZero() || e.LastTimestamp.IsZero() {
		t.Errorf("it happened from %s to %s", e.FirstTimestamp, e.LastTimestamp)
	}
	o.Do(decision.Decisions{Events: []decision.Notice{notice}})
	if again := eventOf(t, clients, namespace, "pod", "Waiting", 2); again.Name != e.Name || again.LastTimestamp.Before(&e.LastTimestamp) {
		t.Errorf("what happened again is %+v", again)
	}
	notice.Message = "3 nodes are short of cpu"
	o.Do(decision.Decisions{Events: []decision.Notice{notice}})
	if last := eventOf(t, clients, namespace, "pod", "Waiting", 3); last.Name != e.Name || last.Message != notice.Message {
		t.Errorf("with other numbers it is %+v", last)
	}
}

// eventOf waits until there is one Event of a reason about an object, as kubectl lists them, and it has happened so
// often.
func eventOf(t *testing.T, clients *apiserver.Clients, namespace, name, reason string, count int32) *corev1.Event {
	t.Helper()
	var found *corev1.Event
	eventually(t, func(ctx context.Context) string {
		list, err := clients.Core.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "involvedObject.name=" + name + ",reason=" + reason})
		switch {
		case err != nil:
			return err.Error()
		case len(list.Items) != 1 || list.Items[0].Count != count:
			return fmt.Sprintf("of %s there are %d Events %s: %+v", name, len(list.Items), reason, list.Items)
		}
		found = &list.Items[0]
		return ""
	})
	return found
}

func TestPodsGetTheEventsOfKubeScheduler(t *testing.T) {
	clients, _ := adminClients(t)
	namespace := space(t, clients)
	o, results := startOutbox(t, clients)
	waits, goes := createPod(t, clients, namespace, "waits"), createPod(t, clients, namespace, "goes")
	o.Do(decision.Decisions{Pods: []decision.PodCondition{{Pod: nameOf(waits), UID: waits.UID, Note: "0/2 nodes are available: 2 Insufficient cpu",
		Condition: corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}})
	o.Do(bindOf(goes, "node"))
	expectResult(t, results, binder.Bound)
	failed := eventOf(t, clients, namespace, "waits", "FailedScheduling", 1)
	if failed.Type != corev1.EventTypeWarning || failed.Message != "0/2 nodes are available: 2 Insufficient cpu" || failed.InvolvedObject.UID != waits.UID {
		t.Errorf("the pod that waits has the Event %+v", failed)
	}
	scheduled := eventOf(t, clients, namespace, "goes", "Scheduled", 1)
	if scheduled.Type != corev1.EventTypeNormal || scheduled.Message != "Successfully assigned "+namespace+"/goes to node" ||
		scheduled.FirstTimestamp.IsZero() || scheduled.LastTimestamp.IsZero() {
		t.Errorf("the pod that was bound has the Event %+v", scheduled)
	}
}

func TestTheDocumentedPermissionsAreEnough(t *testing.T) {
	admin, c := adminClients(t)
	clusterRules, rules := documentedRules(t)
	if len(clusterRules) != 31 || len(rules) != 4 {
		t.Fatalf("read %d and %d rules from the package comment", len(clusterRules), len(rules))
	}
	config := confined(t, c, admin.Core, "confined", clusterRules, rules)
	clients, err := apiserver.Connect(config, 2000, 2000)
	if err != nil {
		t.Fatal(err)
	}
	// No server has these here. A client without the right gets that answer first.
	for _, path := range []string{"metrics.k8s.io/v1beta1/nodes", "custom.metrics.k8s.io/v1beta2/nodes/*/node_cpu_usage_avg",
		"custom.metrics.k8s.io/v1beta1/nodes/*/node_memory_usage_avg"} {
		if err := clients.Core.Discovery().RESTClient().Get().AbsPath("/apis/" + path).Do(apitest.Context(t)).Error(); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v, want that it is not found", path, err)
		}
	}
	namespace := space(t, admin)
	pod, group, queue := createPod(t, admin, namespace, "pod"), createGroup(t, admin, namespace, "group"), createQueue(t, admin)
	election := electionSettings
	election.ResourceName, election.ResourceNamespace = "volcano", "volcano-system"
	e, err := leader.NewElection(config, election)
	if err != nil {
		t.Fatal(err)
	}
	err = e.Lead(apitest.Context(t), func(context.Context) error {
		startInbox(t, clients, intake.Options{})
		o, results := startOutbox(t, clients)
		d := bindOf(pod, "node")
		d.Groups = []decision.GroupStatus{{Job: cluster.JobID{Namespace: namespace, Name: "group"}, UID: group.UID}}
		d.Queues = []decision.QueueStatus{{Queue: queue.Name, UID: queue.UID}}
		d.Places = []decision.GroupPlace{{Job: cluster.JobID{Namespace: namespace, Name: "group"}, UID: group.UID, HyperNode: "s0"}}
		o.Do(d)
		expectResult(t, results, binder.Bound)
		other := createPod(t, admin, namespace, "other")
		o.Do(decision.Decisions{Pods: []decision.PodCondition{{
			Pod: types.NamespacedName{Namespace: namespace, Name: "other"}, UID: other.UID,
			Condition: corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse},
		}}})
		o.Show(decision.Notice{
			Regarding: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "other"}, Type: corev1.EventTypeNormal, Reason: "Test",
		})
		settled(t, o)
		deleted, evicted := createPod(t, admin, namespace, "deleted"), createPod(t, admin, namespace, "evicted")
		plan := decision.PlanStart{ID: "p"}
		for _, victim := range []*corev1.Pod{deleted, evicted} {
			plan.Evictions = append(plan.Evictions, decision.Eviction{Pod: nameOf(victim), UID: victim.UID, PastBudget: victim == deleted})
		}
		o.Do(decision.Decisions{Plans: []decision.PlanStart{plan}})
		eventually(t, func(ctx context.Context) string {
			if list, err := admin.Core.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{}); err != nil || len(list.Items) != 2 {
				return "the victims were not evicted"
			}
			return ""
		})
		if s := o.Stats(); s.StatusesWritten != 4 || s.StatusesFailed != 0 {
			t.Errorf("%d statuses were written and %d attempts failed, want 4 and 0", s.StatusesWritten, s.StatusesFailed)
		}
		eventually(t, func(ctx context.Context) string {
			list, err := admin.Core.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{})
			if err != nil || len(list.Items) == 0 {
				return "the event was not written"
			}
			return ""
		})
		return nil
	})
	if err != nil {
		t.Error(err)
	}

	blind, err := apiserver.Connect(confined(t, c, admin.Core, "blind", nil, nil), 2000, 2000)
	if err != nil {
		t.Fatal(err)
	}
	inbox, err := intake.New(blind, intake.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	inbox.Start(ctx)
	err = inbox.WaitSynced(ctx)
	if err == nil || !strings.Contains(err.Error(), "podgroups: ") || !strings.Contains(err.Error(), "is forbidden") {
		t.Errorf("without permissions: got %v", err)
	}
	cancel()
	inbox.Wait()
}

// electionSettings are those of a scheduler by default.
var electionSettings = config.LeaderElectionConfiguration{
	LeaderElect: true, ResourceName: "lease", ResourceNamespace: "default",
	LeaseDuration: metav1.Duration{Duration: 15 * time.Second},
	RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
	RetryPeriod:   metav1.Duration{Duration: 2 * time.Second},
}

func TestASecondProcessLeadsWhenTheFirstHasLostItsLease(t *testing.T) {
	_, c := adminClients(t)
	settings := electionSettings
	settings.ResourceName = "contested"
	settings.LeaseDuration.Duration, settings.RenewDeadline.Duration, settings.RetryPeriod.Duration = 3*time.Second, 2*time.Second, 200*time.Millisecond
	lead := func(name string) (election *leader.Election, led <-chan struct{}, result <-chan error) {
		election, err := leader.NewElection(c.Config(), settings)
		if err != nil {
			t.Fatal(name, err)
		}
		began, ended := make(chan struct{}), make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		go func() {
			ended <- election.Lead(ctx, func(leading context.Context) error {
				close(began)
				select {
				case <-leading.Done():
				case <-ctx.Done():
				}
				return nil
			})
		}()
		return election, began, ended
	}
	wait := func(what string, led <-chan struct{}) {
		t.Helper()
		select {
		case <-led:
		case <-time.After(apitest.Patience):
			t.Fatal(what)
		}
	}
	first, firstLed, firstResult := lead("first")
	wait("the first never led", firstLed)
	second, secondLed, _ := lead("second")
	// A user deletes the Lease.
	clients, _ := adminClients(t)
	patch := []byte(`{"spec":{"holderIdentity":"somebody"}}`)
	if _, err := clients.Core.CoordinationV1().Leases("default").Patch(apitest.Context(t), "contested", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-firstResult:
		if !errors.Is(err, leader.ErrLeadershipLost) {
			t.Errorf("the first ended with %v", err)
		}
	case <-time.After(apitest.Patience):
		t.Fatal("the first leads without its Lease")
	}
	wait("the second never led", secondLed)
	if first.IsLeader() || !second.IsLeader() || first.Identity() == second.Identity() {
		t.Error("they do not know who leads")
	}
}
