package mistakes

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hekla.sh/hekla/internal/similar"
	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

// place is where a key is read.
type place string

const (
	isLabel      place = "label"
	isAnnotation place = "annotation"
	isEither     place = ""
)

// written are the keys that people write on jobs, PodGroups and pods, with where they are read.
var written = map[string]place{
	schedulingv1beta1.PreemptableKey:                isEither,
	schedulingv1beta1.CooldownTimeKey:               isEither,
	schedulingv1beta1.RevocableZoneKey:              isAnnotation,
	schedulingv1beta1.TaskPriorityAnnotationKey:     isAnnotation,
	schedulingv1beta1.JDBMinAvailableKey:            isAnnotation,
	schedulingv1beta1.JDBMaxUnavailableKey:          isAnnotation,
	schedulingv1beta1.SLAWaitingTimeKey:             isAnnotation,
	schedulingv1beta1.QueueNameAnnotationKey:        isAnnotation,
	schedulingv1beta1.KubeGroupNameAnnotationKey:    isAnnotation,
	schedulingv1beta1.GroupMinMemberAnnotationKey:   isAnnotation,
	schedulingv1beta1.NetworkTopologyModeKey:        isAnnotation,
	schedulingv1beta1.NetworkTopologyHighestTierKey: isAnnotation,
	schedulingv1beta1.NodeGroupNameKey:              isEither,
	batchv1alpha1.TaskSpecKey:                       isEither,
	batchv1alpha1.QueueNameKey:                      isEither,
	v1beta2.QueueNameLabel:                          isLabel,
	v1beta2.PriorityClassLabel:                      isLabel,
	v1beta2.PrebuiltWorkloadLabel:                   isLabel,
	v1beta2.MaxExecTimeSecondsLabel:                 isLabel,
	v1beta2.PodGroupNameLabel:                       isLabel,
	v1beta2.PodGroupTotalCountAnnotation:            isAnnotation,
	v1beta2.PodGroupFastAdmissionAnnotation:         isAnnotation,
	v1beta2.RetriableInGroupAnnotation:              isAnnotation,
	v1beta2.JobMinParallelismAnnotation:             isAnnotation,
}

// others are further keys that programs write or read, so that they are no mistakes.
var others = []string{
	topologyv1alpha1.NetworkTopologySourceLabelKey,
	schedulingv1beta1.VolcanoGroupNameAnnotationKey,
	schedulingv1beta1.GroupMinResourcesAnnotationKey,
	schedulingv1beta1.SchedulerNameKey,
	schedulingv1beta1.QueueAllocationGateKey,
	schedulingv1beta1.PromiseRecordKey,
	schedulingv1beta1.EvictionRecordKey,
	schedulingv1beta1.StandInsKey,
	schedulingv1beta1.PodsRefusedKey,
	schedulingv1beta1.RunningEstimateKey,
	schedulingv1beta1.ActiveDeadlineKey,
	schedulingv1beta1.OversubscriptionCPUKey,
	schedulingv1beta1.OversubscriptionMemoryKey,
	schedulingv1beta1.QosLevelKey,
	schedulingv1beta1.ResourceGroupKey,
	schedulingv1beta1.JobAllocatedHyperNodeKey,
	schedulingv1beta1.NodeGroupResourceLimitsKey,
	schedulingv1beta1.NumaPolicyKey,
	schedulingv1beta1.TopologyDecisionKey,
	schedulingv1beta1.TaskTopologyAffinityKey,
	schedulingv1beta1.TaskTopologyAntiAffinityKey,
	schedulingv1beta1.TaskTopologyOrderKey,
	schedulingv1beta1.ResourceStrategyTypeKey,
	schedulingv1beta1.ResourceStrategyWeightKey,
	schedulingv1beta1.HierarchyAnnotationKey,
	schedulingv1beta1.HierarchyWeightsAnnotationKey,
	schedulingv1beta1.QueueAccessLabelKey,
	schedulingv1beta1.QueueNamespacesAnnotationKey,
	schedulingv1beta1.ClosedByParentAnnotationKey,
	schedulingv1beta1.PreemptionPolicyKey,
	schedulingv1beta1.PreemptionDelayKey,
	schedulingv1beta1.PriorityPolicyKey,
	schedulingv1beta1.PriorityOffsetKey,
	schedulingv1beta1.ApplicationSortPolicyKey,
	schedulingv1beta1.ApplicationSortPriorityKey,
	schedulingv1beta1.MaxApplicationsKey,
	schedulingv1beta1.QuotaPreemptionDelayKey,
	schedulingv1beta1.QueuePathKey,
	batchv1alpha1.TaskIndexKey,
	batchv1alpha1.JobNameKey,
	batchv1alpha1.JobNamespaceKey,
	batchv1alpha1.JobVersionKey,
	batchv1alpha1.JobRetryCountKey,
	batchv1alpha1.JobTypeKey,
	batchv1alpha1.PodTemplateKey,
	batchv1alpha1.TaskPartitionIDKey,
	batchv1alpha1.JobForwardingKey,
	batchv1alpha1.ForwardClusterKey,
	batchv1alpha1.OriginalNameKey,
	batchv1alpha1.SiloResourceKey,
	v1beta2.JobUIDLabel,
	v1beta2.ManagedLabel,
	v1beta2.ClusterQueueLabel,
	v1beta2.LocalQueueLabel,
	v1beta2.PodSetLabel,
	v1beta2.ElasticJobAnnotation,
	v1beta2.RequiredTopologyAnnotation,
	v1beta2.PreferredTopologyAnnotation,
	v1beta2.UnconstrainedTopologyAnnotation,
	v1beta2.SliceRequiredTopologyAnnotation,
	v1beta2.SliceSizeAnnotation,
	v1beta2.PodSetGroupNameAnnotation,
	v1beta2.GroupWorkloadAnnotation,
	v1beta2.RoleHashAnnotation,
	v1beta2.AdmissionGatedByAnnotation,
	v1beta2.WorkloadAnnotation,
	v1beta2.QueueAnnotation,
	v1beta2.PlanAnnotation,
	v1beta2.QueuedAnnotation,
	v1beta2.AdmissionGate,
	v1beta2.TopologyGate,
	v1beta2.PodFinalizer,
	v1beta2.ResourceInUseFinalizer,
	v1beta2.MultiKueueController,
	v1beta2.ProvisioningRequestController,
	v1beta2.WorkloadPriorityClassSource,
}

// groups are the ends of the prefixes of such keys.
var groups = []string{"volcano.sh", "kueue.x-k8s.io", "hekla.sh"}

// Keys returns the keys among labels and annotations that are like one that people write, and are not it, or
// stand among labels where they are read among annotations, or the other way round.
func Keys(labels, annotations map[string]string) (found []Mistake) {
	for _, in := range []struct {
		place place
		keys  map[string]string
		other map[string]string
	}{{isLabel, labels, annotations}, {isAnnotation, annotations, labels}} {
		for _, key := range slices.Sorted(maps.Keys(in.keys)) {
			if m, is := ofKey(key, in.place); is && in.other[m.Meant] == "" && in.keys[m.Meant] == "" || is && m.Meant == key && in.other[key] == "" {
				found = append(found, m)
			}
		}
	}
	return found
}

func ofKey(key string, at place) (Mistake, bool) {
	prefix, name, _ := strings.Cut(key, "/")
	if !slices.ContainsFunc(groups, func(group string) bool { return prefix == group || strings.HasSuffix(prefix, "."+group) }) {
		return Mistake{}, false
	}
	if where, is := written[key]; is {
		return Mistake{Name: key, Meant: key, Message: fmt.Sprintf("%s is a %s, and is read among %ss only", key, where, where)}, where != isEither && where != at
	}
	if slices.Contains(others, key) {
		return Mistake{}, false
	}
	var alike []string // names after the same prefix
	meant := ""
	for _, candidate := range slices.Sorted(maps.Keys(written)) {
		of, known, _ := strings.Cut(candidate, "/")
		switch {
		case of == prefix && (strings.HasPrefix(known, name+"-") || strings.HasPrefix(name, known+"-")), of != prefix && known == name:
			meant = cmp.Or(meant, candidate)
		case of == prefix:
			alike = append(alike, known)
		}
	}
	if near := similar.Nearest(name, alike); near != "" && meant == "" {
		meant = prefix + "/" + near
	}
	return Mistake{Name: key, Meant: meant, Message: fmt.Sprintf("the %s %s is not known; did you mean %s?", at, key, meant)}, meant != ""
}
