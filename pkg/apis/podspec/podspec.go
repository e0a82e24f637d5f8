package podspec

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// Given is what of the cluster the API server goes by.
type Given struct {
	// LimitRanges are those of the namespace, in any order. If two have defaults for one resource, the first by name
	// counts; which one the API server takes is left to chance.
	LimitRanges []*corev1.LimitRange
	// RuntimeClass is the one that the spec names, nil if it names none or it does not exist.
	RuntimeClass *nodev1.RuntimeClass
}

// Complete makes of the spec of a template that of its pods, as far as it says what they request, and on which nodes
// they may run.
func Complete(spec *corev1.PodSpec, given Given) {
	spec.InitContainers, spec.Containers = slices.Clone(spec.InitContainers), slices.Clone(spec.Containers)
	eachContainer(spec, func(of *corev1.ResourceRequirements) {
		of.Limits = rounded(of.Limits)
		of.Requests = merged(rounded(of.Requests), of.Limits)
	})
	completePodLevel(spec)
	ranges := slices.SortedFunc(slices.Values(given.LimitRanges), func(a, b *corev1.LimitRange) int { return cmp.Compare(a.Name, b.Name) })
	for _, o := range ranges {
		requests, limits := defaults(o)
		eachContainer(spec, func(of *corev1.ResourceRequirements) {
			of.Requests, of.Limits = merged(of.Requests, requests), merged(of.Limits, limits)
		})
	}
	completeRuntime(spec, given.RuntimeClass)
}

// Completed returns a completed copy of a spec.
func Completed(of *corev1.PodSpec, given Given) *corev1.PodSpec {
	spec := *of
	Complete(&spec, given)
	return &spec
}

// Requests is what a pod of a complete spec requests of its node.
func Requests(spec *corev1.PodSpec) corev1.ResourceList {
	return resourcehelper.PodRequests(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
}

// Limits is what a pod of a complete spec is limited to.
func Limits(spec *corev1.PodSpec) corev1.ResourceList {
	return resourcehelper.PodLimits(&corev1.Pod{Spec: *spec}, resourcehelper.PodResourcesOptions{})
}

func eachContainer(spec *corev1.PodSpec, edit func(*corev1.ResourceRequirements)) {
	for _, list := range [...][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			edit(&list[i].Resources)
		}
	}
}

// completePodLevel gives the pod requests for what it is limited to, and limits for the huge pages that its containers
// are limited to. Where containers request a resource, the sum of their requests is the request of the pod.
func completePodLevel(spec *corev1.PodSpec) {
	if spec.Resources == nil {
		return
	}
	own := *spec.Resources
	own.Requests, own.Limits = rounded(own.Requests), rounded(own.Limits)
	spec.Resources = &own
	if len(own.Limits)+len(own.Requests) == 0 {
		return
	}
	pod := &corev1.Pod{Spec: *spec}
	pages := resourcehelper.AggregateContainerLimits(pod, resourcehelper.PodResourcesOptions{})
	maps.DeleteFunc(pages, func(name corev1.ResourceName, _ resource.Quantity) bool {
		_, isRequested := own.Requests[name]
		return isRequested || !isHugePages(name)
	})
	if own.Limits = merged(own.Limits, pages); len(own.Limits) == 0 {
		return
	}
	sums := resourcehelper.AggregateContainerRequests(pod, resourcehelper.PodResourcesOptions{})
	maps.DeleteFunc(sums, func(name corev1.ResourceName, _ resource.Quantity) bool {
		return isHugePages(name) || !resourcehelper.IsSupportedPodLevelResource(name)
	})
	limits := maps.Clone(own.Limits)
	maps.DeleteFunc(limits, func(name corev1.ResourceName, _ resource.Quantity) bool {
		return !resourcehelper.IsSupportedPodLevelResource(name)
	})
	own.Requests = merged(merged(own.Requests, sums), limits)
}

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// defaults are what a LimitRange has for containers, with what the API server fills into the LimitRange itself.
func defaults(o *corev1.LimitRange) (requests, limits corev1.ResourceList) {
	for i := range o.Spec.Limits {
		if item := &o.Spec.Limits[i]; item.Type == corev1.LimitTypeContainer { // there is one at most
			limits = rounded(merged(item.Default, item.Max))
			requests = rounded(merged(merged(item.DefaultRequest, limits), item.Min))
		}
	}
	return requests, limits
}

// completeRuntime adds the overhead and the nodes of a RuntimeClass.
func completeRuntime(spec *corev1.PodSpec, class *nodev1.RuntimeClass) {
	if class == nil {
		return
	}
	if class.Overhead != nil && len(spec.Overhead) == 0 {
		spec.Overhead = rounded(class.Overhead.PodFixed)
	}
	if s := class.Scheduling; s != nil {
		if spec.NodeSelector = maps.Clone(spec.NodeSelector); spec.NodeSelector == nil && len(s.NodeSelector) > 0 {
			spec.NodeSelector = map[string]string{}
		}
		maps.Copy(spec.NodeSelector, s.NodeSelector)
		spec.Tolerations = slices.Concat(spec.Tolerations, s.Tolerations)
	}
}

// merged is a list with what another one has and it has not. The list itself is returned if that is nothing.
func merged(list, others corev1.ResourceList) corev1.ResourceList {
	isOwn := false
	for name, quantity := range others {
		if _, has := list[name]; has {
			continue
		}
		if !isOwn {
			if list, isOwn = maps.Clone(list), true; list == nil {
				list = corev1.ResourceList{}
			}
		}
		list[name] = quantity
	}
	return list
}

// rounded is a list with amounts that are no finer than thousandths, rounded up.
func rounded(list corev1.ResourceList) corev1.ResourceList {
	isOwn := false
	for name, quantity := range list {
		before := quantity.DeepCopy()
		if before.RoundUp(resource.Milli) {
			continue // nothing is lost
		}
		if !isOwn {
			list, isOwn = maps.Clone(list), true
		}
		list[name] = before
	}
	return list
}
