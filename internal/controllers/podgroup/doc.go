// Package podgroup gives a PodGroup to pods that ask for our scheduler and name none: podgroup-<uid>. The uid is that
// of the pod's controller (ReplicaSet, StatefulSet, DaemonSet, batch Job, or any other), or of a pod without a
// controller. Package scheduling/builder makes the PodGroup of a pod; lower adapts its minimum to what can be met; the
// Reconciler, keyed by PodGroup, creates it and writes the annotation scheduling.k8s.io/group-name on the pods.
//
// Invariants:
//
//  1. The PodGroup exists before a pod names it, and is made again when it vanishes while pods still need it.
//  2. Pods of one controller share one PodGroup, owned by that controller; a lone pod owns its own. So the garbage
//     collector removes a PodGroup with its owner. A PodGroup whose pods have all been gone for idleGrace is removed
//     here, so that scaled-down ReplicaSets of old roll-outs hold no quota. With YuniKorn's labels pods of one
//     application share a PodGroup without an owner. Its first pod alone says what is in it, until all have ended. Each
//     pod gets the role of its task group.
//  3. A group-name that another client has set is never changed, nor is a PodGroup of another owner.
//  4. Annotations of the pod count before those of its controller, and these, for the queue, before those of its
//     namespace. Those of a later pod count for all, so a roll-out may change them.
//  5. An annotation that cannot be read is reported in an Event on the pod with its value, and is ignored.
//  6. minMember never exceeds what the workload can have on nodes now, so no minimum stops a roll-out. While pods of
//     several ReplicaSets of a Deployment exist, the minimum applies to all together. For a StatefulSet that creates
//     its pods one after the other, it applies only to the existing pods. The wanted minimum stays in the annotation
//     scheduling.volcano.sh/group-min-member of the PodGroup, and applies again as soon as it can be met.
//  7. If an owner above the controller says how many pods must start together, the topmost one that does makes the
//     PodGroup, of all pods below it: see gangOf. What the pods and the owners between say about the minimum is told to
//     be ignored.
//  8. Pods of Workloads of kueue.x-k8s.io get no PodGroup, nor do pods that wait for one, while Workloads are served.
//
// This package must not know Jobs of batch.volcano.sh beyond recognising their pods, which always name their PodGroup.
package podgroup
