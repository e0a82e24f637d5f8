package queuetree

import (
	"cmp"
	"fmt"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
)

// Link sets Parent, Children and Problem of all queues. A queue whose parent is missing, or that is its own ancestor,
// is left out of the tree, with the reason in Problem. Other queues are not affected.
func Link(queues []*cluster.Queue, root *cluster.Queue) {
	byName := make(map[string]*cluster.Queue, len(queues))
	for _, q := range queues {
		byName[q.Name] = q
		q.Parent, q.Children, q.Problem = nil, q.Children[:0], ""
	}
	for _, q := range queues {
		if q != root {
			q.Parent = byName[parentName(q)]
		}
	}
	findProblems(queues, root)
	for _, q := range queues {
		if q.Problem != "" {
			q.Parent = nil
		} else if q.Parent != nil {
			q.Parent.Children = append(q.Parent.Children, q)
		}
	}
}

// findProblems notes for every queue why it has no path to the root.
func findProblems(queues []*cluster.Queue, root *cluster.Queue) {
	own := map[*cluster.Queue]string{}
	for _, q := range queues {
		switch {
		case q == root:
		case q.Parent == nil:
			own[q] = fmt.Sprintf("its parent %q does not exist", parentName(q))
		case isBelowItself(q, len(queues)):
			own[q] = "it is below itself: its parents form a cycle"
		}
	}
	for _, q := range queues {
		a := q
		for a != root && own[a] == "" {
			a = a.Parent
		}
		switch a {
		case root:
		case q:
			q.Problem = own[q]
		default:
			q.Problem = fmt.Sprintf("queue %s above it: %s", a.Name, own[a])
		}
	}
}

// isBelowItself reports whether a queue is its own ancestor, among so many queues.
func isBelowItself(q *cluster.Queue, queues int) bool {
	a := q.Parent
	// From a queue below a cycle, the path never returns to this queue.
	for range queues {
		if a == nil || a == q {
			break
		}
		a = a.Parent
	}
	return a == q
}

func parentName(q *cluster.Queue) string {
	return cmp.Or(q.Object.Spec.Parent, schedulingv1beta1.RootQueue)
}
