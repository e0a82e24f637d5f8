package podgroup

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// AddRequests adds to the total what count pods of the given spec request: containers, sidecars, init containers,
// overhead and pod-level resources the way the kubelet counts them. Where a container of a template sets a limit and no
// request, the limit counts, as the API server will write it into the pod.
func AddRequests(total corev1.ResourceList, spec *corev1.PodSpec, count int32) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: withRequests(spec.InitContainers),
		Containers:     withRequests(spec.Containers),
		Overhead:       spec.Overhead,
		Resources:      spec.Resources,
	}}
	for name, quantity := range resource.PodRequests(pod, resource.PodResourcesOptions{}) {
		quantity.Mul(int64(count))
		sum := total[name]
		sum.Add(quantity)
		if !sum.IsZero() {
			total[name] = sum
		}
	}
}

// withRequests copies the containers, limits standing in for requests that are not set.
func withRequests(containers []corev1.Container) []corev1.Container {
	copied := make([]corev1.Container, len(containers))
	for i, container := range containers {
		requests := maps.Clone(container.Resources.Limits)
		if requests == nil {
			requests = corev1.ResourceList{}
		}
		maps.Copy(requests, container.Resources.Requests)
		container.Resources.Requests = requests
		copied[i] = container
	}
	return copied
}
