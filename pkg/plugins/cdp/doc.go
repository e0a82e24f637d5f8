// Package cdp is the plugin that lets a pod run for a while before it may be evicted: its cool-down.
//
// The pod says how long, in Go's notation, by the annotation volcano.sh/cooldown-time, or else the label. It begins when the
// pod gets its node.
//
// Invariants:
//
//  1. Pods leave together only if the cool-down of each is over. It is over at its last instant.
//  2. A pod without a cool-down, or with one that cannot be read, may leave.
//  3. What counts as now is the time of the session: all that is asked in it is answered for one instant.
//
// In Volcano a pod is protected only once it runs. Here it is so from the moment it has a node: else it could be evicted in
// its first seconds and not in those after.
package cdp
