package cronjob

import (
	"time"

	"hekla.sh/hekla/internal/timetable"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// course is what to do about the latest run that is due.
type course int

const (
	// wait: no run is due.
	wait course = iota

	// start: make the Job.
	start

	// miss: it is too late for the run.
	miss

	// hold: the run has to wait for the end of an earlier one.
	hold

	// replace: the Jobs that have not ended have to go first.
	replace
)

// decision is what to do, and when to ask again at the latest.
type decision struct {
	course course

	// due is when the run was due, unless there is none.
	due time.Time

	// passed is how many runs have become due since the last one that was started, this one included; counted up to
	// one above timetable.MaxCounted.
	passed int

	// next is when the next run is due.
	next time.Time
}

// decide says what to do about a CronJob that is not suspended, of which so many Jobs have not ended. Its status has to
// be up to date.
func decide(cronJob *batch.CronJob, times timetable.Timetable, active int, now time.Time) decision {
	counted := cronJob.CreationTimestamp.Time
	if last := cronJob.Status.LastScheduleTime; last != nil {
		counted = last.Time
	}
	due, passed := times.Latest(counted, now)
	if passed == 0 {
		return decision{course: wait, next: times.Next(counted)}
	}
	made := decision{course: start, due: due, passed: passed, next: times.Next(due)}
	policy := cronJob.Spec.ConcurrencyPolicy
	switch deadline := cronJob.Spec.StartingDeadlineSeconds; {
	case deadline != nil && int64(now.Sub(due)/time.Second) > *deadline:
		made.course = miss
	case active > 0 && policy == batch.ForbidConcurrent:
		made.course = hold
	case active > 0 && policy == batch.ReplaceConcurrent:
		made.course = replace
	}
	return made
}
