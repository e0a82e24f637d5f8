package v1beta2

// Labels of jobs, pods and Workloads.
const (
	// QueueNameLabel of a job or pod is the LocalQueue of its namespace that it is submitted to.
	QueueNameLabel = "kueue.x-k8s.io/queue-name"

	// PriorityClassLabel of a job or pod is the WorkloadPriorityClass that says its priority among workloads. The
	// priority of its pods stays as it is.
	PriorityClassLabel = "kueue.x-k8s.io/priority-class"

	// MaxExecTimeSecondsLabel of a job bounds the seconds for which its workload may be admitted.
	MaxExecTimeSecondsLabel = "kueue.x-k8s.io/max-exec-time-seconds"

	// PrebuiltWorkloadLabel of a job names the Workload that was made for it beforehand.
	PrebuiltWorkloadLabel = "kueue.x-k8s.io/prebuilt-workload-name"

	// JobUIDLabel of a Workload is the UID of its job.
	JobUIDLabel = "kueue.x-k8s.io/job-uid"

	// ManagedLabel of a pod, with ManagedValue, says that its start waits for its workload.
	ManagedLabel = "kueue.x-k8s.io/managed"

	// ManagedValue is the value of ManagedLabel.
	ManagedValue = "true"

	// PodGroupNameLabel of a pod is the group that it is admitted with.
	PodGroupNameLabel = "kueue.x-k8s.io/pod-group-name"

	// ClusterQueueLabel and LocalQueueLabel of a pod are the queues that have admitted it, set at the start.
	ClusterQueueLabel = "kueue.x-k8s.io/cluster-queue-name"
	LocalQueueLabel   = "kueue.x-k8s.io/local-queue-name"

	// PodSetLabel of a pod is the podset of its workload, set at the start.
	PodSetLabel = "kueue.x-k8s.io/podset"
)

// Annotations of jobs and pods.
const (
	// JobMinParallelismAnnotation of a batch/v1 Job is the smallest parallelism with which it may be admitted.
	JobMinParallelismAnnotation = "kueue.x-k8s.io/job-min-parallelism"

	// PodGroupTotalCountAnnotation of a pod is how many pods its group has.
	PodGroupTotalCountAnnotation = "kueue.x-k8s.io/pod-group-total-count"

	// PodGroupFastAdmissionAnnotation of a pod, "true", lets its group be admitted before all of its pods exist.
	PodGroupFastAdmissionAnnotation = "kueue.x-k8s.io/pod-group-fast-admission"

	// RetriableInGroupAnnotation of a pod, "false", says that a failed pod of its group is not replaced.
	RetriableInGroupAnnotation = "kueue.x-k8s.io/retriable-in-group"

	// ElasticJobAnnotation of a job, "true", says that it may grow while it runs. Hekla does not serve it.
	ElasticJobAnnotation = "kueue.x-k8s.io/elastic-job"

	// Annotations of a pod template that wish for nodes that are close to each other. Hekla does not serve them.
	RequiredTopologyAnnotation      = "kueue.x-k8s.io/podset-required-topology"
	PreferredTopologyAnnotation     = "kueue.x-k8s.io/podset-preferred-topology"
	UnconstrainedTopologyAnnotation = "kueue.x-k8s.io/podset-unconstrained-topology"
	SliceRequiredTopologyAnnotation = "kueue.x-k8s.io/podset-slice-required-topology"
	SliceSizeAnnotation             = "kueue.x-k8s.io/podset-slice-size"
	PodSetGroupNameAnnotation       = "kueue.x-k8s.io/podset-group-name"

	// GroupWorkloadAnnotation of a Workload, "true", says that it is one of a group of pods.
	GroupWorkloadAnnotation = "kueue.x-k8s.io/is-group-workload"

	// RoleHashAnnotation of a pod names its podset.
	RoleHashAnnotation = "kueue.x-k8s.io/role-hash"

	// AdmissionGatedByAnnotation of a job or Workload names, separated by commas, what must happen before it is looked
	// at. The workload waits until the annotation is empty.
	AdmissionGatedByAnnotation = "kueue.x-k8s.io/admission-gated-by"

	// WorkloadAnnotation of a pod is the Workload that it belongs to, set at the start.
	WorkloadAnnotation = "kueue.x-k8s.io/workload"
)

// Annotations that are Hekla's own.
const (
	// QueueAnnotation of a ClusterQueue without a cohort, or of a Cohort without a parent, is the Volcano Queue it
	// hangs below.
	QueueAnnotation = "hekla.sh/queue"

	// PlanAnnotation of a Workload is the plan that evicts others for it.
	PlanAnnotation = "hekla.sh/plan"

	// QueuedAnnotation of a job that runs with a Workload made by another client is how its templates were before the
	// start.
	QueuedAnnotation = "hekla.sh/queued"
)

const (
	// AdmissionGate is the scheduling gate of pods that wait for their workload.
	AdmissionGate = "kueue.x-k8s.io/admission"

	// TopologyGate is the scheduling gate of pods of another scheduler that wait for the name of their node.
	TopologyGate = "kueue.x-k8s.io/topology"

	// PodFinalizer keeps a pod that is queued by itself as long as it has to be counted.
	PodFinalizer = "kueue.x-k8s.io/managed"

	// ResourceInUseFinalizer keeps an object that others use.
	ResourceInUseFinalizer = "kueue.x-k8s.io/resource-in-use"

	// DefaultPodSetName is the name of the podset of a job that has one.
	DefaultPodSetName = "main"

	// DefaultLocalQueueName is the LocalQueue that takes the jobs of its namespace that name none.
	DefaultLocalQueueName = "default"

	// LeaseName is the Lease of Kueue's own controllers.
	LeaseName = "c1f6bfd2.kueue.x-k8s.io"

	// MultiKueueController and ProvisioningRequestController are the controllers of AdmissionChecks that Hekla does not
	// serve.
	MultiKueueController          = "kueue.x-k8s.io/multikueue"
	ProvisioningRequestController = "kueue.x-k8s.io/provisioning-request"
)
