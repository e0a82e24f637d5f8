package podclass

import (
	"maps"

	"k8s.io/apimachinery/pkg/types"
)

// Belonging is what placement needs to know of the job and the queue of a pod, besides the pod itself. It is zero unless plugins have
// declared that they read something of them that is there ([Keys]), so that equal pods of many jobs and queues share a class.
type Belonging struct {
	// Queue is the queue of the pod, if it matters that the pod is in it or in one above.
	Queue string `json:",omitempty"`
	// Job and Role are the pod's, if it matters which they are.
	Job  types.NamespacedName
	Role string `json:",omitempty"`
	// What is declared of the PodGroup and of the queue, nil if nothing of it is there.
	JobAnnotations, JobLabels     map[string]string `json:",omitempty"`
	QueueAnnotations, QueueLabels map[string]string `json:",omitempty"`
}

// Equal reports whether two are the same.
func (b *Belonging) Equal(o *Belonging) bool {
	return b.Queue == o.Queue && b.Job == o.Job && b.Role == o.Role && maps.Equal(b.JobAnnotations, o.JobAnnotations) &&
		maps.Equal(b.JobLabels, o.JobLabels) && maps.Equal(b.QueueAnnotations, o.QueueAnnotations) && maps.Equal(b.QueueLabels, o.QueueLabels)
}
