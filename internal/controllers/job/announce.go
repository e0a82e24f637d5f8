package job

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/internal/controllers/job/lifecycle"
	"hekla.sh/hekla/pkg/apis/batch/builder"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/batch/validation"
)

// maxNote is the longest note the events API accepts, in bytes.
const maxNote = 1024

// announce sends Events for what is new in the status.
func (r *Reconciler) announce(stored *batch.Job, status *batch.JobStatus, trouble lifecycle.Trouble) {
	before := stored.Status.State
	if before.Phase == "" {
		for _, path := range validation.IgnoredJobFields(stored) {
			r.events.Eventf(stored, nil, corev1.EventTypeWarning, lifecycle.ReasonFieldNotHonoured, path,
				"%s is set, but this version of Hekla does not act on it: the Job runs as if it were not there", path)
		}
	}
	if trouble.Reason != "" && (before.Reason != trouble.Reason || before.Message != trouble.Message) {
		r.events.Eventf(stored, nil, corev1.EventTypeWarning, trouble.Reason, "Sync", "%s", clip(trouble.Message))
	}
	if reason := status.State.Reason; isUnschedulable(status, trouble) && reason != before.Reason {
		// With the reason that scripts know from Volcano. The status has the more exact reason.
		r.events.Eventf(stored, nil, corev1.EventTypeWarning, batch.PodGroupPendingReason, "Sync", "%s",
			clip(fmt.Sprintf("PodGroup %s/%s unschedule, reason: %s: %s", stored.Namespace, builder.PodGroupName(stored), reason, status.State.Message)))
	}
	if reason := status.State.Reason; reason == lifecycle.ReasonRunningEstimateExceeded && reason != before.Reason {
		r.events.Eventf(stored, nil, corev1.EventTypeWarning, reason, "Sync", "%s", status.State.Message)
	}
	if phase := status.State.Phase; phase != before.Phase && before.Phase != "" {
		kind := corev1.EventTypeNormal
		if phase == batch.Failed {
			kind = corev1.EventTypeWarning
		}
		r.events.Eventf(stored, nil, kind, string(phase), "ChangePhase", "%s", clip(phaseNote(before.Phase, status)))
	}
}

// announceActions sends Events about the actions of policies or of a Command that have begun, with what asked for each,
// in Volcano's words.
func (r *Reconciler) announceActions(job *batch.Job, asked []lifecycle.Demand) {
	for i, d := range asked {
		if slices.ContainsFunc(asked[:i], func(other lifecycle.Demand) bool { return other.Action == d.Action }) {
			continue // for another pod of the same kind
		}
		r.events.Eventf(job, nil, corev1.EventTypeNormal, batch.ExecuteActionReason, "Execute", "%s",
			clip(fmt.Sprintf("Start to execute action %s; %s", d.Action, d.Message)))
	}
}

// isUnschedulable reports whether a status has the scheduler's reason for not placing the Job.
func isUnschedulable(status *batch.JobStatus, trouble lifecycle.Trouble) bool {
	reason := status.State.Reason
	return status.State.Phase == batch.Pending && trouble.Reason == "" &&
		reason != "" && reason != batch.PodGroupPendingReason && reason != lifecycle.ReasonWaitsForTask
}

// phaseNote is the note of the Event about a new phase.
func phaseNote(before batch.JobPhase, status *batch.JobStatus) string {
	note := fmt.Sprintf("%s → %s: %d running, %d succeeded, %d failed, %d pending; minAvailable %d",
		before, status.State.Phase, status.Running, status.Succeeded, status.Failed, status.Pending, status.MinAvailable)
	if status.State.Message != "" {
		note += "; " + status.State.Message
	}
	return note
}

// clip cuts a note to the length that the events API accepts, after a whole character.
func clip(note string) string {
	if len(note) <= maxNote {
		return note
	}
	return strings.ToValidUTF8(note[:maxNote-len("…")], "") + "…"
}
