package v1beta1

// AnnotationPrefix is the prefix of the annotations that a generated PodGroup inherits from its workload.
const AnnotationPrefix = "volcano.sh/"

// Names of objects that exist in every cluster.
const (
	// DefaultQueue is the queue of everything that names none.
	DefaultQueue = "default"

	// RootQueue is the queue above all queues that name no parent. No job may be put into it.
	RootQueue = "root"

	// DefaultSchedulerName is the schedulerName of pods that this scheduler places unless it is told other names. A
	// PodGroup of which nothing says whose it is belongs to the scheduler of this name.
	DefaultSchedulerName = "volcano"

	// PodGroupNamePrefix starts the name of a PodGroup that was made for a lone pod or a workload.
	PodGroupNamePrefix = "podgroup-"
)

// Annotations by which pods and workloads find their gang and queue.
const (
	// KubeGroupNameAnnotationKey, on a pod, names its PodGroup. The scheduler goes by this one.
	KubeGroupNameAnnotationKey = "scheduling.k8s.io/group-name"

	// VolcanoGroupNameAnnotationKey, on a pod, is an alias that some producers set instead.
	VolcanoGroupNameAnnotationKey = GroupName + "/group-name"

	// QueueNameAnnotationKey, on a pod or workload, names the queue of the PodGroup that is made for it; on a
	// namespace, the queue of PodGroups in it that would go to the default queue.
	QueueNameAnnotationKey = GroupName + "/queue-name"

	// GroupMinMemberAnnotationKey, on a workload or pod, is minMember of the PodGroup that is made for it.
	GroupMinMemberAnnotationKey = GroupName + "/group-min-member"

	// GroupMinResourcesAnnotationKey, on a workload, is minResources of the PodGroup that is made for it, as JSON.
	GroupMinResourcesAnnotationKey = GroupName + "/group-min-resources"

	// SchedulerNameKey, on a PodGroup, names the scheduler that it belongs to. Without it that is the scheduler of its
	// pods. The controllers write it, since the PodGroup of a Job is admitted before the Job has pods.
	SchedulerNameKey = GroupName + "/scheduler-name"

	// QueueAllocationGateKey is a scheduling gate, and the pod annotation that asks for it: the pod is held until its
	// queue has room for it.
	QueueAllocationGateKey = GroupName + "/queue-allocation-gate"
)

// Annotations by which the scheduler records its plans on pods, in JSON, for the scheduler after it. The types are in
// pkg/cluster.
const (
	// PromiseRecordKey, on a pod that waits, says which plan promises it the node in status.nominatedNodeName. Without
	// that node it says nothing.
	PromiseRecordKey = "scheduling.hekla.sh/promise"

	// EvictionRecordKey, on a pod with the condition DisruptionTarget, says which plan it is to leave for and by which
	// rule, or how often its eviction was refused. Without the condition it says nothing.
	EvictionRecordKey = "scheduling.hekla.sh/eviction"

	// StandInsKey, on a PodGroup, says which nodes are held for pods that do not exist yet.
	StandInsKey = "hekla.sh/stand-ins"

	// PodsRefusedKey, on the PodGroup of a Job, says why the API server refuses pods of the Job. The controllers write
	// it, and remove it once the pods are made.
	PodsRefusedKey = "hekla.sh/pods-refused"

	// RunningEstimateKey, on a PodGroup, is how long its job is expected to run, a Go duration. The controllers write
	// there what a Job says in spec.runningEstimate; a pod or workload without a Job may carry it itself. Only
	// forecasts read it.
	RunningEstimateKey = "hekla.sh/running-estimate"

	// ActiveDeadlineKey, on the PodGroup of a batch/v1 Job, is its activeDeadlineSeconds as a Go duration: so long
	// after the PodGroup was made the pods of the Job are ended. The controllers write it. Only forecasts read it.
	ActiveDeadlineKey = "hekla.sh/active-deadline"
)

// Keys that say how a pod, or the pods of a PodGroup, may be treated.
const (
	// PreemptableKey, as an annotation or label on a pod, else on its PodGroup: "true" lets others evict it.
	PreemptableKey = "volcano.sh/preemptable"

	// TaskPriorityAnnotationKey, on a pod, is its priority among the pods of its own job, an int32.
	TaskPriorityAnnotationKey = "volcano.sh/task-priority"

	// CooldownTimeKey, on a pod, is the time after its start in which it is not evicted, a Go duration.
	CooldownTimeKey = "volcano.sh/cooldown-time"

	// OversubscriptionCPUKey and OversubscriptionMemoryKey, as annotations of a node, are how many thousandths of a CPU
	// and how many bytes may be requested there beyond what it has.
	OversubscriptionCPUKey    = "volcano.sh/oversubscription-cpu"
	OversubscriptionMemoryKey = "volcano.sh/oversubscription-memory"
	// RevocableZoneKey, as a label, puts a node into a zone that batch work may use at times; as an annotation, lets a
	// pod go there.
	RevocableZoneKey = "volcano.sh/revocable-zone"

	// JDBMinAvailableKey, on a pod or PodGroup, is how many pods of the job must stay, as a number or percentage.
	JDBMinAvailableKey = "volcano.sh/jdb-min-available"

	// JDBMaxUnavailableKey, on a pod or PodGroup, is how many pods of the job may be missing, as a number or
	// percentage.
	JDBMaxUnavailableKey = "volcano.sh/jdb-max-unavailable"

	// SLAWaitingTimeKey, on a PodGroup or Job, is how long it may wait before it is served ahead of others, a duration.
	SLAWaitingTimeKey = "volcano.sh/sla-waiting-time"

	// QosLevelKey, on a pod, is its class of service for the node agent.
	QosLevelKey = "volcano.sh/qos-level"

	// ResourceGroupKey, on a pod, names the resource group it asks for.
	ResourceGroupKey = "volcano.sh/resource-group"
)

// Keys of placement by topology and node group.
const (
	// NetworkTopologyModeKey, on a workload, is networkTopology.mode of the PodGroup that is made for it.
	NetworkTopologyModeKey = "volcano.sh/network-topology-mode"

	// NetworkTopologyHighestTierKey, on a workload, is networkTopology.highestTierAllowed of the PodGroup made for it.
	NetworkTopologyHighestTierKey = "volcano.sh/network-topology-highest-tier"

	// JobAllocatedHyperNodeKey, on a PodGroup, remembers the network domain its pods were placed in.
	JobAllocatedHyperNodeKey = "volcano.sh/job-allocated-hypernode"

	// NodeGroupNameKey, on a node, labels the node group it belongs to.
	NodeGroupNameKey = "volcano.sh/nodegroup-name"

	// NodeGroupResourceLimitsKey, on a queue, bounds what it may use of each node group.
	NodeGroupResourceLimitsKey = "volcano.sh/nodegroup-resource-limits"

	// NumaPolicyKey, on a pod, is its NUMA policy.
	NumaPolicyKey = "volcano.sh/numa-topology-policy"

	// TopologyDecisionKey, on a pod, is what was decided about its NUMA placement.
	TopologyDecisionKey = "volcano.sh/topology-decision"

	// TaskTopologyAffinityKey, on a PodGroup, lists tasks that belong together on a node.
	TaskTopologyAffinityKey = "volcano.sh/task-topology-affinity"

	// TaskTopologyAntiAffinityKey, on a PodGroup, lists tasks that keep apart.
	TaskTopologyAntiAffinityKey = "volcano.sh/task-topology-anti-affinity"

	// TaskTopologyOrderKey, on a PodGroup, is the order in which its tasks are placed.
	TaskTopologyOrderKey = "volcano.sh/task-topology-task-order"

	// ResourceStrategyTypeKey, on a pod, is how every resource it requests is scored: LeastAllocated or MostAllocated.
	ResourceStrategyTypeKey = "volcano.sh/resource-strategy-scoring-type"

	// ResourceStrategyWeightKey, on a pod, is how much each resource counts in that score, a JSON object of numbers.
	ResourceStrategyWeightKey = "volcano.sh/resource-strategy-weight"
)

// QueueAccessRestricted is the value of QueueAccessLabelKey that counts.
const QueueAccessRestricted = "restricted"

// Annotations and labels of queues.
const (
	// HierarchyAnnotationKey is the path of a queue in the tree of hierarchical drf: root/a/b.
	HierarchyAnnotationKey = "volcano.sh/hierarchy"

	// HierarchyWeightsAnnotationKey is the weights along that path: 1/2/8.
	HierarchyWeightsAnnotationKey = "volcano.sh/hierarchy-weights"

	// QueueAccessLabelKey, as a label on a queue with the value [QueueAccessRestricted], keeps out all namespaces but
	// those of QueueNamespacesAnnotationKey. Without it a queue is open to all.
	QueueAccessLabelKey = GroupName + "/queue-access"

	// QueueNamespacesAnnotationKey, on a queue with restricted access, lists the namespaces that may use it, separated
	// by commas.
	QueueNamespacesAnnotationKey = GroupName + "/queue-namespaces"

	// ClosedByParentAnnotationKey marks a queue that was closed because its parent was, and will open with it.
	ClosedByParentAnnotationKey = "volcano.sh/closed-by-parent"
)

// Annotations of queues that the plugin guaranteed-shares reads. The part after the slash is the name of YuniKorn's
// queue property. Package properties reads them.
const (
	// PreemptionPolicyKey says what the queue takes and gives: default, fence or disabled.
	PreemptionPolicyKey = "hekla.sh/preemption.policy"

	// PreemptionDelayKey is how long a job of the queue waits before pods of other queues are evicted for it, a Go
	// duration.
	PreemptionDelayKey = "hekla.sh/preemption.delay"

	// PriorityPolicyKey says how priorities below the queue count outside: default or fence.
	PriorityPolicyKey = "hekla.sh/priority.policy"

	// PriorityOffsetKey is added to the priorities of jobs below the queue, an int32.
	PriorityOffsetKey = "hekla.sh/priority.offset"

	// ApplicationSortPolicyKey is the order of the jobs of a queue: fifo or fair.
	ApplicationSortPolicyKey = "hekla.sh/application.sort.policy"

	// ApplicationSortPriorityKey says whether priorities count in that order: enabled or disabled.
	ApplicationSortPriorityKey = "hekla.sh/application.sort.priority"

	// MaxApplicationsKey is how many jobs below the queue may be admitted at a time, a number.
	MaxApplicationsKey = "hekla.sh/maxapplications"

	// QuotaPreemptionDelayKey is how long the queue may hold more than its capability, a Go duration; 0 sets no limit.
	QuotaPreemptionDelayKey = "hekla.sh/quota.preemption.delay"

	// QueuePathKey is the path of the queue in YuniKorn, such as root.a.b.
	QueuePathKey = "hekla.sh/queue-path"
)
