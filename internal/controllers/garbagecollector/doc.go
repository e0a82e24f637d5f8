// Package garbagecollector deletes Jobs of batch.volcano.sh ttlSecondsAfterFinished after they have ended, if they set that,
// and with each what belongs to it: its pods, PodGroup, claims, Commands, and what its plugins made. All of those name the
// Job as their owner, so the Job is all that has to be deleted here; it goes last.
//
// Invariants:
//
//  1. Only a Job that is Completed, Failed or Terminated has ended. An aborted one has not: it may be resumed.
//  2. A Job is deleted in the version that was looked at, so one whose user gives it more time in the last moment keeps it.
//  3. A Job that a CronJob has started, or one that has ended in a JobFlow, stays until that is on record there, but no longer
//     than recordPatience: it is what tells, after a crash, that it is not to be started again.
//
// It must not know what a Job is made of.
package garbagecollector
