package integration

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Job is a job of a kind that can be queued: one that can be made to wait, to run and to stop as a whole.
type Job interface {
	// Object is the object itself.
	Object() client.Object
	// Kind is its group, version and kind.
	Kind() schema.GroupVersionKind

	// IsSuspended reports whether the job is to have no pods.
	IsSuspended() bool
	// IsActive reports whether the job has pods that have not ended, or may have some although it is suspended.
	IsActive() bool
	// Suspend has the job end its pods and make no more.
	Suspend()

	// PodSets are what the job would run if nothing held it back.
	PodSets() []v1beta2.PodSet
	// Run has the job make its pods, with what each podset gets. It fails if the job cannot run so.
	Run(infos []Info) error
	// Restore makes the job what it was before Run: as these podsets say. What is so already stays untouched.
	Restore(sets []v1beta2.PodSet)

	// Finished reports whether the job has ended, how, and with which words.
	Finished() (message string, succeeded, is bool)
	// PodsReady reports whether all pods of the job are ready or have succeeded. count is how many were admitted.
	PodsReady(count int32) bool
	// Demand says how many places of each podset the job needs from now on.
	Demand() []Demand
	// KeepsCounts reports whether the job says how many pods it wants also while it is admitted with fewer.
	KeepsCounts() bool
}

// Demand is how many places of a podset a job needs, of those that it was queued with.
type Demand struct {
	Name string
	// Count is how many pods of the podset the job wants to run at a time, from its spec.
	Count int32
	// Ended is how many of these places no pod needs any more: the last pod has ended, and none is made in its place.
	Ended int32
	// Has is how many pods have not ended, with those that are being deleted. Each has a place until it is gone.
	Has int32
}

// Info is what the pods of a podset get at the start.
type Info struct {
	Name         string
	Count        int32
	Labels       map[string]string
	Annotations  map[string]string
	NodeSelector map[string]string
	Tolerations  []corev1.Toleration
	// Gate is a scheduling gate of the pods, "" for none.
	Gate string
}

// GrowsUnserved says that a job or pod asks by an annotation to grow while it runs, which is not served, "" if it does
// not.
func GrowsUnserved(object metav1.Object) string {
	if object.GetAnnotations()[v1beta2.ElasticJobAnnotation] != "true" {
		return ""
	}
	return "the annotation " + v1beta2.ElasticJobAnnotation + " is set, and Hekla does not serve Jobs that grow while they run"
}

// Add adds the updates of an AdmissionCheck. It fails if one of them contradicts what is there.
func (i *Info) Add(update *v1beta2.PodSetUpdate) error {
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
func Apply(template *corev1.PodTemplateSpec, info *Info) error {
	labels, annotations, selector := maps.Clone(template.Labels), maps.Clone(template.Annotations), maps.Clone(template.Spec.NodeSelector)
	for _, part := range []struct {
		name string
		into *map[string]string
		from map[string]string
	}{
		{"labels", &labels, info.Labels}, {"annotations", &annotations, info.Annotations}, {"nodeSelector", &selector, info.NodeSelector},
	} {
		if err := merge(part.into, part.from, part.name); err != nil {
			return err
		}
	}
	template.Labels, template.Annotations, template.Spec.NodeSelector = labels, annotations, selector
	template.Spec.Tolerations = tolerations(template.Spec.Tolerations, info.Tolerations)
	if gate := (corev1.PodSchedulingGate{Name: info.Gate}); gate.Name != "" && !slices.Contains(template.Spec.SchedulingGates, gate) {
		template.Spec.SchedulingGates = append(slices.Clone(template.Spec.SchedulingGates), gate)
	}
	return nil
}

// IsMarked reports whether a template has the marks by which pods are known as those of a Workload.
func IsMarked(template *corev1.PodTemplateSpec) bool {
	return template.Labels[v1beta2.PodSetLabel] != "" || template.Annotations[v1beta2.WorkloadAnnotation] != ""
}

// Unmark takes these marks away.
func Unmark(template *corev1.PodTemplateSpec) {
	delete(template.Labels, v1beta2.PodSetLabel)
	delete(template.Annotations, v1beta2.WorkloadAnnotation)
}

// Restore gives a template the labels, annotations, selectors, tolerations, gates and node affinity of another. The API
// server lets a suspended Job change these, and no more.
func Restore(template, queued *corev1.PodTemplateSpec) {
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
