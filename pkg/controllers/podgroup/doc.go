// Package podgroup gives a PodGroup to pods that ask for our scheduler and name none: podgroup-<uid>, where uid is that
// of the pod's controller (ReplicaSet, StatefulSet, DaemonSet, batch Job, or any other), or of the pod when nobody
// controls it. Build makes the PodGroup; the Reconciler, keyed by PodGroup, creates it and writes the annotation
// scheduling.k8s.io/group-name on the pods.
//
// Invariants:
//
//  1. The PodGroup exists before a pod names it, and is made again when it vanishes while pods still need it.
//  2. Pods of one controller share one PodGroup, owned by that controller; a lone pod owns its own. So the garbage
//     collector removes a PodGroup with its owner; one whose pods have all been gone for idleGrace is removed here, so
//     that scaled-down ReplicaSets of old roll-outs hold no room in their queue.
//  3. A group-name that somebody else has set is never changed, nor is a PodGroup that is not ours.
//  4. The queue comes from the pod's annotation, else its owner's, else its namespace's, else "default".
//  5. An annotation that cannot be read is reported on the pod with its value, and counts as absent.
//
// It must not know Jobs of batch.volcano.sh beyond recognising their pods, which always name their PodGroup.
package podgroup
