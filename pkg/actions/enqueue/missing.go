package enqueue

import (
	"slices"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// patience is how long room is kept for an admitted job that has no pods while others wait for it: many times what controllers
// take that work.
const patience = 30 * time.Second

// sendBack has admitted jobs wait for admission again whose pods do not come. What they are kept room for is kept from others:
// anybody could write a PodGroup that asks for all there is, and never make a pod, or one that asks for next to nothing and that no
// node takes: what is kept beyond what its pods ask for is given to others after the same times.
func (a action) sendBack(s *framework.Session) {
	var missing []*cluster.Job
	for _, j := range s.Cluster.Waiting() {
		if !j.IsForeign && (j.ClaimsWithoutPods() || j.ClaimsBeyondPods()) {
			missing = append(missing, j)
		}
	}
	if len(missing) == 0 {
		return
	}
	slices.SortFunc(missing, cluster.CompareJobs)
	othersWait := slices.ContainsFunc(s.Cluster.Waiting(), waitsForRoom)
	for _, j := range missing {
		at := &j.Admission
		if pods := len(j.Tasks()); at.Since.IsZero() || pods > at.Pods {
			at.Since, at.Pods = s.Now, pods
			if before := said(j, verdict.NotEnoughTasks); pods == 0 && !j.IsReported && !before.IsZero() {
				at.Since = before // by a process before this one
			}
		}
		due := at.Since.Add(a.timeout)
		beyond := j.ClaimsBeyondPods()
		if (at.Pods == 0 || beyond) && othersWait {
			due = at.Since.Add(patience)
		}
		if s.Now.Before(due) {
			s.Cluster.Revisit(j, due)
			continue
		}
		if beyond {
			s.Cluster.Clip(j)
			continue
		}
		now := s.Now.Truncate(time.Second) // as it is written
		s.Cluster.SendBack(j, now.Add(a.pause(j, now)))
		a.backOff(s, j.ID.Namespace, now)
		s.AddVerdict(j, a.barred(s, j))
	}
}

// waitsForRoom reports whether a job waits for admission for want of room that others are kept.
func waitsForRoom(j *cluster.Job) bool {
	if !j.IsPendingAdmission() || j.Verdict == nil {
		return false
	}
	return slices.Contains([]verdict.Code{verdict.OverCommitted, verdict.OverCapability, verdict.OverCluster, verdict.Refused}, j.Verdict.Code)
}

// pause is how long a job is not admitted again. It follows from the job's age, so that it grows, and that another process comes
// to the same.
func (a action) pause(j *cluster.Job, sentBack time.Time) time.Duration {
	return min(max(sentBack.Sub(j.Created()), patience), a.timeout)
}

// barred refuses a job that was sent back for a while, nil if it was not.
func (a action) barred(s *framework.Session, j *cluster.Job) *verdict.Verdict {
	if !s.Now.Before(j.BarredUntil) {
		return nil
	}
	s.Cluster.Revisit(j, j.BarredUntil)
	return &verdict.Verdict{Code: verdict.PodsMissing, Help: verdict.HelpTime,
		Detail: "it may be admitted again from " + j.BarredUntil.UTC().Format(time.RFC3339) + " on"}
}

// said is since when a PodGroup says that its job waits for a reason, zero if it does not.
func said(j *cluster.Job, code verdict.Code) time.Time {
	for i := range j.Group.Status.Conditions {
		c := &j.Group.Status.Conditions[i]
		if c.Type == schedulingv1beta1.PodGroupUnschedulableType && c.Reason == string(code) {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
