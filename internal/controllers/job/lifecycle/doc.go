// Package lifecycle decides which pods a Job should have, what its status says, and what its policies and Commands do.
// It is the pure half of the Job controller: functions of a Job, its pods and its PodGroup.
//
// Main functions: [Defaulted] makes the Job that all others take. [MissingAndSurplus] and [Leftovers] return which pods
// to create and to delete, and [HeldBack] which tasks wait for others. [Observe] counts, finds the next phase, and
// returns the new status. [Occurrences] are what lifecycle policies may react to, [Demands] what they ask for, and
// [Follow] the resulting status.
//
// Invariants:
//
//  1. Nothing is read but the arguments, and no argument is changed. The clock is an argument.
//  2. pending + running + succeeded + failed + unknown + terminating is the number of the Job's pods. A pod with a
//     deletion timestamp is terminating, whatever its phase; taskStatusCount leaves terminating pods out.
//  3. Policies react to the state and not to a stream of events, so nothing is lost while no controller runs. The
//     counts in the status show that another program has deleted a pod.
//  4. Every restart but a resumption is charged to status.retryCount, which never exceeds spec.maxRetry. Pods made
//     before a restart of the whole Job never count after it: they carry an earlier version.
//  5. Restarts that follow each other quickly come after pauses that grow.
//  6. While a Job waits, status.state says why: with the message of its PodGroup, if the scheduler has written one.
//  7. A task that is held back by dependsOn is not part of the gang until its pods may be made.
//
// This package must not know the API server, nor when it is called again.
package lifecycle
