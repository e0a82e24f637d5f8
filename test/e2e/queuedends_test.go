package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/client/serving"
	"hekla.sh/hekla/test/apitest"
)

// quotaWatch checks, each time it looks, that no Workload has more pods on nodes than places, nor all together more
// than there is quota.
type quotaWatch struct {
	quota  int32
	beyond map[string]int // how often in a row more was seen: what is read one after the other may be of two times
}

func (q *quotaWatch) look(ctx context.Context, t *testing.T) (map[string]*v1beta2.Workload, error) {
	workloads, err := batch.KueueV1beta2().Workloads(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	pods, err := core.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	left, placed, found := map[string]int32{}, map[string]int32{}, map[string]*v1beta2.Workload{}
	for i := range workloads.Items {
		w := &workloads.Items[i]
		found[w.Name] = w
		if w.Status.Admission == nil || meta.IsStatusConditionTrue(w.Status.Conditions, v1beta2.Finished) {
			continue
		}
		for p := range w.Status.Admission.PodSetAssignments {
			_, ofSet := settings.PodsLeft(w, &w.Status.Admission.PodSetAssignments[p])
			left[w.Name], left["all"] = left[w.Name]+ofSet, left["all"]+ofSet
		}
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if of := p.Annotations[v1beta2.WorkloadAnnotation]; of != "" && p.Spec.NodeName != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			placed[of], placed["all"] = placed[of]+1, placed["all"]+1
		}
	}
	for name, count := range placed {
		if count <= left[name] && left["all"] <= q.quota {
			q.beyond[name] = 0
		} else if q.beyond[name]++; q.beyond[name] > 3 {
			t.Errorf("%s: %d pods are on nodes, %d places are held, and there is quota for %d", name, count, left[name], q.quota)
		}
	}
	return found, nil
}

// A group whose pods end one after the other gives back a place with each, and a Volcano Job that is admitted in part
// runs with what it got.
func TestGroupsAndVolcanoJobsRunToTheirEndWithExactQuota(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 2)
	time.Sleep(serving.Interval + time.Second) // until the controllers know
	watch := &quotaWatch{quota: 4, beyond: map[string]int{}}
	var text strings.Builder
	text.WriteString(oneQueue)
	for i, runs := range []string{`, hekla.sh/run-for: 1s`, `, hekla.sh/run-for: 6s`, `, hekla.sh/run-for: 12s`, ""} {
		pod := strings.NewReplacer("pod-group-name: pair", "pod-group-name: steps", `total-count: "2"`, `total-count: "4"`+runs)
		text.WriteString(pod.Replace(queuedPod(fmt.Sprint("step-", i))))
	}
	applyText(t, text.String())
	apitest.Eventually(t, func(ctx context.Context) error {
		found, err := watch.look(ctx, t)
		if err == nil && (found["steps"] == nil || !meta.IsStatusConditionTrue(found["steps"].Status.Conditions, v1beta2.Admitted)) {
			err = fmt.Errorf("the group is not admitted: %+v", found["steps"])
		}
		return err
	})
	// Its last pod runs on while the places of the first three are given to the Job: a master, and two of five workers.
	runFor := strings.NewReplacer("    template: &pod\n", "    template: &pod\n      metadata: {annotations: {hekla.sh/run-for: 3s}}\n", "    replicas: 5\n", "    replicas: 5\n    minAvailable: 2\n")
	applyText(t, runFor.Replace(queuedVolcanoJob("in-part", 5, "")))
	wasShared := false
	apitest.Eventually(t, func(ctx context.Context) error {
		found, err := watch.look(ctx, t)
		if err != nil {
			return err
		}
		job, err := batch.BatchV1alpha1().Jobs(metav1.NamespaceDefault).Get(ctx, "in-part", metav1.GetOptions{})
		if err != nil {
			return err
		}
		w, err := workloadOf(ctx, "in-part")
		if err != nil {
			return err
		}
		isGroupOver := meta.IsStatusConditionTrue(found["steps"].Status.Conditions, v1beta2.Finished)
		if !isGroupOver && !wasShared && meta.IsStatusConditionTrue(w.Status.Conditions, v1beta2.Admitted) {
			wasShared = true // the Job is admitted to the places of pods that have ended, so the last may end, too
			kubectl(t, "annotate", "pod", "step-3", "hekla.sh/run-for=1s")
		}
		if !isGroupOver || job.Status.State.Phase != batchv1alpha1.Completed || !meta.IsStatusConditionTrue(w.Status.Conditions, v1beta2.Finished) {
			return fmt.Errorf("the group has ended: %t; the Job is %+v; its Workload says %+v", isGroupOver, job.Status.State, w.Status.Conditions)
		}
		return nil
	})
	kubectl(t, "delete", "vcjob", "in-part")
	kubectl(t, "delete", "pods", "-l", v1beta2.PodGroupNameLabel+"=steps")
	nothingWasForbidden(t)
}

// A Workload left behind by Kueue, of a kind that nothing here starts, would hold quota for ever.
func TestAWorkloadOfAKindThatIsNotServedHoldsNothing(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 1)
	applyText(t, oneQueue+`
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata:
  name: jobset-left
  namespace: default
  ownerReferences: [{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: left, uid: 00000000-0000-0000-0000-000000000001, controller: true}]
spec:
  queueName: all
  podSets: [{name: main, count: 4, template: {spec: {restartPolicy: Never, containers: [{name: main, image: busybox, resources: {requests: {cpu: 1}}}]}}}]
---
`)
	apitest.Eventually(t, func(ctx context.Context) error {
		w, err := batch.KueueV1beta2().Workloads(metav1.NamespaceDefault).Get(ctx, "jobset-left", metav1.GetOptions{})
		if err != nil {
			return err
		}
		c := meta.FindStatusCondition(w.Status.Conditions, v1beta2.QuotaReserved)
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != "Misconfigured" || !strings.Contains(c.Message, "JobSet") {
			return fmt.Errorf("it says %+v", w.Status.Conditions)
		}
		return nil
	})
	applyText(t, queuedJob("served", "all", 4, ""))
	awaitCondition(t, "served", v1beta2.Admitted, metav1.ConditionTrue, "")
	w, err := batch.KueueV1beta2().Workloads(metav1.NamespaceDefault).Get(t.Context(), "jobset-left", metav1.GetOptions{})
	if err != nil || w.Status.Admission != nil {
		t.Errorf("it holds %+v, %v", w.Status.Admission, err)
	}
}

// The claims of generic ephemeral volumes are made with the pods, so a Workload is asked with claims that do not exist.
func TestAWorkloadWithEphemeralVolumesStarts(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 2)
	lateClass(t, "made", provisionerName)
	provision(t)
	applyText(t, oneQueue)
	spec := queuedTemplate()
	withOwnClaim("made")(&spec)
	runQueued(t, "scratch", spec)
}

// The claims of devices are made with the pods, too. The next Workload gets the devices of one that is gone.
func TestAWorkloadWithDevicesStarts(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 2)
	gpuClass(t, "")
	for _, name := range nodeNames(t)[:2] {
		having(t, core.ResourceV1().ResourceSlices(), slice(name, 1))
	}
	applyText(t, oneQueue)
	spec := queuedTemplate()
	withDevice(t)(&spec)
	for _, name := range []string{"devices-one", "devices-two"} {
		t.Run(name, func(t *testing.T) { runQueued(t, name, spec) })
	}
}

// runQueued runs a Job of two pods.
func runQueued(t *testing.T, name string, spec corev1.PodSpec) {
	t.Helper()
	pods, suspended := int32(2), true
	having(t, core.BatchV1().Jobs(metav1.NamespaceDefault), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1beta2.QueueNameLabel: "all"}},
		Spec: batchv1.JobSpec{Suspend: &suspended, Parallelism: &pods, Completions: &pods, Template: corev1.PodTemplateSpec{Spec: spec}}})
	awaitCondition(t, name, v1beta2.Admitted, metav1.ConditionTrue, "")
	apitest.Eventually(t, func(ctx context.Context) error {
		all, err := core.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "job-name=" + name})
		if err != nil {
			return err
		}
		running, waits := 0, ""
		for i := range all.Items {
			if pod := &all.Items[i]; pod.Status.Phase == corev1.PodRunning {
				running++
			} else {
				waits += fmt.Sprintf("; %s on %q with gates %v: %v", pod.Name, pod.Spec.NodeName, pod.Spec.SchedulingGates, pod.Status.Conditions)
			}
		}
		if running != 2 {
			return fmt.Errorf("%d of 2 pods run%s", running, waits)
		}
		return nil
	})
}
