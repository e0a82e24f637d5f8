// Package yunikorn has the labels and annotations by which users of YuniKorn mark their pods, PriorityClasses and
// namespaces.
//
// Main functions: [ApplicationID] and [QueuePath] read what a pod says. [ReadTaskGroups] reads the pods that an
// application needs to start, [ReadGangParameters] how long it waits for them.
//
// It must not know what they cause.
package yunikorn

import "strings"

// Keys of pods and PriorityClasses.
const (
	// AllowPreemptionKey, as an annotation of a pod or a PriorityClass, asks not to evict a pod if it is "false". The
	// annotation of the pod decides.
	AllowPreemptionKey = "yunikorn.apache.org/allow-preemption"

	// AppIDKey, as a label or annotation of a pod, is the id of its application.
	AppIDKey = "yunikorn.apache.org/app-id"

	// SparkSelectorKey, as a label, is the id of the application of a pod of Spark.
	SparkSelectorKey = "spark-app-selector"

	// ApplicationIDKey, as a label or annotation of a pod, is the id of its application, in YuniKorn's older form.
	ApplicationIDKey = "applicationId"

	// QueueKey, as a label or annotation of a pod, is the path of its queue.
	QueueKey = "yunikorn.apache.org/queue"

	// QueueLabelKey, as a label of a pod, is the path of its queue, in YuniKorn's older form.
	QueueLabelKey = "queue"

	// TaskGroupsKey, as an annotation of the first pod of an application, lists the pods that start together, as JSON.
	TaskGroupsKey = "yunikorn.apache.org/task-groups"

	// TaskGroupNameKey, as an annotation of a pod, names its task group.
	TaskGroupNameKey = "yunikorn.apache.org/task-group-name"

	// GangParametersKey, as an annotation of the first pod of an application, says how it waits for its task groups.
	GangParametersKey = "yunikorn.apache.org/schedulingPolicyParameters"
)

// Keys of namespaces, as annotations.
const (
	// ParentQueueKey is the path of the queue below which the queue of the namespace is.
	ParentQueueKey = "yunikorn.apache.org/parentqueue"

	// NamespaceQuotaKey is the most that the queue of the namespace may hold, a JSON object of quantities.
	NamespaceQuotaKey = "yunikorn.apache.org/namespace.quota"

	// NamespaceGuaranteedKey is what the queue of the namespace is guaranteed, a JSON object of quantities.
	NamespaceGuaranteedKey = "yunikorn.apache.org/namespace.guaranteed"

	// NamespaceMaxAppsKey is how many applications may run in the queue of the namespace.
	NamespaceMaxAppsKey = "yunikorn.apache.org/namespace.maxApps"

	// NamespaceMaxCPUKey and NamespaceMaxMemoryKey are NamespaceQuotaKey in YuniKorn's older form.
	NamespaceMaxCPUKey    = "yunikorn.apache.org/namespace.max.cpu"
	NamespaceMaxMemoryKey = "yunikorn.apache.org/namespace.max.memory"
)

// RootQueue is the queue above all queues of YuniKorn, with which every path begins.
const RootQueue = "root"

// lookup is one of the places in which a key may stand.
type lookup struct {
	in  map[string]string
	key string
}

// first returns the first value that is not empty.
func first(lookups ...lookup) string {
	for _, at := range lookups {
		if value := at.in[at.key]; value != "" {
			return value
		}
	}
	return ""
}

// ApplicationID returns the id of the application of a pod with these labels and annotations, "" if they name none.
func ApplicationID(labels, annotations map[string]string) string {
	return first(lookup{labels, AppIDKey}, lookup{annotations, AppIDKey}, lookup{labels, SparkSelectorKey},
		lookup{labels, ApplicationIDKey}, lookup{annotations, ApplicationIDKey})
}

// QueuePath returns the queue that a pod with these labels and annotations names, "" if they name none.
func QueuePath(labels, annotations map[string]string) string {
	return first(lookup{labels, QueueKey}, lookup{annotations, QueueKey}, lookup{labels, QueueLabelKey})
}

// QueueName returns the name of the Queue that stands for a path, with or without root, in the form that the import
// gives it: what cannot be in a name becomes a dash. It may be no name, if nothing is left of a part.
func QueueName(path string) string {
	parts := strings.Split(strings.ToLower(path), ".")
	if len(parts) > 1 && parts[0] == RootQueue {
		parts = parts[1:]
	}
	for i, part := range parts {
		parts[i] = strings.Trim(strings.Map(func(c rune) rune {
			if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
				return c
			}
			return '-'
		}, part), "-")
	}
	return strings.Join(parts, ".")
}
