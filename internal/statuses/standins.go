package statuses

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/verdict"
)

// writeStandIns records on a PodGroup which nodes are held for pods that do not exist yet, and fails the pods of a gang
// that has waited too long.
func (r *Reporter) writeStandIns(j *cluster.Job, d *decision.Decisions) {
	if j.Expected == nil && j.Group.Annotations[schedulingv1beta1.StandInsKey] == "" {
		return
	}
	last := j.Group.Annotations[schedulingv1beta1.StandInsKey]
	if s := r.memory.jobs[j]; s != nil && s.standIns != nil {
		last = *s.standIns
	}
	record := recordOf(j)
	if text := record.Encode(); text != last {
		r.memory.of(j).standIns = &text
		d.Awaits = append(d.Awaits, decision.GroupStandIns{Job: j.ID, UID: j.UID(), Record: text})
	}
	if j.IsFailing() {
		r.failPods(j, d)
	}
}

func recordOf(j *cluster.Job) (r decision.StandInRecord) {
	e := j.Expected
	if e == nil {
		return r
	}
	r.IsOver = e.IsOver
	if !e.Since.IsZero() {
		since := metav1.NewTime(e.Since)
		r.Since = &since
	}
	for _, t := range j.StandIns(cluster.Awaited) {
		if r.Nodes == nil {
			r.Nodes = map[string][]string{}
		}
		r.Nodes[t.Role] = append(r.Nodes[t.Role], t.Node.Name)
	}
	return r
}

// failPods decides that the waiting pods of a job have failed, each once.
func (r *Reporter) failPods(j *cluster.Job, d *decision.Decisions) {
	failing := slices.DeleteFunc(slices.Clone(j.Tasks()), func(t *cluster.Task) bool { return !t.IsFailing() || r.memory.pods[t].isFailed })
	slices.SortFunc(failing, cluster.CompareTasks)
	for _, t := range failing {
		s := r.memory.pods[t]
		s.isFailed = true
		r.memory.pods[t] = s
		d.Fails = append(d.Fails, decision.PodFailure{Pod: t.Key(), UID: t.UID(), Reason: string(verdict.ResourceReservationTimeout),
			Message: fmt.Sprintf("the task groups of the application had no places for all pods within %s, and gangSchedulingStyle is Hard", j.Expected.Timeout)})
	}
}
