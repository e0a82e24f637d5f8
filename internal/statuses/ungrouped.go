package statuses

import (
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// ungrouped is a pod without a PodGroup, and when its condition must say so.
type ungrouped struct {
	task *cluster.Task
	due  time.Time
}

const (
	// ungroupedAtOnce is how many pods get that condition at once, and ungroupedPause is the pause before the next.
	// When the controllers are down, all lone pods lack a PodGroup, and the API server has more important writes.
	ungroupedAtOnce = 50
	ungroupedPause  = time.Second
)

// writeUngrouped writes a condition to pods without a PodGroup. They belong to no job, so they get no other condition.
func (r *Reporter) writeUngrouped(c *cache.Cache, now time.Time, d *decision.Decisions) {
	for _, t := range c.TakeUngrouped() {
		r.ungrouped = append(r.ungrouped, ungrouped{task: t, due: now.Add(cluster.GroupingPause)})
	}
	told, last := 0, 0
	for ; last < len(r.ungrouped) && !now.Before(r.ungrouped[last].due) && told < ungroupedAtOnce; last++ {
		if t := r.ungrouped[last].task; c.IsUngrouped(t) {
			before := len(d.Pods)
			message := cluster.WhyUngroupedWaits()
			r.tellPod(t, cluster.ReasonGroupNotFound, message, message, now, d)
			told += len(d.Pods) - before
		}
	}
	clear(r.ungrouped[:last])
	r.ungrouped = r.ungrouped[last:]
	if told == ungroupedAtOnce && len(r.ungrouped) > 0 {
		r.postpone(now.Add(ungroupedPause))
	}
}

// postpone delays the pods that are due before a time.
func (r *Reporter) postpone(until time.Time) {
	for i := range r.ungrouped {
		if !r.ungrouped[i].due.Before(until) {
			break // they are in the order of their times
		}
		r.ungrouped[i].due = until
	}
}
