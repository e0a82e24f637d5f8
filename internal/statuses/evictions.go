package statuses

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/framework"
)

// evictedReason is the reason of the condition Evicted. It is that of the Events of the pods.
const evictedReason = "Preempted"

// restartsReason is that of the condition that says so.
const restartsReason = "PodsDeleted"

// maxEvictions is how many evictions the condition of a job names.
const maxEvictions = 3

// evicted is the eviction of a pod that a plan has decided.
type evicted struct {
	pod  types.UID
	line string // of the message
}

// NoteEvictions makes the jobs of victims say that these are evicted. It is called before [Reporter.Statuses].
func (r *Reporter) NoteEvictions(c *model.Cluster, began []*framework.Planned) {
	for _, planned := range began {
		if !planned.Plan.IsInForce() {
			continue
		}
		for i := range planned.Evictions {
			e := &planned.Evictions[i]
			j := c.Job(e.VictimJob)
			if j == nil || j.Group == nil || j.IsForeign {
				continue
			}
			of := r.memory.of(j)
			of.evictions = append([]evicted{{pod: e.UID, line: planned.Plan.Since.UTC().Format(time.RFC3339) + " pod " + e.Pod.Name + ": " + e.Message}}, of.evictions...)
		}
	}
}

// evictionsOf returns the message of the condition Evicted: the last evictions that this process has decided, and
// before them those that the condition names already. It is "" if there are none. An eviction that was cancelled is not
// named any more.
func (r *Reporter) evictionsOf(j *cluster.Job, last []schedulingv1beta1.PodGroupCondition) string {
	var lines, cancelled []string
	if s := r.memory.jobs[j]; s != nil {
		for _, e := range s.evictions {
			if stays(j, e.pod) {
				cancelled = append(cancelled, e.line)
			} else {
				lines = append(lines, e.line)
			}
		}
		s.evictions = slices.DeleteFunc(s.evictions, func(e evicted) bool { return !slices.Contains(lines, e.line) })
		s.evictions = s.evictions[:min(len(s.evictions), maxEvictions)]
	}
	for _, c := range last {
		if c.Type != schedulingv1beta1.PodGroupEvictedType {
			continue
		}
		for line := range strings.SplitSeq(c.Message, "\n") {
			if !slices.Contains(lines, line) && !slices.Contains(cancelled, line) {
				lines = append(lines, line)
			}
		}
	}
	return strings.Join(lines[:min(len(lines), maxEvictions)], "\n")
}

// stays reports whether a pod of a job has a node and is not leaving it.
func stays(j *cluster.Job, pod types.UID) bool {
	return slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool {
		return t.UID() == pod && t.Node != nil && !t.Status.Leaves() && t.Status != cluster.Lingering
	})
}
