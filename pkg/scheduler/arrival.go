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
		j.Arrival = cluster.Arrival{}
		return false
	}
	if pods := len(j.Tasks()); j.Arrival.Since.IsZero() || j.Arrival.Pods != pods {
		if j.Arrival.Since.IsZero() || !now.Before(j.Arrival.Since.Add(arrivalPause)) {
			w.arrival = append(w.arrival, j)
		}
		j.Arrival = cluster.Arrival{Pods: pods, Since: now}
	}
	return now.Before(j.Arrival.Since.Add(arrivalPause))
}

// touchArrived has the jobs looked at of which no pod has come for long enough.
func (w *statusWriter) touchArrived(c *cluster.Cluster, now time.Time) {
	arriving := w.arrival[:0]
	for _, j := range w.arrival {
		switch since := j.Arrival.Since; {
		case since.IsZero(): // it lacks none any more
		case now.Before(since.Add(arrivalPause)):
			arriving = append(arriving, j)
		default:
			c.TouchJob(j)
		}
	}
	clear(w.arrival[len(arriving):])
	w.arrival = arriving
}

// wakeAt is when something is to be said although nothing may have happened, zero if there is no such time.
func (w *statusWriter) wakeAt() (wake time.Time) {
	if len(w.ungrouped) > 0 {
		wake = w.ungrouped[0].due
	}
	for _, j := range w.arrival {
		if at := j.Arrival.Since.Add(arrivalPause); !j.Arrival.Since.IsZero() && (wake.IsZero() || at.Before(wake)) {
			wake = at
		}
	}
	return wake
}
