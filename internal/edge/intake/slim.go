package intake

import (
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/resources"
)

// slim drops the fields of a decoded object that no decision reads. The caches and the model hold every object of the
// cluster, and these fields are most of each. Of a pod, the fields for its placement stay, which kube-scheduler's plugins
// and classes read. It may be applied twice.
func slim(o any) (any, error) {
	if m, ok := o.(metav1.Object); ok {
		m.SetManagedFields(nil)
		delete(m.GetAnnotations(), corev1.LastAppliedConfigAnnotation)
	}
	switch o := o.(type) {
	case *corev1.Pod:
		slimPod(o)
	case *corev1.Node:
		o.Status.Addresses, o.Status.VolumesInUse, o.Status.VolumesAttached, o.Status.Config = nil, nil, nil, nil
		o.Status.NodeInfo = corev1.NodeSystemInfo{}
	case *corev1.PersistentVolumeClaim:
		resources.Clamp(o.Spec.Resources.Requests, o.Spec.Resources.Limits)
	case *resourcev1.ResourceClaim:
		slimClaim(o)
	case *policyv1.PodDisruptionBudget:
		o.Status.Conditions = nil
	}
	return o, nil
}

// slimClaim limits the amounts that a claim requests of devices, and those of its allocation.
func slimClaim(claim *resourcev1.ResourceClaim) {
	clamp := func(capacity *resourcev1.CapacityRequirements) {
		if capacity != nil {
			resources.Clamp(capacity.Requests)
		}
	}
	for i := range claim.Spec.Devices.Requests {
		request := &claim.Spec.Devices.Requests[i]
		if request.Exactly != nil {
			clamp(request.Exactly.Capacity)
		}
		for k := range request.FirstAvailable {
			clamp(request.FirstAvailable[k].Capacity)
		}
	}
	if claim.Status.Allocation != nil {
		for i := range claim.Status.Allocation.Devices.Results {
			resources.Clamp(claim.Status.Allocation.Devices.Results[i].ConsumedCapacity)
		}
	}
}

func slimPod(pod *corev1.Pod) {
	spec, status := &pod.Spec, &pod.Status
	resources.Clamp(spec.Overhead)
	if spec.Resources != nil {
		resources.Clamp(spec.Resources.Requests, spec.Resources.Limits)
	}
	slimContainers(spec.InitContainers)
	slimContainers(spec.Containers)
	slimStatuses(status.InitContainerStatuses)
	slimStatuses(status.ContainerStatuses)
	pod.Spec = corev1.PodSpec{
		Volumes:                       placedVolumes(spec.Volumes),
		InitContainers:                spec.InitContainers,
		Containers:                    spec.Containers,
		TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds,
		NodeSelector:                  spec.NodeSelector,
		NodeName:                      spec.NodeName,
		HostNetwork:                   spec.HostNetwork,
		Affinity:                      spec.Affinity,
		SchedulerName:                 spec.SchedulerName,
		Tolerations:                   spec.Tolerations,
		PriorityClassName:             spec.PriorityClassName,
		Priority:                      spec.Priority,
		PreemptionPolicy:              spec.PreemptionPolicy,
		Overhead:                      spec.Overhead,
		TopologySpreadConstraints:     spec.TopologySpreadConstraints,
		SchedulingGates:               spec.SchedulingGates,
		ResourceClaims:                spec.ResourceClaims,
		Resources:                     spec.Resources,
		SchedulingGroup:               spec.SchedulingGroup,
	}
	pod.Status = corev1.PodStatus{
		Phase:                                status.Phase,
		Conditions:                           status.Conditions,
		Reason:                               status.Reason,
		NominatedNodeName:                    status.NominatedNodeName,
		StartTime:                            status.StartTime,
		InitContainerStatuses:                status.InitContainerStatuses,
		ContainerStatuses:                    status.ContainerStatuses,
		ResourceClaimStatuses:                status.ResourceClaimStatuses,
		ExtendedResourceClaimStatus:          status.ExtendedResourceClaimStatus,
		NodeAllocatableResourceClaimStatuses: status.NodeAllocatableResourceClaimStatuses,
		AllocatedResources:                   status.AllocatedResources,
		Resources:                            status.Resources,
	}
}

// slimContainers keeps requests, ports and images.
func slimContainers(containers []corev1.Container) {
	for i := range containers {
		c := &containers[i]
		resources.Clamp(c.Resources.Requests, c.Resources.Limits)
		containers[i] = corev1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, Resources: c.Resources,
			RestartPolicy: c.RestartPolicy}
	}
}

// slimStatuses keeps what counts for an in-place resize.
func slimStatuses(statuses []corev1.ContainerStatus) {
	for i := range statuses {
		s := &statuses[i]
		statuses[i] = corev1.ContainerStatus{Name: s.Name, AllocatedResources: s.AllocatedResources, Resources: s.Resources}
	}
}

// placedVolumes drops volumes that can be mounted on any node. Nearly every pod has one, for the token of its
// ServiceAccount.
func placedVolumes(volumes []corev1.Volume) []corev1.Volume {
	var placed []corev1.Volume
	for _, volume := range volumes {
		v := &volume.VolumeSource
		isAnywhere := v.Projected != nil || v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil ||
			v.EmptyDir != nil || v.HostPath != nil
		if !isAnywhere {
			placed = append(placed, volume)
		}
	}
	return placed
}
