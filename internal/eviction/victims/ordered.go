package victims

import (
	"slices"

	"github.com/google/btree"
)

// orderedSet keeps items in an order that is worked out when it is first needed: as long as items are only added and
// the least is asked for, nothing is sorted. Then the items are in a balanced tree. What it returns does not depend on
// when it was sorted. A function compares the items, no two of which are equal.
type orderedSet[T any] struct {
	compare  func(a, b T) int
	unsorted []T // until tree is made
	least    T   // of them
	tree     *btree.BTreeG[T]
}

// newOrderedSet returns an empty set.
func newOrderedSet[T any](compare func(a, b T) int) *orderedSet[T] {
	return &orderedSet[T]{compare: compare}
}

// Add adds an item that is not in the set.
func (s *orderedSet[T]) Add(item T) {
	if s.tree != nil {
		s.tree.ReplaceOrInsert(item)
		return
	}
	if len(s.unsorted) == 0 || s.compare(item, s.least) < 0 {
		s.least = item
	}
	s.unsorted = append(s.unsorted, item)
}

// Remove removes an item.
func (s *orderedSet[T]) Remove(item T) { s.sorted().Delete(item) }

// Min returns the least item. ok is false if there is none.
func (s *orderedSet[T]) Min() (least T, ok bool) {
	if s.tree != nil {
		return s.tree.Min()
	}
	return s.least, len(s.unsorted) > 0
}

// All visits the items in their order until visit returns false.
func (s *orderedSet[T]) All(visit func(T) bool) { s.sorted().Ascend(visit) }

// From is All from one item on.
func (s *orderedSet[T]) From(first T, visit func(T) bool) {
	s.sorted().AscendGreaterOrEqual(first, visit)
}

// branching is the number of children of a node of the tree. Items are small.
const branching = 32

func (s *orderedSet[T]) sorted() *btree.BTreeG[T] {
	if s.tree == nil {
		s.tree = btree.NewG(branching, func(a, b T) bool { return s.compare(a, b) < 0 })
		slices.SortFunc(s.unsorted, s.compare)
		for _, item := range s.unsorted {
			s.tree.ReplaceOrInsert(item)
		}
		s.unsorted = nil
	}
	return s.tree
}
