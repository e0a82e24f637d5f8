package controllers_test

import (
	"context"
	"fmt"
	"testing"

	"hekla.sh/hekla/test/apitest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	topology "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	"hekla.sh/hekla/test/fixture"
)

// createForTest creates objects that belong to the whole cluster and removes them after the test.
func createForTest(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		object.SetUID("")
		object.SetCreationTimestamp(metav1.Time{})
		create(t, object)
		t.Cleanup(func() { _ = api.Delete(context.Background(), object) })
	}
}

// awaitHyperNode waits until a HyperNode counts so many nodes and says this of itself.
func awaitHyperNode(t *testing.T, name string, nodes int64, reason, message string) {
	t.Helper()
	h := &topology.HyperNode{}
	apitest.Eventually(t, func(ctx context.Context) error {
		if err := api.Get(ctx, client.ObjectKey{Name: name}, h); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(h.Status.Conditions, topology.ReadyCondition)
		if h.Status.NodeCount != nodes || ready == nil || ready.Reason != reason || ready.Message != message ||
			ready.ObservedGeneration != h.Generation {
			return fmt.Errorf("HyperNode %s has the status %+v", name, h.Status)
		}
		return nil
	})
}

func TestHyperNodesCountTheirNodesAndTellWhatIsWrong(t *testing.T) {
	createForTest(t, fixture.Node("hn-0", "cpu=1"), fixture.Node("hn-1", "cpu=1"), fixture.Node("hn-2", "cpu=1"))
	createForTest(t, fixture.HyperNode("hn-s0", 1, "hn-0", "hn-1"), fixture.HyperNode("hn-s1", 1, "rack=b", "hn-9"),
		fixture.HyperNode("hn-spine", 2, "@hn-s0", "@hn-s1"))
	awaitHyperNode(t, "hn-s0", 2, topology.ReasonInForce, "")
	awaitHyperNode(t, "hn-s1", 0, topology.ReasonInForce, "")
	awaitHyperNode(t, "hn-spine", 2, topology.ReasonInForce, "")

	// A node gets the label, one comes, and one goes.
	change(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "hn-2"}}, func(n *corev1.Node) {
		n.Labels = map[string]string{"rack": "b"}
	})
	createForTest(t, fixture.Node("hn-9", "cpu=1"))
	awaitHyperNode(t, "hn-s1", 2, topology.ReasonInForce, "")
	awaitHyperNode(t, "hn-spine", 4, topology.ReasonInForce, "")
	if err := api.Delete(apitest.Context(t), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "hn-1"}}); err != nil {
		t.Fatal(err)
	}
	awaitHyperNode(t, "hn-s0", 1, topology.ReasonInForce, "")

	// What breaks a rule is left out and says so, and all others are as before.
	createForTest(t, fixture.HyperNode("hn-wrong", 1, "@hn-spine", "hn-0"))
	awaitHyperNode(t, "hn-wrong", 0, topology.ReasonInvalid,
		"its member HyperNode hn-spine has tier 2, and members must be of lower tiers than 1")
	awaitHyperNode(t, "hn-spine", 3, topology.ReasonInForce, "")
	change(t, &topology.HyperNode{ObjectMeta: metav1.ObjectMeta{Name: "hn-wrong"}}, func(h *topology.HyperNode) {
		h.Spec.Members = nil
	})
	awaitHyperNode(t, "hn-wrong", 0, topology.ReasonInForce, "")
}
