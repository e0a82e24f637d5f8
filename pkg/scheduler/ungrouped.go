package scheduler

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
func (w *statusWriter) writeUngrouped(c *cluster.Cluster, now time.Time, d *decision.Decisions) {
	for _, t := range c.TakeUngrouped() {
		w.ungrouped = append(w.ungrouped, ungrouped{task: t, due: now.Add(groupingPause)})
	}
	told, last := 0, 0
	for ; last < len(w.ungrouped) && !now.Before(w.ungrouped[last].due) && told < ungroupedAtOnce; last++ {
		if t := w.ungrouped[last].task; c.IsUngrouped(t) {
			before := len(d.Pods)
			message := fmt.Sprintf("the pod has no annotation %s, and no PodGroup was made for it in %s; do the controllers run?",
				schedulingv1beta1.KubeGroupNameAnnotationKey, groupingPause)
			w.tellPod(t, reasonGroupNotFound, message, message, now, d)
			told += len(d.Pods) - before
		}
	}
	clear(w.ungrouped[:last])
	w.ungrouped = w.ungrouped[last:]
	if told == ungroupedAtOnce && len(w.ungrouped) > 0 {
		w.postpone(now.Add(ungroupedPause))
	}
}

// postpone has those pods wait until then that are due before.
func (w *statusWriter) postpone(until time.Time) {
	for i := range w.ungrouped {
		if !w.ungrouped[i].due.Before(until) {
			break // they are in the order of their time
		}
		w.ungrouped[i].due = until
	}
}
