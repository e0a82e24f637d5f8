package v1alpha1

// Action is what a controller is asked to do to a Job, to a part of it, or to a Queue.
type Action string

// Actions a user may put into a lifecycle policy of a Job or into a Command.
const (
	// AbortJobAction evicts every pod of the Job and keeps the Job, so that ResumeJobAction can start it again.
	AbortJobAction Action = "AbortJob"

	// RestartJobAction evicts every pod of the Job and creates them again; it counts as one retry.
	RestartJobAction Action = "RestartJob"

	// RestartTaskAction evicts and recreates the pods of the task in which the event happened.
	RestartTaskAction Action = "RestartTask"

	// RestartPodAction evicts and recreates the one pod the event is about.
	RestartPodAction Action = "RestartPod"

	// RestartPartitionAction evicts and recreates the partition of the task that holds the pod the event is about.
	RestartPartitionAction Action = "RestartPartition"

	// TerminateJobAction evicts every pod of the Job for good: the Job ends Terminated and cannot be resumed.
	TerminateJobAction Action = "TerminateJob"

	// CompleteJobAction evicts the pods that have not finished and calls the Job Completed.
	CompleteJobAction Action = "CompleteJob"

	// ResumeJobAction starts an aborted Job again. It is not counted as a retry: nothing has failed.
	ResumeJobAction Action = "ResumeJob"

	// OpenQueueAction lets a Queue take new work.
	OpenQueueAction Action = "OpenQueue"

	// CloseQueueAction stops a Queue from taking new work; what runs in it may finish.
	CloseQueueAction Action = "CloseQueue"
)

// Actions controllers use among themselves; a lifecycle policy that names one is refused.
const (
	// SyncJobAction brings pods and status of a Job in line with its spec.
	SyncJobAction Action = "SyncJob"

	// EnqueueAction tells the controller of a Job that its gang was admitted.
	EnqueueAction Action = "EnqueueJob"

	// SyncQueueAction recounts the status of a Queue.
	SyncQueueAction Action = "SyncQueue"
)
