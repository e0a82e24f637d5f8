package podclass

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
)

// Belonging is what placement needs to know about the job and queue of a pod. It is zero unless plugins have declared
// that they read something that is set there ([Keys]). So equal pods of many jobs and queues share a class.
type Belonging struct {
	// Queue is the queue of the pod, if it matters whether the pod is in it or in a queue above it.
	Queue string `json:",omitempty"`
	// Job and Role are those of the pod, if they matter.
	Job  types.NamespacedName
	Role string `json:",omitempty"`
	// The declared keys of the PodGroup and the queue, nil if none of them is set.
	JobAnnotations, JobLabels     map[string]string `json:",omitempty"`
	QueueAnnotations, QueueLabels map[string]string `json:",omitempty"`
}

// Equal reports whether both are the same.
func (b *Belonging) Equal(o *Belonging) bool {
	return b.Queue == o.Queue && b.Job == o.Job && b.Role == o.Role && maps.Equal(b.JobAnnotations, o.JobAnnotations) &&
		maps.Equal(b.JobLabels, o.JobLabels) && maps.Equal(b.QueueAnnotations, o.QueueAnnotations) && maps.Equal(b.QueueLabels, o.QueueLabels)
}
