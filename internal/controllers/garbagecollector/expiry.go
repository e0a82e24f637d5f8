package garbagecollector

import (
	"time"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// expiry returns when a Job that has ended is to be deleted, and whether it ever is.
func expiry(job *batch.Job) (time.Time, bool) {
	state := &job.Status.State
	if job.Spec.TTLSecondsAfterFinished == nil || state.LastTransitionTime.IsZero() {
		return time.Time{}, false
	}
	switch state.Phase {
	case batch.Completed, batch.Failed, batch.Terminated:
		return state.LastTransitionTime.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second), true
	}
	return time.Time{}, false
}
