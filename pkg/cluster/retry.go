package cluster

import (
	"time"

	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/verdict"
)

// Note counts something that a plugin has found to have changed, and that could help a job that waits.
func (c *Cluster) Note(cause wake.Cause) { c.world.Note(cause) }

// SetVerdict notes why a job waits, in place of all that was noted before; nil says that nothing keeps it. The job need not be looked
// at again until [Cluster.Hopeful] says so, by what this verdict hopes for alone. It is for what is true of the job as a whole;
// [Cluster.AddVerdict] is for one of several reasons.
func (c *Cluster) SetVerdict(j *Job, v *verdict.Verdict) {
	j.judged = c.present(j)
	if !j.Verdict.Equal(v) {
		c.touch(j)
	}
	j.Verdict = v
}

// AddVerdict notes one more reason why a job waits, given after another in the same cycle; the two are held together. Nil clears
// both. What the first hopes for may have happened since: a plan that was adopted in between, for instance, has freed the quota that was
// short. So each kind of change counts from the first of the two that hopes for it.
func (c *Cluster) AddVerdict(j *Job, v *verdict.Verdict) {
	if j.Verdict == nil || v == nil {
		c.SetVerdict(j, v)
		return
	}
	first, hoped := j.judged, j.Verdict.Help
	c.SetVerdict(j, j.Verdict.With(v))
	j.judged.Since(&first, hoped)
}

// present is what the world looks like now to a job.
func (c *Cluster) present(j *Job) wake.Stamp { return c.world.Stamp(j.version) }

// postponement is how long a job waits that a cycle had no time for: long enough that what has happened meanwhile is taken
// in, and that the cycles leave time for others.
const postponement = 100 * time.Millisecond

// longestRest is after how long a job is looked at again though nothing seems to have happened that could help: should a
// change be missed for what it is, a job waits for minutes, not for ever (source: kube-scheduler does the same).
const longestRest = 5 * time.Minute

// Hopeful reports whether anything has happened that could help a job since it was judged, or it has rested for long. The
// caller looks at the job if it says yes.
func (c *Cluster) Hopeful(j *Job, now time.Time) bool {
	if now.Before(j.NotBefore) {
		return false
	}
	hasRested := !j.lookedAt.IsZero() && now.Sub(j.lookedAt) >= longestRest
	j.Postponed, j.postponed = j.postponed, 0
	hopeful := hasRested || j.Postponed != 0 || c.isHelped(j)
	if hopeful || j.lookedAt.IsZero() {
		j.lookedAt = now
	}
	return hopeful
}

// isHelpedSince reports whether a cycle has itself, after it had judged a job, decided what could help it: nothing need happen
// outside for that, so no event has the next cycle run.
func (c *Cluster) isHelpedSince(j *Job, now time.Time) bool {
	return j.Verdict != nil && j.Verdict.Help&verdict.HelpTime == 0 && !now.Before(j.NotBefore) && c.isHelped(j)
}

// isHelped reports whether anything has happened that the job's verdict hopes for.
func (c *Cluster) isHelped(j *Job) bool { return c.world.IsHelped(&j.judged, j.version, j.Verdict) }
