// Package places answers what decisions about Workloads ask of nodes, on the model of the cluster (rules C1 and C6).
//
// Main types: [Places] is a [workload.Nodes] for one session. The pods of a Workload that does not run are stand-ins, which a
// transaction adds to the model, places, and takes away again. [Forms] are the forms of these stand-ins: a pod set's template with
// what its flavors add. They are kept from session to session.
//
// Invariants:
//
//  1. After each answer the model is as it was, apart from Workloads that have left and not returned. After [Places.End] none
//     has.
//
//  2. While a Workload has left, pods are placed on nodes as they will be. Otherwise they are placed on what is free now.
//
//  3. What [Places.Promise] has placed stays in an open transaction until [Places.Keep] or [Places.Plan] ends it.
//
//  4. A Workload with a pod that is being bound does not leave ([Places.Stays]).
//
//  5. Of the queues of Volcano only capabilities are asked: what a tree of ClusterQueues holds counts in the queue that it hangs below
//     (rule C22).
//
// This package must not know ClusterQueues, their quota, or the order of Workloads.
package places
