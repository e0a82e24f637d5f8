package v1alpha1

// Event is something that happened to a pod, a task or a Job and that a lifecycle policy may answer.
type Event string

// Events a user may put into a lifecycle policy.
const (
	// AnyEvent stands for every event, PodPendingEvent only if the policy has a timeout. It cannot be combined with a
	// named one.
	AnyEvent Event = "*"

	// PodFailedEvent: a pod ended in phase Failed.
	PodFailedEvent Event = "PodFailed"

	// PodEvictedEvent: a pod was deleted before it finished.
	PodEvictedEvent Event = "PodEvicted"

	// PodPendingEvent: a pod has waited for as long as the policy's timeout, which it needs to have.
	PodPendingEvent Event = "PodPending"

	// JobUnknownEvent: part of the gang runs while the rest cannot be scheduled.
	JobUnknownEvent Event = "Unknown"

	// TaskCompletedEvent: every pod of a task succeeded.
	TaskCompletedEvent Event = "TaskCompleted"

	// TaskFailedEvent: all pods of a task have ended and not all succeeded, or the containers of its pods were
	// restarted in place more often than the task's maxRetry.
	TaskFailedEvent Event = "TaskFailed"

	// JobUpdatedEvent: the spec of a Job was changed, i.e. it was scaled.
	JobUpdatedEvent Event = "JobUpdated"
)

// Events controllers use among themselves; a lifecycle policy that names one is refused.
const (
	// OutOfSyncEvent: a Job or one of its pods was added, changed or deleted.
	OutOfSyncEvent Event = "OutOfSync"

	// CommandIssuedEvent: a Command for the object arrived.
	CommandIssuedEvent Event = "CommandIssued"

	// PodRunningEvent: a pod started; it ends the wait that a delayed PodPendingEvent policy counts.
	PodRunningEvent Event = "PodRunning"
)
