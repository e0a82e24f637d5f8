package cache

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/wake"
	"k8s.io/apimachinery/pkg/types"
)

// The back-off of a pod that the API server refused to evict: half a minute, doubled by each refusal in a row, at most
// five minutes. A policy or a webhook may change its answer without an event, so the pod may be chosen again. But each
// time a plan may be made and cancelled.
const (
	firstRefusal = 30 * time.Second
	lastRefusal  = 5 * time.Minute
)

// Refused says that the API server refused to evict a pod, or to mark it as a victim.
type Refused struct {
	Pod    types.NamespacedName
	UID    types.UID
	Reason string // what the API server said, a clause
	// ByBudget is set if a disruption budget allows no more evictions.
	ByBudget bool
}

// refusals records which evictions the API server refused.
type refusals struct {
	*base
	refused map[types.NamespacedName]*cluster.Task // tasks that are not chosen as victims, by name
}

func newRefusals(b *base) refusals {
	return refusals{base: b, refused: map[types.NamespacedName]*cluster.Task{}}
}

// pause is the back-off after so many refusals in a row.
func pause(times int) time.Duration {
	if times > 5 {
		return lastRefusal
	}
	return min(firstRefusal<<max(times-1, 0), lastRefusal)
}

// remember records a refusal.
func (k *refusals) remember(e Refused, at time.Time) {
	t := k.Task(e.Pod)
	if t == nil || t.UID() != e.UID || !t.Status.Evictable() && t.Status != cluster.Evicting {
		return
	}
	r := &cluster.Refusal{Times: 1, Why: e.Reason}
	if t.Refusal != nil {
		r.Times += t.Refusal.Times
	}
	t.Refusal = r
	if e.ByBudget && slices.ContainsFunc(k.Budgets(t), func(b *cluster.Budget) bool { return b.Allowed() <= 0 }) {
		return // the model was out of date when the pod was chosen
	}
	r.Until = at.Add(pause(r.Times))
	k.refused[t.Key()] = t
}

// recall reads the refusals that an earlier process has recorded.
func (k *refusals) recall(t *cluster.Task) {
	if !t.Status.Evictable() {
		return
	}
	times, condition := decision.RefusalOf(t.Pod)
	if condition == nil {
		return
	}
	r := &cluster.Refusal{Times: times, Why: condition.Message}
	r.Until = condition.LastTransitionTime.Add(pause(r.Times))
	t.Refusal = r
	k.refused[t.Key()] = t
}

// reconsider ends the back-off of refused tasks, because something has changed that may change the answer.
func (k *refusals) reconsider(which func(t *cluster.Task) bool) {
	for key, t := range k.refused {
		if which(t) {
			t.Refusal.Until = time.Time{}
			delete(k.refused, key)
			k.Note(wake.RefusalOver)
		}
	}
}

// forget drops the record of a deleted task.
func (k *refusals) forget(t *cluster.Task) { delete(k.refused, t.Key()) }

// expire ends back-offs that are over. A time further ahead than any back-off comes from another program, or from a
// wrong clock.
func (k *refusals) expire(now time.Time) {
	k.reconsider(func(t *cluster.Task) bool {
		left := t.Refusal.Until.Sub(now)
		return left <= 0 || left > lastRefusal
	})
}
