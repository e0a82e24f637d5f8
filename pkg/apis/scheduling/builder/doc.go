// Package builder makes the PodGroup of a pod that names none, for the PodGroup controller and the simulator. It also
// adds up the requests of pods for the minResources of a PodGroup.
//
// [ApplicationGroup] makes the PodGroup that the pods of an application of YuniKorn share. Task groups make it a gang,
// in which [TaskGroupRole] is the role of a pod.
//
// Main functions: [PodGroup] with [PodGroupName], [AddRequests] and [AddUsage].
//
// Invariants:
//
//  1. The same pod and surroundings give the same PodGroup.
//  2. An annotation that cannot be read is told in a sentence with its value, and counts as absent.
//
// It must not know the API server, nor how many pods a controller can have now.
package builder
