// Package garbagecollector deletes Jobs of batch.volcano.sh ttlSecondsAfterFinished after they have ended, if they set
// that. With each Job its pods, PodGroup, claims and Commands are deleted, and the objects of its plugins. All of these
// have the Job as their owner, so only the Job is deleted here, in the foreground.
//
// Invariants:
//
//  1. Only a Job that is Completed, Failed or Terminated has ended. An aborted one has not: it may be resumed.
//  2. A Job is deleted in the version that was looked at, so one whose user gives it more time in the last moment keeps
//     it.
//  3. A Job of a CronJob, or one that has ended in a JobFlow, stays until their status says so, but no longer than
//     recordPatience. After a crash only the Job itself shows that it must not be started again.
//
// It must not know what a Job is made of.
package garbagecollector
