package cluster

import "time"

// Refusal records that the API server has refused to evict a pod.
type Refusal struct {
	Times int    // in a row
	Why   string // the last answer of the API server, as a clause

	Until time.Time // when the pod may be chosen as a victim again, zero once it may
}

// MayBeAsked reports whether the pod may be chosen as a victim. After a refusal it may be chosen again when the pod,
// its namespace or its disruption budget has changed, and after a back-off.
func (t *Task) MayBeAsked() bool { return t.Refusal == nil || t.Refusal.Until.IsZero() }
