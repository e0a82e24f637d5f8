package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	busv1alpha1 "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
)

// Job is a batch workload: tasks whose pods are scheduled as one gang, with rules for what to do when pods fail.
//
// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=jobs,singular=job,shortName=vcjob;vj
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.state.phase`
// +kubebuilder:printcolumn:name="minAvailable",type=integer,JSONPath=`.status.minAvailable`
// +kubebuilder:printcolumn:name="RUNNINGS",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="QUEUE",type=string,priority=1,JSONPath=`.spec.queue`
type Job struct {
	metav1.TypeMeta `json:",inline"`

	// Standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// What should run, and how much of it together.
	// +required
	Spec JobSpec `json:"spec,omitempty"`

	// What was last seen of it; written by the job controller only.
	// +optional
	Status JobStatus `json:"status,omitempty"`
}

// JobList is a list of Jobs.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:object:root=true
type JobList struct {
	metav1.TypeMeta `json:",inline"`

	// Standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// The Jobs of the list.
	Items []Job `json:"items"`
}

// The rules of a definition are asked at each write of an object, of its status as well. So those of Jobs look at each
// task once, and at no policy or template: a Job may have thousands of policies. The admission policy
// volcano-job-names, the webhook and the controller check what a policy answers, and that names and events are unique.
// The admission policy volcano-job-changes checks that tasks do not change.

// JobSpec says what a Job runs. After creation only minAvailable, maxRetry, priorityClassName, ttlSecondsAfterFinished
// and each task's replicas, minAvailable and maxRetry may change; everything else is part of what already runs.
// +kubebuilder:validation:XValidation:rule="has(self.tasks) && self.tasks.size() > 0",message="No task specified in job spec: a Job needs at least one task",fieldPath=".tasks",reason=FieldValueRequired
// +kubebuilder:validation:XValidation:rule="!has(self.minAvailable) || !has(self.tasks) || self.minAvailable <= self.tasks.map(t, t.?replicas.orValue(0)).sum()",messageExpression="'job \\x27minAvailable\\x27 should not be greater than total replicas in tasks: it is %d, and they are %d'.format([self.minAvailable, self.tasks.map(t, t.?replicas.orValue(0)).sum()])",message="job 'minAvailable' should not be greater than total replicas in tasks",fieldPath=".minAvailable"
// +kubebuilder:validation:XValidation:rule="has(self.schedulerName) == has(oldSelf.schedulerName) && has(self.volumes) == has(oldSelf.volumes) && has(self.policies) == has(oldSelf.policies) && has(self.plugins) == has(oldSelf.plugins) && has(self.minSuccess) == has(oldSelf.minSuccess) && has(self.networkTopology) == has(oldSelf.networkTopology)",message="job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: schedulerName, volumes, policies, plugins, minSuccess and networkTopology cannot be added or removed after creation"
type JobSpec struct {
	// The scheduler that places the pods of every task whose template names none. Unset means the first of the names
	// that the controllers are told (--scheduler-name).
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: schedulerName cannot be changed after creation"
	// +kubebuilder:validation:MaxLength=63
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// The size of the gang: so many pods start together or none does. 0 means the sum of minAvailable over the tasks.
	// It must not exceed the sum of replicas.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinAvailable int32 `json:"minAvailable,omitempty"`

	// Persistent volumes to mount into every container of every pod.
	// +listType=map
	// +listMapKey=mountPath
	// +kubebuilder:validation:XValidation:rule="self.map(v, v.mountPath) == oldSelf.map(v, v.mountPath)",message="job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: volumes cannot be added, removed or reordered after creation"
	// +optional
	Volumes []VolumeSpec `json:"volumes,omitempty" patchStrategy:"merge" patchMergeKey:"mountPath"`

	// The tasks of the Job, at least one.
	// +kubebuilder:validation:MaxItems=256
	// +optional
	Tasks []TaskSpec `json:"tasks,omitempty" patchStrategy:"merge" patchMergeKey:"name"`

	// What to do when something happens in a task that has no policy of its own for it.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: policies cannot be changed after creation"
	// +optional
	Policies LifecyclePolicies `json:"policies,omitempty"`

	// Job plugins to apply, by name, each with its command-line style arguments: env, svc, ssh, pytorch, …
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: plugins cannot be changed after creation"
	// +optional
	Plugins map[string][]string `json:"plugins,omitempty"`

	// How long the user expects the Job to run. A Job that runs longer says so in its status and in an Event.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	// +optional
	RunningEstimate *metav1.Duration `json:"runningEstimate,omitempty"`

	// The queue whose share the Job uses. Empty means the queue "default". It cannot be changed later.
	// +kubebuilder:default=default
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: a Job cannot be moved to another queue"
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	// +optional
	Queue string `json:"queue,omitempty"`

	// How often the Job is restarted before it is called Failed. 0 means 3.
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxRetry int32 `json:"maxRetry,omitempty"`

	// Seconds after which a finished Job is deleted. Unset keeps it; 0 deletes it at once.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// The PriorityClass that gives the Job its priority among the jobs of its queue. Empty means the cluster's default.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// The Job is Completed as soon as so many pods succeeded. Unset means that it runs until all pods have finished.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: minSuccess cannot be changed after creation"
	// +optional
	MinSuccess *int32 `json:"minSuccess,omitempty"`

	// How close to each other in the network the pods must, or should, be placed.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: networkTopology cannot be changed after creation"
	// +optional
	NetworkTopology *NetworkTopologySpec `json:"networkTopology,omitempty"`
}

// TaskSpec is one role of a Job: a pod template and how many pods to make of it.
// +kubebuilder:validation:XValidation:rule="!has(self.minAvailable) || self.minAvailable <= self.?replicas.orValue(0)",messageExpression="'\\x27minAvailable\\x27 is greater than \\x27replicas\\x27 in task: %s; it is %d, and they are %d'.format([self.?name.orValue('unnamed'), self.minAvailable, self.?replicas.orValue(0)])",message="'minAvailable' is greater than 'replicas' in task",fieldPath=".minAvailable"
// +kubebuilder:validation:XValidation:rule="!has(self.partitionPolicy) || self.partitionPolicy.totalPartitions * self.partitionPolicy.partitionSize == self.?replicas.orValue(0)",messageExpression="'\\x27Replicas\\x27 are not equal to TotalPartitions*PartitionSize in task: %s'.format([self.?name.orValue('unnamed')])",message="'Replicas' are not equal to TotalPartitions*PartitionSize in task",fieldPath=".partitionPolicy"
// +kubebuilder:validation:XValidation:rule="!has(self.partitionPolicy) || self.partitionPolicy.?minPartitions.orValue(0) == 0 || !has(self.minAvailable) || self.partitionPolicy.minPartitions * self.partitionPolicy.partitionSize == self.minAvailable",messageExpression="'\\x27MinAvailable\\x27 is not equal to MinPartitions*PartitionSize in task: %s; it may be left out'.format([self.?name.orValue('unnamed')])",message="'MinAvailable' is not equal to MinPartitions*PartitionSize in task; it may be left out",fieldPath=".partitionPolicy"
type TaskSpec struct {
	// The name of the task, unique in the Job and part of its pods' names. Empty becomes default<position>.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	// +optional
	Name string `json:"name,omitempty"`

	// How many pods to run.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replicas int32 `json:"replicas,omitempty"`

	// How many pods of this task belong to the gang. Unset means minPartitions times partitionSize if a partitionPolicy
	// asks for a minimum, else all replicas.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// The pod to make.
	// +optional
	Template corev1.PodTemplateSpec `json:"template,omitempty"`

	// What to do when something happens in this task. The first policy that fits decides; if none does, the Job's
	// policies are asked.
	// +optional
	Policies LifecyclePolicies `json:"policies,omitempty"`

	// How the CPUs of a pod may be spread over the NUMA nodes of its machine.
	// +optional
	TopologyPolicy NumaPolicy `json:"topologyPolicy,omitempty"`

	// How often the task is restarted before it is called failed. 0 means 3.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxRetry int32 `json:"maxRetry,omitempty"`

	// Tasks that must have started, or finished, before pods of this one are made.
	// +optional
	DependsOn *DependsOn `json:"dependsOn,omitempty"`

	// How the pods of this task fall into equal groups that are placed, and restarted, as one.
	// +optional
	PartitionPolicy *PartitionPolicySpec `json:"partitionPolicy,omitempty"`
}

// LifecyclePolicies is what to do when something happens. No two policies answer the same event or exit code.
// +kubebuilder:validation:MaxItems=64
type LifecyclePolicies []LifecyclePolicy

// LifecyclePolicy answers an event or an exit code with an action. It names events or an exit code, never both.
type LifecyclePolicy struct {
	// What to do.
	// +kubebuilder:validation:Enum=AbortJob;RestartJob;RestartTask;RestartPod;RestartPartition;TerminateJob;CompleteJob;ResumeJob
	// +required
	Action busv1alpha1.Action `json:"action,omitempty"`

	// The event to answer.
	// +kubebuilder:validation:Enum=*;PodFailed;PodEvicted;PodPending;Unknown;TaskCompleted;TaskFailed;JobUpdated
	// +optional
	Event busv1alpha1.Event `json:"event,omitempty"`

	// Further events to answer.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Enum=*;PodFailed;PodEvicted;PodPending;Unknown;TaskCompleted;TaskFailed;JobUpdated
	// +optional
	Events []busv1alpha1.Event `json:"events,omitempty"`

	// The exit code of a failed container to answer; not 0.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`

	// How long to wait before acting; the action is dropped if the cause is gone by then. Unset means at once.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[+-]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	// +optional
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// VolumeSpec mounts one persistent volume claim into every container of a Job: an existing one by volumeClaimName, or
// one that is made from volumeClaim and deleted with the Job.
// +kubebuilder:validation:XValidation:rule="has(self.volumeClaim) || (has(self.volumeClaimName) && self.volumeClaimName.size() > 0)",message="either VolumeClaim or VolumeClaimName must be specified"
// +kubebuilder:validation:XValidation:rule="has(self.volumeClaim) == has(oldSelf.volumeClaim)",message="job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: volumeClaim cannot be added or removed after creation"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || !has(self.volumeClaim) || !has(self.volumeClaimName) || self.volumeClaimName.size() == 0",message="conflict: If you want to use an existing PVC, just specify VolumeClaimName.If you want to create a new PVC, you do not need to specify VolumeClaimName",optionalOldSelf=true
type VolumeSpec struct {
	// Where to mount the volume; unique in the Job.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^[^:]+$`
	MountPath string `json:"mountPath"`

	// The name of an existing claim. With a volumeClaim: the name under which the claim was made.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	VolumeClaimName string `json:"volumeClaimName,omitempty"`

	// The claim to make.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="job updates may not change fields other than `minAvailable`, `tasks[*].replicas under spec` and `PriorityClassName`: volumeClaim cannot be changed after creation"
	// +optional
	VolumeClaim *corev1.PersistentVolumeClaimSpec `json:"volumeClaim,omitempty"`
}

// DependsOn holds back a task until other tasks are far enough.
type DependsOn struct {
	// The tasks to wait for.
	// +optional
	Name []string `json:"name,omitempty"`

	// Whether all of them, or any one, must be far enough. Unset means all.
	// +optional
	Iteration Iteration `json:"iteration,omitempty"`
}

// Iteration says how many of several dependencies must be met.
// +kubebuilder:validation:Enum=any;all
type Iteration string

const (
	// IterationAny is met as soon as one dependency is.
	IterationAny Iteration = "any"

	// IterationAll is met when every dependency is.
	IterationAll Iteration = "all"
)

// PartitionPolicySpec divides the pods of a task, in order of their index, into groups of equal size.
type PartitionPolicySpec struct {
	// How many groups; times partitionSize it must equal the task's replicas.
	// +kubebuilder:validation:Minimum=1
	TotalPartitions int32 `json:"totalPartitions"`

	// How many pods each group has.
	// +kubebuilder:validation:Minimum=1
	PartitionSize int32 `json:"partitionSize"`

	// How close to each other the pods of one group must, or should, be placed.
	// +optional
	NetworkTopology *NetworkTopologySpec `json:"networkTopology,omitempty"`

	// How many whole groups belong to the gang. 0 sets no minimum by groups.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:default=0
	// +optional
	MinPartitions int32 `json:"minPartitions,omitempty"`
}

// NetworkTopologySpec bounds how far apart in the network pods are placed: within one domain of at most the given tier,
// which is named by number or by name.
// +kubebuilder:validation:XValidation:rule="!has(self.highestTierAllowed) || !has(self.highestTierName) || self.highestTierName.size() == 0",message="must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously: they exclude each other"
type NetworkTopologySpec struct {
	// Whether the bound must be kept (hard) or is only preferred (soft).
	// +kubebuilder:default=hard
	// +optional
	Mode NetworkTopologyMode `json:"mode,omitempty"`

	// The highest tier of a domain that may hold the pods, by number; tier 1 is the closest.
	// +kubebuilder:validation:Minimum=0
	// +optional
	HighestTierAllowed *int `json:"highestTierAllowed,omitempty"`

	// The highest tier of a domain that may hold the pods, by name.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	HighestTierName string `json:"highestTierName,omitempty"`
}

// NetworkTopologyMode says how strictly a network bound is taken.
// +kubebuilder:validation:Enum=hard;soft
type NetworkTopologyMode string

const (
	// HardNetworkTopologyMode leaves the pods pending rather than break the bound.
	HardNetworkTopologyMode NetworkTopologyMode = "hard"

	// SoftNetworkTopologyMode prefers to keep the bound.
	SoftNetworkTopologyMode NetworkTopologyMode = "soft"
)

// NumaPolicy says how the CPUs of a pod may be spread over the NUMA nodes of its machine.
// +kubebuilder:validation:Enum=none;best-effort;restricted;single-numa-node
type NumaPolicy string

const (
	// NumaPolicyNone asks for nothing.
	NumaPolicyNone NumaPolicy = "none"

	// NumaPolicyBestEffort prefers as few NUMA nodes as possible.
	NumaPolicyBestEffort NumaPolicy = "best-effort"

	// NumaPolicyRestricted admits only machines that can serve the pod from as few NUMA nodes as its size allows.
	NumaPolicyRestricted NumaPolicy = "restricted"

	// NumaPolicySingleNumaNode admits only machines that can serve the pod from one NUMA node.
	NumaPolicySingleNumaNode NumaPolicy = "single-numa-node"
)
