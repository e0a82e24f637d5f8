package pods

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Pod is what the scheduler keeps of a pod. The caller must not change it.
type Pod struct {
	metav1.ObjectMeta

	// Template has the spec, without the node.
	*Template
	// NodeName is spec.nodeName, which the pods of a template do not share.
	NodeName string
	Status   Status
}

// Template is what equal pods share. It is never changed.
type Template struct {
	Spec Spec

	// resized is the part of the status that counts for requests, nil for most pods: only a pod that was resized has
	// other amounts there than in its spec.
	resized *corev1.PodStatus
}

// Spec is what the scheduler keeps of the spec, under the names of the API. NodeName is a field of the [Pod].
type Spec struct {
	Volumes                       []corev1.Volume // without those that can be mounted on any node
	InitContainers, Containers    []corev1.Container
	TerminationGracePeriodSeconds *int64
	ActiveDeadlineSeconds         *int64
	NodeSelector                  map[string]string
	HostNetwork                   bool
	Affinity                      *corev1.Affinity
	SchedulerName                 string
	Tolerations                   []corev1.Toleration
	PriorityClassName             string
	Priority                      *int32
	PreemptionPolicy              *corev1.PreemptionPolicy
	Overhead                      corev1.ResourceList
	TopologySpreadConstraints     []corev1.TopologySpreadConstraint
	SchedulingGates               []corev1.PodSchedulingGate
	ResourceClaims                []corev1.PodResourceClaim
	Resources                     *corev1.ResourceRequirements
	SchedulingGroup               *corev1.PodSchedulingGroup
}

// object returns the spec as a part of an object of the API.
func (s *Spec) object() corev1.PodSpec {
	return corev1.PodSpec{
		Volumes:                       s.Volumes,
		InitContainers:                s.InitContainers,
		Containers:                    s.Containers,
		TerminationGracePeriodSeconds: s.TerminationGracePeriodSeconds,
		ActiveDeadlineSeconds:         s.ActiveDeadlineSeconds,
		NodeSelector:                  s.NodeSelector,
		HostNetwork:                   s.HostNetwork,
		Affinity:                      s.Affinity,
		SchedulerName:                 s.SchedulerName,
		Tolerations:                   s.Tolerations,
		PriorityClassName:             s.PriorityClassName,
		Priority:                      s.Priority,
		PreemptionPolicy:              s.PreemptionPolicy,
		Overhead:                      s.Overhead,
		TopologySpreadConstraints:     s.TopologySpreadConstraints,
		SchedulingGates:               s.SchedulingGates,
		ResourceClaims:                s.ResourceClaims,
		Resources:                     s.Resources,
		SchedulingGroup:               s.SchedulingGroup,
	}
}

// Status is what the scheduler keeps of the status of a pod.
type Status struct {
	Phase             corev1.PodPhase
	Reason            string
	NominatedNodeName string
	// Conditions are those that decisions read. Not among them are those that the kubelet writes about its own work,
	// and PodScheduled if it is True, see [Status.Scheduled].
	Conditions []corev1.PodCondition

	started, scheduled, ended moment
	claims                    *claims // nil for most pods
}

// Started returns when the kubelet has taken the pod on. ok is false if it has not.
func (s *Status) Started() (at time.Time, ok bool) { return s.started.time() }

// Scheduled returns since when the pod has its node, by the condition PodScheduled. ok is false if the condition is not
// True.
func (s *Status) Scheduled() (at time.Time, ok bool) { return s.scheduled.time() }

// Ended returns when the last container of a pod has ended that has succeeded or failed. ok is false if it has not, or
// nothing says when.
func (s *Status) Ended() (at time.Time, ok bool) { return s.ended.time() }

// moment is a time in microseconds since 1970, 0 if there is none. It takes a third of the memory of a time. The times
// of the API have no fractions of a second.
type moment int64

func momentOf(t metav1.Time) moment {
	if t.IsZero() {
		return 0
	}
	return moment(t.UnixMicro())
}

func (m moment) time() (at time.Time, ok bool) {
	if m == 0 {
		return time.Time{}, false
	}
	return time.UnixMicro(int64(m)), true
}

// claims is the part of the status about claims for devices.
type claims struct {
	made        []corev1.PodResourceClaimStatus
	extended    *corev1.PodExtendedResourceClaimStatus
	allocatable []corev1.NodeAllocatableResourceClaimStatus
}

// ResourceClaimStatuses are the names of the claims that were made for the pod.
func (s *Status) ResourceClaimStatuses() []corev1.PodResourceClaimStatus {
	if s.claims == nil {
		return nil
	}
	return s.claims.made
}

// NameClaims notes in the status of a pod that does not exist how the claims will be called that are made from its
// templates.
func (p *Pod) NameClaims(name func(claim string) string) {
	var named []corev1.PodResourceClaimStatus
	for i := range p.Spec.ResourceClaims {
		if c := &p.Spec.ResourceClaims[i]; c.ResourceClaimTemplateName != nil {
			made := name(c.Name)
			named = append(named, corev1.PodResourceClaimStatus{Name: c.Name, ResourceClaimName: &made})
		}
	}
	if named != nil {
		p.Status.claims = &claims{made: named}
	}
}

// HasCondition reports whether the pod has a condition of a type.
func (s *Status) HasCondition(kind corev1.PodConditionType) bool {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return true
		}
	}
	return false
}

// Object returns the pod as an object of the API, which shares what it points to with the pod. It is made by each call:
// code that asks often keeps it.
func (p *Pod) Object() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: p.ObjectMeta, Spec: p.Spec.object(), Status: corev1.PodStatus{
		Phase: p.Status.Phase, Reason: p.Status.Reason, NominatedNodeName: p.Status.NominatedNodeName,
		Conditions: p.Status.Conditions,
	}}
	pod.Spec.NodeName = p.NodeName
	if at, ok := p.Status.Started(); ok {
		pod.Status.StartTime = &metav1.Time{Time: at}
	}
	if at, ok := p.Status.Scheduled(); ok {
		pod.Status.Conditions = append(slices.Clone(pod.Status.Conditions), corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: at}})
	}
	if c := p.Status.claims; c != nil {
		pod.Status.ResourceClaimStatuses, pod.Status.ExtendedResourceClaimStatus = c.made, c.extended
		pod.Status.NodeAllocatableResourceClaimStatuses = c.allocatable
	}
	if r := p.resized; r != nil {
		pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = r.InitContainerStatuses, r.ContainerStatuses
		pod.Status.AllocatedResources, pod.Status.Resources = r.AllocatedResources, r.Resources
	}
	if at, ok := p.Status.Ended(); ok && len(p.Spec.Containers) > 0 {
		pod.Status.ContainerStatuses = withEnd(pod.Status.ContainerStatuses, p.Spec.Containers[0].Name, metav1.Time{Time: at})
	}
	return pod
}

// withEnd returns a copy of the statuses of containers in which that of a name says when it ended.
func withEnd(statuses []corev1.ContainerStatus, name string, at metav1.Time) []corev1.ContainerStatus {
	statuses = slices.Clone(statuses)
	i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if i < 0 {
		i, statuses = len(statuses), append(statuses, corev1.ContainerStatus{Name: name})
	}
	statuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: at}}
	return statuses
}

// DeepCopy returns a copy of the pod as an object of the API, which the caller may change.
func (p *Pod) DeepCopy() *corev1.Pod { return p.Object().DeepCopy() }

// RequestsAlike reports whether two pods request the same, as far as that is known without adding it up.
func (p *Pod) RequestsAlike(other *Pod) bool {
	return p.Template == other.Template && p.isResizePending() == other.isResizePending()
}

// isResizePending reports whether a resize is refused or put off. Then other amounts count.
func (p *Pod) isResizePending() bool { return p.Status.HasCondition(corev1.PodResizePending) }

// SharesRequest reports whether the request of the pod is that of every pod of its template.
func (p *Pod) SharesRequest() bool { return !p.isResizePending() }

// GetObjectKind implements [runtime.Object].
func (p *Pod) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements [runtime.Object].
func (p *Pod) DeepCopyObject() runtime.Object { return New(p.DeepCopy()) }
