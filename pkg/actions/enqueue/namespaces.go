package enqueue

import (
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// A job that brings no pods waits longer and longer before it is admitted again, but who writes PodGroups may write another each
// time. So its namespace backs off as well: for a while its jobs that have no pods are admitted only if no job of another namespace
// waits for room. Jobs that have their pods are not concerned, and where no other job wants the room nothing changes.

// backOff has a namespace come last from now on. The first time is short, since one job that fails should cost others of its
// namespace little. A namespace that does it again soon after comes last for twice as long, and at most for podsTimeout.
func (a action) backOff(s *framework.Session, namespace string, now time.Time) {
	before := s.Cluster.BackOff(namespace)
	if now.Before(before.Until) {
		return // it was admitted with those that were sent back before
	}
	length := patience
	if !before.Until.IsZero() && !isForgotten(before, now) {
		length = min(2*before.Length, a.timeout)
	}
	s.Cluster.SetBackOff(namespace, cluster.BackOff{Until: now.Add(length), Length: length})
}

// isForgotten reports whether a back-off ended so long ago that the next is a first one again: a job had time to be admitted and
// sent back, and to do so once more.
func isForgotten(b cluster.BackOff, now time.Time) bool { return now.After(b.Until.Add(2 * patience)) }

// remember takes up what processes before this one did, and forgets what was long ago.
func (a action) remember(s *framework.Session) {
	for namespace, b := range s.Cluster.BackOffs() {
		if isForgotten(b, s.Now) {
			s.Cluster.SetBackOff(namespace, cluster.BackOff{})
		}
	}
	for _, j := range s.Cluster.Waiting() {
		if !j.IsPendingAdmission() || !j.BarredUntil.IsZero() || j.IsReported {
			continue
		}
		if sentBack := said(j, verdict.PodsMissing); !sentBack.IsZero() {
			j.BarredUntil = sentBack.Add(a.pause(j, sentBack))
			if until := sentBack.Add(patience); until.After(s.Cluster.BackOff(j.ID.Namespace).Until) {
				s.Cluster.SetBackOff(j.ID.Namespace, cluster.BackOff{Until: until, Length: patience})
			}
		}
	}
}

// comesLast reports whether a job would be kept room for without pods, and its namespace backs off.
func comesLast(s *framework.Session, j *cluster.Job) bool {
	return j.MinResources != nil && j.AwaitsPods() && s.Now.Before(s.Cluster.BackOff(j.ID.Namespace).Until)
}

// tryAdmitLast looks at the jobs of namespaces that back off, if no job of another namespace waits for room.
func (a action) tryAdmitLast(s *framework.Session, last []*cluster.Job) {
	if len(last) == 0 {
		return
	}
	waits := namespacesThatWait(s, last)
	for _, j := range last {
		namespace := j.ID.Namespace
		if len(waits) == 0 || len(waits) == 1 && waits[namespace] {
			s.LookAt(j, func() { a.tryAdmit(s, j) })
			continue
		}
		if v := a.barred(s, j); v != nil { // which says more
			s.AddVerdict(j, v)
			continue
		}
		until := s.Cluster.BackOff(namespace).Until
		s.Cluster.Revisit(j, until)
		s.AddVerdict(j, &verdict.Verdict{Code: verdict.NamespaceBackingOff, Subject: namespace, Help: verdict.HelpTime,
			Detail: "until " + until.UTC().Format(time.RFC3339)})
	}
}

// namespacesThatWait are those of jobs that wait for room, but for some jobs.
func namespacesThatWait(s *framework.Session, but []*cluster.Job) map[string]bool {
	passed := make(map[*cluster.Job]bool, len(but))
	for _, j := range but {
		passed[j] = true
	}
	waits := map[string]bool{}
	for _, j := range s.Cluster.Waiting() {
		if !passed[j] && waitsForRoom(j) {
			waits[j.ID.Namespace] = true
		}
	}
	return waits
}
