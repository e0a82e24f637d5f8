package builder

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
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

// AddUsage adds to the total what a ResourceQuota counts of count pods of the given spec: their number, and what they request and
// are limited to, by the names that quotas have for it. Requests are there by the names that nodes have for them, too.
func AddUsage(total corev1.ResourceList, spec *corev1.PodSpec, count int32) {
	if count <= 0 {
		return
	}
	requests, limits := corev1.ResourceList{}, resource.PodLimits(&corev1.Pod{Spec: *spec}, resource.PodResourcesOptions{})
	AddRequests(requests, spec, count)
	add := func(name corev1.ResourceName, quantity apiresource.Quantity) {
		sum := total[name]
		sum.Add(quantity)
		total[name] = sum
	}
	for name, quantity := range requests {
		add(name, quantity)
		add(corev1.DefaultResourceRequestsPrefix+name, quantity)
	}
	for _, name := range [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if quantity := limits[name]; !quantity.IsZero() {
			quantity.Mul(int64(count))
			add("limits."+name, quantity)
		}
	}
	pods := *apiresource.NewQuantity(int64(count), apiresource.DecimalSI)
	add(corev1.ResourcePods, pods)
	add("count/pods", pods)
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
