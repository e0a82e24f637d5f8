package statuses

import (
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/verdict"
)

// ArrivalPause is how long no new pod of a job must have appeared before a status says that the job lacks pods.
// Controllers create the pods of a job one after the other. Otherwise the PodGroup and all its pods would be written
// with each pod, which would be of no use to users.
const ArrivalPause = 5 * time.Second

// isArriving reports whether a job lacks pods, or its PodGroup, and they may still be created. If so, the job is looked
// at again later.
func (r *Reporter) isArriving(j *cluster.Job, now time.Time) bool {
	lacks := j.Group == nil || j.Verdict != nil &&
		(j.Verdict.Code == verdict.NotEnoughTasks || j.Verdict.Code == verdict.NotEnoughPodsOfTask)
	if !lacks {
		if s := r.memory.jobs[j]; s != nil {
			s.arrival = arrival{}
		}
		return false
	}
	a := &r.memory.of(j).arrival
	if pods := len(j.Tasks()); a.since.IsZero() || a.pods != pods {
		if a.since.IsZero() || !a.isRecent(now) {
			r.arriving = append(r.arriving, j)
		}
		*a = arrival{pods: pods, since: now}
	}
	return a.isRecent(now)
}

// isRecent reports whether more pods of the job may still be created.
func (a arrival) isRecent(now time.Time) bool { return now.Before(a.since.Add(ArrivalPause)) }

// touchArrived touches the jobs for which no pod was created for ArrivalPause.
func (r *Reporter) touchArrived(c *cache.Cache, now time.Time) {
	arriving := r.arriving[:0]
	for _, j := range r.arriving {
		switch a := r.memory.arrival(j); {
		case a == arrival{}: // it lacks no more pods, or is deleted
		case a.isRecent(now):
			arriving = append(arriving, j)
		default:
			c.TouchJob(j)
		}
	}
	clear(r.arriving[len(arriving):])
	r.arriving = arriving
}

// WakeAt is when a status is due even without events, zero if none is.
func (r *Reporter) WakeAt() (wake time.Time) {
	if len(r.ungrouped) > 0 {
		wake = r.ungrouped[0].due
	}
	if r.revisits.Len() > 0 && (wake.IsZero() || r.revisits.First().due.Before(wake)) {
		wake = r.revisits.First().due
	}
	for _, j := range r.arriving {
		if a := r.memory.arrival(j); a != (arrival{}) && (wake.IsZero() || a.since.Add(ArrivalPause).Before(wake)) {
			wake = a.since.Add(ArrivalPause)
		}
	}
	return wake
}
