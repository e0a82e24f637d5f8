// Package intake watches the cluster, and keeps changes as events until the scheduler takes them.
//
// Main type: [Inbox].
//
// Invariants:
//
//  1. [Inbox.Take] only touches memory.
//  2. The inbox holds at most two events for each object, however long it is not emptied: the deletion of the object
//     that it has replaced, and its current state. Take never returns a state that is replaced already.
//  3. The first Take after [Inbox.WaitSynced] returns the whole cluster, from lists that are no older than the call of
//     [Inbox.Start].
//  4. Fields that no decision reads are dropped before an object is cached.
//
// This package must not know the model, nor what an event changes there.
package intake
