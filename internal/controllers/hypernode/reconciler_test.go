package hypernode

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/topology"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
	"hekla.sh/hekla/test/fixture"
)

// statuses are what the HyperNodes of a tree say of themselves, by name, without times.
func statuses(tree *topology.Tree) map[string]topologyv1alpha1.HyperNodeStatus {
	said := map[string]topologyv1alpha1.HyperNodeStatus{}
	for _, h := range tree.HyperNodes() {
		object := h.Object.DeepCopy()
		setStatus(object, h)
		said[h.Name] = object.Status
	}
	return said
}

// status is what a HyperNode of the first generation should say.
func status(nodes int64, is metav1.ConditionStatus, reason, message string) topologyv1alpha1.HyperNodeStatus {
	return topologyv1alpha1.HyperNodeStatus{NodeCount: nodes, Conditions: []metav1.Condition{{
		Type: "Ready", Status: is, Reason: reason, Message: message, ObservedGeneration: 1,
	}}}
}

func TestAStatusCountsTheNodesOrSaysWhatIsWrong(t *testing.T) {
	broken := fixture.HyperNode("broken", 1)
	broken.Spec.Members = []topologyv1alpha1.MemberSpec{{Type: topologyv1alpha1.MemberTypeNode, Selector: topologyv1alpha1.MemberSelector{
		RegexMatch: &topologyv1alpha1.RegexMatch{Pattern: "rack-("},
	}}}
	tree := topology.New()
	for _, name := range []string{"n0", "n1", "n2"} {
		tree.SetNode(name, nil)
	}
	for _, h := range []*topologyv1alpha1.HyperNode{
		fixture.HyperNode("rack", 1, "n0", "n1", "n9"), fixture.HyperNode("row", 2, "@rack", "n2"), fixture.HyperNode("empty", 1),
		fixture.HyperNode("upside-down", 1, "@row"), broken,
	} {
		h.Generation = 1
		tree.Set(h)
	}
	tree.Settle()
	want := map[string]topologyv1alpha1.HyperNodeStatus{
		"rack":  status(2, metav1.ConditionTrue, "InForce", ""),
		"row":   status(3, metav1.ConditionTrue, "InForce", ""),
		"empty": status(0, metav1.ConditionTrue, "InForce", ""),
		"upside-down": status(0, metav1.ConditionFalse, "Invalid",
			"its member HyperNode row has tier 2, and members must be of lower tiers than 1"),
		"broken": status(0, metav1.ConditionFalse, "Invalid",
			"spec.members[0].selector.regexMatch.pattern: Invalid value: \"rack-(\": member regexMatch pattern is invalid: error parsing regexp: missing closing ): `rack-(`"),
	}
	if diff := cmp.Diff(want, statuses(tree), cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
		t.Errorf("said is (-want +got):\n%s", diff)
	}
}

func TestAStatusThatIsTrueIsNotWrittenAgain(t *testing.T) {
	object := fixture.HyperNode("rack", 1)
	h := &topology.HyperNode{Nodes: []string{"n0"}}
	setStatus(object, h)
	others := metav1.Condition{Type: "Checked", Status: metav1.ConditionTrue, Reason: "ByHand"}
	object.Status.Conditions = append(object.Status.Conditions, others)
	before := object.DeepCopy()
	if setStatus(object, h); !apiequality.Semantic.DeepEqual(before.Status, object.Status) {
		t.Errorf("it was %+v and is %+v", before.Status, object.Status)
	}
	h.Problem, h.Nodes = strings.Repeat("x", maxMessage+1), nil
	setStatus(object, h)
	if ready := object.Status.Conditions[0]; ready.Status != metav1.ConditionFalse || len(ready.Message) != maxMessage || object.Status.NodeCount != 0 {
		t.Errorf("a long message is not cut to what the API server takes: %d characters, status %s", len(ready.Message), ready.Status)
	}
	if len(object.Status.Conditions) != 2 || object.Status.Conditions[1] != others {
		t.Errorf("the condition of another is %+v", object.Status.Conditions[1:])
	}
}
