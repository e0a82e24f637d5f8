package lifecycle

import (
	"time"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// A Job whose pods fail at once, and whose policy restarts it, would restart without end as fast as the controllers
// can, since maxRetry may be any number. So restarts that follow each other quickly come after pauses that grow.
const (
	// promptRestarts is how many restarts of a Job come without a pause: as many as the default of maxRetry allows.
	promptRestarts = 3

	// The pauses before the restarts after those: doubled each time, and not longer than the second (source: kubelets
	// restart containers so).
	firstPause, lastPause = 10 * time.Second, 5 * time.Minute

	// calm is the time between restarts after which no pause is needed.
	calm = 10 * time.Minute
)

// pause is how long a Job that restarts creates no pods. It depends only on the status, so that it survives a restart
// of the controller.
func pause(status *batch.JobStatus) time.Duration {
	beyond := status.RetryCount - promptRestarts
	if status.State.Phase != batch.Restarting || beyond <= 0 || !isHasty(status) {
		return 0
	}
	length := firstPause
	for ; beyond > 1 && length < lastPause; beyond-- {
		length *= 2
	}
	return min(length, lastPause)
}

// isHasty reports whether a restart follows quickly on another, or on the beginning. The restart of a Job that was
// aborted, and is resumed by a user, does not count.
func isHasty(status *batch.JobStatus) bool {
	history := status.Conditions[:max(len(status.Conditions)-1, 0)] // the last one is the restart
	var since time.Time
	for i := len(history) - 1; i >= 0; i-- {
		phase := history[i].Status
		if i == len(history)-1 && (phase == batch.Aborting || phase == batch.Aborted) {
			return false
		}
		if at := history[i].LastTransitionTime; at != nil {
			since = at.Time
		}
		if phase == batch.Restarting {
			break
		}
	}
	return status.State.LastTransitionTime.Sub(since) < calm
}

// PauseLeft is how much of the pause of a Job that restarts is left.
func PauseLeft(status *batch.JobStatus, now time.Time) time.Duration {
	length := pause(status)
	if length == 0 {
		return 0
	}
	return status.State.LastTransitionTime.Add(length).Sub(now)
}
