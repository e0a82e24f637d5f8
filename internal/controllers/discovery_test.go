package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/controllers/hypernode/discovery"
	topology "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	"hekla.sh/hekla/test/fixture"
)

// discovers is the configuration of the tests: racks in rows.
const discovers = `
networkTopologyDiscovery:
- source: ufm
  enabled: true
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      dc:
      - nodeLabel: row.example.com
      - nodeLabel: rack.example.com
      - nodeLabel: kubernetes.io/hostname
`

// rackNode is a node of a rack in row r.
func rackNode(name, rack string) *corev1.Node {
	n := fixture.Node(name, "cpu=1")
	n.Labels = map[string]string{"rack.example.com": rack, "row.example.com": "r"}
	return n
}

// discovered waits until the HyperNodes that were discovered are "rack=a n0 n1", sorted, and returns them.
func discovered(t *testing.T, want ...string) []topology.HyperNode {
	t.Helper()
	hyperNodes := &topology.HyperNodeList{}
	apitest.Eventually(t, func(ctx context.Context) error {
		err := api.List(ctx, hyperNodes, client.MatchingLabels{topology.NetworkTopologySourceLabelKey: discovery.SourceLabel})
		if err != nil {
			return err
		}
		var got []string
		for _, h := range hyperNodes.Items {
			line := strings.TrimSuffix(h.Spec.TierName, ".example.com") + "=" + h.Labels[h.Spec.TierName]
			for _, m := range h.Spec.Members {
				line += " " + strings.TrimRight(m.Selector.ExactMatch.Name, "bcdfghjklmnpqrstvwxz2456789")
			}
			got = append(got, line)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("discovered are %q, want %q", got, want)
		}
		return nil
	})
	return hyperNodes.Items
}

func TestHyperNodesFollowTheLabelsOfNodes(t *testing.T) {
	createForTest(t, rackNode("disc-a0", "a"), rackNode("disc-a1", "a"), rackNode("disc-b0", "b"), fixture.HyperNode("disc-by-hand", 3, "disc-a0"))
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "volcano-controller-configmap"},
		Data: map[string]string{discovery.ConfigKey: discovers}}
	createForTest(t, configMap)
	t.Cleanup(func() { // nothing is left for other tests
		_ = api.DeleteAllOf(context.Background(), &topology.HyperNode{}, client.HasLabels{topology.NetworkTopologySourceLabelKey})
	})
	const rack = "hypernode-dc-tier1-"
	discovered(t, "rack=a disc-a0 disc-a1", "rack=b disc-b0", "row=r "+rack+" "+rack)
	awaitEvent(t, configMap, discovery.ReasonSourceNotSupported, `networkTopologyDiscovery[0].source: "ufm" is not supported`)

	// A node moves, one comes, one goes; what a user makes of a discovered one is put right, what is deleted comes
	// back.
	change(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "disc-a1"}}, func(n *corev1.Node) { n.Labels["rack.example.com"] = "b" })
	createForTest(t, rackNode("disc-c0", "c"))
	all := discovered(t, "rack=a disc-a0", "rack=b disc-a1 disc-b0", "rack=c disc-c0", "row=r "+rack+" "+rack+" "+rack)
	for i := range all {
		awaitHyperNode(t, all[i].Name, map[string]int64{"a": 1, "b": 2, "c": 1, "r": 4}[all[i].Labels[all[i].Spec.TierName]], topology.ReasonInForce, "")
	}
	change(t, &all[0], func(h *topology.HyperNode) { h.Spec.Members = nil })
	if err := api.Delete(apitest.Context(t), &all[1]); err != nil {
		t.Fatal(err)
	}
	if err := api.Delete(apitest.Context(t), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "disc-c0"}}); err != nil {
		t.Fatal(err)
	}
	all = discovered(t, "rack=a disc-a0", "rack=b disc-a1 disc-b0", "row=r "+rack+" "+rack)

	// What is wrong changes nothing and is said; what was read before it stays in force.
	change(t, configMap, func(c *corev1.ConfigMap) {
		c.Data[discovery.ConfigKey] = strings.ReplaceAll(discovers, "nodeLabel: rack", "nodeLable: rack")
	})
	awaitEvent(t, configMap, discovery.ReasonInvalidConfiguration, `there is no key "nodeLable"; there are nodeLabel`)
	createForTest(t, rackNode("disc-c1", "b"))
	discovered(t, "rack=a disc-a0", "rack=b disc-a1 disc-b0 disc-c1", "row=r "+rack+" "+rack)

	// Without a ConfigMap nothing is discovered, and nothing is taken away.
	if err := api.Delete(apitest.Context(t), configMap); err != nil {
		t.Fatal(err)
	}
	untouched(t, "disc-by-hand")
	apitest.Eventually(t, func(context.Context) error {
		log, err := os.ReadFile(process.LogPath)
		if err == nil && !strings.Contains(string(log), "HyperNodes are not discovered any more") {
			err = errors.New("that the ConfigMap is gone is not in the log yet")
		}
		return err
	})
	for _, name := range []string{"disc-a0", "disc-a1", "disc-b0", "disc-c1"} {
		if err := api.Delete(apitest.Context(t), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range all {
		awaitHyperNode(t, all[i].Name, 0, topology.ReasonInForce, "")
	}
	discovered(t, "rack=a disc-a0", "rack=b disc-a1 disc-b0 disc-c1", "row=r "+rack+" "+rack)
}

// untouched fails if anything but its status was changed on a HyperNode.
func untouched(t *testing.T, name string) {
	t.Helper()
	h := &topology.HyperNode{}
	if err := api.Get(apitest.Context(t), client.ObjectKey{Name: name}, h); err != nil {
		t.Fatal(err)
	}
	if h.Generation != 1 || len(h.Labels) > 0 || h.DeletionTimestamp != nil {
		t.Errorf("HyperNode %s was changed: %+v", name, h)
	}
}
