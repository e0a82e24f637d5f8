// Package builder makes the objects that a Job of batch.volcano.sh consists of: its PodGroup and its pods, and the
// names of its claims. The Job controller creates them, the simulator and the benchmark show the scheduler the same
// ones.
//
// Main functions: [PodGroup], [Pod], and the names [PodGroupName], [PodName] and [ClaimName].
//
// Invariants:
//
//  1. Each function takes a Job after SetDefaults that validation has nothing against, and changes nothing of it.
//  2. The same arguments give the same object.
//  3. Names, labels and annotations are those that Volcano writes, since images and tools of users read them.
//
// It must not know when an object is made, nor what job plugins add to a pod.
package builder
