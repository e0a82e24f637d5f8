// Package revealed reads requests again when resources have come to be known.
//
// A model has a limited number of resources that only requests name, see [resources.MaxInvented]. Beyond it all of them count as
// [resources.Further], of which no node has any. If a node, a queue or a DeviceClass names one of these later, pods and jobs that ask
// for it ask for it by its name from then on.
//
// Invariants:
//
//  1. After [Settle] no request counts as Further what has a dimension of its own.
//  2. While no resource is revealed, Settle costs nothing.
//
// This package must not know which objects name resources.
package revealed
