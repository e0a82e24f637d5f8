package statuses

import (
	"fmt"
	"time"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// ungrouped is a pod that names no PodGroup, and when it is to be said that none exists.
type ungrouped struct {
	task *cluster.Task
	due  time.Time
}

const (
	// groupingPause is how long the controllers have to make a PodGroup for a pod that names none.
	groupingPause = 10 * time.Second
	// ungroupedAtOnce is how many pods are told at once that no PodGroup was made for them, and ungroupedPause how long
	// the next wait. When the controllers are down all lone pods lack one, and the API server has more important things to write.
	ungroupedAtOnce = 50
	ungroupedPause  = time.Second
)

// writeUngrouped tells pods that name no PodGroup that none was made for them. They belong to no job, so nothing else is
// said of them.
func (r *Reporter) writeUngrouped(c *cluster.Cluster, now time.Time, d *decision.Decisions) {
	for _, t := range c.TakeUngrouped() {
		r.ungrouped = append(r.ungrouped, ungrouped{task: t, due: now.Add(groupingPause)})
	}
	told, last := 0, 0
	for ; last < len(r.ungrouped) && !now.Before(r.ungrouped[last].due) && told < ungroupedAtOnce; last++ {
		if t := r.ungrouped[last].task; c.IsUngrouped(t) {
			before := len(d.Pods)
			message := fmt.Sprintf("the pod has no annotation %s, and no PodGroup was made for it in %s; do the controllers run?",
				schedulingv1beta1.KubeGroupNameAnnotationKey, groupingPause)
			r.tellPod(t, reasonGroupNotFound, message, message, now, d)
			told += len(d.Pods) - before
		}
	}
	clear(r.ungrouped[:last])
	r.ungrouped = r.ungrouped[last:]
	if told == ungroupedAtOnce && len(r.ungrouped) > 0 {
		r.postpone(now.Add(ungroupedPause))
	}
}

// postpone has those pods wait until then that are due before.
func (r *Reporter) postpone(until time.Time) {
	for i := range r.ungrouped {
		if !r.ungrouped[i].due.Before(until) {
			break // they are in the order of their time
		}
		r.ungrouped[i].due = until
	}
}
