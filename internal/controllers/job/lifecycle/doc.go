// Package lifecycle decides what becomes of a Job: which pods it is to have, what its status says, and what its policies and
// Commands do. It is the pure half of the Job controller: functions of a Job, its pods and its PodGroup.
//
// Main functions: [Defaulted] makes the Job that all others take. [MissingAndSurplus] and [Leftovers] say which pods are to be made and
// to be deleted, and [HeldBack] which tasks wait for others. [Observe] counts, finds the next phase, and returns the new status.
// [Occurrences] are what lifecycle policies may answer, [Demands] what they ask for, and [Follow] the status that results.
//
// Invariants:
//
//  1. Nothing is read but the arguments, and no argument is changed. The clock is an argument.
//  2. pending + running + succeeded + failed + unknown + terminating is the number of the Job's pods. A pod with a deletion
//     timestamp is terminating, whatever its phase; taskStatusCount leaves terminating pods out.
//  3. Policies answer the state and not a stream of events, so nothing is lost that happened while no controller ran. That a pod was
//     deleted by another program follows from the counts in the status.
//  4. Every restart but a resumption is charged to status.retryCount, which never exceeds spec.maxRetry. Pods made before a restart
//     of the whole Job never count after it: they carry an earlier version.
//  5. Restarts that follow each other quickly come after pauses that grow.
//  6. While a Job waits, status.state says why: with the message of its PodGroup, if the scheduler has written one.
//  7. A task that is held back by dependsOn is not part of the gang until its pods may be made.
//
// It must not know the API server, nor when it is asked again.
package lifecycle
