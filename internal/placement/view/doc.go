// Package view shows the nodes of a model as a placement engine sees them: as they are now, or, in an outlook, as they
// will be. Then evicted pods are gone and pipelined tasks are placed.
//
// Main type: a [View] says how much is free on a node, and shows the node to plugins. It also has the amounts of all
// nodes in columns, for classes that look at all of them. Nodes with the same amounts are alike: a class that looks at
// nothing else looks at one of them.
//
// Invariants:
//
//  1. Room and Node are always up to date. The columns are those of the last call of Follow, the groups of nodes that
//     are alike those of the last call of FollowAlike.
//  2. What a view says depends only on the model.
//
// This package must not know classes of pods, plugins or scores.
package view
