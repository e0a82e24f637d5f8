// Package nodes has the stand-ins of Workloads: what holds the nodes of a Workload while its pods are not there (rules
// C1 and C6). No other package makes, places or drops them.
//
// Main types: [Places] answers for one session what decisions about Workloads ask of the nodes, as a [workload.Nodes].
// The pods of a Workload that does not run are stand-ins, which a transaction adds to the model, places, and takes away
// again. A [Keeper] keeps the nodes that Workloads hold: pods take the places of their stand-ins, lost ones get
// stand-ins again, and Workloads without quota give their nodes up. [Forms] are the forms of these stand-ins: a pod
// set's template with what its flavors add. They are kept from session to session as long as they are asked for.
//
// Invariants of the answers:
//
//  1. After each answer the model is as it was, apart from Workloads that have left and not returned. After
//     [Places.End] none has.
//
//  2. While a Workload has left, pods are placed on nodes as they will be. Otherwise they are placed on what is free
//     now.
//
//  3. What [Places.Promise] has placed stays in an open transaction until [Places.Keep] or [Places.Plan] ends it.
//
//  4. A Workload with a pod that is being bound does not leave ([Places.Stays]).
//
//  5. Of the queues of Volcano only capabilities are asked: what a tree of ClusterQueues holds counts in the queue that
//     it hangs below (rule C22).
//
// Invariants of what is kept:
//
//  6. A Workload that holds quota has a node for each of its places that is still needed, as status.reclaimablePods
//     says: that of a pod, until the pod is gone, or of a stand-in. A pod that has ended leaves its place to the next.
//     While others must leave first, a plan promises the nodes.
//
//  7. A pod of a Workload gets a node only in the place of a stand-in of its pod set.
//
//  8. The admission names the nodes of stand-ins so that others find them: a scheduler that begins, and who steers pods
//     of other schedulers. They go through its nodes in order, and count the pods that are there. Places that are not
//     needed any more come last.
//
//  9. Plans of Workloads begin and end as the reader of Workloads says. Other actions hold and respect what is
//     promised.
//
// This package must not know ClusterQueues, their quota, or the order of Workloads.
package nodes
