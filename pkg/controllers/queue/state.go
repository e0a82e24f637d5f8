package queue

import (
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Count writes into the status how many of the PodGroups are in which phase. One that the scheduler has not looked at
// yet is pending.
func Count(status *scheduling.QueueStatus, groups []scheduling.PodGroup) {
	status.Pending, status.Inqueue, status.Running, status.Unknown, status.Completed = 0, 0, 0, 0, 0
	for i := range groups {
		switch groups[i].Status.Phase {
		case scheduling.PodGroupInqueue:
			status.Inqueue++
		case scheduling.PodGroupRunning:
			status.Running++
		case scheduling.PodGroupUnknown:
			status.Unknown++
		case scheduling.PodGroupCompleted:
			status.Completed++
		default:
			status.Pending++
		}
	}
}

// NextState returns the state of a queue with these counts. A queue that somebody closes is Closing until everything in
// it has finished; PodGroups that are Completed do not hold it up.
func NextState(status *scheduling.QueueStatus) scheduling.QueueState {
	switch status.State {
	case scheduling.QueueStateClosed, scheduling.QueueStateClosing:
		if status.Pending+status.Inqueue+status.Running+status.Unknown > 0 {
			return scheduling.QueueStateClosing
		}
		return scheduling.QueueStateClosed
	default:
		return scheduling.QueueStateOpen
	}
}
