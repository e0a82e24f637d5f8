package validation

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// ValidatePodGroup reports network topologies that name their highest tier in two ways.
func ValidatePodGroup(group *scheduling.PodGroup) field.ErrorList {
	spec, path := &group.Spec, field.NewPath("spec")
	problems := oneTier("", spec.NetworkTopology, path.Child("networkTopology"))
	for i := range spec.SubGroupPolicy {
		policy := &spec.SubGroupPolicy[i]
		problems = append(problems, oneTier(fmt.Sprintf("in subGroupPolicy '%s': ", policy.Name), policy.NetworkTopology,
			path.Child("subGroupPolicy").Index(i).Child("networkTopology"))...)
	}
	return problems
}

// oneTier refuses a topology that names its highest tier in two ways. Where says where it stands, for the message.
func oneTier(where string, topology *scheduling.NetworkTopologySpec, path *field.Path) field.ErrorList {
	if topology == nil || topology.HighestTierAllowed == nil || topology.HighestTierName == "" {
		return nil
	}
	return field.ErrorList{field.Invalid(path, topology.HighestTierName, where+"must not specify 'highestTierAllowed' and 'highestTierName' in networkTopology simultaneously: they exclude each other")}
}
