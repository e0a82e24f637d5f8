package queueing

import (
	"strconv"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// RequestTopology gives podsets what the annotations of their templates wish for of the topology, in the form of the
// Workload. So it is named there, as a wish in a Workload made by hand is.
func RequestTopology(sets []v1beta2.PodSet) []v1beta2.PodSet {
	for i := range sets {
		sets[i].TopologyRequest = topologyRequest(sets[i].Template.Annotations)
	}
	return sets
}

// topologyRequest is nil if nothing is wished for. Values that cannot be meant are left out: that there is a wish is
// enough.
func topologyRequest(annotations map[string]string) *v1beta2.PodSetTopologyRequest {
	r, is := &v1beta2.PodSetTopologyRequest{}, false
	const most = 63 // of what the definition takes of a level
	for key, into := range map[string]**string{
		v1beta2.RequiredTopologyAnnotation: &r.Required, v1beta2.PreferredTopologyAnnotation: &r.Preferred,
		v1beta2.SliceRequiredTopologyAnnotation: &r.PodSetSliceRequiredTopology, v1beta2.PodSetGroupNameAnnotation: &r.PodSetGroupName,
	} {
		if value, has := annotations[key]; has {
			if is = true; len(value) <= most {
				*into = &value
			}
		}
	}
	if text, has := annotations[v1beta2.UnconstrainedTopologyAnnotation]; has {
		is = true
		if value, err := strconv.ParseBool(text); err == nil {
			r.Unconstrained = &value
		}
	}
	if text, has := annotations[v1beta2.SliceSizeAnnotation]; has {
		is = true
		if value, err := strconv.ParseInt(text, 10, 32); err == nil {
			size := int32(value)
			r.PodSetSliceSize = &size
		}
	}
	if !is {
		return nil
	}
	return r
}
