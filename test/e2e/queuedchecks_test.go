package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/test/apitest"
)

// oneCheck is an AdmissionCheck with a queue that asks for it.
const oneCheck = `
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: zones}
spec: {controllerName: example.com/zones}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: all}
spec:
  namespaceSelector: {}
  admissionChecksStrategy: {admissionChecks: [{name: zones}]}
  resourceGroups: [{coveredResources: [cpu], flavors: [{name: any, resources: [{name: cpu, nominalQuota: 4}]}]}]
---
`

// The test plays the controller of the check, which learns only after the reservation in which zone the Job may run.
func TestAJobRunsOnTheNodesThatItsAdmissionCheckAsksFor(t *testing.T) {
	haveQuotas(t)
	haveNodes(t, 2)
	ctx := t.Context()
	nodes, err := core.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	applyText(t, oneQueue+oneCheck)
	check, err := batch.KueueV1beta2().AdmissionChecks().Get(ctx, "zones", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	meta.SetStatusCondition(&check.Status.Conditions, metav1.Condition{Type: v1beta2.ActiveCondition, Status: metav1.ConditionTrue, Reason: "Active"})
	if _, err := batch.KueueV1beta2().AdmissionChecks().UpdateStatus(ctx, check, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	applyText(t, queuedJob("zoned", "all", 2, ""))
	w := awaitCondition(t, "zoned", v1beta2.QuotaReserved, metav1.ConditionTrue, "")
	places, err := settings.Nodes(w.Status.Admission.PodSetAssignments[0].TopologyAssignment)
	if err != nil || len(places) == 0 {
		t.Fatalf("it holds %v, %v", places, err)
	}
	other := "" // a node that it does not hold alone
	for i := range nodes.Items {
		if name := nodes.Items[i].Name; name != places[0].Node {
			other = name
		}
	}
	kubectl(t, "label", "node", other, "zone=other")
	t.Cleanup(func() {
		if _, err := system.Kubectl(context.Background(), "label", "node", other, "zone-"); err != nil {
			t.Error(err)
		}
	})
	apitest.Eventually(t, func(ctx context.Context) error {
		w, err := workloadOf(ctx, "zoned")
		if err != nil {
			return err
		}
		if len(w.Status.AdmissionChecks) != 1 {
			return fmt.Errorf("the checks are %+v", w.Status.AdmissionChecks)
		}
		state := &w.Status.AdmissionChecks[0]
		state.State, state.Message, state.LastTransitionTime = v1beta2.CheckReady, "", metav1.Now()
		state.PodSetUpdates = []v1beta2.PodSetUpdate{{Name: "main", NodeSelector: map[string]string{"zone": "other"}}}
		_, err = batch.KueueV1beta2().Workloads(w.Namespace).UpdateStatus(ctx, w, metav1.UpdateOptions{})
		return err
	})
	w = awaitCondition(t, "zoned", v1beta2.Admitted, metav1.ConditionTrue, "The workload is admitted")
	apitest.Eventually(t, func(ctx context.Context) error {
		pods, err := core.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "job-name=zoned"})
		if err != nil {
			return err
		}
		running := 0
		for i := range pods.Items {
			if p := &pods.Items[i]; p.Status.Phase == corev1.PodRunning && p.Spec.NodeName == other {
				running++
			}
		}
		if running != 2 || len(pods.Items) != 2 {
			return fmt.Errorf("%d of %d pods run on %s", running, len(pods.Items), other)
		}
		return nil
	})
	if places, err = settings.Nodes(w.Status.Admission.PodSetAssignments[0].TopologyAssignment); err != nil || len(places) != 1 || places[0].Node != other {
		t.Errorf("it names the nodes %v, %v", places, err)
	}
	if w, err = workloadOf(ctx, "zoned"); err != nil || meta.FindStatusCondition(w.Status.Conditions, v1beta2.Evicted) != nil {
		t.Errorf("it was evicted: %+v, %v", w, err)
	}
	nothingWasForbidden(t)
}
