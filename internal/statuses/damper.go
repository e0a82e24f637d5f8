package statuses

import (
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
)

// A condition is written again at once when its reason changes. If only its message changes, such as by a number, that
// must have lasted for leastPause. The pause doubles with each such write, up to mostPause: with many waiting jobs
// every event changes some number of each.
const leastPause, mostPause = 10 * time.Second, 5 * time.Minute

// damper is since when the message of a condition has been another than the one that was written.
type damper struct {
	since   time.Time // zero if it is the one that was written
	pause   time.Duration
	written time.Time // when it was last written for its message alone
}

// differs notes that only the message has changed. It reports whether it is to be written now; otherwise due is when.
func (d *damper) differs(now time.Time) (write bool, due time.Time) {
	if d.since.IsZero() {
		d.since = now
		if d.pause == 0 || now.Sub(d.written) > 2*d.pause {
			d.pause = leastPause
		}
	}
	if due = d.since.Add(d.pause); now.Before(due) {
		return false, due
	}
	*d = damper{pause: min(2*d.pause, mostPause), written: now}
	return true, time.Time{}
}

// agrees notes that the message is the one that was written.
func (d *damper) agrees() { d.since = time.Time{} }

// reset notes that the reason has changed and was written.
func (d *damper) reset() { *d = damper{} }

// revisit is when a job is looked at again because the message of a condition has been another for some time.
type revisit struct {
	job cluster.JobID
	due time.Time
}

// revisitAt makes the damper check a job again.
func (r *Reporter) revisitAt(j *cluster.Job, due time.Time) {
	if s := r.memory.of(j); s.revisit.IsZero() || due.Before(s.revisit) {
		s.revisit = due
		r.revisits.Push(revisit{job: j.ID, due: due})
	}
}

// touchDamped touches the jobs of which the message of a condition has been another for long enough.
func (r *Reporter) touchDamped(c *cache.Cache, now time.Time) {
	for r.revisits.Len() > 0 && !now.Before(r.revisits.First().due) {
		next := r.revisits.Pop()
		j := c.Job(next.job)
		if s := r.memory.jobs[j]; s != nil && s.revisit.Equal(next.due) {
			s.revisit = time.Time{}
			c.TouchJob(j)
		}
	}
}

func compareRevisits(a, b revisit) int {
	if c := a.due.Compare(b.due); c != 0 {
		return c
	}
	return a.job.Compare(b.job)
}
