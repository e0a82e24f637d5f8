package tenant

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/localcluster"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// schedule runs the scheduler with the rights of the installer, and further flags, until the test ends, before a node
// of four CPUs.
func schedule(t *testing.T, flags ...string) {
	t.Helper()
	scratch := t.TempDir()
	path, conf := apitest.Path(scratch, "scheduler"), filepath.Join(scratch, "scheduler.conf")
	const policy = `{actions: "enqueue, allocate", tiers: [{plugins: [{name: priority}, {name: gang}]},
  {plugins: [{name: predicates}, {name: overcommit, arguments: {overcommit-factor: 1.0}}]}]}`
	kubeconfig, _, err1 := cluster.ServiceAccountKubeconfig(t.Context(), system, "volcano-scheduler")
	health, err2 := localcluster.FreePort()
	if err := errors.Join(err1, err2, apitest.Build(t.Context(), scratch, "scheduler"), os.WriteFile(conf, []byte(policy), 0o600)); err != nil {
		t.Fatal(err)
	}
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("20")}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "only"}}
	if err := admin.Create(apitest.Context(t), node); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Delete(context.Background(), node) })
	node.Status = corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	if err := admin.Status().Update(apitest.Context(t), node); err != nil {
		t.Fatal(err)
	}
	process, err := cluster.Run(apitest.Context(t), localcluster.Program{
		Name: "volcano-scheduler", Path: path, ReadyURL: fmt.Sprintf("http://127.0.0.1:%d/readyz", health),
		Args: append([]string{"--leader-elect=false", "--scheduler-conf=" + conf, "--kubeconfig=" + kubeconfig, "--enable-healthz",
			fmt.Sprintf("--healthz-address=127.0.0.1:%d", health)}, flags...),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = process.Kill() })
}

// TestPodGroupsWithoutPodsHoldTheClusterForHalfAMinute runs the programs of the installer: a tenant writes
// PodGroups that request the whole cluster, one after the other, and another tenant a Job.
func TestPodGroupsWithoutPodsHoldTheClusterForHalfAMinute(t *testing.T) {
	schedule(t)
	hog, other := tenantOf(t, "hog"), tenantOf(t, "other")
	group := func(n int) string {
		return fmt.Sprintf("apiVersion: scheduling.volcano.sh/v1beta1\nkind: PodGroup\nmetadata: {name: hog-%d}\nspec: {minMember: 1, minResources: {cpu: 4}}", n)
	}
	phaseOf := func(ctx context.Context, n int) (scheduling.PodGroupPhase, string) {
		stored := &scheduling.PodGroup{}
		if err := admin.Get(ctx, client.ObjectKey{Namespace: "hog", Name: fmt.Sprintf("hog-%d", n)}, stored); err != nil || len(stored.Status.Conditions) == 0 {
			return stored.Status.Phase, ""
		}
		return stored.Status.Phase, stored.Status.Conditions[0].Reason
	}
	create(t, hog, "hog", group(0))
	apitest.Eventually(t, func(ctx context.Context) error {
		if phase, _ := phaseOf(ctx, 0); phase != scheduling.PodGroupInqueue {
			return fmt.Errorf("it is %q", phase)
		}
		return nil
	})
	for n := 1; n < 5; n++ {
		create(t, hog, "hog", group(n))
	}
	time.Sleep(2 * time.Second) // those are older than the Job, and come first of equals
	job := create(t, other, "other", strings.NewReplacer("image: b", "image: b, resources: {requests: {cpu: 2}}").Replace(gang("work", "")))
	t.Cleanup(func() { // no kubelet ends the pods, and other tests want the node
		ctx := context.Background()
		if err := errors.Join(admin.Delete(ctx, job), admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace("other"), client.GracePeriodSeconds(0))); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	apitest.Eventually(t, func(ctx context.Context) error {
		pods := &corev1.PodList{}
		if err := admin.List(ctx, pods, client.InNamespace("other")); err != nil {
			return err
		}
		bound := 0
		for i := range pods.Items {
			if pods.Items[i].Spec.NodeName != "" {
				bound++
			}
		}
		if bound < 2 {
			return fmt.Errorf("%d pods of Job %s have a node after %s", bound, job.GetName(), time.Since(began))
		}
		return nil
	})
	for n := range 5 {
		if phase, _ := phaseOf(apitest.Context(t), n); phase != scheduling.PodGroupPending && phase != "" {
			t.Errorf("PodGroup hog-%d is %q", n, phase)
		}
	}
}

// TestTheSchedulerTellsWhatItCannotRead patches in what was stored before the definitions had bounds.
func TestTheSchedulerTellsWhatItCannotRead(t *testing.T) {
	schedule(t)
	tenant := tenantOf(t, "unreadable")
	group := create(t, tenant, "unreadable", fmt.Sprintf(withQuantity["PodGroup"], "1"))
	broken := create(t, admin, "", queue("broken", "", "{}"))
	withoutBounds(t, []string{"podgroups.scheduling.volcano.sh", "queues.scheduling.volcano.sh"}, func() {
		apitest.Eventually(t, func(ctx context.Context) error {
			return tenant.Patch(ctx, group.DeepCopy(), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec": {"minResources": {"cpu": %q}}}`, costly)))
		})
		apitest.Eventually(t, func(ctx context.Context) error {
			return admin.Status().Patch(ctx, broken.DeepCopy(), client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"status": {"allocated": {"cpu": %q}}}`, costly)))
		})
	})
	awaitEvent(t, group, `counts as if it were not there, because it was stored in a form that cannot be read: spec.minResources.cpu: Invalid value: "1e-2000000000"`)
	awaitEvent(t, broken, `counts as if it were not there, because it was stored in a form that cannot be read: status.allocated.cpu: Invalid value: "1e-2000000000"`)
	// Others are served, and what cannot be read can be deleted.
	next := create(t, tenant, "unreadable", strings.Replace(fmt.Sprintf(withQuantity["PodGroup"], "1"), "costly", "next", 1))
	apitest.Eventually(t, func(ctx context.Context) error {
		stored := &scheduling.PodGroup{}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(next), stored); err != nil {
			return err
		}
		if stored.Status.Phase != scheduling.PodGroupInqueue {
			return fmt.Errorf("the next PodGroup is %q", stored.Status.Phase)
		}
		return nil
	})
	expect(t, "deletion of the PodGroup", tenant.Delete(apitest.Context(t), group), "")
	expect(t, "deletion of the Queue", admin.Delete(apitest.Context(t), broken), "")
}
