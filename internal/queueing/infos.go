package queueing

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Contradiction is what makes it impossible to start a job as it was admitted. Trying again does not help.
type Contradiction struct{ error }

// FailedToStart is the reason of the condition Finished of such a Workload.
const FailedToStart = "FailedToStart"

// Contradict says why a job cannot start as it was admitted.
func Contradict(why error) Contradiction { return Contradiction{why} }

// PodSetInfos are what the pods of each podset of an admitted Workload get: of the flavors, and of the checks. sets
// have the templates that the pods are made from. schedulers are the names of ours: pods of others get a gate until
// they have the node that is held for them. The error is a [Contradiction], or that of a flavor.
func PodSetInfos(w *v1beta2.Workload, sets []v1beta2.PodSet, schedulers []string, of Lookup) ([]PodSetInfo, error) {
	infos := make([]PodSetInfo, len(w.Status.Admission.PodSetAssignments))
	for i := range w.Status.Admission.PodSetAssignments {
		p, info := &w.Status.Admission.PodSetAssignments[i], &infos[i]
		info.Name = p.Name
		info.Labels = map[string]string{v1beta2.PodSetLabel: p.Name}
		for label, queue := range map[string]string{v1beta2.ClusterQueueLabel: w.Status.Admission.ClusterQueue, v1beta2.LocalQueueLabel: w.Spec.QueueName} {
			if queue != "" && len(validation.IsValidLabelValue(queue)) == 0 { // it may be longer
				info.Labels[label] = queue
			}
		}
		info.Annotations = map[string]string{v1beta2.WorkloadAnnotation: w.Name}
		if p.Count != nil {
			info.Count = *p.Count
		} else if i < len(w.Spec.PodSets) {
			info.Count = w.Spec.PodSets[i].Count
		}
		at := slices.IndexFunc(sets, func(s v1beta2.PodSet) bool { return cmp.Or(s.Name, v1beta2.DefaultPodSetName) == p.Name })
		if at >= 0 && p.TopologyAssignment != nil && !slices.Contains(schedulers, sets[at].Template.Spec.SchedulerName) {
			info.Gate = v1beta2.TopologyGate // its scheduler does not know which nodes the workload holds
		}
		for _, name := range slices.Compact(slices.Sorted(maps.Values(p.Flavors))) {
			flavor, err := of.Flavor(name)
			if err != nil {
				return nil, err
			}
			update := &v1beta2.PodSetUpdate{NodeSelector: flavor.Spec.NodeLabels, Tolerations: flavor.Spec.Tolerations}
			if err := info.Add(update); err != nil {
				return nil, Contradiction{fmt.Errorf("podset %s, flavor %s: %w", p.Name, name, err)}
			}
		}
		for j := range w.Status.AdmissionChecks {
			check := &w.Status.AdmissionChecks[j]
			for k := range check.PodSetUpdates {
				if check.PodSetUpdates[k].Name != p.Name {
					continue
				}
				if err := info.Add(&check.PodSetUpdates[k]); err != nil {
					return nil, Contradiction{fmt.Errorf("in admission check %q: %w", check.Name, err)}
				}
			}
		}
	}
	return infos, nil
}
