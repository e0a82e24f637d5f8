package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"
	"hekla.sh/hekla/test/installed"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	topology "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

const discovered = topology.NetworkTopologySourceLabelKey + "=label"

// inRacks gives four nodes their racks, two each, and the scheduler the plugin that heeds them. All of it ends with the
// test.
func inRacks(t *testing.T, key string) {
	t.Helper()
	haveNodes(t, 4)
	names := nodeNames(t)
	t.Cleanup(func() {
		for _, arguments := range [][]string{
			{"label", "nodes", "--all", key + "-"},
			{"delete", "configmap", "--namespace=" + installed.Namespace, "--ignore-not-found", "volcano-controller-configmap"},
			{"delete", "hypernodes", "--selector=" + discovered},
		} {
			if _, err := system.Kubectl(context.Background(), arguments...); err != nil {
				t.Error(err)
			}
		}
	})
	for i, rack := range []string{"a", "b"} {
		kubectl(t, "label", "nodes", names[2*i], names[2*i+1], key+"="+rack)
	}
	configMaps := core.CoreV1().ConfigMaps(installed.Namespace)
	object, err := configMaps.Get(t.Context(), "volcano-scheduler-configmap", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const last = "- name: binpack\n"
	before := object.Data["volcano-scheduler.conf"]
	object.Data["volcano-scheduler.conf"] = strings.Replace(before, last, last+"  - name: network-topology-aware\n", 1)
	if object.Data["volcano-scheduler.conf"] == before {
		t.Fatalf("there is no plugin binpack in\n%s", before)
	}
	if _, err := configMaps.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func theGangStaysInItsRack(t *testing.T) {
	const key = "example.com/rack"
	inRacks(t, key)
	apply(t, "09-network-topology.yaml")
	apitest.Eventually(t, func(ctx context.Context) error {
		found, err := batch.TopologyV1alpha1().HyperNodes().List(ctx, metav1.ListOptions{LabelSelector: discovered})
		if err != nil {
			return err
		}
		isOf := map[string]bool{} // two nodes of a rack
		for _, h := range found.Items {
			isOf[h.Labels[key]] = h.Spec.TierName == key && h.Status.NodeCount == 2
		}
		if len(found.Items) != 2 || !isOf["a"] || !isOf["b"] {
			return fmt.Errorf("the HyperNodes are %+v", found.Items)
		}
		return nil
	})
	awaitRunning(t, "close", 4)
	pods, err := podsOf(t.Context(), "close")
	if err != nil {
		t.Fatal(err)
	}
	racks := map[string]int{}
	for i := range pods {
		node, err := core.CoreV1().Nodes().Get(t.Context(), pods[i].Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		racks[node.Labels[key]]++
	}
	if racks["a"] != 4 && racks["b"] != 4 {
		t.Errorf("the pods are in the racks %v, want all in one", racks)
	}

	awaitReason(t, "too-large", "GangShort", "8 of the 9 pods", "all must be within one HyperNode of tier", "the best is hypernode-datacenter-tier1-")
	waiting, err := podsOf(t.Context(), "too-large")
	if err != nil {
		t.Fatal(err)
	}
	for i := range waiting {
		if waiting[i].Spec.NodeName != "" {
			t.Errorf("%s is bound, and the gang cannot start", waiting[i].Name)
		}
	}
	// It waits for the rack alone: once all nodes are in one, it starts.
	kubectl(t, "label", "nodes", "--all", "--overwrite", key+"=a")
	awaitRunning(t, "too-large", 9)
}
