package queuetree

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Tree is all queues. They belong to the cache, and must not be changed.
type Tree struct {
	Sorted   []*scheduling.Queue // by name
	ByName   map[string]*scheduling.Queue
	children map[string][]*scheduling.Queue // by the name of the parent, sorted by name
}

// List reads the queues.
func List(ctx context.Context, from client.Reader) (*Tree, error) {
	list := &scheduling.QueueList{}
	if err := from.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing queues: %w", err)
	}
	queues := make([]*scheduling.Queue, len(list.Items))
	for i := range list.Items {
		queues[i] = &list.Items[i]
	}
	return New(queues), nil
}

// New makes a tree of queues.
func New(queues []*scheduling.Queue) *Tree {
	t := &Tree{ByName: make(map[string]*scheduling.Queue, len(queues)), children: map[string][]*scheduling.Queue{}}
	t.Sorted = slices.SortedFunc(slices.Values(queues), func(a, b *scheduling.Queue) int { return cmp.Compare(a.Name, b.Name) })
	for _, queue := range t.Sorted {
		t.ByName[queue.Name] = queue
		if !IsRoot(queue) {
			t.children[ParentOf(queue)] = append(t.children[ParentOf(queue)], queue)
		}
	}
	return t
}

// With returns the tree as it is when the queue has been written.
func (t *Tree) With(queue *scheduling.Queue) *Tree {
	others := slices.DeleteFunc(slices.Clone(t.Sorted), func(other *scheduling.Queue) bool { return other.Name == queue.Name })
	return New(append(others, queue))
}

// Below returns the queues directly below one.
func (t *Tree) Below(name string) []*scheduling.Queue { return t.children[name] }

// IsRoot says whether a queue is the one above all others.
func IsRoot(queue *scheduling.Queue) bool { return queue.Name == scheduling.RootQueue }

// IsOpen says whether a queue takes new work. One that the queue controller has not seen yet is about to be open.
func IsOpen(queue *scheduling.Queue) bool {
	return queue.Status.State == scheduling.QueueStateOpen || queue.Status.State == ""
}

// ParentOf is the name of the queue above one; root has none.
func ParentOf(queue *scheduling.Queue) string {
	if IsRoot(queue) {
		return ""
	}
	return cmp.Or(queue.Spec.Parent, scheduling.RootQueue)
}

// NoRoot is what LevelsAbove says of a queue from which no way leads up to root.
const NoRoot = -1

// LevelsAbove counts the steps from a queue up to root. A step to root is one even while root does not exist yet.
func (t *Tree) LevelsAbove(queue *scheduling.Queue) int {
	for levels := 1; levels <= len(t.Sorted); levels++ {
		parent := ParentOf(queue)
		if parent == scheduling.RootQueue {
			return levels
		}
		if queue = t.ByName[parent]; queue == nil {
			return NoRoot
		}
	}
	return NoRoot
}

// LevelsBelow counts the levels of queues below one that is not below itself.
func (t *Tree) LevelsBelow(name string) int {
	deepest := 0
	for _, child := range t.Below(name) {
		deepest = max(deepest, 1+t.LevelsBelow(child.Name))
	}
	return deepest
}

// descendants calls f for every queue below one.
func (t *Tree) descendants(name string, f func(*scheduling.Queue)) {
	visited := map[string]bool{name: true}
	var visit func(string)
	visit = func(name string) {
		for _, child := range t.Below(name) {
			if !visited[child.Name] {
				visited[child.Name] = true
				f(child)
				visit(child.Name)
			}
		}
	}
	visit(name)
}

// Sums says where a queue of the tree, its siblings, or those below it want more than the queue above them has. What
// a queue does not bound is bounded by nothing; root bounds nothing, because it stands for the cluster.
func (t *Tree) Sums(queue *scheduling.Queue) field.ErrorList {
	var problems field.ErrorList
	path := field.NewPath("spec")
	for _, name := range slices.Sorted(maps.Keys(queue.Spec.Capability)) {
		own := queue.Spec.Capability[name]
		if above, bound := t.ceilingAbove(queue, name); above != nil && own.Cmp(bound) > 0 {
			problems = append(problems, field.Invalid(path.Child("capability").Key(string(name)), own.String(),
				fmt.Sprintf("queue %s capability[%s]=%s exceeds its ancestor's capability=%s: queue %s above it has no more",
					queue.Name, name, own.String(), bound.String(), above.Name)))
		}
		t.descendants(queue.Name, func(below *scheduling.Queue) {
			if theirs, is := below.Spec.Capability[name]; is && theirs.Cmp(own) > 0 {
				problems = append(problems, field.Invalid(path.Child("capability").Key(string(name)), own.String(),
					fmt.Sprintf("queue %s capability[%s]=%s is smaller than its descendants' max capability=%s: queue %s below it has that",
						queue.Name, name, own.String(), theirs.String(), below.Name)))
			}
		})
	}
	if parent := t.ByName[ParentOf(queue)]; parent != nil && !IsRoot(parent) {
		problems = append(problems, t.overcommitted(parent, func(kind string, name corev1.ResourceName, total, bound resource.Quantity) *field.Error {
			own := listOf(kind, queue)[name]
			if own.IsZero() {
				return nil // it is not this queue that asks for too much
			}
			return field.Invalid(pathOf(kind).Key(string(name)), own.String(),
				fmt.Sprintf("parent queue %s validation failed: sum of children's %s (%s %s) exceeds parent's %s limit (%s %s): with it the queues below %s have %s, and %s has only %s",
					parent.Name, kind, name, total.String(), kind, name, bound.String(), parent.Name, total.String(), parent.Name, bound.String()))
		})...)
	}
	return append(problems, t.overcommitted(queue, func(kind string, name corev1.ResourceName, total, bound resource.Quantity) *field.Error {
		return field.Invalid(pathOf(kind).Key(string(name)), bound.String(), fmt.Sprintf("queue %s validation failed: sum of children's %s (%s %s) exceeds parent's %s limit (%s %s): the queues below it have %s together",
			queue.Name, kind, name, total.String(), kind, name, bound.String(), total.String()))
	})...)
}

// ceilingAbove returns the nearest queue above one that bounds the resource, and its bound.
func (t *Tree) ceilingAbove(queue *scheduling.Queue, name corev1.ResourceName) (*scheduling.Queue, resource.Quantity) {
	for range len(t.Sorted) {
		queue = t.ByName[ParentOf(queue)]
		if queue == nil || IsRoot(queue) {
			break
		}
		if bound, is := queue.Spec.Capability[name]; is {
			return queue, bound
		}
	}
	return nil, resource.Quantity{}
}

// The parts of a queue that those below it share.
const deserved, guarantee = "deserved", "guarantee"

func listOf(kind string, queue *scheduling.Queue) corev1.ResourceList {
	if kind == guarantee {
		return queue.Spec.Guarantee.Resource
	}
	return queue.Spec.Deserved
}

func pathOf(kind string) *field.Path {
	if kind == guarantee {
		return field.NewPath("spec", "guarantee", "resource")
	}
	return field.NewPath("spec", "deserved")
}

// overcommitted asks for the words about every resource of which the queues directly below one deserve, or are
// guaranteed, more than the queue itself or, where it does not say, than its capability.
func (t *Tree) overcommitted(queue *scheduling.Queue,
	words func(kind string, name corev1.ResourceName, total, bound resource.Quantity) *field.Error) field.ErrorList {
	var problems field.ErrorList
	for _, kind := range []string{deserved, guarantee} {
		totals := corev1.ResourceList{}
		for _, child := range t.Below(queue.Name) {
			for name, quantity := range listOf(kind, child) {
				total := totals[name].DeepCopy()
				total.Add(quantity)
				totals[name] = total
			}
		}
		for _, name := range slices.Sorted(maps.Keys(totals)) {
			bound, is := listOf(kind, queue)[name]
			if !is {
				bound, is = queue.Spec.Capability[name]
			}
			if total := totals[name]; is && total.Cmp(bound) > 0 {
				if problem := words(kind, name, total, bound); problem != nil {
					problems = append(problems, problem)
				}
			}
		}
	}
	return problems
}
