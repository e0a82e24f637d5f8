// Package domains counts pods by topology domain, and answers from the counts what kube-scheduler's InterPodAffinity
// and PodTopologySpread would say. The plugins count all pods of all nodes each time they are asked. These counts
// follow the pods that come and go one by one, so that a question costs as much as the class has terms.
//
// Main types: a [Topology] knows the domain of each node, for all classes. [Counts] are those of one class. Package
// kube says which pods and nodes come and go.
//
// Filters and scores depend on the domains of a node alone. So nodes fall into groups about which the answers are the
// same ([Counts.Group]), and one node of each is asked about ([Counts.Rate]). A class that prefers other hostnames has
// a group of nodes without its pods, a group of nodes with one, and so on: not one for each node.
//
// Invariants:
//
//  1. The answers are those of the plugins, with the same words and numbers, for the same nodes and pods. The property
//     tests of package kube hold them against a real framework of kube-scheduler.
//  2. Nodes of one group get the same answers as long as neither they nor the [Counts.Version] change. A node changes
//     its group only with its own pods, and with the object of a node that joins or leaves its domain.
//  3. Counts hold for the namespaces that they were made for. When one of these changes, they are made again.
//
// It must not know the model, nor which pods are on which nodes.
package domains
