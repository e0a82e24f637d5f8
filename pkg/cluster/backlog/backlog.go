package backlog

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/verdict"
)

// New returns an empty backlog.
func New() Backlog { return Backlog{resting: map[verdict.Help]*group{}} }

// Backlog holds the jobs that wait.
type Backlog struct {
	waiting   []*cluster.Job // jobs with pending tasks, or pending admission
	unsettled []*cluster.Job // listed since the model was last settled; they may wait no longer
	attended  []*cluster.Job // of those that wait, the ones that do not rest
	resting   map[verdict.Help]*group
	before    []*cluster.Job // attended before, empty; its memory is used again
	frozen    bool           // see Freeze
}

// group are jobs that rest until one of the same kinds of help comes.
type group struct {
	jobs   []*cluster.Job
	counts wake.Counts // nothing has happened until then that helps one of them
	oldest time.Time   // no job was tried before
}

// Waiting returns the jobs that had pending tasks, or were pending admission, when the model was last settled, in no
// particular order. The caller must not change the slice.
func (b *Backlog) Waiting() []*cluster.Job { return b.waiting }

// Attended returns the waiting jobs that do not rest: all that were tried in this cycle, that are new or have changed, or
// for which time counts. The order is not defined. The caller must not change the slice.
func (b *Backlog) Attended() []*cluster.Job { return b.attended }

// Wait adds a job to the waiting jobs.
func (b *Backlog) Wait(j *cluster.Job) {
	if !j.Internal.IsWaiting {
		j.Internal.IsWaiting, j.Internal.Backlog.WaitingAt = true, len(b.waiting)
		b.waiting = append(b.waiting, j)
	}
}

// Settle removes the listed jobs that no longer wait.
func (b *Backlog) Settle(waits func(*cluster.Job) bool) {
	for _, j := range b.unsettled {
		j.Internal.Backlog.IsUnsettled = false
		if !j.Internal.IsWaiting || waits(j) {
			continue
		}
		b.awaken(j)
		at, last := j.Internal.Backlog.WaitingAt, b.waiting[len(b.waiting)-1]
		b.waiting[at], last.Internal.Backlog.WaitingAt = last, at
		b.waiting[len(b.waiting)-1] = nil
		b.waiting = b.waiting[:len(b.waiting)-1]
		j.Internal.IsWaiting, j.Internal.Backlog.WaitingAt = false, 0
	}
	clear(b.unsettled)
	b.unsettled = b.unsettled[:0]
}

// Unsettle makes Settle look at a job.
func (b *Backlog) Unsettle(j *cluster.Job) {
	if !j.Internal.Backlog.IsUnsettled && !b.frozen {
		j.Internal.Backlog.IsUnsettled = true
		b.unsettled = append(b.unsettled, j)
	}
}

// Attend makes the next cycle look at a job.
func (b *Backlog) Attend(j *cluster.Job) {
	if !j.Internal.Backlog.IsAttended && !b.frozen {
		b.awaken(j)
		j.Internal.Backlog.IsAttended = true
		b.attended = append(b.attended, j)
	}
}

// awaken removes a job from the group in which it rests.
func (b *Backlog) awaken(j *cluster.Job) {
	if !j.Internal.Backlog.IsResting {
		return
	}
	g := b.resting[j.Internal.Backlog.RestsFor]
	at, last := j.Internal.Backlog.RestingAt, g.jobs[len(g.jobs)-1]
	g.jobs[at], last.Internal.Backlog.RestingAt = last, at
	g.jobs[len(g.jobs)-1] = nil
	g.jobs = g.jobs[:len(g.jobs)-1]
	j.Internal.Backlog.IsResting, j.Internal.Backlog.RestingAt, j.Internal.Backlog.RestsFor = false, 0, 0
}

// Rest lets a job rest until something happens that its verdict lists. Nothing must have happened since.
func (b *Backlog) Rest(j *cluster.Job, counts *wake.Counts) {
	help := wake.Hopes(j.Verdict)
	g := b.resting[help]
	if g == nil {
		g = &group{}
		b.resting[help] = g
	}
	if len(g.jobs) == 0 || j.Internal.LookedAt.Before(g.oldest) {
		g.oldest = j.Internal.LookedAt
	}
	g.counts = *counts
	j.Internal.Backlog.IsResting, j.Internal.Backlog.RestsFor, j.Internal.Backlog.RestingAt = true, help, len(g.jobs)
	g.jobs = append(g.jobs, j)
}

// AwakenHelped attends to all jobs of the groups for which something has happened, or of which a job was not tried since
// before.
func (b *Backlog) AwakenHelped(counts *wake.Counts, before time.Time) {
	for help, g := range b.resting {
		if len(g.jobs) == 0 || !g.counts.Differ(counts, help) && g.oldest.After(before) {
			continue
		}
		for _, j := range g.jobs {
			j.Internal.Backlog.IsResting, j.Internal.Backlog.IsAttended = false, true
			b.attended = append(b.attended, j)
		}
		clear(g.jobs)
		g.jobs = g.jobs[:0]
	}
}

// IsAnyHelped reports whether something has happened that helps a resting job.
func (b *Backlog) IsAnyHelped(counts *wake.Counts) bool {
	for help, g := range b.resting {
		if len(g.jobs) > 0 && g.counts.Differ(counts, help) {
			return true
		}
	}
	return false
}

// TakeAttended returns the attended waiting jobs, and attends to none. The slice is valid until the next call.
func (b *Backlog) TakeAttended() []*cluster.Job {
	jobs := b.attended
	b.attended = b.before[:0]
	for _, j := range jobs {
		j.Internal.Backlog.IsAttended = false
	}
	b.before = jobs
	return slices.DeleteFunc(jobs, func(j *cluster.Job) bool { return !j.Internal.IsWaiting })
}

// Freeze begins a trial, after which the same jobs wait as before.
func (b *Backlog) Freeze() (waiting int) {
	b.frozen = true
	return len(b.waiting)
}

// Thaw ends a trial that began with so many waiting jobs.
func (b *Backlog) Thaw(waiting int) {
	b.frozen = false
	for _, j := range b.waiting[waiting:] {
		j.Internal.IsWaiting, j.Internal.Backlog.WaitingAt = false, 0
	}
	b.waiting = b.waiting[:waiting]
}
