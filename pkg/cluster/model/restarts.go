package model

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// restartTime is how long after the deadline of a plan within a job it may still show that the job restarts.
const restartTime = time.Minute

// watch watches from now on the tasks of a job that a plan within it does not evict: those that stay on their nodes,
// and those that it makes room for. Those that are evicted leave for that reason.
func (s *Plans) watch(p *cluster.Plan) {
	for _, other := range s.within {
		other.Internal.Staying = slices.DeleteFunc(other.Internal.Staying, func(t *cluster.Task) bool { return slices.Contains(p.Victims, t) })
	}
	if p.Scope != decision.WithinJob || p.Evictions == 0 {
		return // what follows from evictions is not seen from it
	}
	p.Internal.Staying = slices.Clone(p.Internal.Nominated)
	for _, t := range p.Job.Internal.Tasks {
		if t.Node != nil && t.Status.Counts() && t.Status != cluster.Pipelined && !slices.Contains(p.Victims, t) {
			p.Internal.Staying = append(p.Internal.Staying, t)
		}
	}
	s.within = append(s.within, p)
}

// NoteRestarts notes which jobs have restarted after an eviction within them: other pods of such a job were deleted,
// which no plan evicts.
func (s *Plans) NoteRestarts(now time.Time) {
	s.within = slices.DeleteFunc(s.within, func(p *cluster.Plan) bool {
		j := p.Job
		switch {
		case s.model.jobs[j.ID] != j:
			return true
		case slices.ContainsFunc(p.Internal.Staying, s.hasLeft):
			j.NoteRestart()
			s.model.renew(j)
			s.model.TouchJob(j)
			return true
		case now.After(p.Deadline.Add(restartTime)):
			j.Internal.Restarts = 0
			return true
		}
		return false
	})
}

// hasLeft reports whether a task was deleted, or is being deleted, before it has ended.
func (s *Plans) hasLeft(t *cluster.Task) bool {
	if phase := t.Pod.Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
		return false
	}
	return s.model.tasks[t.Key()] != t || t.Status.Leaves() || t.Status == cluster.Lingering
}
