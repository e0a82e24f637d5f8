// Package cohorts decides which of the Workloads that wait are admitted, which are admitted when others have left, and
// which go on waiting (rules C8, C12 and C19). It is the engine behind the action admit.
//
// Main type: a [Cycle] runs rounds over the heads of all ClusterQueues until one decides nothing. Parts of the work are
// packages of their own:
//
//   - flavors: which flavors a Workload gets, and with how many pods;
//   - victims: which Workloads are evicted for it, by classic preemption or by fair sharing;
//   - order: which of the heads of several queues is decided first.
//
// How it decides. In a round each head is nominated, on the state at the beginning of the round: it is given flavors,
// and if quota or nodes are short, victims are looked for. Nothing is taken yet. Then the nominations are decided one
// after another, in order, on the state as it becomes. So a nomination may find that an earlier one took its room. It
// is then tried with its own flavors once more, as if the victims of the round had left, and if it still does not fit,
// it is left for the next round. When one has been decided, the next head of its queue is nominated at once and takes
// its place in the order. The caller learns of each decision by a [workload.Nomination].
//
// Quota and nodes are one question. The tree of quotas is asked first, since that is a few additions. Nodes are asked
// through [workload.Nodes], which places stand-ins for the pods. A flavor without nodes for the pods is no better than
// one without quota: the search goes on with the next.
//
// Three ways to be admitted. A Workload that fits now takes quota and nodes, and starts. One that fits when its victims
// have left is promised both, and starts then (Preempting). One that fits when the victims of others have left is
// promised both, too, and evicts no more (Deferred). All three are charged at once, so that later nominations count
// with them.
//
// Most Workloads are never tried. One that was refused is looked at again only when something has changed that it
// lacks, see [workload.Queues]. All of the same queue and shape share a refusal.
//
// What a head that cannot be admitted is entitled to is withheld from other queues, so that smaller Workloads do not
// take it bit by bit. That ends with the cycle. For the head of a strict queue it holds as long as the Workload is the
// head.
//
// Invariants:
//
//  1. Quota and nodes are taken together: a Workload is charged if and only if nodes are promised to all of its pods
//     (C1).
//
//  2. What is charged in a round was available, with the victims of the round gone. So two heads never get the same
//     room. What is admitted at once was available with the victims still there, too.
//
//  3. A victim belongs to a Workload that fits after it has left (S1).
//
//  4. Quota that is withheld for a blocked head is free again when the cycle ends. For the head of a strict queue it is
//     withheld in each round from those whose turn comes later, until that Workload is admitted or is not the head any
//     more.
//
//  5. A round that neither takes, evicts nor leaves flavors to be tried is the last one. Each Workload is refused at
//     most once for each flavor, so a cycle ends.
//
//  6. The order holds over all Workloads of a tree, not only over first heads. One that comes later in it, by priority
//     or by share, does not go before the second of another queue.
//
// This package must not know sessions, API objects, or the clock.
package cohorts
