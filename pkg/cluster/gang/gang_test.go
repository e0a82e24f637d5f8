package gang

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// pairs is a gang of subgroups of two, by a label, of which it needs one.
func pairs() *Gang {
	size, needed := int32(2), int32(1)
	g := &Gang{}
	g.Read(&schedulingv1beta1.PodGroup{Spec: schedulingv1beta1.PodGroupSpec{MinMember: 2, SubGroupPolicy: []schedulingv1beta1.SubGroupPolicySpec{
		{Name: "pair", SubGroupSize: &size, MinSubGroups: &needed, MatchLabelKeys: []string{"pair"}, LabelSelector: &metav1.LabelSelector{}}}}})
	return g
}

func TestASubgroupExistsWhileATaskIsAssignedToIt(t *testing.T) {
	g := pairs()
	first, second := g.Assign(map[string]string{"pair": "a"}), g.Assign(map[string]string{"pair": "a"})
	if first == nil || first != second || first.Tasks() != 2 || len(g.Subgroups()) != 1 {
		t.Fatalf("two tasks with one value are in %v and %v", first, second)
	}
	if none := g.Assign(nil); none != nil {
		t.Errorf("a task without the label is in subgroup %s", none.Name())
	}
	g.Unassign(first)
	if g.Unassign(first); len(g.Subgroups()) != 0 {
		t.Error("a subgroup without tasks is kept")
	}
}

func TestTasksOfBrokenSubgroupsDoNotHelpTheGangStart(t *testing.T) {
	g := pairs()
	for _, value := range []string{"a", "b"} { // two tasks run, and no pair is complete
		g.Add(Running, "worker", g.Assign(map[string]string{"pair": value}), +1)
	}
	if g.Ready() != 2 || g.Lacks() != 1 || g.KeepsSubgroupsWhole() {
		t.Errorf("ready %d, lacks %d, whole %t", g.Ready(), g.Lacks(), g.KeepsSubgroupsWhole())
	}
	g.Add(Running, "worker", g.Assign(map[string]string{"pair": "a"}), +1)
	if g.Lacks() != 0 {
		t.Errorf("with a complete pair it lacks %d", g.Lacks())
	}
}

func TestATaskMayNotLeaveAPairThatIsComplete(t *testing.T) {
	g := pairs()
	pair := g.Assign(map[string]string{"pair": "a"})
	g.Assign(map[string]string{"pair": "a"})
	g.Add(Running, "worker", pair, +2)
	g.Add(Running, "worker", nil, +1)
	if g.Keeps("worker", pair, Leaving{}) || !g.Keeps("worker", nil, Leaving{}) {
		t.Error("of three the lone one may leave, and none of the pair")
	}
	var leaving Leaving
	leaving.Add("worker", nil)
	if g.Keeps("worker", nil, leaving) {
		t.Error("with the lone one gone, the gang is at its minimum")
	}
	g.Add(Running, "worker", pair, -1)
	if g.Kept(map[*Subgroup]int{pair: 1}) {
		t.Error("the pair counts as kept after one of it has left")
	}
}
