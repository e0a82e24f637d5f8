package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// notServed is what is said of a field that is set.
func notServed(path *field.Path) string {
	return fmt.Sprintf("%s is set, and Hekla does not serve it", path)
}

// ClusterQueueNotServed says which fields make a ClusterQueue inactive.
func ClusterQueueNotServed(q *v1beta2.ClusterQueue) []string {
	var found []string
	if q.Spec.AdmissionScope != nil {
		found = append(found, notServed(spec.Child("admissionScope")))
	}
	if q.Spec.ConcurrentAdmissionPolicy != nil {
		found = append(found, notServed(spec.Child("concurrentAdmissionPolicy")))
	}
	return found
}

var one = resource.MustParse("1")

// LocalQueueNotServed says which fields make a LocalQueue inactive.
func LocalQueueNotServed(q *v1beta2.LocalQueue) []string {
	if f := q.Spec.FairSharing; f != nil && f.Weight != nil && f.Weight.Cmp(one) != 0 {
		return []string{notServed(spec.Child("fairSharing", "weight"))}
	}
	return nil
}

// ResourceFlavorNotServed says which fields make the ClusterQueues of a flavor inactive.
func ResourceFlavorNotServed(f *v1beta2.ResourceFlavor) []string {
	if f.Spec.TopologyName != nil {
		return []string{notServed(spec.Child("topologyName"))}
	}
	return nil
}

// WorkloadNotServed says which fields keep a Workload from being admitted.
func WorkloadNotServed(w *v1beta2.Workload) []string {
	var found []string
	for i := range w.Spec.PodSets {
		if r := w.Spec.PodSets[i].TopologyRequest; r != nil && !isUnconstrained(r) {
			found = append(found, notServed(spec.Child("podSets").Index(i).Child("topologyRequest")))
		}
	}
	if len(w.Spec.PreemptionGates) > 0 {
		found = append(found, notServed(spec.Child("preemptionGates")))
	}
	return found
}

// isUnconstrained reports whether nothing is asked of the topology but that there is room on named nodes, as there is
// for every Workload.
func isUnconstrained(r *v1beta2.PodSetTopologyRequest) bool {
	return equality.Semantic.DeepEqual(*r, v1beta2.PodSetTopologyRequest{Unconstrained: ptr.To(true), PodIndexLabel: r.PodIndexLabel})
}

// AdmissionCheckNotServed says why the ClusterQueues of a check are inactive.
func AdmissionCheckNotServed(c *v1beta2.AdmissionCheck) []string {
	switch c.Spec.ControllerName {
	case v1beta2.MultiKueueController, v1beta2.ProvisioningRequestController:
		return []string{fmt.Sprintf("the controller %s is not served by Hekla", c.Spec.ControllerName)}
	}
	return nil
}
