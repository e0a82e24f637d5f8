package enqueue

import (
	"slices"
	"strings"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// patience is how long an admitted job without pods keeps its quota while other jobs wait for it: many times what
// working controllers take.
const patience = 30 * time.Second

// sendBack returns admitted jobs to Pending if their pods do not come, because they keep quota from others. Otherwise a
// user could write a PodGroup that requests the whole cluster, and never create a pod, or one small pod that fits on no
// node. Quota beyond the requests of a job's pods is given up after the same times.
func (a action) sendBack(s *framework.Session) {
	var missing []*cluster.Job
	for _, j := range s.Cluster.Attended() {
		if !j.IsForeign && (j.ClaimsWithoutPods() || j.ClaimsBeyondPods()) {
			missing = append(missing, j)
		} else {
			j.Admission.EmptySince = time.Time{}
			if !j.AwaitsPods() {
				j.BarredFor = 0
			}
		}
	}
	if len(missing) == 0 {
		return
	}
	othersWait := slices.ContainsFunc(s.Cluster.Waiting(), waitsForRoom)
	missing = slices.DeleteFunc(missing, func(j *cluster.Job) bool {
		due := a.due(s, j, othersWait)
		if s.Now.Before(due) {
			s.Cluster.Revisit(j, due)
			return true
		}
		return false
	})
	slices.SortFunc(missing, cluster.CompareJobs)
	for _, j := range missing {
		if j.ClaimsBeyondPods() {
			s.Cluster.Clip(j)
			s.Cluster.Revisit(j, s.Now.Add(time.Millisecond)) // others have had their turn, and no event follows
			continue
		}
		now := s.Now.Truncate(time.Second) // rounded as in the status
		s.Cluster.SendBack(j, now, a.pause(j, now))
		a.backOff(s, j.ID.Namespace, now)
		s.AddVerdict(j, a.barred(s, j))
	}
}

// due is when an admitted job whose pods do not come gives up quota.
func (a action) due(s *framework.Session, j *cluster.Job, othersWait bool) time.Time {
	at, pods := &j.Admission, len(j.Tasks())
	if at.Since.IsZero() || pods > at.Pods {
		at.Since, at.Pods = s.Now, pods
		if before := said(j, verdict.NotEnoughTasks, verdict.FailedCreate); pods == 0 && !before.IsZero() && !before.Before(j.BarredUntil) {
			at.Since = before // by an earlier process, or under a policy without this action
		}
	}
	noteEmpty(at, pods, s.Now)
	switch {
	case j.ClaimsBeyondPods() && othersWait:
		return at.Since.Add(patience)
	case pods == 0 && othersWait && at.EmptySince.Add(patience).Before(at.Since.Add(a.timeout)):
		return at.EmptySince.Add(patience)
	}
	return at.Since.Add(a.timeout)
}

// noteEmpty follows since when an admitted job has no pods. A later process knows only that, and not that it had some.
func noteEmpty(at *cluster.Admission, pods int, now time.Time) {
	switch {
	case pods > 0:
		at.EmptySince = time.Time{}
	case at.EmptySince.IsZero() && at.Pods == 0:
		at.EmptySince = at.Since
	case at.EmptySince.IsZero():
		at.EmptySince = now
	}
}

// waitsForRoom reports whether a job is pending admission because other jobs hold the quota.
func waitsForRoom(j *cluster.Job) bool {
	if !j.IsPendingAdmission() || j.Verdict == nil {
		return false
	}
	return slices.Contains([]verdict.Code{verdict.OverCommitted, verdict.OverCapability, verdict.OverCluster, verdict.TooLargeForCluster, verdict.Refused}, j.Verdict.Code)
}

// longestPause is how long a job is not admitted again at most. Its pods come or not whatever is decided about its
// PodGroup, and end the pause. Only the controller of Volcano Jobs waits for the admission before it tries to create
// them again: such a Job waits for pausesOfController times podsTimeout at most.
const (
	longestPause       = 24 * time.Hour
	pausesOfController = 6
)

// pause returns until when a job is not admitted again that is sent back now. The first time that follows from the age
// of the job, so it is the same after a restart. Each time after it is twice as long as the last, so that a job whose
// pods never come is not written for ever.
func (a action) pause(j *cluster.Job, sentBack time.Time) time.Time {
	length := min(max(sentBack.Sub(j.Created()), patience), a.timeout)
	if j.BarredFor > 0 {
		length = min(max(2*j.BarredFor, length), longestPause)
	}
	if j.IsReplenished() {
		length = min(length, pausesOfController*a.timeout)
	}
	return sentBack.Add(length)
}

// barred returns a refusal if a job was sent back and may not be admitted yet, otherwise nil. Once it has the pods that
// it needs to start it is as any other job.
func (a action) barred(s *framework.Session, j *cluster.Job) *verdict.Verdict {
	if !s.Now.Before(j.BarredUntil) || !j.AwaitsPods() {
		return nil
	}
	s.Cluster.Revisit(j, j.BarredUntil)
	return &verdict.Verdict{Code: verdict.PodsMissing, Help: verdict.HelpTime,
		Detail: againFrom + j.BarredUntil.UTC().Format(time.RFC3339) + " on"}
}

const againFrom = "it may be admitted again from "

// pauseOf returns until when a job is barred that an earlier process sent back. The message of the condition says it.
func (a action) pauseOf(j *cluster.Job, sentBack time.Time) time.Time {
	for i := range j.Group.Status.Conditions {
		_, after, _ := strings.Cut(j.Group.Status.Conditions[i].Message, againFrom)
		text, _, _ := strings.Cut(after, " ")
		if until, err := time.Parse(time.RFC3339, text); err == nil && until.After(sentBack) && !until.After(sentBack.Add(longestPause)) {
			return until
		}
	}
	return a.pause(j, sentBack)
}

// said returns since when the status of a PodGroup gives one of some reasons for waiting, zero if it does not.
func said(j *cluster.Job, codes ...verdict.Code) time.Time {
	for i := range j.Group.Status.Conditions {
		c := &j.Group.Status.Conditions[i]
		if c.Type == schedulingv1beta1.PodGroupUnschedulableType && slices.Contains(codes, verdict.Code(c.Reason)) {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
