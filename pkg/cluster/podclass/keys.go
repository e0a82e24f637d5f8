package podclass

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// Keys are what plugins read, when they are asked about the pods of a class, beside the parts of a pod's spec that place it. Pods
// that differ in none of it share a class, and a plugin is asked once for all of them; so a class shows nothing else: see
// [Class.Pod] and [Belonging].
type Keys struct {
	// PodAnnotations and PodLabels are keys of pods. Namespace is set if the namespace of a pod is read.
	PodAnnotations, PodLabels []string
	Namespace                 bool
	// JobAnnotations and JobLabels are keys of the PodGroup of a pod, QueueAnnotations and QueueLabels of its queue.
	JobAnnotations, JobLabels     []string
	QueueAnnotations, QueueLabels []string
	// PerJob reports of a PodGroup whether it matters which job a pod is of, and which role it has there; PerQueue reports of a queue
	// whether it matters that a pod is in it, or in a queue below. Both go by the object alone. Nil is never.
	PerJob   func(*schedulingv1beta1.PodGroup) bool
	PerQueue func(*schedulingv1beta1.Queue) bool
}

// With returns the keys that are among these or others.
func (k Keys) With(other Keys) Keys {
	join := func(a, b []string) []string { return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b)))) }
	return Keys{
		PodAnnotations: join(k.PodAnnotations, other.PodAnnotations), PodLabels: join(k.PodLabels, other.PodLabels),
		Namespace:      k.Namespace || other.Namespace,
		JobAnnotations: join(k.JobAnnotations, other.JobAnnotations), JobLabels: join(k.JobLabels, other.JobLabels),
		QueueAnnotations: join(k.QueueAnnotations, other.QueueAnnotations), QueueLabels: join(k.QueueLabels, other.QueueLabels),
		PerJob: either(k.PerJob, other.PerJob), PerQueue: either(k.PerQueue, other.PerQueue),
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

// Pick returns those of some annotations or labels that were declared, nil if none of them are there.
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

// specimen returns what a class shows of its pods: a pod with the labels, annotations and namespace that are in the key of the
// class. Everything else is shared with the pod. A class that needs volumes or devices shows whose they are.
func specimen(pod *corev1.Pod, s *shape, needs *demand) *corev1.Pod {
	shown := &corev1.Pod{Spec: pod.Spec, Status: pod.Status}
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
