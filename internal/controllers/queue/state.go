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

// markValue is the value of the annotation that marks a queue as closed by its parent.
const markValue = "true"

// isMarked reports whether the queue was closed because its parent was, and opens with it.
func isMarked(queue *scheduling.Queue) bool {
	return queue.Annotations[scheduling.ClosedByParentAnnotationKey] == markValue
}

func isClosed(state scheduling.QueueState) bool {
	return state == scheduling.QueueStateClosed || state == scheduling.QueueStateClosing
}

// Order is what a Command asks of a queue.
type Order int

// The orders. Without one a queue stays as it is, or goes with its parent.
const (
	NoOrder Order = iota
	OrderOpen
	OrderClose
)

// NextState returns the state of a queue with these counts that is given the order, and whether it is to be marked as
// closed by its parent. It is told whether it is marked now and whether its parent is closed or closing.
//
// A queue cannot be open under a closed parent: it is closed and marked, and a marked one opens as soon as its parent
// is open. One that is closed by an order has no mark and so stays closed. What is closed is Closing until everything
// in it has finished; PodGroups that are Completed do not hold it up.
func NextState(status *scheduling.QueueStatus, order Order, marked, underClosed bool) (scheduling.QueueState, bool) {
	wantsOpen := marked || !isClosed(status.State)
	if order != NoOrder {
		wantsOpen = order == OrderOpen
	}
	switch {
	case wantsOpen && !underClosed:
		return scheduling.QueueStateOpen, false
	case status.Pending+status.Inqueue+status.Running+status.Unknown > 0:
		return scheduling.QueueStateClosing, wantsOpen
	default:
		return scheduling.QueueStateClosed, wantsOpen
	}
}
