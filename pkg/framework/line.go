package framework

import (
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

// place is one of the two lines of a queue: jobs pending admission have a line of their own.
type place struct {
	queue     *cluster.Queue
	isPending bool
}

// head is the first job of a line, and what the session had decided when it was looked up.
type head struct {
	job      *cluster.Job
	decided  Decided
	admitted int
}

// HeldUp names the job that a job must wait for though there may be room, nil if there is none. In a queue with the
// dequeueStrategy fifo, no job is admitted or placed before the one ahead of it. Two kinds of jobs hold up no other.
// One has what it needs to start. The other cannot start at all, for lack of pods or because it is too large for its
// queue.
func (s *Session) HeldUp(j *cluster.Job) *verdict.Verdict {
	if j.Queue == nil || j.Queue.DequeueStrategy != schedulingv1beta1.DequeueStrategyFIFO {
		return nil
	}
	in := place{queue: j.Queue, isPending: j.IsPendingAdmission()}
	decided := s.Decided()
	first, known := s.heads[in]
	if !known || first.decided != decided || first.admitted != s.admitted {
		first = head{job: s.firstIn(in), decided: decided, admitted: s.admitted}
		s.heads[in] = first
	}
	if first.job == nil || first.job == j || s.CompareJobs(first.job, j) > 0 {
		return nil
	}
	return &verdict.Verdict{Code: verdict.HeldUp, Subject: first.job.Name(), Help: verdict.HelpTime,
		Detail: "queue " + j.Queue.Name + " has the dequeueStrategy fifo"}
}

func (s *Session) firstIn(in place) *cluster.Job {
	var first *cluster.Job
	look := func(j *cluster.Job) {
		if j != nil && j.Queue == in.queue && j.IsPendingAdmission() == in.isPending && (first == nil || s.CompareJobs(j, first) < 0) && s.holdsUp(j) {
			first = j
		}
	}
	for _, j := range s.Cluster.Waiting() {
		look(j)
	}
	for _, p := range s.Cluster.Plans().All() {
		look(p.Job) // it may have no task left to place
	}
	return first
}

func (s *Session) holdsUp(j *cluster.Job) bool {
	if v := j.Verdict; v != nil && (v.Code == verdict.TooLargeForQueue || v.Code == verdict.TooLargeForCluster || v.Code == verdict.PodsMissing || v.Code == verdict.NamespaceBackingOff || v.Code == verdict.Quarantined) {
		return false
	}
	return (j.IsPendingAdmission() || !s.IsReady(j)) && s.Validate(j) == nil
}
