package pods

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/resources"
)

// slimmer makes the parts of a pod that are kept, in memory that it uses again for the next pod.
type slimmer struct {
	containers, inits []corev1.Container
	volumes           []corev1.Volume
	statuses          [2][]corev1.ContainerStatus
}

// template returns what is kept of the spec and of the resizes of a pod. It is valid until the next call, unless it is
// cloned.
func (s *slimmer) template(pod *corev1.Pod) Template {
	spec, status := &pod.Spec, &pod.Status
	s.inits = slimContainers(s.inits[:0], spec.InitContainers)
	s.containers = slimContainers(s.containers[:0], spec.Containers)
	s.volumes = placedVolumes(s.volumes[:0], spec.Volumes)
	t := Template{Spec: Spec{
		Volumes:                       s.volumes,
		InitContainers:                s.inits,
		Containers:                    s.containers,
		TerminationGracePeriodSeconds: spec.TerminationGracePeriodSeconds,
		ActiveDeadlineSeconds:         spec.ActiveDeadlineSeconds,
		NodeSelector:                  spec.NodeSelector,
		HostNetwork:                   spec.HostNetwork,
		Affinity:                      spec.Affinity,
		SchedulerName:                 spec.SchedulerName,
		Tolerations:                   spec.Tolerations,
		PriorityClassName:             spec.PriorityClassName,
		Priority:                      spec.Priority,
		PreemptionPolicy:              spec.PreemptionPolicy,
		Overhead:                      resources.Clamped(spec.Overhead),
		TopologySpreadConstraints:     spec.TopologySpreadConstraints,
		SchedulingGates:               spec.SchedulingGates,
		ResourceClaims:                spec.ResourceClaims,
		Resources:                     clampedRequirements(spec.Resources),
		SchedulingGroup:               spec.SchedulingGroup,
	}}
	s.statuses[0] = slimStatuses(s.statuses[0][:0], status.InitContainerStatuses, s.inits)
	s.statuses[1] = slimStatuses(s.statuses[1][:0], status.ContainerStatuses, s.containers)
	if len(s.statuses[0])+len(s.statuses[1])+len(status.AllocatedResources) > 0 || status.Resources != nil {
		t.resized = &corev1.PodStatus{InitContainerStatuses: s.statuses[0], ContainerStatuses: s.statuses[1],
			AllocatedResources: resources.Clamped(status.AllocatedResources), Resources: clampedRequirements(status.Resources)}
	}
	return t
}

// clone returns a template that shares no memory with its slimmer.
func (t *Template) clone() *Template {
	kept := *t
	spec := &kept.Spec
	spec.Volumes, spec.InitContainers, spec.Containers = exactly(spec.Volumes), exactly(spec.InitContainers), exactly(spec.Containers)
	if kept.resized != nil {
		r := *kept.resized
		r.InitContainerStatuses, r.ContainerStatuses = exactly(r.InitContainerStatuses), exactly(r.ContainerStatuses)
		kept.resized = &r
	}
	return &kept
}

// exactly copies a list without spare capacity; an empty one is nil.
func exactly[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return append(make([]T, 0, len(list)), list...)
}

// slimContainers keeps requests, ports and images.
func slimContainers(into, containers []corev1.Container) []corev1.Container {
	for i := range containers {
		c := &containers[i]
		into = append(into, corev1.Container{Name: c.Name, Image: c.Image, Ports: c.Ports, RestartPolicy: c.RestartPolicy,
			Resources: corev1.ResourceRequirements{Claims: c.Resources.Claims,
				Requests: resources.Clamped(c.Resources.Requests), Limits: resources.Clamped(c.Resources.Limits)}})
	}
	return into
}

func clampedRequirements(r *corev1.ResourceRequirements) *corev1.ResourceRequirements {
	if r == nil {
		return nil
	}
	return &corev1.ResourceRequirements{Claims: r.Claims, Requests: resources.Clamped(r.Requests), Limits: resources.Clamped(r.Limits)}
}

// slimStatuses keeps what counts for an in-place resize: the amounts of containers that are not those of the spec. The
// kubelet reports the amounts of every container.
func slimStatuses(into, statuses []corev1.ContainerStatus, containers []corev1.Container) []corev1.ContainerStatus {
	for i := range statuses {
		s := &statuses[i]
		if s.Resources == nil {
			continue // then the spec counts
		}
		at := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == s.Name })
		if at >= 0 && isAs(s.Resources.Requests, containers[at].Resources.Requests) && isAs(s.Resources.Limits, containers[at].Resources.Limits) &&
			isAs(s.AllocatedResources, containers[at].Resources.Requests) {
			continue
		}
		into = append(into, corev1.ContainerStatus{Name: s.Name, AllocatedResources: resources.Clamped(s.AllocatedResources),
			Resources: clampedRequirements(s.Resources)})
	}
	return into
}

func isAs(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		if other, ok := b[name]; !ok || quantity.Cmp(other) != 0 {
			return false
		}
	}
	return true
}

// placedVolumes drops volumes that can be mounted on any node. Nearly every pod has one, for the token of its
// ServiceAccount.
func placedVolumes(into, volumes []corev1.Volume) []corev1.Volume {
	for i := range volumes {
		v := &volumes[i].VolumeSource
		isAnywhere := v.Projected != nil || v.ConfigMap != nil || v.Secret != nil || v.DownwardAPI != nil ||
			v.EmptyDir != nil || v.HostPath != nil
		if !isAnywhere {
			into = append(into, volumes[i])
		}
	}
	return into
}

// endOf returns when the last container of a pod ended that has succeeded or failed, 0 if that is not known.
func endOf(status *corev1.PodStatus) (last moment) {
	if status.Phase != corev1.PodSucceeded && status.Phase != corev1.PodFailed {
		return 0
	}
	for i := range status.ContainerStatuses {
		if ended := status.ContainerStatuses[i].State.Terminated; ended != nil {
			last = max(last, momentOf(ended.FinishedAt))
		}
	}
	return last
}

// slimStatus returns what is kept of a status besides resizes. It shares the conditions of the pod's last state if they
// are the same.
func slimStatus(status *corev1.PodStatus, before *Pod) Status {
	kept := Status{Phase: phase(status.Phase), Reason: status.Reason, NominatedNodeName: status.NominatedNodeName}
	if status.StartTime != nil {
		kept.started = momentOf(*status.StartTime)
	}
	if len(status.ResourceClaimStatuses)+len(status.NodeAllocatableResourceClaimStatuses) > 0 || status.ExtendedResourceClaimStatus != nil {
		kept.claims = &claims{made: status.ResourceClaimStatuses, extended: status.ExtendedResourceClaimStatus,
			allocatable: status.NodeAllocatableResourceClaimStatuses}
	}
	kept.ended = endOf(status)
	count := 0
	for i := range status.Conditions {
		switch c := &status.Conditions[i]; {
		case isScheduled(c):
			kept.scheduled = momentOf(c.LastTransitionTime)
		case isKept(c):
			count++
		}
	}
	if before != nil && haveConditions(before.Status.Conditions, status.Conditions, count) {
		kept.Conditions = before.Status.Conditions
		return kept
	}
	if count == 0 {
		return kept
	}
	kept.Conditions = make([]corev1.PodCondition, 0, count)
	for i := range status.Conditions {
		if c := &status.Conditions[i]; isKept(c) {
			kept.Conditions = append(kept.Conditions, *c)
			last := &kept.Conditions[len(kept.Conditions)-1]
			last.Type, last.Status = conditionType(c.Type), conditionStatus(c.Status)
		}
	}
	return kept
}

// isScheduled reports whether a condition says when the pod got its node. Nearly every pod has it, and only the time is
// read.
func isScheduled(c *corev1.PodCondition) bool {
	return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero()
}

// isKept reports whether a condition is kept as it is.
func isKept(c *corev1.PodCondition) bool { return !isOfKubelet(c.Type) && !isScheduled(c) }

// haveConditions reports whether kept conditions are those of a status, of which count are kept.
func haveConditions(kept, all []corev1.PodCondition, count int) bool {
	if len(kept) != count {
		return false
	}
	k := 0
	for i := range all {
		if !isKept(&all[i]) {
			continue
		}
		if !isSameCondition(&kept[k], &all[i]) {
			return false
		}
		k++
	}
	return true
}

func isSameCondition(a, b *corev1.PodCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.ObservedGeneration == b.ObservedGeneration && a.LastTransitionTime.Equal(&b.LastTransitionTime) && a.LastProbeTime.Equal(&b.LastProbeTime)
}

// isOfKubelet reports whether a condition is one that the kubelet keeps about its own work, which no decision reads.
func isOfKubelet(kind corev1.PodConditionType) bool {
	switch kind {
	case corev1.PodReady, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReadyToStartContainers:
		return true
	}
	return false
}

// phase, conditionType and conditionStatus return the same text from the program instead of from a decoded object.
func phase(p corev1.PodPhase) corev1.PodPhase {
	for _, known := range [...]corev1.PodPhase{corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown} {
		if p == known {
			return known
		}
	}
	return p
}

func conditionType(kind corev1.PodConditionType) corev1.PodConditionType {
	for _, known := range [...]corev1.PodConditionType{corev1.PodScheduled, corev1.DisruptionTarget, corev1.PodResizePending, corev1.PodResizeInProgress} {
		if kind == known {
			return known
		}
	}
	return kind
}

func conditionStatus(s corev1.ConditionStatus) corev1.ConditionStatus {
	for _, known := range [...]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown} {
		if s == known {
			return known
		}
	}
	return s
}

// sameResizes reports whether two states of a pod with one spec have the same amounts in their statuses.
func (t *Template) sameResizes(status *corev1.PodStatus, s *slimmer) bool {
	if t.resized != nil || len(status.AllocatedResources) > 0 || status.Resources != nil {
		return false // rare: they are compared by their texts
	}
	s.statuses[0] = slimStatuses(s.statuses[0][:0], status.InitContainerStatuses, t.Spec.InitContainers)
	s.statuses[1] = slimStatuses(s.statuses[1][:0], status.ContainerStatuses, t.Spec.Containers)
	return len(s.statuses[0])+len(s.statuses[1]) == 0
}
