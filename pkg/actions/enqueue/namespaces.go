package enqueue

import (
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// A job that creates no pods waits longer each time before it is admitted again. But a user could write a new PodGroup
// each time. So its namespace backs off too: for some time its jobs without pods are admitted only if no job of another
// namespace waits for quota. Jobs with pods are not affected, and nothing changes if no other job waits.

// backOff makes a namespace come last from now on. The first time is short, so that one failing job costs others of its
// namespace little. If it happens again soon after, the time doubles, up to podsTimeout.
func (a action) backOff(s *framework.Session, namespace string, now time.Time) {
	before := s.Cluster.BackOff(namespace)
	if now.Before(before.Until) {
		return // it was admitted together with jobs that were sent back before
	}
	length := patience
	if !before.Until.IsZero() && !isForgotten(before, now) {
		length = min(2*before.Length, a.timeout)
	}
	s.Cluster.SetBackOff(namespace, cluster.BackOff{Until: now.Add(length), Length: length})
}

// isForgotten reports whether a back-off ended so long ago that the next is short again. Since then a job could have
// been admitted and sent back twice.
func isForgotten(b cluster.BackOff, now time.Time) bool { return now.After(b.Until.Add(2 * patience)) }

// remember takes over the back-offs of earlier processes, and drops old ones.
func (a action) remember(s *framework.Session) {
	for namespace, b := range s.Cluster.BackOffs() {
		if isForgotten(b, s.Now) {
			s.Cluster.SetBackOff(namespace, cluster.BackOff{})
		}
	}
	for _, j := range s.Cluster.Attended() {
		if j.Group == nil || !j.IsPendingAdmission() || !j.BarredUntil.IsZero() || j.IsReported {
			continue
		}
		if sentBack := said(j, verdict.PodsMissing); !sentBack.IsZero() {
			j.BarredUntil = a.pauseOf(j, sentBack)
			j.BarredFor = j.BarredUntil.Sub(sentBack)
			if until := sentBack.Add(patience); until.After(s.Cluster.BackOff(j.ID.Namespace).Until) {
				s.Cluster.SetBackOff(j.ID.Namespace, cluster.BackOff{Until: until, Length: patience})
			}
		}
	}
}

// comesLast reports whether a job would hold quota without pods while its namespace backs off.
func comesLast(s *framework.Session, j *cluster.Job) bool {
	return j.MinResources != nil && j.AwaitsPods() && s.Now.Before(s.Cluster.BackOff(j.ID.Namespace).Until)
}

// tryAdmitLast looks at the jobs of namespaces that back off, if no job of another namespace waits for quota.
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
		if v := a.barred(s, j); v != nil { // its verdict says more
			s.AddVerdict(j, v)
			continue
		}
		until := s.Cluster.BackOff(namespace).Until
		s.Cluster.Revisit(j, until)
		s.AddVerdict(j, &verdict.Verdict{Code: verdict.NamespaceBackingOff, Subject: namespace, Help: verdict.HelpTime,
			Detail: "until " + until.UTC().Format(time.RFC3339)})
	}
}

// namespacesThatWait returns the namespaces of jobs that wait for quota, other than some jobs.
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
