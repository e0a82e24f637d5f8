package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/test/apitest"
)

// held makes a PodGroup of one pod that asks for CPU and has the gate of queue admission.
func (w *testCluster) held(name, queue, scheduler, cpu string) {
	w.t.Helper()
	ctx := w.t.Context()
	_, err := w.batch.SchedulingV1beta1().PodGroups("default").Create(ctx, &v1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.PodGroupSpec{MinMember: 1, Queue: queue},
	}, metav1.CreateOptions{})
	must(w.t, err)
	_, err = w.core.CoreV1().Pods("default").Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{
			v1beta1.KubeGroupNameAnnotationKey: name, v1beta1.QueueAllocationGateKey: "true",
		}},
		Spec: corev1.PodSpec{SchedulerName: scheduler,
			SchedulingGates: []corev1.PodSchedulingGate{{Name: v1beta1.QueueAllocationGateKey}},
			Containers: []corev1.Container{{Name: "main", Image: "image", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
			}}}},
	}, metav1.CreateOptions{})
	must(w.t, err)
}

// stands says where a pod stands as all who look at it see it: its node, or why it has none, and whether it has a gate.
func (w *testCluster) stands(ctx context.Context, name string) (string, error) {
	pod, err := w.core.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	where := "nothing is said"
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			where = c.Reason
		}
	}
	if pod.Spec.NodeName != "" {
		where = "bound"
	}
	return fmt.Sprintf("%s, %d gates", where, len(pod.Spec.SchedulingGates)), nil
}

func TestPodsAreHeldUntilTheirQueueHasRoomAndThenSeenByAutoscalers(t *testing.T) {
	w := onCluster(t)
	name := "gates-" + w.suffix
	file := filepath.Join(t.TempDir(), "scheduler.conf")
	text := "actions: allocate\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n  - name: capacity\n"
	must(t, os.WriteFile(file, []byte(text), 0o600))
	queue := &v1beta1.Queue{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.QueueSpec{Weight: 1,
		Capability: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1500")}}}
	_, err := w.batch.SchedulingV1beta1().Queues().Create(t.Context(), queue, metav1.CreateOptions{})
	must(t, err)
	p := w.start("--scheduler-name="+name, "--scheduler-conf="+file, "--feature-gates=SchedulingGatesQueueAdmission=true")
	w.ready(p)
	await := func(pod, want string) {
		t.Helper()
		apitest.Eventually(w.t, func(ctx context.Context) error {
			got, err := w.stands(ctx, pod)
			if err == nil && got != want {
				err = fmt.Errorf("%s: %s, want %s", pod, got, want)
			}
			return err
		})
	}
	// No node is that large, so it is for an autoscaler to look at it.
	w.held("first-"+w.suffix, name, name, "1000")
	await("first-"+w.suffix, "Unschedulable, 0 gates")
	// With it the queue has no room for another.
	w.held("second-"+w.suffix, name, name, "1000")
	w.held("small-"+w.suffix, name, name, "1")
	await("small-"+w.suffix, "bound, 0 gates")
	w.shows(p, `volcano_task_scheduling_latency_milliseconds_count{stage="Bound"} 1`)
	await("second-"+w.suffix, "SchedulingGated, 1 gates")
	must(t, w.core.CoreV1().Pods("default").Delete(t.Context(), "first-"+w.suffix, *metav1.NewDeleteOptions(0)))
	await("second-"+w.suffix, "Unschedulable, 0 gates")
	p.stop()
	must(t, w.ends(p))
}

func TestTheRightToRemoveGatesIsNamedWhereItIsMissing(t *testing.T) {
	w := onCluster(t)
	name := "rightless-" + w.suffix
	account, err := w.core.CoreV1().ServiceAccounts(systemNamespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
	all := []string{"*"}
	read := []string{"get", "list", "watch"}
	_, err = w.core.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "nodes", "namespaces", "services", "configmaps", "replicationcontrollers", "resourcequotas", "limitranges",
			"persistentvolumes", "persistentvolumeclaims"}, Verbs: read},
		{APIGroups: []string{""}, Resources: []string{"pods/binding", "pods/status", "events"}, Verbs: all},
		{APIGroups: []string{"apps", "batch.volcano.sh", "scheduling.volcano.sh", "topology.volcano.sh", "kueue.x-k8s.io", "storage.k8s.io", "resource.k8s.io", "policy",
			"coordination.k8s.io", "scheduling.k8s.io", "node.k8s.io"}, Resources: all, Verbs: all},
	}}, metav1.CreateOptions{})
	must(t, err)
	_, err = w.core.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: systemNamespace, Name: account.Name}}}, metav1.CreateOptions{})
	must(t, err)
	kubeconfig, _, err := w.cluster.ServiceAccountKubeconfig(t.Context(), systemNamespace, name)
	must(t, err)
	p := w.start("--scheduler-name="+name, "--kubeconfig="+kubeconfig, "--lock-object-namespace="+systemNamespace, "--leader-elect=false",
		"--feature-gates=SchedulingGatesQueueAdmission=true")
	w.ready(p)
	w.held("pod-"+w.suffix, "default", name, "1")
	apitest.Eventually(t, func(ctx context.Context) error {
		group, err := w.batch.SchedulingV1beta1().PodGroups("default").Get(ctx, "pod-"+w.suffix, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range group.Status.Conditions {
			if c.Type == v1beta1.PodGroupScheduledType {
				t.Errorf("the group is said to be scheduled: %+v", c)
			}
			if strings.Contains(c.Message, "kubectl apply -f installer/gates.yaml") {
				return nil
			}
		}
		return fmt.Errorf("the conditions are %+v", group.Status.Conditions)
	})
	events, err := w.core.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=pod-" + w.suffix})
	must(t, err)
	for _, e := range events.Items {
		if e.Reason == "Scheduled" {
			t.Errorf("an Event says that it is scheduled: %s %s", e.InvolvedObject.Kind, e.Message)
		}
	}
	p.stop()
	must(t, w.ends(p))
}
