// Package kube runs kube-scheduler's own plugins on the model. It and package domains below it are the only packages
// that import k8s.io/kubernetes.
//
// Main types: [Plugins] are the plugins, made once for a model. A [Question] asks them about one class of equal pods.
// Its methods differ in cost: [Question.Refusal] and [Question.Preferences] read node objects, [Question.Ports] the
// pods of one node, [Question.Around] and [Question.Survey] pods anywhere. [NewOutlook] makes plugins that see the pods
// that will be there.
//
// The plugins see the model through NodeInfos that are updated only for nodes in Cluster.Changes. What costs memory and
// time is done only when it is needed: a node's pods are not read before Ports or Survey. What a question needs of the
// pods elsewhere it finds in a population of all pods, by namespace and label. Then it follows those that come and go.
//
// What InterPodAffinity and PodTopologySpread would say, as filters and in scores, is answered from counts by topology
// domain: see package domains. The plugins are only asked what is wrong with a pod that they cannot read. The counts
// say the same of many nodes, which is what [Question.Groups], [Question.Group] and [Question.Rate] are for.
//
// Invariants:
//
//  1. Answers and scores are those of a real kube-scheduler with the same plugins and weights, for the same nodes and
//     pods. A test holds this. Two things differ on purpose. An image that nodes report in different sizes counts on
//     each node with the size reported there, not with the first. The soft spread that kube-scheduler adds for pods of
//     services and replica sets is missing, since the model does not know those.
//  2. Plugins see a pod on a node if its task holds resources there, also if it was placed in the open transaction or
//     is leaving. Pipelined tasks are not there yet. In an outlook, leaving pods are gone and pipelined tasks are
//     there. Nodes without an object do not exist.
//  3. Objects of the model are never changed. None of these plugins reads spec.nodeName of a pod on a node, so a placed
//     pod is shown without it.
//  4. Everything runs in the calling goroutine, in a fixed order, without clock, log, metric or client. Equal models
//     give equal answers. What the plugins would write before a pod is bound is recorded by their client. They do not
//     wait for volumes and devices to get ready.
//  5. If a plugin cannot read the pod, it refuses every node with its own message. It never stops the cycle.
//
// This package must not know free resources, queues or gangs. The placement engine decides whether a pod fits next to
// the others.
package kube
