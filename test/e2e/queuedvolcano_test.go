package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/client/serving"
	"hekla.sh/hekla/test/apitest"
)

// queuedVolcanoJob is a Job of two tasks, a master and workers, that is submitted to a LocalQueue.
func queuedVolcanoJob(name string, workers int, labels string) string {
	return fmt.Sprintf(`
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: %s, namespace: default, labels: {kueue.x-k8s.io/queue-name: all%s}}
spec:
  minAvailable: 1
  policies: [{event: PodEvicted, action: RestartJob}]
  tasks:
  - name: master
    replicas: 1
    template: &pod
      spec:
        restartPolicy: Never
        terminationGracePeriodSeconds: 1
        containers: [{name: main, image: busybox, resources: {requests: {cpu: 1}}}]
  - name: worker
    replicas: %d
    template: *pod
---
`, name, labels, workers)
}

const usualClass = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: usual}
value: 50
---
`

// awaitVolcanoJob waits until a Job is in a phase with so many running pods, and its message contains a text.
func awaitVolcanoJob(t *testing.T, name string, phase batchv1alpha1.JobPhase, running int32, text string) {
	t.Helper()
	apitest.Eventually(t, func(ctx context.Context) error {
		job, err := batch.BatchV1alpha1().Jobs(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := &job.Status; s.State.Phase != phase || s.Running != running || s.RetryCount != 0 || !strings.Contains(s.State.Message, text) {
			return fmt.Errorf("Job %s is %s with %d running pods after %d retries: %s: %s", name, s.State.Phase, s.Running, s.RetryCount, s.State.Reason, s.State.Message)
		}
		return nil
	})
}

func TestAVolcanoJobThatNamesALocalQueueIsAWorkload(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 2)
	time.Sleep(serving.Interval + time.Second) // until the controllers know: a Job that has begun without a Workload goes on without
	// Workloads of one second have no order of their own, so a class says which Job comes first.
	applyText(t, oneQueue+usualClass+queuedVolcanoJob("first", 2, ", kueue.x-k8s.io/priority-class: usual"))
	w := awaitCondition(t, "first", v1beta2.Admitted, metav1.ConditionTrue, "The workload is admitted")
	if len(w.Spec.PodSets) != 2 || w.Spec.PodSets[0].Name != "master" || w.Spec.PodSets[1].Count != 2 {
		t.Errorf("the podsets are %+v", w.Spec.PodSets)
	}
	awaitVolcanoJob(t, "first", batchv1alpha1.Running, 3, "")
	pods, err := core.CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{LabelSelector: "volcano.sh/job-name=first"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; p.Status.Phase != corev1.PodRunning || p.Annotations[v1beta2.WorkloadAnnotation] != w.Name {
			t.Errorf("pod %s is %s, of Workload %q", p.Name, p.Status.Phase, p.Annotations[v1beta2.WorkloadAnnotation])
		}
	}

	applyText(t, queuedVolcanoJob("second", 1, ""))
	awaitVolcanoJob(t, "second", batchv1alpha1.Pending, 0, "insufficient unused quota for cpu in flavor any, 1 more needed")
	second, err := workloadOf(t.Context(), "second")
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), filepath.Join(programs, "hekla"), "why", "workload", second.Name, "--namespace=default",
		"--kubeconfig="+cluster.KubeconfigPath()).CombinedOutput()
	if text := string(said); err != nil || !strings.Contains(text, "waits: WaitingForQuota") || !strings.Contains(text, "all: place 1 of 1") ||
		!strings.Contains(text, "needs 1 cpu of flavor any: 0 of at most 4 could be taken now, short by 1") {
		t.Errorf("hekla why says: %v\n%s", err, text)
	}
	t.Logf("%s", said)
	groups, err := batch.SchedulingV1beta1().PodGroups(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(groups.Items) > 0 {
		t.Errorf("there are PodGroups in addition to the Workloads: %v, %+v", err, groups.Items)
	}

	// It leaves as a whole, and its policies do not count that as an eviction of a pod.
	applyText(t, queuedVolcanoJob("urgent", 2, ", kueue.x-k8s.io/priority-class: urgent"))
	awaitVolcanoJob(t, "urgent", batchv1alpha1.Running, 3, "")
	awaitVolcanoJob(t, "first", batchv1alpha1.Pending, 0, "waits in LocalQueue all")
	awaitCondition(t, "first", v1beta2.QuotaReserved, metav1.ConditionFalse, "insufficient unused quota for cpu in flavor any") // it is back in its queue
	kubectl(t, "delete", "vcjob", "urgent")
	awaitVolcanoJob(t, "first", batchv1alpha1.Running, 3, "")
	kubectl(t, "delete", "vcjob", "first")
	awaitVolcanoJob(t, "second", batchv1alpha1.Running, 2, "")
	// Of five workers two are enough. With the master there is quota for one, and later for three.
	applyText(t, strings.Replace(queuedVolcanoJob("in-part", 5, ""), "    replicas: 5\n", "    replicas: 5\n    minAvailable: 2\n", 1))
	awaitVolcanoJob(t, "in-part", batchv1alpha1.Pending, 0, "waits in LocalQueue all: couldn't assign flavors")
	kubectl(t, "delete", "vcjob", "second")
	awaitVolcanoJob(t, "in-part", batchv1alpha1.Running, 4, "")
	if w := awaitCondition(t, "in-part", v1beta2.Admitted, metav1.ConditionTrue, ""); *w.Status.Admission.PodSetAssignments[1].Count != 3 || w.Spec.PodSets[1].Count != 5 {
		t.Errorf("of %d workers are admitted %d", w.Spec.PodSets[1].Count, *w.Status.Admission.PodSetAssignments[1].Count)
	}
	kubectl(t, "delete", "vcjob", "in-part")
	apitest.Eventually(t, func(ctx context.Context) error {
		all, err := batch.KueueV1beta2().Workloads(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
		if err == nil && len(all.Items) > 0 {
			err = fmt.Errorf("%d Workloads are left", len(all.Items))
		}
		return err
	})
	nothingWasForbidden(t)
}

func TestUsersAreToldOfKindsThatRunUnmanaged(t *testing.T) {
	tidyUp(t)
	manifest := func(name, template string) string {
		return fmt.Sprintf(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default, labels: {kueue.x-k8s.io/queue-name: all}}
spec:
  replicas: 0
  selector: {matchLabels: {app: %[1]s}}
  template: {metadata: {labels: {app: %[1]s%[2]s}}, spec: {containers: [{name: main, image: busybox}]}}
---
`, name, template)
	}
	for text, want := range map[string]string{
		manifest("web", ""): "NotSupported: no Workload is made of the Deployment web, and it runs unmanaged. Put the label kueue.x-k8s.io/queue-name on its pod template",
		queuedJob("queued", "all", 1, "") + queuedVolcanoJob("volcano", 1, "") + queuedPod("pair-0"): "",
	} {
		said, err := system.KubectlWith(t.Context(), text, "apply", "--dry-run=server", "-f", "-")
		if err != nil || strings.Contains(said, "Warning") != (want != "") || !strings.Contains(said, want) {
			t.Errorf("kubectl says %v, want %q:\n%s", err, want, said)
		}
	}
}
