package settings

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/apis/kueue/validation"
)

// Workload is what a Workload says, apart from its conditions and its admission.
type Workload struct {
	Namespace, Name string
	UID             types.UID
	JobUID          types.UID // of the job it was made for, "" if it was made by hand

	Queue         string // the LocalQueue
	Priority      int32
	PriorityClass v1beta2.PriorityClassRef // empty if the priority comes from no class
	IsActive      bool
	MaxSeconds    int32  // for how long it may be admitted, 0: no limit
	GatedBy       string // what must happen before it is looked at, "" if nothing

	PodSets []PodSet

	// PastSeconds is for how long it was admitted in its earlier starts.
	PastSeconds int32
	// Problem says why the workload cannot be admitted, "" if nothing is wrong with the object.
	Problem string
}

// PodSet is what is queued of one template.
type PodSet struct {
	Name        string
	Template    *corev1.PodTemplateSpec
	Count       int32
	MinCount    int32 // Count if the podset cannot shrink
	Reclaimable int32 // pods that have ended and need no quota any more
}

// OfWorkload reads a Workload.
func OfWorkload(object *v1beta2.Workload) Workload {
	spec, status := &object.Spec, &object.Status
	w := Workload{
		Namespace: object.Namespace, Name: object.Name, UID: object.UID,
		JobUID:        types.UID(object.Labels[v1beta2.JobUIDLabel]),
		Queue:         spec.QueueName,
		PriorityClass: PriorityClass(spec),
		IsActive:      spec.Active == nil || *spec.Active,
		MaxSeconds:    value(spec.MaximumExecutionTimeSeconds),
		Priority:      value(spec.Priority),
		GatedBy:       object.Annotations[v1beta2.AdmissionGatedByAnnotation],
		PastSeconds:   max(value(status.AccumulatedPastExecutionTimeSeconds), value(status.AccumulatedPastExexcutionTimeSeconds)),
		PodSets:       make([]PodSet, len(spec.PodSets)),
		Problem:       joined(validation.WorkloadNotServed(object), validation.Workload(object)),
	}
	for i := range spec.PodSets {
		p := &spec.PodSets[i]
		w.PodSets[i] = PodSet{Name: PodSetName(p), Template: &p.Template, Count: p.Count, MinCount: p.Count}
		if p.MinCount != nil {
			w.PodSets[i].MinCount = *p.MinCount
		}
		for _, r := range status.ReclaimablePods {
			if r.Name == w.PodSets[i].Name {
				w.PodSets[i].Reclaimable = min(r.Count, p.Count)
			}
		}
	}
	return w
}

// PodSetName is the name of a pod set. One without a name is called main.
func PodSetName(p *v1beta2.PodSet) string { return either(p.Name, v1beta2.DefaultPodSetName) }

// PodsLeft is with how many pods a pod set was admitted, and how many of them have not ended. Pods that have ended are
// counted from all of the pod set on: those that had ended before the admission are not among the admitted ones.
func PodsLeft(object *v1beta2.Workload, p *v1beta2.PodSetAssignment) (all, left int32) {
	count, ended := int32(0), int32(0)
	for i := range object.Spec.PodSets {
		if PodSetName(&object.Spec.PodSets[i]) == p.Name {
			count = object.Spec.PodSets[i].Count
		}
	}
	if all = count; p.Count != nil {
		all = *p.Count
	}
	for _, r := range object.Status.ReclaimablePods {
		if r.Name == p.Name {
			ended = r.Count
		}
	}
	return all, min(all, max(max(count, all)-ended, 0))
}

// PriorityClass is the class of a Workload's priority in the spelling of v1beta2, empty if it has none.
func PriorityClass(spec *v1beta2.WorkloadSpec) v1beta2.PriorityClassRef {
	switch {
	case spec.PriorityClassRef != nil:
		return *spec.PriorityClassRef
	case spec.PriorityClassName == "":
		return v1beta2.PriorityClassRef{}
	case spec.PriorityClassSource == v1beta2.WorkloadPriorityClassSource:
		return v1beta2.PriorityClassRef{Group: v1beta2.WorkloadPriorityClassGroup, Kind: v1beta2.WorkloadPriorityClassKind, Name: spec.PriorityClassName}
	}
	return v1beta2.PriorityClassRef{Group: v1beta2.PodPriorityClassGroup, Kind: v1beta2.PodPriorityClassKind, Name: spec.PriorityClassName}
}

func value(of *int32) int32 {
	if of == nil {
		return 0
	}
	return *of
}
