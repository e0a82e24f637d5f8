package cluster

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// The back-off of a pod that the API server refused to evict: a policy or a webhook can change its answer without the scheduler seeing
// anything of it, so the pod is asked for again; but each time a plan is made for it and cancelled. Half a minute, doubled by each
// refusal in a row, at most five minutes.
const (
	firstRefusal = 30 * time.Second
	lastRefusal  = 5 * time.Minute
)

// Refused says that the API server refused to evict a pod, or to have it marked as one that is to leave.
type Refused struct {
	Pod    types.NamespacedName
	UID    types.UID
	Reason string // what the API server said, a clause
	// ByBudget is set if a disruption budget allows no more evictions.
	ByBudget bool
}

// Refusal is what is remembered of the evictions of a pod that were refused.
type Refusal struct {
	Times int    // in a row
	Why   string // what the API server said last, a clause

	until time.Time // when the pod may be chosen again, zero once it may
}

// pause is how long a pod is left alone after so many refusals in a row.
func pause(times int) time.Duration {
	if times > 5 {
		return lastRefusal
	}
	return min(firstRefusal<<max(times-1, 0), lastRefusal)
}

// MayBeAsked reports whether nothing is known of why the API server would refuse to evict the task's pod. One that was refused is
// asked for again when the pod, its namespace or its disruption budget has changed, and after a while.
func (t *Task) MayBeAsked() bool { return t.Refusal == nil || t.Refusal.until.IsZero() }

// remember notes that a pod could not be evicted.
func (c *Cluster) remember(e Refused, at time.Time) {
	t := c.tasks[e.Pod]
	if t == nil || t.UID() != e.UID || !t.Status.Evictable() && t.Status != Evicting {
		return
	}
	r := &Refusal{Times: 1, Why: e.Reason}
	if t.Refusal != nil {
		r.Times += t.Refusal.Times
	}
	t.Refusal = r
	if e.ByBudget && slices.ContainsFunc(c.Budgets(t), func(b *Budget) bool { return b.Allowed() <= 0 }) {
		return // the model was behind when the pod was chosen, and knows by now
	}
	r.until = at.Add(pause(r.Times))
	c.refused[t.Key()] = t
}

// recall takes over what a process before this one has written about refusals.
func (c *Cluster) recall(t *Task) {
	if !t.Status.Evictable() {
		return
	}
	times, condition := decision.RefusalOf(t.Pod)
	if condition == nil {
		return
	}
	r := &Refusal{Times: times, Why: condition.Message}
	r.until = condition.LastTransitionTime.Add(pause(r.Times))
	t.Refusal = r
	c.refused[t.Key()] = t
}

// reconsider has tasks be asked for again that were refused: something has changed that the answer may rest on.
func (c *Cluster) reconsider(which func(t *Task) bool) {
	for key, t := range c.refused {
		if which(t) {
			t.Refusal.until = time.Time{}
			delete(c.refused, key)
			c.world.Note(wake.RefusalOver)
		}
	}
}

// expireRefusals ends the back-off of those that have waited long enough. A time that lies further ahead than any back-off was
// written by another program, or by a clock that is wrong.
func (c *Cluster) expireRefusals(now time.Time) {
	c.reconsider(func(t *Task) bool {
		left := t.Refusal.until.Sub(now)
		return left <= 0 || left > lastRefusal
	})
}
