package v1alpha1

// Labels and annotations that the job controller sets on the pods of a Job. Every key is set both as a label and as an
// annotation unless its comment says otherwise.
const (
	// TaskSpecKey names the task that the pod belongs to. The scheduler counts a gang's minTaskMember by its
	// annotation.
	TaskSpecKey = "volcano.sh/task-spec"

	// TaskIndexKey is the pod's number within its task, from 0.
	TaskIndexKey = "volcano.sh/task-index"

	// JobNameKey names the Job.
	JobNameKey = "volcano.sh/job-name"

	// JobNamespaceKey names the namespace of the Job; a label only.
	JobNamespaceKey = "volcano.sh/job-namespace"

	// QueueNameKey names the queue of the Job.
	QueueNameKey = "volcano.sh/queue-name"

	// JobVersionKey is status.version of the Job when the pod was made; an annotation only. An event of a pod with an
	// older version than the Job's triggers no lifecycle policy.
	JobVersionKey = "volcano.sh/job-version"

	// JobRetryCountKey is status.retryCount of the Job when the pod was made; an annotation only.
	JobRetryCountKey = "volcano.sh/job-retry-count"

	// JobTypeKey carries the user's own kind of workload; a label only, copied from the Job.
	JobTypeKey = "volcano.sh/job-type"

	// PodTemplateKey identifies the template the pod was made from, as <job>-<task>; an annotation only. Pods that
	// share it are equal in everything but name.
	PodTemplateKey = "volcano.sh/template-uid"

	// TaskPartitionIDKey is the number of the pod's partition within its task; a label only, and only on pods of a task
	// with a partitionPolicy.
	TaskPartitionIDKey = "volcano.sh/partition-id"
)

// CronJobScheduledTimestampAnnotation, on a Job that a CronJob started, is the time of the schedule for which it was
// started. It is in RFC 3339, in the time zone of the CronJob, or UTC if that names none.
const CronJobScheduledTimestampAnnotation = "volcano.sh/cronjob-scheduled-timestamp"

// Keys of multi-cluster forwarding, carried through unchanged.
const (
	// JobForwardingKey marks a Job that may be forwarded to another cluster.
	JobForwardingKey = "volcano.sh/job-forwarding"

	// ForwardClusterKey names the cluster a pod was forwarded to.
	ForwardClusterKey = "volcano.sh/forward-cluster"

	// OriginalNameKey is the name an object had before it was forwarded.
	OriginalNameKey = "volcano.sh/burst-name"

	// SiloResourceKey marks an object that stays in its own cluster.
	SiloResourceKey = "volcano.sh/silo-resource"
)

const (
	// DefaultTaskSpec is the stem of the name that a task without one gets: default0, default1, … by its position. A
	// pod that names no task belongs to the task "default".
	DefaultTaskSpec = "default"

	// DefaultMaxRetry is how often a Job, or a task, is retried unless it says otherwise.
	DefaultMaxRetry int32 = 3
)
