package cache

import (
	"time"

	"hekla.sh/hekla/pkg/cluster"
)

// late are the pods that have ended since the last session and were not counted on any more.
type late []latePod

type latePod struct {
	job *cluster.Job
	due time.Time // when its grace period was over
}

// noteEnd notes that a pod has ended or is gone.
func (l *late) noteEnd(t *cluster.Task) {
	if t.Status == cluster.Lingering && t.Job != nil && t.Pod.DeletionTimestamp != nil {
		*l = append(*l, latePod{t.Job, t.Pod.DeletionTimestamp.Time})
	}
}

// settle notes of the jobs of these pods how late they were. Events have no time of their own, and a session follows
// them at once.
func (l *late) settle(now time.Time) {
	for _, p := range *l {
		p.job.NoteLate(p.due, now)
	}
	*l = nil
}
