package localcluster

import (
	"context"
	"fmt"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

func newPod(name string, annotations map[string]string) *corev1.Pod {
	always := corev1.ContainerRestartPolicyAlways
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: annotations},
		Spec: corev1.PodSpec{
			SchedulerName: "by-hand",
			RestartPolicy: corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{
				{Name: "prepare", Image: "none"},
				{Name: "sidecar", Image: "none", RestartPolicy: &always},
			},
			Containers: []corev1.Container{{Name: "main", Image: "none"}},
		},
	}
}

// createBound creates the pod and binds it, as a scheduler would.
func createBound(t *testing.T, client kubernetes.Interface, pod *corev1.Pod, node string) {
	t.Helper()
	ctx := testContext(t)
	if _, err := client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.CoreV1().Pods(pod.Namespace).Delete(context.Background(), pod.Name, *metav1.NewDeleteOptions(0))
	})
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}
	if err := client.CoreV1().Pods(pod.Namespace).Bind(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func awaitPhase(t *testing.T, client kubernetes.Interface, name string, want corev1.PodPhase) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, func(ctx context.Context) (err error) {
		pod, err = client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err == nil && pod.Status.Phase != want {
			err = fmt.Errorf("%s is %s, want %s", name, pod.Status.Phase, want)
		}
		return err
	})
	return pod
}

func TestABoundPodRunsUntilItIsDeleted(t *testing.T) {
	client := clientOf(t, shared)
	createBound(t, client, newPod("runs", nil), "node-1")
	pod := awaitPhase(t, client, "runs", corev1.PodRunning)
	status := pod.Status
	if status.PodIP == "" || status.StartTime == nil || len(status.ContainerStatuses) != 1 || !status.ContainerStatuses[0].Ready {
		t.Errorf("its status is incomplete: %+v", status)
	}
	if len(status.InitContainerStatuses) != 2 || status.InitContainerStatuses[0].State.Terminated == nil || status.InitContainerStatuses[1].State.Running == nil {
		t.Errorf("its init containers have not completed, or its sidecar does not run: %+v", status.InitContainerStatuses)
	}
	if err := client.CoreV1().Pods("default").Delete(testContext(t), "runs", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		_, err := client.CoreV1().Pods("default").Get(ctx, "runs", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there (%v)", err)
	})
}

func TestAPodEndsAfterTheTimeItAsksFor(t *testing.T) {
	client := clientOf(t, shared)
	createBound(t, client, newPod("succeeds", map[string]string{"hekla.sh/run-for": "1s"}), "node-1")
	createBound(t, client, newPod("fails", map[string]string{"hekla.sh/run-for": "1s", "hekla.sh/exit-code": "7"}), "node-1")
	restarted := newPod("restarted", map[string]string{"hekla.sh/run-for": "1s", "hekla.sh/exit-code": "7"})
	restarted.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	createBound(t, client, restarted, "node-1")
	awaitPhase(t, client, "restarted", corev1.PodRunning)

	for name, want := range map[string]struct {
		phase corev1.PodPhase
		code  int32
	}{"succeeds": {corev1.PodSucceeded, 0}, "fails": {corev1.PodFailed, 7}} {
		pod := awaitPhase(t, client, name, want.phase)
		terminated := pod.Status.ContainerStatuses[0].State.Terminated
		if terminated == nil || terminated.ExitCode != want.code {
			t.Errorf("%s: container ended with %+v, want code %d", name, terminated, want.code)
			continue
		}
		if ran := terminated.FinishedAt.Sub(terminated.StartedAt.Time); ran.Seconds() < 1 {
			t.Errorf("%s ran for %s, want 1s at least", name, ran)
		}
	}
	// It has had as long as those that have ended.
	awaitPhase(t, client, "restarted", corev1.PodRunning)
}

// A kubelet says that a pod has ended also if a finalizer holds it. The controllers, who hold it, let go then.
func TestAPodThatItsQueueHoldsEndsWhenItIsDeleted(t *testing.T) {
	client := clientOf(t, shared)
	held := newPod("held", nil)
	held.Finalizers = []string{"kueue.x-k8s.io/managed"}
	createBound(t, client, held, "node-1")
	awaitPhase(t, client, "held", corev1.PodRunning)
	if err := client.CoreV1().Pods("default").Delete(testContext(t), "held", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := awaitPhase(t, client, "held", corev1.PodFailed)
	if s := pod.Status.ContainerStatuses; len(s) != 1 || s[0].Ready || s[0].State.Terminated == nil {
		t.Errorf("its container is %+v", s)
	}
	if _, err := client.CoreV1().Pods("default").Patch(testContext(t), "held", types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		_, err := client.CoreV1().Pods("default").Get(ctx, "held", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there: %v", err)
	})
}

// A kubelet says of a deleted pod that it has ended. The Job waits for that before it makes another, and before its
// finalizer goes; and so does the namespace.
func TestJobsThatWaitForFailedPodsAndTheirNamespaceGo(t *testing.T) {
	client := clientOf(t, shared)
	if err := shared.CreateNamespace(testContext(t), "going"); err != nil {
		t.Fatal(err)
	}
	failed := batchv1.Failed
	pod := newPod("", nil).Spec
	pod.NodeName = "node-1"
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "replaces", Namespace: "going"}, Spec: batchv1.JobSpec{
		PodReplacementPolicy: &failed, Template: corev1.PodTemplateSpec{Spec: pod}}}
	if _, err := client.BatchV1().Jobs("going").Create(testContext(t), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	running := func(ctx context.Context, but types.UID) (*corev1.Pod, error) {
		pods, err := client.CoreV1().Pods("going").List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range pods.Items {
			if p := &pods.Items[i]; p.UID != but && p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil {
				return p, nil
			}
		}
		return nil, fmt.Errorf("of %d pods none runs", len(pods.Items))
	}
	var first *corev1.Pod
	eventually(t, func(ctx context.Context) (err error) { first, err = running(ctx, ""); return err })
	if err := client.CoreV1().Pods("going").Delete(testContext(t), first.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error { _, err := running(ctx, first.UID); return err })
	if err := client.CoreV1().Namespaces().Delete(testContext(t), "going", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		namespace, err := client.CoreV1().Namespaces().Get(ctx, "going", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is still there: %v, %+v", err, namespace.Status.Conditions)
	})
}
