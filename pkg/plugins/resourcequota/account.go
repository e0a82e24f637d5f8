package resourcequota

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/rations"
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
type measure = rations.Measure

// open opens the account of a quota.
func (p *plugin) open(quota *corev1.ResourceQuota) *account {
	hard := rations.Hard(quota)
	a := &account{quota: quota}
	for name, limit := range hard {
		m, ok := rations.MeasureOf(name)
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
	return p.cluster.Resources.Vector(corev1.ResourceList{m.Resource: quantity}).At(p.cluster.Resources.Dim(m.Resource))
}

// lacks is what the pods of a job are short of its minimum. If no more pods come for it, that is nothing.
func (p *plugin) lacks(j *cluster.Job, m measure) int64 {
	if j.HasAllPods() {
		return 0
	}
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
		for _, name := range m.Names() {
			if quantity, ok := (*list)[name]; ok {
				most, isNamed = max(most, p.amount(m, quantity)), true
			}
		}
	}
	if !isNamed && !m.IsLimit && m.Resource == corev1.ResourcePods {
		return int64(j.MinMember)
	}
	return most
}

// has is what a quota counts of the pods of a job.
func (p *plugin) has(j *cluster.Job, m measure) int64 {
	if !m.IsLimit {
		d := p.cluster.Resources.Dim(m.Resource)
		return j.Usage.Request.At(d) + j.Gated.At(d) // the quota also counts pods with scheduling gates
	}
	var sum int64
	for _, t := range j.Tasks() {
		if t.Status.Asks() || t.Status == cluster.Gated {
			sum += p.amount(m, resourcehelper.PodLimits(t.Pod.Object(), resourcehelper.PodResourcesOptions{})[m.Resource])
		}
	}
	return min(sum, resources.MaxQuantity)
}

// concerns reports whether a quota is known to apply to the pods of a job.
func (a *account) concerns(j *cluster.Job) bool {
	return rations.Selects(a.quota, j.Group.Spec.PriorityClassName, !namesComputing(j))
}

// namesComputing reports whether a job's minimum names CPU or memory, so that its pods are not BestEffort.
func namesComputing(j *cluster.Job) bool {
	if j.Group.Spec.MinResources == nil {
		return false
	}
	for name, quantity := range *j.Group.Spec.MinResources {
		m, ok := rations.MeasureOf(name)
		if ok && (m.Resource == corev1.ResourceCPU || m.Resource == corev1.ResourceMemory) && quantity.Sign() > 0 {
			return true
		}
	}
	return false
}
