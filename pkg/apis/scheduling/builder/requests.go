package builder

import (
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/pkg/apis/podspec"
)

// AddRequests adds to the total what count pods of the given spec request, which need not be complete; see package
// podspec.
func AddRequests(total corev1.ResourceList, spec *corev1.PodSpec, count int32) {
	add(total, podspec.Requests(podspec.Completed(spec, podspec.Given{})), count)
}

func add(total, each corev1.ResourceList, count int32) {
	for name, quantity := range each {
		quantity.Mul(int64(count))
		sum := total[name]
		sum.Add(quantity)
		if !sum.IsZero() {
			total[name] = sum
		}
	}
}

// AddUsage adds to the total what a ResourceQuota counts of count pods of the given spec: their number, and what they
// request and are limited to, by the names that quotas have for it. Requests are there by the names that nodes have for
// them, too.
func AddUsage(total corev1.ResourceList, spec *corev1.PodSpec, count int32) {
	if count <= 0 {
		return
	}
	spec = podspec.Completed(spec, podspec.Given{})
	requests, limits := corev1.ResourceList{}, podspec.Limits(spec)
	add(requests, podspec.Requests(spec), count)
	plus := func(name corev1.ResourceName, quantity apiresource.Quantity) {
		sum := total[name]
		sum.Add(quantity)
		total[name] = sum
	}
	for name, quantity := range requests {
		plus(name, quantity)
		plus(corev1.DefaultResourceRequestsPrefix+name, quantity)
	}
	for _, name := range [...]corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if quantity := limits[name]; !quantity.IsZero() {
			quantity.Mul(int64(count))
			plus("limits."+name, quantity)
		}
	}
	pods := *apiresource.NewQuantity(int64(count), apiresource.DecimalSI)
	plus(corev1.ResourcePods, pods)
	plus("count/pods", pods)
}
