package queuetree_test

import (
	"testing"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/internal/queuetree"
)

func TestOnlyQueuesWithAPathToTheRootAreLinked(t *testing.T) {
	queue := func(name, parent string) *cluster.Queue {
		q := &cluster.Queue{Object: &schedulingv1beta1.Queue{Spec: schedulingv1beta1.QueueSpec{Parent: parent}}}
		q.Name = name
		return q
	}
	root := queue(schedulingv1beta1.RootQueue, "")
	all := []*cluster.Queue{root, queue("a", ""), queue("b", "a"), queue("c", "nowhere"), queue("d", "c"), queue("x", "y"), queue("y", "x")}
	queuetree.Link(all, root)
	problems := map[string]string{
		"c": `its parent "nowhere" does not exist`,
		"d": `queue c above it: its parent "nowhere" does not exist`,
		"x": "it is below itself: its parents form a cycle",
		"y": "it is below itself: its parents form a cycle",
	}
	for _, q := range all {
		if q.Problem != problems[q.Name] {
			t.Errorf("the problem of %s is %q, want %q", q.Name, q.Problem, problems[q.Name])
		}
		if isLinked := q.Parent != nil; isLinked != (q != root && problems[q.Name] == "") {
			t.Errorf("%s has a parent: %t", q.Name, isLinked)
		}
	}
	if a := all[1]; len(root.Children) != 1 || root.Children[0] != a || len(a.Children) != 1 || a.Children[0] != all[2] {
		t.Errorf("below the root are %v, below a %v", root.Children, a.Children)
	}
}
