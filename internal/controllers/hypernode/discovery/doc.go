// Package discovery makes HyperNodes from the labels of nodes, as the ConfigMap volcano-controller-configmap asks for.
// For each kind of network, the ConfigMap lists the labels that name the switches of a node, from the farthest to the
// closest.
//
// Main types: [Configuration] is what the ConfigMap says, read by [Parse]; [Discover] is the HyperNodes that follow
// from it and the nodes; the Reconciler makes, changes and deletes what differs.
//
// Invariants:
//
//  1. Only HyperNodes with the label volcano.sh/network-topology-source=label are changed or deleted. All others belong
//     to who made them, and their names are not taken.
//  2. What is wanted depends on the configuration, the nodes and the names of the HyperNodes that exist. With what was
//     made among those, the same is wanted again.
//  3. A ConfigMap that is wrong in anything changes nothing: what was read before it stays in force, and an Event on it
//     names the key and the value. One that is gone, or asks for nothing, leaves the HyperNodes as they are.
//  4. Sources that ask the devices of a vendor are refused by name, and do not keep labels from being followed.
//  5. All nodes are looked at together, once for as many changes as come within a moment, and again after the interval.
//     Only what differs is written, and what cannot be written keeps nothing else from it.
//
// It must not know what HyperNodes are good for: which of them are used is said by package hypernode.
package discovery
