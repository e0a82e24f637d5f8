// Package placement finds the nodes on which pods fit, and the best of them.
//
// Main type: [Engine] answers for single tasks. It stores its answers about every node for each class of equal pods.
// Package gang places whole jobs with it.
//
// There are two engines for a model. [New] sees the model as it is now. Pods that are leaving still hold their
// resources. Pipelined tasks keep their resources, ports and anti-affinity, and attract no pods. [NewOutlook] sees the
// model as it will be: pods that are leaving are gone, and pipelined tasks are placed. Plugins get a copy of the node
// with the totals of that time (Used, NonZero; nothing is Releasing or Promised). Tasks still lists the pods that are
// leaving.
//
// Why it is fast. A real cluster has as many classes as jobs, so what a class shares with others is worked out once for
// all of them. Classes that request the same and ask the same of node objects have one profile, and share its answers.
// What a class has for itself is laid over these: its host ports, its images that few nodes have, and the pods
// elsewhere that matter to it. What the objects of the nodes say (package objects) is shared by the classes with the
// same constraints. If these name nodes, or labels that few nodes have, only those nodes are looked at. The amounts of
// the nodes stand in columns (package view), which all classes read. A profile that is asked for the first time has its
// best nodes found in one pass over the columns. Blocks of nodes without room are passed over, and scorers are asked
// about a block at once ([TableScorer]). Of nodes with the same amounts only the first is looked at, unless something
// else than amounts tells them apart. A list of the best nodes is kept, and follows what changes. A profile is ranked
// if the list is used up while little changes, as by a gang of a thousand equal pods. Then feasibility and score are
// stored for every node, and the best node is on top of a heap. The answers are exact in each of these ways. What is
// kept is bounded by its size in memory.
//
// [Engine.Fits] and [Engine.CanOpen] ask about one node while victims are tried, millions of times: they use what is
// known of the node's object and compare the room.
//
// Classes whose answer depends on pods elsewhere (pod affinity, topology spread) are ranked in groups of nodes to which
// pods elsewhere matter alike, such as the nodes of a zone. For each pod the best node of each group is rated, see
// package kube.
//
// Plugins whose answers about a node depend on other nodes are [Invalidator]s. Before answers are used, they invalidate
// the nodes for which their answer has changed.
//
// Vetoers are asked only about the node that would be chosen. Their answer is kept until the node changes. A vetoed
// node still counts where scores are normalised over nodes.
//
// Invariants:
//
//  1. What Best returns fits by resources, own filters and kube filters, and no vetoer refuses it, in the model of now
//     or of the outlook.
//  2. Answers depend only on the model, not on earlier questions. Among equally good nodes the name decides.
//  3. An outlook gives the answers that the other engine gives once all evicted pods are gone and all pipelined tasks
//     are placed.
//  4. Fits agrees with Best about each node, apart from vetoers, after any operation on the model.
//  5. The engine does not change the model.
//
// This package must not know sessions and transactions, nor queues, shares or the order of jobs. It is below the
// contract of plugins: package placer makes an engine from a policy.
package placement
