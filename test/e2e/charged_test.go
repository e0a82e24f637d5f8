package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/test/apitest"
)

// What runs is charged to the queue in which it started, whatever becomes of its PodGroup, also by a scheduler that
// begins later.
func TestWhatRunsIsChargedWhereItStarted(t *testing.T) {
	haveNodes(t, 2)
	tidyUp(t)
	createQueue(t, "first", 1)
	createQueue(t, "second", 1)
	file := filepath.Join(t.TempDir(), "group.yaml")
	const pod = `
---
{apiVersion: v1, kind: Pod, metadata: {name: charged-%d, annotations: {scheduling.k8s.io/group-name: charged}}, spec: {schedulerName: volcano,
  containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}}`
	text := "{apiVersion: scheduling.volcano.sh/v1beta1, kind: PodGroup, metadata: {name: charged}, spec: {minMember: 2, queue: first}}" +
		fmt.Sprintf(pod, 0) + fmt.Sprintf(pod, 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "apply", "-f", file)
	t.Cleanup(func() {
		for _, name := range []string{"charged-0", "charged-1"} {
			_ = core.CoreV1().Pods(metav1.NamespaceDefault).Delete(context.Background(), name, metav1.DeleteOptions{})
		}
		_ = batch.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).Delete(context.Background(), "charged", metav1.DeleteOptions{})
	})
	charged := func(cpu string) {
		t.Helper()
		apitest.Eventually(t, func(ctx context.Context) error {
			for name, want := range map[string]string{"first": cpu, "second": "0"} {
				q, err := batch.SchedulingV1beta1().Queues().Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				if got := q.Status.Allocated.Cpu().String(); got != want {
					return fmt.Errorf("queue %s is charged for %s CPUs, want %s", name, got, want)
				}
			}
			return nil
		})
	}
	charged("2")
	kubectl(t, "patch", "podgroups.scheduling.volcano.sh", "charged", "--type=merge", "-p", `{"spec": {"queue": "second"}}`)
	said := func(text string) {
		t.Helper()
		apitest.Eventually(t, func(ctx context.Context) error {
			if said := kubectl(t, "get", "events", "--field-selector=reason=QueueKept", "-o", "jsonpath={.items[*].message}"); !strings.Contains(said, text) {
				return fmt.Errorf("the Events say %q", said)
			}
			return nil
		})
	}
	said("It stays in queue first")
	kubectl(t, "annotate", "--overwrite", "pod", "charged-1", "scheduling.k8s.io/group-name=other")
	said(`It names PodGroup "other", and is charged with PodGroup charged to queue first until it is gone`)
	charged("2")
	restartScheduler(t)
	charged("2")
	kubectl(t, "delete", "podgroups.scheduling.volcano.sh", "charged")
	charged("2")
	kubectl(t, "delete", "pod", "charged-0", "--force", "--grace-period=0")
	charged("1")
	kubectl(t, "delete", "pod", "charged-1", "--force", "--grace-period=0")
	charged("0")
}
