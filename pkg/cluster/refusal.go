package cluster

import "time"

// Refusal is what is remembered of the evictions of a pod that were refused.
type Refusal struct {
	Times int    // in a row
	Why   string // what the API server said last, a clause

	Until time.Time // when the pod may be chosen again, zero once it may
}

// MayBeAsked reports whether nothing is known of why the API server would refuse to evict the task's pod. One that was refused is
// asked for again when the pod, its namespace or its disruption budget has changed, and after a while.
func (t *Task) MayBeAsked() bool { return t.Refusal == nil || t.Refusal.Until.IsZero() }
