package simulator

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"

	"hekla.sh/hekla/pkg/apis/podspec"
)

// quota is a ResourceQuota and what its namespace uses apart from the pods that are known: what the input says is used,
// less what its pods use.
type quota struct {
	object *corev1.ResourceQuota
	given  corev1.ResourceList
}

// controllers bring the statuses of budgets and quotas up to date, as the controllers of Kubernetes do.
type controllers struct{ *simulation }

// addQuota puts a quota of the input into the cluster, whose pods are there already.
func (s controllers) addQuota(object *corev1.ResourceQuota) {
	object = object.DeepCopy()
	q := &quota{object: object, given: corev1.ResourceList{}}
	for name, counted := range s.usage(object) {
		if given, ok := object.Status.Used[name]; ok {
			given.Sub(counted)
			q.given[name] = given
		}
	}
	if object.Status.Hard == nil {
		object.Status.Hard = object.Spec.Hard
	}
	s.quotas = append(s.quotas, q)
	s.set(object)
}

// countQuotas brings what quotas say is used up to date with the pods, as the quota controller does.
func (s controllers) countQuotas() {
	for _, q := range s.quotas {
		used := maps.Clone(q.object.Status.Used)
		if used == nil {
			used = corev1.ResourceList{}
		}
		for name, amount := range s.usage(q.object) {
			amount.Add(q.given[name])
			used[name] = amount
		}
		if !equality.Semantic.DeepEqual(q.object.Status.Used, used) {
			q.object = q.object.DeepCopy()
			q.object.Status.Used = used
			s.set(q.object)
		}
	}
}

// usage is what the pods use of what a quota limits: of resources that pods take, those that have not ended.
func (s controllers) usage(object *corev1.ResourceQuota) corev1.ResourceList {
	used := corev1.ResourceList{}
	for name := range object.Spec.Hard {
		if _, ok := amountOf(name, nil, nil); ok {
			used[name] = resource.Quantity{Format: resource.DecimalSI}
		}
	}
	for _, pod := range s.pods {
		if pod.Namespace != object.Namespace || !isInScope(object, pod) ||
			pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		requests := podspec.Requests(&pod.Spec)
		limits := podspec.Limits(&pod.Spec)
		for name, sum := range used {
			amount, _ := amountOf(name, requests, limits)
			sum.Add(amount)
			used[name] = sum
		}
	}
	return used
}

// amountOf is how much of what a quota counts under a name a pod takes; ok is false if the name is not about pods.
func amountOf(name corev1.ResourceName, requests, limits corev1.ResourceList) (amount resource.Quantity, ok bool) {
	if resource, isLimit := strings.CutPrefix(string(name), "limits."); isLimit {
		return limits[corev1.ResourceName(resource)], true
	}
	if resource, isRequest := strings.CutPrefix(string(name), corev1.DefaultResourceRequestsPrefix); isRequest {
		return requests[corev1.ResourceName(resource)], true
	}
	switch {
	case name == corev1.ResourcePods || name == "count/pods":
		return *resource.NewQuantity(1, resource.DecimalSI), true
	case name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return requests[name], true
	}
	return amount, false
}

// isInScope reports whether a pod is one that a quota counts.
func isInScope(object *corev1.ResourceQuota, pod *corev1.Pod) bool {
	for _, scope := range object.Spec.Scopes {
		if !matchesScope(corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}, pod) {
			return false
		}
	}
	if object.Spec.ScopeSelector != nil {
		for _, scope := range object.Spec.ScopeSelector.MatchExpressions {
			if !matchesScope(scope, pod) {
				return false
			}
		}
	}
	return true
}

func matchesScope(scope corev1.ScopedResourceSelectorRequirement, pod *corev1.Pod) bool {
	ends := pod.Spec.ActiveDeadlineSeconds != nil
	asks := len(podspec.Requests(&pod.Spec)) > 0
	switch scope.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return ends
	case corev1.ResourceQuotaScopeNotTerminating:
		return !ends
	case corev1.ResourceQuotaScopeBestEffort:
		return !asks
	case corev1.ResourceQuotaScopeNotBestEffort:
		return asks
	case corev1.ResourceQuotaScopePriorityClass:
		class := pod.Spec.PriorityClassName
		switch scope.Operator {
		case corev1.ScopeSelectorOpIn:
			return slices.Contains(scope.Values, class)
		case corev1.ScopeSelectorOpNotIn:
			return !slices.Contains(scope.Values, class)
		case corev1.ScopeSelectorOpDoesNotExist:
			return class == ""
		}
		return class != ""
	}
	return false
}
