package gang

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

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

// TestAGangIsWholeIfItLacksNothing changes tasks of two policies at random. What is kept with each change must be what
// is counted anew.
func TestAGangIsWholeIfItLacksNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := schedulingv1beta1.PodGroupSpec{MinMember: int32(rapid.IntRange(0, 4).Draw(t, "minMember"))}
		for _, name := range []string{"a", "b"} {
			size, needed := int32(rapid.IntRange(1, 3).Draw(t, "size")), int32(rapid.IntRange(0, 3).Draw(t, "needed"))
			spec.SubGroupPolicy = append(spec.SubGroupPolicy, schedulingv1beta1.SubGroupPolicySpec{Name: name, SubGroupSize: &size, MinSubGroups: &needed,
				MatchLabelKeys: []string{"value"}, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"policy": name}}})
		}
		g := &Gang{}
		g.Read(&schedulingv1beta1.PodGroup{Spec: spec})
		type task struct {
			leaf   *Subgroup
			status Status
		}
		var tasks []task
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			i := rapid.IntRange(-1, len(tasks)-1).Draw(t, "task")
			status := rapid.SampledFrom([]Status{Pending, Pipelined, Running, Releasing, Succeeded, Failed}).Draw(t, "status")
			switch {
			case i < 0:
				labels := map[string]string{"policy": rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "policy"),
					"value": rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "value")}
				tasks = append(tasks, task{g.Assign(labels), status})
				g.Add(status, "worker", tasks[len(tasks)-1].leaf, +1)
			case rapid.Bool().Draw(t, "isRemoved"):
				g.Add(tasks[i].status, "worker", tasks[i].leaf, -1)
				g.Unassign(tasks[i].leaf)
				tasks = slices.Delete(tasks, i, i+1)
			default:
				g.Add(tasks[i].status, "worker", tasks[i].leaf, -1)
				tasks[i].status = status
				g.Add(status, "worker", tasks[i].leaf, +1)
			}
			if lacks := g.Lacks(); g.IsWhole() != (lacks == 0) {
				t.Fatalf("it lacks %d tasks, and whole is %t", lacks, g.IsWhole())
			}
			for _, leaf := range g.Subgroups() {
				complete := 0
				for _, other := range g.Subgroups() {
					if other.of == leaf.of && other.Lacks() == 0 {
						complete++
					}
				}
				if needed := int(*spec.SubGroupPolicy[leaf.of.rank].MinSubGroups); leaf.IsNeeded() != (complete < needed) {
					t.Fatalf("%d subgroups of policy %s are whole, %d must be, and others are needed is %t", complete, leaf.name, needed, leaf.IsNeeded())
				}
			}
		}
	})
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
