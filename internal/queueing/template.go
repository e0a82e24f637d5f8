package queueing

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// PodSetInfo is what the pods of a podset get at the start.
type PodSetInfo struct {
	Name         string
	Count        int32
	Labels       map[string]string
	Annotations  map[string]string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Gate is a scheduling gate of the pods, "" for none.
	Gate string
}

// Add adds the updates of an AdmissionCheck. It fails if one of them contradicts what is there.
func (i *PodSetInfo) Add(update *v1beta2.PodSetUpdate) error {
	for _, part := range []struct {
		name string
		into *map[string]string
		from map[string]string
	}{
		{"labels", &i.Labels, update.Labels},
		{"annotations", &i.Annotations, update.Annotations},
		{"nodeSelector", &i.NodeSelector, update.NodeSelector},
	} {
		if err := merge(part.into, part.from, part.name); err != nil {
			return err
		}
	}
	i.Tolerations = tolerations(i.Tolerations, update.Tolerations)
	return nil
}

// Apply adds what the pods of a podset get to their template. It fails, and changes nothing, if the template says
// otherwise.
func (i *PodSetInfo) Apply(template *corev1.PodTemplateSpec) error {
	labels, annotations, selector := maps.Clone(template.Labels), maps.Clone(template.Annotations), maps.Clone(template.Spec.NodeSelector)
	for _, part := range []struct {
		name string
		into *map[string]string
		from map[string]string
	}{
		{"labels", &labels, i.Labels}, {"annotations", &annotations, i.Annotations}, {"nodeSelector", &selector, i.NodeSelector},
	} {
		if err := merge(part.into, part.from, part.name); err != nil {
			return err
		}
	}
	template.Labels, template.Annotations, template.Spec.NodeSelector = labels, annotations, selector
	template.Spec.Tolerations = tolerations(template.Spec.Tolerations, i.Tolerations)
	if gate := (corev1.PodSchedulingGate{Name: i.Gate}); gate.Name != "" && !slices.Contains(template.Spec.SchedulingGates, gate) {
		template.Spec.SchedulingGates = append(slices.Clone(template.Spec.SchedulingGates), gate)
	}
	return nil
}

// HasMarks reports whether a template has the marks by which pods are known as those of a Workload.
func HasMarks(template *corev1.PodTemplateSpec) bool {
	return template.Labels[v1beta2.PodSetLabel] != "" || template.Annotations[v1beta2.WorkloadAnnotation] != ""
}

// RemoveMarks takes these marks away.
func RemoveMarks(template *corev1.PodTemplateSpec) {
	delete(template.Labels, v1beta2.PodSetLabel)
	delete(template.Annotations, v1beta2.WorkloadAnnotation)
}

// RestoreTemplate gives a template the labels, annotations, selectors, tolerations, gates and node affinity of another.
// The API server lets a suspended Job change these, and no more.
func RestoreTemplate(template, queued *corev1.PodTemplateSpec) {
	queued = queued.DeepCopy()
	template.Labels, template.Annotations = queued.Labels, queued.Annotations
	template.Spec.NodeSelector, template.Spec.Tolerations = queued.Spec.NodeSelector, queued.Spec.Tolerations
	template.Spec.SchedulingGates = queued.Spec.SchedulingGates
	var affinity corev1.Affinity
	if has := template.Spec.Affinity; has != nil {
		affinity = *has
	}
	if affinity.NodeAffinity = nil; queued.Spec.Affinity != nil {
		affinity.NodeAffinity = queued.Spec.Affinity.NodeAffinity
	}
	if template.Spec.Affinity = &affinity; affinity == (corev1.Affinity{}) {
		template.Spec.Affinity = nil
	}
}

// merge adds pairs, and fails at the first key, in order, that has another value. The words are Kueue's.
func merge(into *map[string]string, from map[string]string, what string) error {
	for _, key := range slices.Sorted(maps.Keys(from)) {
		if value, is := (*into)[key]; is && value != from[key] {
			return fmt.Errorf("invalid admission check PodSetUpdate: conflict for %s: conflict for key=%s, value1=%s, value2=%s", what, key, value, from[key])
		}
	}
	if len(from) > 0 && *into == nil {
		*into = map[string]string{}
	}
	maps.Copy(*into, from)
	return nil
}

func tolerations(into, from []corev1.Toleration) []corev1.Toleration {
	into = slices.Clone(into)
	for _, t := range from {
		if !slices.ContainsFunc(into, func(has corev1.Toleration) bool { return apiequality.Semantic.DeepEqual(has, t) }) {
			into = append(into, t)
		}
	}
	return into
}
