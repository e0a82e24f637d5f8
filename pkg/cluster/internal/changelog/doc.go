// Package changelog keeps a limited list of changes, so that each of several readers learns what has changed since its
// last look, at a cost that depends only on the number of changes.
//
// Invariants:
//
//  1. Positions only grow. An entry keeps its position.
//  2. A reader that is behind the dropped entries is told so, and must assume that everything has changed.
package changelog
