package model

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/internal/changelog"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/verdict"
)

// attention is what is to be looked at again: the jobs that wait and what they hope for, and what has changed for those that keep
// answers beside the model.
type attention struct {
	registry

	waiting     []*cluster.Job // jobs that have something to place, or wait for admission
	touchedJobs []*cluster.Job // changed since TakeTouchedJobs

	world      wake.World
	generation uint64
	changes    changelog.Log[int32] // slots of nodes
	trial      *trial               // nil while none is under way
}

// maxChanges bounds the list of changes: twice a hundred thousand placements in a cycle, one megabyte.
const maxChanges = 1 << 18

// Waiting returns the jobs that had something to place, or waited for admission, when events were settled last, in no
// particular order. The caller must not change the slice.
func (a *attention) Waiting() []*cluster.Job { return a.waiting }

// list notes that a job has changed, and that it waits if it does.
func (a *attention) list(j *cluster.Job) {
	a.touch(j)
	if j.WantsAttention() && !j.Internal.IsWaiting {
		j.Internal.IsWaiting = true
		a.waiting = append(a.waiting, j)
	}
}

// TakeTouchedJobs returns the jobs that changed since it was called last, by namespace and name; those without PodGroup and
// those of other schedulers too.
func (a *attention) TakeTouchedJobs() []*cluster.Job {
	jobs := a.touchedJobs
	a.touchedJobs = nil
	for _, j := range jobs {
		j.Internal.IsTouched = false
	}
	jobs = slices.DeleteFunc(jobs, func(j *cluster.Job) bool { return a.jobs[j.ID] != j })
	slices.SortFunc(jobs, func(a, b *cluster.Job) int { return cluster.CompareNames(a.ID, b.ID) })
	return jobs
}

// TouchJob has TakeTouchedJobs return a job although nothing has happened to it.
func (a *attention) TouchJob(j *cluster.Job) { a.touch(j) }

func (a *attention) touch(j *cluster.Job) {
	if !j.Internal.IsTouched {
		j.Internal.IsTouched = true
		a.touchedJobs = append(a.touchedJobs, j)
	}
}

// Touch counts a node as changed though its object and what is on it are as they were: what a plugin says of it has changed
// with time, or could not be found out before.
func (a *attention) Touch(n *cluster.Node) {
	a.Outdate(n)
	a.world.Note(wake.NodeTouched)
}

// Outdate counts a node as changed for code that keeps answers about it: what a plugin says of it rests on other nodes too, and
// has changed with them. Unlike [Cluster.Touch] it gives no judged job new hope, so that what is tried and taken back wakes no job.
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

// Changes returns the slots of the nodes that changed since a position, oldest first, and the position to ask from next.
// ok is false if that is too long ago to tell: then any node may have changed. The slots are good until the next operation.
func (a *attention) Changes(since uint64) (slots []int32, next uint64, ok bool) {
	return a.changes.Since(since)
}

// Note counts something that a plugin has found to have changed, and that could help a job that waits.
func (a *attention) Note(cause wake.Cause) { a.world.Note(cause) }

// Postpone has a job looked at again in the next cycle, whatever else is said of it in this one: there is no time to look
// for room for it in a scope.
func (a *attention) Postpone(j *cluster.Job, scope decision.Scope) {
	j.Internal.Postponed |= decision.ScopesOf(scope)
}

// Reconsider makes every judged job worth another look: the rules have changed.
func (a *attention) Reconsider() {
	for _, j := range a.jobs {
		j.Internal.Version++
	}
}

// SetVerdict notes why a job waits, in place of all that was noted before; nil says that nothing keeps it. The job need not be looked
// at again until [Cluster.Hopeful] says so, by what this verdict hopes for alone. It is for what is true of the job as a whole;
// [Cluster.AddVerdict] is for one of several reasons.
func (a *attention) SetVerdict(j *cluster.Job, v *verdict.Verdict) {
	j.Internal.Judged = a.Present(j)
	if !j.Verdict.Equal(v) {
		a.touch(j)
	}
	j.Verdict = v
}

// AddVerdict notes one more reason why a job waits, given after another in the same cycle; the two are held together. Nil clears
// both. What the first hopes for may have happened since: a plan that was adopted in between, for instance, has freed the quota that was
// short. So each kind of change counts from the first of the two that hopes for it.
func (a *attention) AddVerdict(j *cluster.Job, v *verdict.Verdict) {
	if j.Verdict == nil || v == nil {
		a.SetVerdict(j, v)
		return
	}
	first, hoped := j.Internal.Judged, j.Verdict.Help
	a.SetVerdict(j, j.Verdict.With(v))
	j.Internal.Judged.Since(&first, hoped)
}

// Present is what the world looks like now to a job.
func (a *attention) Present(j *cluster.Job) wake.Stamp { return a.world.Stamp(j.Internal.Version) }

// postponement is how long a job waits that a cycle had no time for: long enough that what has happened meanwhile is taken
// in, and that the cycles leave time for others.
const postponement = 100 * time.Millisecond

// longestRest is after how long a job is looked at again though nothing seems to have happened that could help: should a
// change be missed for what it is, a job waits for minutes, not for ever (source: kube-scheduler does the same).
const longestRest = 5 * time.Minute

// Hopeful reports whether anything has happened that could help a job since it was judged, or it has rested for long. The
// caller looks at the job if it says yes.
func (a *attention) Hopeful(j *cluster.Job, now time.Time) bool {
	if now.Before(j.NotBefore) {
		return false
	}
	hasRested := !j.Internal.LookedAt.IsZero() && now.Sub(j.Internal.LookedAt) >= longestRest
	j.Postponed, j.Internal.Postponed = j.Internal.Postponed, 0
	hopeful := hasRested || j.Postponed != 0 || a.IsHelped(j)
	if hopeful || j.Internal.LookedAt.IsZero() {
		j.Internal.LookedAt = now
	}
	return hopeful
}

// isHelpedSince reports whether a cycle has itself, after it had judged a job, decided what could help it: nothing need happen
// outside for that, so no event has the next cycle run.
func (a *attention) isHelpedSince(j *cluster.Job, now time.Time) bool {
	return j.Verdict != nil && j.Verdict.Help&verdict.HelpTime == 0 && !now.Before(j.NotBefore) && a.IsHelped(j)
}

// IsHelped reports whether anything has happened that the job's verdict hopes for.
func (a *attention) IsHelped(j *cluster.Job) bool {
	return a.world.IsHelped(&j.Internal.Judged, j.Internal.Version, j.Verdict)
}
