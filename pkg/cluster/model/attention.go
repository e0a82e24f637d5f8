package model

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/backlog"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/internal/changelog"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/verdict"
)

// attention records what must be looked at again: the waiting jobs with the help that their verdicts list, and the
// changes of nodes for caches outside the model.
type attention struct {
	registry
	backlog backlog.Backlog // that wait

	touchedJobs []*cluster.Job // changed since TakeTouchedJobs

	world      wake.World
	generation uint64
	changes    changelog.Slots // of nodes
	trial      *trial          // nil outside a trial
	isTrying   bool            // the change that is made may be undone: see list
}

// maxChanges limits the list of changes: twice a hundred thousand placements in a cycle, one megabyte.
const maxChanges = 1 << 18

// Waiting returns the jobs that wait, see [backlog.Backlog.Waiting].
func (a *attention) Waiting() []*cluster.Job { return a.backlog.Waiting() }

// Attended returns the waiting jobs that do not rest, see [backlog.Backlog.Attended].
func (a *attention) Attended() []*cluster.Job { return a.backlog.Attended() }

// list adds a job to the changed jobs, and to the waiting jobs if it waits. A job that an operation has changed is
// listed when the operation is kept: undone it leaves no trace here.
func (a *attention) list(j *cluster.Job) {
	if a.isTrying {
		return
	}
	a.TouchJob(j)
	a.backlog.Unsettle(j)
	if j.Internal.IsWaiting || j.WantsAttention() {
		a.backlog.Wait(j)
		a.backlog.Attend(j)
	}
}

// renew makes a job be tried again, whatever its verdict.
func (a *attention) renew(j *cluster.Job) {
	j.Internal.Version++
	a.backlog.Attend(j)
}

// TakeTouchedJobs returns the jobs that have changed since the last call, by namespace and name. Jobs without a
// PodGroup and jobs of other schedulers are included.
func (a *attention) TakeTouchedJobs() []*cluster.Job {
	jobs := a.touchedJobs
	a.touchedJobs = nil
	for _, j := range jobs {
		j.Internal.IsTouched = false
	}
	jobs = slices.DeleteFunc(jobs, func(j *cluster.Job) bool { return a.jobs[j.ID] != j })
	slices.SortFunc(jobs, func(a, b *cluster.Job) int { return a.ID.Compare(b.ID) })
	return jobs
}

// TouchJob adds a job to those that TakeTouchedJobs returns.
func (a *attention) TouchJob(j *cluster.Job) {
	if !j.Internal.IsTouched {
		j.Internal.IsTouched = true
		a.touchedJobs = append(a.touchedJobs, j)
	}
}

// Touch counts a node as changed although its object and its pods have not: the answer of a plugin about it has changed
// with time, or is known only now.
func (a *attention) Touch(n *cluster.Node) {
	a.Outdate(n)
	a.world.Note(wake.NodeTouched)
}

// Outdate counts a node as changed for caches of answers about it, because the answer of a plugin depends on other
// nodes too. Unlike [Cluster.Touch] it wakes no job, so that undone changes do not either.
func (a *attention) Outdate(n *cluster.Node) {
	if a.trial != nil {
		a.trial.isOutdated = true
	}
	a.changed(n)
}

func (a *attention) changed(n *cluster.Node) {
	if a.trial != nil {
		if _, known := a.trial.generations[n]; !known {
			a.trial.generations[n] = n.Generation
		}
	}
	a.generation++
	n.Generation = a.generation
	a.changes.Add(int32(n.Slot))
}

// Position is that of the next change of a node, for Changes.
func (a *attention) Position() uint64 { return a.changes.End() }

// Changes returns the slots of the nodes that have changed since a position, and the position for the next call. A slot
// may be named more than once, but there are no more names than slots. ok is false if that position is too old, so that
// any node may have changed. The slots are valid until the next operation.
func (a *attention) Changes(since uint64) (slots []int32, next uint64, ok bool) {
	return a.changes.Since(since)
}

// Note counts a change that a plugin has found, and that could help a waiting job.
func (a *attention) Note(cause wake.Cause) { a.world.Note(cause) }

// NoteFreed counts that a job holds, requests or claims less of its queue.
func (a *attention) NoteFreed(j *cluster.Job) { a.world.NoteFreed(j.AccountOf()) }

// NoteGrown counts that a queue has come to deserve more, or to have a higher ceiling.
func (a *attention) NoteGrown(q *quota.Node) { a.world.NoteGrown(q) }

// Postpone makes the next cycle try a job again, whatever its verdict, because this cycle has no time to search for it
// in a scope.
func (a *attention) Postpone(j *cluster.Job, scope decision.Scope) {
	j.Internal.Postponed |= decision.ScopesOf(scope)
	a.backlog.Attend(j)
}

// Reconsider makes every job with a verdict be tried again, because the policy has changed.
func (a *attention) Reconsider() {
	for _, j := range a.jobs {
		a.renew(j)
	}
}

// SetVerdict notes why a job waits, in place of earlier verdicts. Nil says that it does not wait. The job need not be
// tried again until [Cluster.ShouldRetry] says so, by the help that this verdict lists. It is for verdicts about the
// whole job. [Cluster.AddVerdict] is for one of several reasons.
func (a *attention) SetVerdict(j *cluster.Job, v *verdict.Verdict) {
	j.Internal.Judged = a.Present(j)
	if !j.Internal.IsTouched && !j.Verdict.Equal(v) { // to compare takes time
		a.TouchJob(j)
	}
	j.Verdict = v
	a.backlog.Watch(j)
	a.backlog.Attend(j)
}

// AddVerdict adds one more reason why a job waits, in the same cycle as the earlier one. Nil clears both. Help for the
// first reason may have come in between, such as a plan that has freed the quota. So each kind of help counts from the
// first of the two verdicts that lists it.
func (a *attention) AddVerdict(j *cluster.Job, v *verdict.Verdict) {
	if j.Verdict == nil || v == nil {
		a.SetVerdict(j, v)
		return
	}
	first, hoped := j.Internal.Judged, j.Verdict.Help
	a.SetVerdict(j, j.Verdict.With(v))
	j.Internal.Judged.Since(&first, hoped)
}

// Present returns the current state of the model for a job.
func (a *attention) Present(j *cluster.Job) wake.Stamp {
	return wake.Stamp{Counts: a.world.Counts.In(j.QuotaNode()), Version: j.Internal.Version}
}

// postponement is how long a postponed job waits for the next cycle. Meanwhile events are applied, and other work has
// its turn.
const postponement = 100 * time.Millisecond

// ShouldRetry reports whether anything has happened since a job's verdict that could help it, or whether it was not
// tried for a long time. The caller then tries the job.
func (a *attention) ShouldRetry(j *cluster.Job, now time.Time) bool {
	if now.Before(j.NotBefore) {
		return false
	}
	hasRested := !j.Internal.LookedAt.IsZero() && now.Sub(j.Internal.LookedAt) >= backlog.LongestRest
	j.Postponed, j.Internal.Postponed = j.Internal.Postponed, 0
	isDue := hasRested || j.Postponed != 0 || a.IsHelped(j) || j.Verdict.IsDue(now)
	if isDue || j.Internal.LookedAt.IsZero() {
		j.Internal.LookedAt = now
	}
	return isDue
}

// isHelpedSince reports whether a cycle has made decisions after a job's verdict that could help it. No event would
// start the next cycle for that.
func (a *attention) isHelpedSince(j *cluster.Job, now time.Time) bool {
	return j.Verdict != nil && j.Verdict.Help&verdict.HelpTime == 0 && !now.Before(j.NotBefore) && a.IsHelped(j)
}

// IsHelped reports whether anything has happened that the job's verdict lists as help.
func (a *attention) IsHelped(j *cluster.Job) bool {
	now := a.Present(j)
	return wake.IsHelped(&j.Internal.Judged, &now, j.Verdict)
}

// HelpsOnlyRest reports whether something has happened that the job's verdict lists as help, but nothing that a part of
// the verdict lists.
func (a *attention) HelpsOnlyRest(j *cluster.Job, part *verdict.Verdict) bool {
	now := a.Present(j)
	return wake.IsHelped(&j.Internal.Judged, &now, j.Verdict) && !wake.IsHelped(&j.Internal.Judged, &now, part)
}

// Retry returns the waiting jobs that something may have helped, see [backlog.Backlog.Retry]. room may be nil.
func (a *attention) Retry(now time.Time, room cluster.RoomCounter) (helped []*cluster.Job, roomed backlog.Roomed) {
	if a.world.Overlook != nil && a.world.Overlook(wake.RoomCounted) {
		room = func(*cluster.Class) (int64, uint64) { return 0, 0 }
	}
	a.backlog.OverlooksStocks = a.world.Overlook != nil && a.world.Overlook(wake.StockCounted)
	return a.backlog.Retry(now, &a.world.Counts, a.Position(), room, a.ShouldRetry)
}

// Look must be called when a roomed job of Retry is looked at.
func (a *attention) Look(j *cluster.Job, now time.Time) { a.backlog.Look(j, now) }

// Recount counts the room that jobs wait for and did not get though it was there. It is called when a session has
// ended: others may have got it, and as much that becomes free then is more than before.
func (a *attention) Recount(room cluster.RoomCounter) { a.backlog.Recount(room) }

// WaitForRoom says that a job cannot start before there is more room. Its verdict must list HelpRoom.
func (a *attention) WaitForRoom(j *cluster.Job, w cluster.RoomWait) { j.Internal.Room = w }

// NoteRefused notes that nodes refuse a job, which waits until they have as much room as its verdict lacks.
func (a *attention) NoteRefused(j *cluster.Job, v *verdict.Verdict) { j.Internal.Refused = v }

// Refused returns what was last said to NoteRefused about a job, nil if nothing was.
func (a *attention) Refused(j *cluster.Job) *verdict.Verdict { return j.Internal.Refused }

// RoomWait returns what was last said to WaitForRoom about a job.
func (a *attention) RoomWait(j *cluster.Job) cluster.RoomWait { return j.Internal.Room }
