// Package placement finds out where pods can go and where they go best.
//
// Main type: [Engine] answers for single tasks and keeps, per class of equal pods, what it knows of every node. Package gang
// places whole jobs with it.
//
// There are two engines for a model. [New] sees the model as it is now. Pods that are leaving still hold their resources.
// Pipelined tasks keep their resources, ports and anti-affinity, and attract no pods. [NewOutlook] sees the model as it
// will be: what leaves is gone, and what is promised is there. Plugins are shown a copy of the node with the totals of that
// time (Used, NonZero; nothing is Releasing or Promised); Tasks still lists what leaves.
//
// Why it is fast. A real cluster has as many classes as jobs, so what a class shares with others is worked out once for all of them. What
// the objects of the nodes say is shared by the classes with the same constraints. The amounts of the nodes stand in the columns of a
// table, which all classes read. A class that is asked for the first time has its best nodes found in one pass over the columns. Blocks of
// nodes without room are passed over, and scorers are asked about a block at once ([TableScorer]). A list of the best nodes is kept, and
// follows what changes. If the list is used up while little changes, as by a gang of a thousand equal pods, the class is ranked:
// feasibility and score are kept for every node, and the best node stands on top of a heap. The answers are exact in each of these ways.
// What is kept is bounded by its size in memory.
//
// [Engine.Fits] and [Engine.CanOpen] ask about one node while victims are tried, millions of times: they use what is known of the node's
// object and compare the room.
//
// Classes whose answer depends on pods elsewhere (pod affinity, topology spread) take the nodes that pass the rest and
// put them to the kube-scheduler's plugins each time; see package kube.
//
// Plugins whose answers about a node rest on others as well are [Invalidator]s: each time before answers are used they have
// those nodes looked at again of which they would say something else now.
//
// Vetoers are asked about a node only when it is to be chosen. What they say is kept until the node changes; a node that
// is vetoed still has its part in what is normalised over nodes.
//
// Invariants:
//
//  1. What Best returns fits, and no vetoer objects: room, own filters, kube filters, for the model as it stands, or as it
//     will be.
//  2. Answers depend on the model alone, not on what was asked before. Among equally good nodes the name decides.
//  3. What an outlook says, the other engine says once all that leaves has left and all that is promised has come.
//  4. Fits says of a node what Best would hold of it, vetoers left out, between any two operations on the model.
//  5. Nothing here changes the model.
//
// The package must not know sessions and transactions, nor queues, shares or the order of jobs. It stands below the contract of plugins:
// package placer makes an engine of a policy.
package placement
