// Package kube lets the model be judged by the kube-scheduler's own plugins. It is the only package that imports
// k8s.io/kubernetes.
//
// Main types: [Plugins] are the plugins, made once for a model; a [Question] is what they are asked on behalf of one
// class of equal pods. What it costs grows from method to method: [Question.Refusal] and [Question.Preferences] read
// node objects, [Question.Ports] the pods of one node, [Question.Around] and [Question.Survey] pods anywhere. [NewOutlook]
// makes plugins that see the pods that will be there.
//
// The plugins see the model through NodeInfos that are kept beside it and renewed only where Cluster.Changes says so.
// What costs memory and time is put off until it is asked for: a node's pods are not looked at before Ports or Survey. For
// a survey each question looks through a sieve: it leaves out the pods that no selector of the class asks for and that
// have no terms of their own. Those cannot change an answer, so the plugins' PreFilter and PreScore run afresh each time
// the rest changes, which is always right, at the cost of the few pods that matter instead of all pods. Their incremental
// AddPod and RemovePod are not used: they are wrong after Skip, and for topology spread wrong after changes on many nodes.
//
// Invariants:
//
//  1. Verdicts and scores are those of a real framework of the kube-scheduler with the same plugins and weights, for the
//     same nodes and pods. A test holds this. Two things differ on purpose. An image that nodes report in different sizes
//     counts on each node with the size reported there, not with the first. The soft spread that kube-scheduler adds for
//     pods of services and replica sets is missing, since the model does not know those.
//  2. A pod is on a node for the plugins if its task holds room there, pods placed in the open transaction and pods on
//     their way out included; what is promised is not there yet. In an outlook what leaves is gone and what is promised is
//     there. Nodes without an object do not exist.
//  3. Objects of the model are read, never changed: none of these plugins reads the node's name off a pod that is on a
//     node, so a pod that was placed is shown as it is.
//  4. Everything runs in the calling goroutine, in a fixed order, without clock, log, metric or client. Equal models give
//     equal answers.
//     What the plugins would write before a pod is bound is read off a client that notes it; whether volumes and devices get
//     ready is not for them to wait for.
//  5. A plugin that cannot read the pod refuses every node in its own words. It never stops the cycle.
//
// It must not know room, queues or gangs: whether a pod fits beside the others is the placement engine's to say.
package kube
