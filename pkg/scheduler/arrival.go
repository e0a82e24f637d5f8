package scheduler

import (
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

// arrivalPause is how long no pod of a job must have come before it is said that the job lacks pods. Whoever makes the pods of
// a job makes one after the other: to say it each time would write the PodGroup and every pod that is there as often as a pod
// comes, and a user could do nothing about it.
const arrivalPause = 5 * time.Second

// isArriving reports whether a job lacks pods, or its PodGroup, and they may still be on their way, and sees to it that it is
// looked at again.
func (w *statusWriter) isArriving(j *cluster.Job, now time.Time) bool {
	lacks := j.Group == nil || j.Verdict != nil &&
		(j.Verdict.Code == verdict.NotEnoughTasks || j.Verdict.Code == verdict.NotEnoughPodsOfTask)
	if !lacks {
		if s := w.memory.jobs[j]; s != nil {
			s.arrival = arrival{}
		}
		return false
	}
	a := &w.memory.of(j).arrival
	if pods := len(j.Tasks()); a.since.IsZero() || a.pods != pods {
		if a.since.IsZero() || !a.isRecent(now) {
			w.arriving = append(w.arriving, j)
		}
		*a = arrival{pods: pods, since: now}
	}
	return a.isRecent(now)
}

// isRecent reports whether more pods of the job may be on their way.
func (a arrival) isRecent(now time.Time) bool { return now.Before(a.since.Add(arrivalPause)) }

// touchArrived has the jobs looked at of which no pod has come for long enough.
func (w *statusWriter) touchArrived(c *cluster.Cluster, now time.Time) {
	arriving := w.arriving[:0]
	for _, j := range w.arriving {
		switch a := w.memory.arrival(j); {
		case a == arrival{}: // it lacks none any more, or is gone
		case a.isRecent(now):
			arriving = append(arriving, j)
		default:
			c.TouchJob(j)
		}
	}
	clear(w.arriving[len(arriving):])
	w.arriving = arriving
}

// wakeAt is when something is to be said although nothing may have happened, zero if there is no such time.
func (w *statusWriter) wakeAt() (wake time.Time) {
	if len(w.ungrouped) > 0 {
		wake = w.ungrouped[0].due
	}
	for _, j := range w.arriving {
		if a := w.memory.arrival(j); a != (arrival{}) && (wake.IsZero() || a.since.Add(arrivalPause).Before(wake)) {
			wake = a.since.Add(arrivalPause)
		}
	}
	return wake
}
