// Package timetable reads the schedule of a CronJob and says when it comes: the next time, and the latest one that has
// passed.
//
// [Parse] makes a [Timetable] from a schedule of five fields, a descriptor like @daily, or an interval like "@every
// 90s".
//
// Invariants:
//
//  1. A schedule that never comes is an error, and so is an interval that is not a whole number of seconds.
//  2. Finding the latest time does not take longer the longer ago the last run was.
//
// It must not know the clock, nor what is run.
package timetable
