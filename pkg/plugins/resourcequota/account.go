package resourcequota

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
)

// account is a ResourceQuota with what is booked on it.
type account struct {
	quota *corev1.ResourceQuota
	lines []line // by name
}

// line is one resource of a quota that minimums may name.
type line struct {
	name corev1.ResourceName // its name in the quota
	measure
	hard, used int64
	left       int64 // hard less used
	booked     int64 // for admitted jobs
}

// measure is what a line counts of a pod.
type measure struct {
	resource corev1.ResourceName // its name on nodes
	isLimit  bool                // it counts limits, not requests
}

const (
	countPods      = "count/pods"
	requestsPrefix = corev1.DefaultResourceRequestsPrefix
	limitsPrefix   = "limits."
)

// measureOf parses the name of a resource in a quota; ok is false if minimums cannot name it.
func measureOf(name corev1.ResourceName) (m measure, ok bool) {
	switch name {
	case corev1.ResourcePods, countPods:
		return measure{resource: corev1.ResourcePods}, true
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return measure{resource: name}, true
	case corev1.ResourceRequestsStorage:
		return measure{}, false // of volume claims
	}
	if of, found := strings.CutPrefix(string(name), limitsPrefix); found {
		return measure{resource: corev1.ResourceName(of), isLimit: true}, true
	}
	of, found := strings.CutPrefix(string(name), requestsPrefix)
	return measure{resource: corev1.ResourceName(of)}, found || strings.HasPrefix(of, corev1.ResourceHugePagesPrefix)
}

// names returns the names under which minResources may have it.
func (m measure) names() []corev1.ResourceName {
	switch {
	case m.isLimit:
		return []corev1.ResourceName{limitsPrefix + m.resource}
	case m.resource == corev1.ResourcePods:
		return []corev1.ResourceName{corev1.ResourcePods, countPods}
	}
	return []corev1.ResourceName{m.resource, requestsPrefix + m.resource}
}

func (p *plugin) open(quota *corev1.ResourceQuota) *account {
	hard := quota.Status.Hard
	if len(hard) == 0 {
		hard = quota.Spec.Hard
	}
	a := &account{quota: quota}
	for name, limit := range hard {
		m, ok := measureOf(name)
		if !ok {
			continue
		}
		used := quota.Status.Used[name]
		left := limit.DeepCopy()
		left.Sub(used)
		a.lines = append(a.lines, line{name: name, measure: m, hard: p.amount(m, limit), used: p.amount(m, used),
			left: p.amount(m, left)})
	}
	slices.SortFunc(a.lines, func(l, m line) int { return strings.Compare(string(l.name), string(m.name)) })
	return a
}

// amount is a quantity in the unit of its resource, at least zero.
func (p *plugin) amount(m measure, quantity resource.Quantity) int64 {
	return p.cluster.Resources.Vector(corev1.ResourceList{m.resource: quantity}).At(p.cluster.Resources.Dim(m.resource))
}

// lacks is what the pods of a job are short of its minimum.
func (p *plugin) lacks(j *cluster.Job, m measure) int64 {
	if need := p.minimum(j, m); need > 0 {
		return max(need-p.has(j, m), 0)
	}
	return 0
}

// minimum is what a job needs at least, zero if it does not say.
func (p *plugin) minimum(j *cluster.Job, m measure) int64 {
	var most int64
	isNamed := false
	if list := j.Group.Spec.MinResources; list != nil {
		for _, name := range m.names() {
			if quantity, ok := (*list)[name]; ok {
				most, isNamed = max(most, p.amount(m, quantity)), true
			}
		}
	}
	if !isNamed && !m.isLimit && m.resource == corev1.ResourcePods {
		return int64(j.MinMember)
	}
	return most
}

// has is what a quota counts of the pods of a job.
func (p *plugin) has(j *cluster.Job, m measure) int64 {
	if !m.isLimit {
		d := p.cluster.Resources.Dim(m.resource)
		return j.Usage.Request.At(d) + j.Gated.At(d) // the quota also counts pods with scheduling gates
	}
	var sum int64
	for _, t := range j.Tasks() {
		if t.Status.Asks() || t.Status == cluster.Gated {
			sum += p.amount(m, resourcehelper.PodLimits(t.Pod.Object(), resourcehelper.PodResourcesOptions{})[m.resource])
		}
	}
	return min(sum, resources.MaxQuantity)
}

// concerns reports whether a quota is known to apply to the pods of a job.
func (a *account) concerns(j *cluster.Job) bool {
	for _, scope := range a.quota.Spec.Scopes {
		if !isWithin(j, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists}) {
			return false
		}
	}
	if selector := a.quota.Spec.ScopeSelector; selector != nil {
		for _, requirement := range selector.MatchExpressions {
			if !isWithin(j, requirement) {
				return false
			}
		}
	}
	return true
}

// isWithin reports whether a job is known to match a scope.
func isWithin(j *cluster.Job, r corev1.ScopedResourceSelectorRequirement) bool {
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeBestEffort:
		return !namesComputing(j)
	case corev1.ResourceQuotaScopeNotBestEffort:
		return namesComputing(j)
	case corev1.ResourceQuotaScopePriorityClass:
		class := j.Group.Spec.PriorityClassName
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

// namesComputing reports whether a job's minimum names CPU or memory, so that its pods are not BestEffort.
func namesComputing(j *cluster.Job) bool {
	if j.Group.Spec.MinResources == nil {
		return false
	}
	for name, quantity := range *j.Group.Spec.MinResources {
		m, ok := measureOf(name)
		if ok && (m.resource == corev1.ResourceCPU || m.resource == corev1.ResourceMemory) && quantity.Sign() > 0 {
			return true
		}
	}
	return false
}
