package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/client/serving"
	"hekla.sh/hekla/test/apitest"
)

// gangOf are pods of a group, with the finalizer of the webhook.
func gangOf(group string, names ...string) string {
	var text strings.Builder
	for _, name := range names {
		text.WriteString(strings.NewReplacer("pod-group-name: pair", "pod-group-name: "+group, `total-count: "2"`, fmt.Sprintf(`total-count: "%d", hekla.sh/run-for: 5s`, len(names)),
			"  namespace: default\n", "  namespace: default\n  finalizers: [kueue.x-k8s.io/managed]\n").Replace(queuedPod(name)))
	}
	return text.String()
}

// awaitGang waits until the Workload of a group is as a condition wants it.
func awaitGang(t *testing.T, watch *quotaWatch, name string, is func(*v1beta2.Workload) bool) *v1beta2.Workload {
	t.Helper()
	var w *v1beta2.Workload
	apitest.Eventually(t, func(ctx context.Context) error {
		found, err := watch.look(ctx, t)
		if err != nil {
			return err
		}
		if w = found[name]; w == nil || !is(w) {
			return fmt.Errorf("the group says %+v", w)
		}
		return nil
	})
	return w
}

func areGone(t *testing.T, namespace string, names ...string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		for _, name := range names {
			if pod, err := core.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("pod %s is still there with the finalizers %v, %v", name, pod.Finalizers, err)
			}
		}
		return nil
	})
}

// A group of pods has a place of its own in the queue: a preemption takes its pods, but neither its Workload nor what
// that has been through.
func TestAPreemptedGroupIsReplacedAndFinishes(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 1)
	time.Sleep(serving.Interval + time.Second) // until the controllers know
	watch := &quotaWatch{quota: 4, beyond: map[string]int{}}
	is := func(kind string) func(*v1beta2.Workload) bool {
		return func(w *v1beta2.Workload) bool { return meta.IsStatusConditionTrue(w.Status.Conditions, kind) }
	}
	first, second := []string{"gang-0", "gang-1", "gang-2"}, []string{"again-0", "again-1", "again-2"}
	applyText(t, oneQueue+strings.ReplaceAll(gangOf("gang", first...), "run-for: 5s", "run-for: 1h"))
	before := awaitGang(t, watch, "gang", is(v1beta2.Admitted))

	applyText(t, queuedJob("high", "all", 2, ", kueue.x-k8s.io/priority-class: urgent"))
	awaitPods(t, "high", 2)
	w := awaitGang(t, watch, "gang", is(v1beta2.WaitingForReplacementPods))
	if w.UID != before.UID || !is(v1beta2.Evicted)(w) || w.Status.Admission != nil {
		t.Errorf("the group says %+v", w)
	}
	for _, name := range first {
		pod, err := core.CoreV1().Pods(metav1.NamespaceDefault).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || pod.Status.Phase != corev1.PodFailed || !slices.Contains(pod.Finalizers, v1beta2.PodFinalizer) {
			t.Errorf("pod %s: %v, %s with the finalizers %v", name, err, pod.Status.Phase, pod.Finalizers)
		}
	}
	deleteJob(t, "high")
	time.Sleep(2 * time.Second) // there is room, and no pod of the group
	if w = awaitGang(t, watch, "gang", is(v1beta2.WaitingForReplacementPods)); w.Status.Admission != nil {
		t.Error("it was admitted without pods")
	}
	applyText(t, gangOf("gang", second...))
	areGone(t, metav1.NamespaceDefault, first...)
	w = awaitGang(t, watch, "gang", is(v1beta2.Finished))
	if w.UID != before.UID {
		t.Error("it is another Workload")
	}
	kubectl(t, append([]string{"delete", "pod"}, second...)...)
	areGone(t, metav1.NamespaceDefault, second...)

	// All of a group goes with its namespace, also while it waits for others.
	kubectl(t, "create", "namespace", "doomed")
	inDoomed := strings.NewReplacer("namespace: default", "namespace: doomed", "run-for: 5s", "run-for: 1h")
	applyText(t, inDoomed.Replace("{apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: all, namespace: default}, spec: {clusterQueue: all}}\n---\n"+gangOf("lost", "lost-0", "lost-1")))
	lost := func(kind string) {
		t.Helper()
		apitest.Eventually(t, func(ctx context.Context) error {
			w, err := batch.KueueV1beta2().Workloads("doomed").Get(ctx, "lost", metav1.GetOptions{})
			if err == nil && !is(kind)(w) {
				err = fmt.Errorf("the group says %+v", w.Status.Conditions)
			}
			return err
		})
	}
	lost(v1beta2.Admitted)
	kubectl(t, "-n", "doomed", "patch", "workloads.kueue.x-k8s.io", "lost", "--type=merge", "-p", `{"spec": {"active": false}}`)
	lost(v1beta2.WaitingForReplacementPods)
	kubectl(t, "delete", "namespace", "doomed", "--timeout=60s")
	nothingWasForbidden(t)
}

// Someone deletes the Workload of a group of which one pod has succeeded. The other is stopped, and once it is replaced
// the group gets a Workload again, of which one place is not needed any more.
func TestAGroupWhoseWorkloadIsDeletedHalfwayFinishes(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 1)
	time.Sleep(serving.Interval + time.Second) // until the controllers know
	watch := &quotaWatch{quota: 4, beyond: map[string]int{}}
	short, long := gangOf("half", "half-0", "half-1"), ""
	short, long, _ = strings.Cut(short, "---\n")
	applyText(t, oneQueue+short+"---\n"+strings.ReplaceAll(long, "run-for: 5s", "run-for: 1h"))
	before := awaitGang(t, watch, "half", func(w *v1beta2.Workload) bool { return len(w.Status.ReclaimablePods) == 1 })
	kubectl(t, "delete", "workloads.kueue.x-k8s.io", "half", "--wait=false")
	areGone(t, metav1.NamespaceDefault, "half-1")

	applyText(t, strings.ReplaceAll(long, "half-1", "half-2"))
	w := awaitGang(t, watch, "half", func(w *v1beta2.Workload) bool {
		return meta.IsStatusConditionTrue(w.Status.Conditions, v1beta2.Finished)
	})
	if w.UID == before.UID {
		t.Error("it is the Workload that was deleted")
	}
	nothingWasForbidden(t)
}
