package cluster

import (
	schedulingv1 "k8s.io/api/scheduling/v1"

	"hekla.sh/hekla/pkg/apis/yunikorn"
)

// isPlain reports whether a pod is of no application and has no annotation about preemption. Searches for victims ask
// that of every pod.
func isPlain(pod *Pod) bool {
	_, asks := pod.Annotations[yunikorn.AllowPreemptionKey]
	return !asks && yunikorn.ApplicationID(pod.Labels, pod.Annotations) == ""
}

// Application returns the id of the application of a pod in its namespace, "" if it is of none.
func (t *Task) Application() string {
	if t.isPlain {
		return ""
	}
	return yunikorn.ApplicationID(t.Pod.Labels, t.Pod.Annotations)
}

// AllowsPreemption reports whether neither the pod nor its PriorityClass, which may be nil, asks not to evict it (rule
// G1). The annotation of the pod decides. Any value other than "false" is true.
func (t *Task) AllowsPreemption(class *schedulingv1.PriorityClass) bool {
	if !t.isPlain {
		if value, ok := t.Pod.Annotations[yunikorn.AllowPreemptionKey]; ok {
			return value != "false"
		}
	}
	return class == nil || class.Annotations[yunikorn.AllowPreemptionKey] != "false"
}
