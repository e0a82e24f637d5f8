package podclass

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/pods"
)

// Keys are what plugins read of the pods of a class, besides what places them by their specs. Pods that do not differ
// in these keys share a class, and a plugin is asked once for all of them. So a class shows nothing else, see
// [Class.Pod] and [Belonging].
type Keys struct {
	// PodAnnotations and PodLabels are keys of pods. Namespace is set if plugins read the namespace of a pod.
	PodAnnotations, PodLabels []string
	Namespace                 bool
	// JobAnnotations and JobLabels are keys of the PodGroup, QueueAnnotations and QueueLabels of the queue.
	JobAnnotations, JobLabels     []string
	QueueAnnotations, QueueLabels []string
	// NodeAnnotations and NodeLabels are keys of nodes. AnyOfNodes is set if plugins may read all of them.
	NodeAnnotations, NodeLabels []string
	AnyOfNodes                  bool
	// PerJob reports for a PodGroup whether the job and the role of its pods matter. PerQueue reports for a queue
	// whether it matters that a pod is in it, or in a queue below. Both must depend only on the object. Nil means
	// never.
	PerJob   func(*schedulingv1beta1.PodGroup) bool
	PerQueue func(*schedulingv1beta1.Queue) bool
}

// With returns both sets of keys together.
func (k Keys) With(other Keys) Keys {
	join := func(a, b []string) []string { return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b)))) }
	return Keys{
		PodAnnotations: join(k.PodAnnotations, other.PodAnnotations), PodLabels: join(k.PodLabels, other.PodLabels),
		Namespace:      k.Namespace || other.Namespace,
		JobAnnotations: join(k.JobAnnotations, other.JobAnnotations), JobLabels: join(k.JobLabels, other.JobLabels),
		QueueAnnotations: join(k.QueueAnnotations, other.QueueAnnotations), QueueLabels: join(k.QueueLabels, other.QueueLabels),
		NodeAnnotations: join(k.NodeAnnotations, other.NodeAnnotations), NodeLabels: join(k.NodeLabels, other.NodeLabels),
		AnyOfNodes: k.AnyOfNodes || other.AnyOfNodes,
		PerJob:     either(k.PerJob, other.PerJob), PerQueue: either(k.PerQueue, other.PerQueue),
	}
}

func either[T any](a, b func(T) bool) func(T) bool {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return func(of T) bool { return a(of) || b(of) }
}

// Pick returns the declared ones of some annotations or labels, nil if there are none.
func Pick(all map[string]string, keys []string) map[string]string {
	var picked map[string]string
	for _, key := range keys {
		if value, ok := all[key]; ok {
			if picked == nil {
				picked = map[string]string{}
			}
			picked[key] = value
		}
	}
	return picked
}

// specimen returns the pod that stands for a class: with the labels, annotations and namespace of the class's key. It
// shares the rest with the pod. If the class needs volumes or devices, it keeps the pod's name.
func specimen(pod *pods.Pod, s *shape, needs *demand) *corev1.Pod {
	shown := pod.Object()
	shown.ObjectMeta = metav1.ObjectMeta{}
	shown.Namespace, shown.Labels, shown.Annotations = s.Namespace, s.Labels, s.Annotations
	if needs != nil {
		shown.Namespace = needs.Namespace
		shown.Name, shown.UID, shown.OwnerReferences = pod.Name, pod.UID, pod.OwnerReferences
	}
	return shown
}

// Differs reports whether two states of an object differ in a declared annotation or label.
func Differs(keys []string, a, b map[string]string) bool {
	return len(keys) > 0 && !maps.Equal(Pick(a, keys), Pick(b, keys))
}
