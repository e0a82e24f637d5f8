// Package ordered keeps items in an order that is worked out when it is first needed.
//
// Main type: [Set]. As long as items are only added and the least is asked for, nothing is sorted. Then the items are in a balanced tree.
//
// Invariants:
//
//  1. What a set returns does not depend on when it was sorted.
//  2. No two items compare as equal.
//
// This package must not know what the items are.
package ordered
