package statuses

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/plugins/gang"
)

// writePods writes to each waiting pod why its job waits. Autoscalers add nodes for pods with the reason Unschedulable.
// So pods have this reason only if nodes would help, and not if they fit, unless the plugin gang is configured so. The
// numbers are on the PodGroup: repeating them here would write every pod of a job again whenever one of them changes.
func (r *Reporter) writePods(j *cluster.Job, now time.Time, d *decision.Decisions) {
	if j.Count(cluster.Pending) == 0 {
		return
	}
	reason, message, sentence := j.WhyPodsWait()
	if reason == "" {
		return
	}
	fitting := r.fitting(j)
	again := refresh{of: r, job: j, now: now}
	defer again.end()
	note := "" // worded when the first pod is told: of most jobs that are looked at only numbers have changed
	for _, t := range j.Pending(cluster.CompareTasks) {
		// The API server itself writes the condition of a pod with a gate. Another reason would wake autoscalers.
		switch {
		case t.IsHeld(), t.IsStandIn:
		case fitting.Has(t.Pod.Name):
			message := j.WhyFittingWaits()
			if r.isNew(t, gang.Schedulable) || again.isDue(t, message) {
				r.tellPod(t, gang.Schedulable, message, message, now, d)
			}
		default:
			if r.isNew(t, reason) || again.isDue(t, message) {
				if note == "" {
					note = sentence()
				}
				r.tellPod(t, reason, message, note, now, d)
			}
		}
	}
}

// isNew reports whether the condition of a pod has another reason, or none.
func (r *Reporter) isNew(t *cluster.Task, reason string) bool {
	last, _ := r.said(t)
	return last != reason
}

// said returns reason and message of a pod's condition, by the last decision: the pod may not show it yet.
func (r *Reporter) said(t *cluster.Task) (reason, message string) {
	if last := r.memory.pods[t]; last.message != "" {
		return last.reason, last.message
	}
	for i := range t.Pod.Status.Conditions {
		if c := &t.Pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return c.Reason, c.Message
		}
	}
	return "", ""
}

// refresh decides once for all pods of a job whether they are told a message while the reason of their conditions
// stays.
type refresh struct {
	of           *Reporter
	job          *cluster.Job
	now          time.Time
	asked, write bool
}

// isDue reports whether a pod is to be told a message.
func (f *refresh) isDue(t *cluster.Task, message string) bool {
	if _, last := f.of.said(t); last == message {
		return false
	}
	if !f.asked {
		var due time.Time
		if f.write, due = f.of.memory.of(f.job).pods.differs(f.now); !f.write {
			f.of.revisitAt(f.job, due)
		}
		f.asked = true
	}
	return f.write
}

// end is called after all pods.
func (f *refresh) end() {
	if s := f.of.memory.jobs[f.job]; s != nil && !f.asked {
		s.pods.agrees()
	}
}

// fitting returns the names of the pods that fit although their gang does not, if their reason must say so.
func (r *Reporter) fitting(j *cluster.Job) sets.Set[string] {
	if r.placedReason != gang.Schedulable {
		return nil
	}
	return sets.New(j.FittingPods()...)
}

// tellPod sets the condition of a pod that says why it waits, unless the pod has it.
func (r *Reporter) tellPod(t *cluster.Task, reason, message, note string, now time.Time, d *decision.Decisions) {
	// The last decision counts, because the pod may not show it yet.
	if lastReason, last := r.said(t); last == message && lastReason == reason {
		return
	}
	r.memory.tell(t, reason, message)
	d.Pods = append(d.Pods, decision.PodCondition{Pod: t.Key(), UID: t.UID(), Note: note, Condition: corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}})
}
