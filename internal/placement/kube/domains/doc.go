// Package domains counts pods by topology domain, and answers from the counts what the filters of kube-scheduler's InterPodAffinity and
// PodTopologySpread would say. The plugins count all pods of all nodes each time they are asked. These counts follow the pods that come and
// go one by one, so that a question costs as much as the class has terms.
//
// Main type: [Counts] are those of one class. Package kube says which pods come and go, and what each is to the class.
//
// Invariants:
//
//  1. The answers are those of the plugins, with the same words, for the same nodes and pods. The property tests of package kube hold them
//     against a real framework of kube-scheduler.
//  2. Counts are true of the node objects and namespaces that they were made for. When one of these changes, they are made anew.
//
// It must not know the model, nor which pods are on which nodes.
package domains
