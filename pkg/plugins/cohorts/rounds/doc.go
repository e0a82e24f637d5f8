// Package rounds decides about the heads of all queues: who is admitted, who is admitted when others have left, and who waits
// (rules C8, C12 and C19).
//
// Main types: a [Cycle] runs rounds until one decides nothing. In a round each head is nominated on the state at its
// beginning. Then the nominations are decided one after another, on the state as it becomes. When one has been decided, the next head of its
// queue is nominated at once and takes its place in the order. The caller learns of each decision by a [workload.Nomination].
//
// Invariants:
//
//  1. Quota and nodes are taken together: a Workload is charged if and only if nodes are promised to all of its pods (C1).
//
//  2. What is charged in a round was available, with the victims of the round gone. So two heads never get the same room. What is admitted
//     at once was available beside the victims, too.
//
//  3. A victim belongs to a Workload that fits after it has left (S1).
//
//  4. Quota that is withheld for a blocked head is free again when the cycle ends. For the head of a strict queue it is withheld in
//     each round from those whose turn comes later, until that Workload is admitted or is not the head any more.
//
//  5. A round that neither takes, evicts nor leaves flavors to be tried is the last one. Each Workload is refused at most once
//     for each flavor, so a cycle ends.
//
//  6. The order holds over all Workloads of a tree, not only over first heads. One that comes later in it, by priority or by share, does
//     not go before the second of another queue.
//
// This package must not know sessions, API objects, or the clock.
package rounds
