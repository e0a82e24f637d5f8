// Package cronjob starts Jobs of batch.volcano.sh at the times of a schedule, as kind CronJob of that group asks.
//
// The package is two halves. The pure half is functions of a CronJob, its Jobs and the time. [validation.ReadCronJob]
// reads the spec, and its timetable says when runs are due. decide says what to do about the latest of them, observe
// what the status is, superfluous which ended Jobs to delete, and buildJob what to start. The other half, the
// Reconciler, fetches, carries out and writes. Add puts it into a manager.
//
// Invariants:
//
//  1. No run is started twice. The name of a Job follows from the CronJob's and the time that the run was due, so the
//     API server refuses the second. A time up to status.lastScheduleTime is never started again. That status is read
//     from the API server, past the cache, before a Job is created. A Job that exists counts as recorded even if the
//     record was lost.
//  2. Of the times that have passed since the last run only the latest is started, if it is not later than
//     startingDeadlineSeconds allows, counted in whole seconds. The work for that does not grow with how many passed.
//  3. With Forbid or Replace there is never more than one Job that has not ended. A Job that is being deleted has not
//     ended before it is gone, and one that the cache does not show is asked for.
//  4. A Job that has ended is deleted for the sake of a history limit only after its run is on record, the oldest
//     first.
//  5. An aborted Job has not ended: it may be resumed.
//  6. A schedule or time zone that cannot be read is told in an Event with its value; what was started goes on.
//  7. The time comes from a clock that is given.
//  8. Runs are no closer together than a bound, whatever the schedule asks for; an Event says so.
//
// It must not know what a Job does with its template, nor what makes it end.
package cronjob
