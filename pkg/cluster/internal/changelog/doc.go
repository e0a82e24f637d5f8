// Package changelog keeps a bounded list of what has changed, so that each of several followers learns what has changed since it
// looked last, at the cost of the changes alone.
//
// Invariants:
//
//  1. Positions only grow. An entry keeps its position.
//  2. A follower that has fallen behind the bound is told so; it must take everything for changed.
package changelog
