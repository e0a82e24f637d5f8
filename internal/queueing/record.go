package queueing

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// record is what [RestoreTemplate] gives back to the template of one podset.
type record struct {
	Name         string                     `json:"name"`
	Count        int32                      `json:"count"`
	Labels       map[string]string          `json:"labels,omitempty"`
	Annotations  map[string]string          `json:"annotations,omitempty"`
	NodeSelector map[string]string          `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration        `json:"tolerations,omitempty"`
	Gates        []corev1.PodSchedulingGate `json:"schedulingGates,omitempty"`
	Affinity     *corev1.Affinity           `json:"affinity,omitempty"`
}

// Record notes in a job how its podsets were queued. It is needed where the podsets of the Workload, which another
// client has made, do not say so.
func Record(object client.Object, sets []v1beta2.PodSet) {
	records := make([]record, len(sets))
	for i := range sets {
		t := &sets[i].Template
		records[i] = record{sets[i].Name, sets[i].Count, t.Labels, t.Annotations, t.Spec.NodeSelector, t.Spec.Tolerations, t.Spec.SchedulingGates, t.Spec.Affinity}
	}
	text, err := json.Marshal(records)
	if err != nil {
		panic(err) // each of the parts has a form in JSON
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[v1beta2.QueuedAnnotation] = string(text)
	object.SetAnnotations(annotations)
}

// TakeRecord removes what [Record] has noted in a job, and returns it in the form for [Job.Restore], nil if there is
// nothing that can be read.
func TakeRecord(object client.Object) []v1beta2.PodSet {
	annotations := object.GetAnnotations()
	text, is := annotations[v1beta2.QueuedAnnotation]
	if !is {
		return nil
	}
	delete(annotations, v1beta2.QueuedAnnotation)
	object.SetAnnotations(annotations)
	var records []record
	if bounds.UnmarshalJSON([]byte(text), &records) != nil {
		return nil
	}
	sets := make([]v1beta2.PodSet, len(records))
	for i, r := range records {
		set := &sets[i]
		set.Name, set.Count = r.Name, r.Count
		set.Template.Labels, set.Template.Annotations = r.Labels, r.Annotations
		set.Template.Spec = corev1.PodSpec{NodeSelector: r.NodeSelector, Tolerations: r.Tolerations, SchedulingGates: r.Gates, Affinity: r.Affinity}
	}
	return sets
}
