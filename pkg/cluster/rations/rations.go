package rations

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Measure is what a line of a quota counts of a pod.
type Measure struct {
	Resource corev1.ResourceName // its name on nodes
	IsLimit  bool                // it counts limits, not requests
}

// CountPods is the name under which the API server counts pods as objects.
const CountPods = "count/pods"

const limitsPrefix = "limits."

// MeasureOf parses the name of a resource in a quota; ok is false if it is not of pods.
func MeasureOf(name corev1.ResourceName) (m Measure, ok bool) {
	switch name {
	case corev1.ResourcePods, CountPods:
		return Measure{Resource: corev1.ResourcePods}, true
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return Measure{Resource: name}, true
	case corev1.ResourceRequestsStorage:
		return Measure{}, false // of volume claims
	}
	if of, found := strings.CutPrefix(string(name), limitsPrefix); found {
		return Measure{Resource: corev1.ResourceName(of), IsLimit: true}, true
	}
	of, found := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
	return Measure{Resource: corev1.ResourceName(of)}, found || strings.HasPrefix(of, corev1.ResourceHugePagesPrefix)
}

// Names returns the names under which a list of resources may have it.
func (m Measure) Names() []corev1.ResourceName {
	switch {
	case m.IsLimit:
		return []corev1.ResourceName{limitsPrefix + m.Resource}
	case m.Resource == corev1.ResourcePods:
		return []corev1.ResourceName{corev1.ResourcePods, CountPods}
	}
	return []corev1.ResourceName{m.Resource, corev1.DefaultResourceRequestsPrefix + m.Resource}
}

// Hard are the limits of a quota: those of its status, as for the API server, or of its spec as long as it has none.
func Hard(quota *corev1.ResourceQuota) corev1.ResourceList {
	if len(quota.Status.Hard) > 0 {
		return quota.Status.Hard
	}
	return quota.Spec.Hard
}

// Selects reports whether a quota is known to count pods of a PriorityClass, which request CPU or memory or do not.
func Selects(quota *corev1.ResourceQuota, class string, isBestEffort bool) bool {
	matches := func(r corev1.ScopedResourceSelectorRequirement) bool {
		switch r.ScopeName {
		case corev1.ResourceQuotaScopeBestEffort:
			return isBestEffort
		case corev1.ResourceQuotaScopeNotBestEffort:
			return !isBestEffort
		case corev1.ResourceQuotaScopePriorityClass:
			switch r.Operator {
			case corev1.ScopeSelectorOpExists:
				return class != ""
			case corev1.ScopeSelectorOpDoesNotExist:
				return class == ""
			case corev1.ScopeSelectorOpIn:
				return class != "" && slices.Contains(r.Values, class)
			case corev1.ScopeSelectorOpNotIn:
				return !slices.Contains(r.Values, class)
			}
		}
		return false
	}
	for _, scope := range quota.Spec.Scopes {
		if !matches(corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}) {
			return false
		}
	}
	return quota.Spec.ScopeSelector == nil ||
		!slices.ContainsFunc(quota.Spec.ScopeSelector.MatchExpressions, func(r corev1.ScopedResourceSelectorRequirement) bool { return !matches(r) })
}
