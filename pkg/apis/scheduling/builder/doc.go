// Package builder makes the PodGroup of a pod that names none, for the PodGroup controller and the simulator. It also adds
// up the requests of pods for the minResources of a PodGroup.
//
// [AddTaskGroups] makes the PodGroup of an application a gang, by YuniKorn's task groups.
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
