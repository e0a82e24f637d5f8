package edge

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/edge/intake"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/test/apitest"
)

// A pod that is resized in place takes the larger of what it asks for and what the kubelet has given it, as
// kube-scheduler counts.
func TestAResizeInPlaceIsDeliveredAndCounted(t *testing.T) {
	clients, _ := adminClients(t)
	namespace := space(t, clients)
	ctx, pods := apitest.Context(t), clients.Core.CoreV1().Pods(namespace)
	cpu := func(amount string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount)}
	}
	capacity := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10"), corev1.ResourcePods: resource.MustParse("10")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity}}
	if _, err := clients.Core.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = clients.Core.CoreV1().Nodes().Delete(context.Background(), namespace, metav1.DeleteOptions{})
	})
	pod, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{SchedulerName: "volcano", NodeName: namespace,
		Containers: []corev1.Container{{Name: "main", Image: "image", Resources: corev1.ResourceRequirements{Requests: cpu("1")}}}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	inbox := startInbox(t, clients, intake.Options{})
	model := cache.New(cache.Options{SchedulerNames: []string{"volcano"}})
	counts := func(want int64) {
		t.Helper()
		eventually(t, func(context.Context) string {
			model.Apply(inbox.Take()...)
			model.Settle()
			task := model.Task(nameOf(pod))
			if task == nil {
				return "the pod is not delivered"
			}
			list := model.Resources.List(task.Request())
			if got := list.Cpu().MilliValue(); got != want {
				return fmt.Sprintf("the pod is counted with %d thousandths of a core, not %d", got, want)
			}
			return ""
		})
	}
	resize := func(amount string) {
		t.Helper()
		body := fmt.Sprintf(`{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":%q}}}]}}`, amount)
		if _, err := pods.Patch(ctx, "p", types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "resize"); err != nil {
			t.Fatal(err)
		}
	}
	kubelet := func(given string) {
		t.Helper()
		body := fmt.Sprintf(`{"status":{"phase":"Running","containerStatuses":[{"name":"main","image":"image","imageID":"i","ready":true,"restartCount":0,
			"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}},"allocatedResources":{"cpu":%q},"resources":{"requests":{"cpu":%q}}}]}}`, given, given)
		if _, err := pods.Patch(ctx, "p", types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	counts(1000)
	kubelet("1")
	resize("3")
	counts(3000) // asked for, and not given yet
	kubelet("3")
	counts(3000)
	resize("2")
	counts(3000) // not given back yet
	kubelet("2")
	counts(2000)
}
