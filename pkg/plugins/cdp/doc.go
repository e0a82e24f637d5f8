// Package cdp is the plugin that lets a pod run for some time before it may be evicted: its cool-down.
//
// The annotation volcano.sh/cooldown-time of the pod, or else the label, sets the time in Go's notation. It begins when
// the pod gets its node.
//
// Invariants:
//
//  1. Pods are evicted together only if the cool-down of each is over. It is over at its last instant.
//  2. A pod without a cool-down, or with one that cannot be read, may be evicted.
//  3. The time is that of the session, so that all answers of a session are for the same instant.
//
// Volcano protects a pod only once it runs. Here it is protected from the moment it has a node. Otherwise it could be
// evicted in its first seconds and not in those after.
package cdp
