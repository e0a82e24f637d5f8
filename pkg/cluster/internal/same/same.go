package same

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/apis/scheduling/properties"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/pods"
)

// Pod reports whether two states of a pod are the same for decisions, apart from its node and its status.
func Pod(a, b *pods.Pod) bool {
	return a.Generation == b.Generation && a.Generation != 0 && maps.Equal(a.Labels, b.Labels) &&
		sameAnnotations(a.Annotations, b.Annotations) && slices.EqualFunc(a.Status.ResourceClaimStatuses(), b.Status.ResourceClaimStatuses(), isSameClaim)
}

// isSameClaim reports whether two states of a pod name the same claim. The name may change: when a pod takes the name
// of one that is gone, it is told the claim of that one first, and its own when that claim has been deleted.
func isSameClaim(a, b corev1.PodResourceClaimStatus) bool {
	return a.Name == b.Name && ptr.Equal(a.ResourceClaimName, b.ResourceClaimName)
}

// sameAnnotations reports whether two states of a pod have the same annotations, apart from the records of plans and
// that of which queue is charged, which comes with each binding.
func sameAnnotations(a, b map[string]string) bool {
	isOurs := func(key string) bool { return decision.IsRecord(key) || key == decision.AccountAnnotation }
	count := len(b)
	for key := range b {
		if isOurs(key) {
			count--
		}
	}
	for key, value := range a {
		if isOurs(key) {
			continue
		}
		if other, ok := b[key]; !ok || other != value {
			return false
		}
		count--
	}
	return count == 0
}

// PodAsVictim reports whether two states of a pod with a node are the same for its eviction, and for the affinity of
// other pods: in its labels, and in the annotations that the scheduler reads. Other annotations are written by its
// users and help no job.
func PodAsVictim(keys *podclass.Keys, a, b *pods.Pod) bool {
	return !podclass.Differs(keys.PodAnnotations, a.Annotations, b.Annotations) && maps.Equal(a.Labels, b.Labels) && saysTheSame(a.Annotations, b.Annotations) && saysTheSame(b.Annotations, a.Annotations)
}

// saysTheSame reports whether all annotations of one state that the scheduler reads are in another.
func saysTheSame(a, b map[string]string) bool {
	for key, value := range a {
		if other, ok := b[key]; (!ok || other != value) && strings.Contains(key, annotationDomain) {
			return false
		}
	}
	return true
}

// annotationDomain is part of all annotations of pods that the scheduler and its plugins read.
const annotationDomain = "volcano.sh/"

// Images reports whether two states of a node hold the same images. Only scores read these.
func Images(a, b *corev1.Node) bool {
	return slices.EqualFunc(a.Status.Images, b.Status.Images, func(s, t corev1.ContainerImage) bool {
		return s.SizeBytes == t.SizeBytes && slices.Equal(s.Names, t.Names)
	})
}

// NodeAnnotations reports whether two states of a node have the same annotations, as far as the scheduler and its
// plugins read them. Agents write others all the time.
func NodeAnnotations(keys *podclass.Keys, a, b *corev1.Node) bool {
	if keys.AnyOfNodes {
		return maps.Equal(a.Annotations, b.Annotations)
	}
	return saysTheSame(a.Annotations, b.Annotations) && saysTheSame(b.Annotations, a.Annotations) && !podclass.Differs(keys.NodeAnnotations, a.Annotations, b.Annotations)
}

// NodeLabels reports whether two states of a node have the same labels, as far as reads says that they matter.
func NodeLabels(reads func(label string) bool, a, b *corev1.Node) bool {
	differs := func(a, b map[string]string) bool {
		for label, value := range a {
			if other, ok := b[label]; (!ok || other != value) && reads(label) {
				return true
			}
		}
		return false
	}
	return !differs(a.Labels, b.Labels) && !differs(b.Labels, a.Labels)
}

// NodeState reports whether two states of a node are the same for pods apart from labels, annotations, images and what
// is allocatable.
func NodeState(a, b *corev1.Node) bool {
	return a.Spec.Unschedulable == b.Spec.Unschedulable && IsReady(a) == IsReady(b) && slices.EqualFunc(a.Spec.Taints, b.Spec.Taints, isSameTaint)
}

// IsNodeNoMoreOpen reports whether a node takes no pod in its second state that it does not take in the first, apart
// from labels, annotations and what is allocatable.
func IsNodeNoMoreOpen(before, now *corev1.Node) bool {
	return (now.Spec.Unschedulable || !before.Spec.Unschedulable) && (IsReady(before) || !IsReady(now)) &&
		!slices.ContainsFunc(before.Spec.Taints, func(s corev1.Taint) bool {
			return !slices.ContainsFunc(now.Spec.Taints, func(t corev1.Taint) bool { return isSameTaint(s, t) })
		})
}

func isSameTaint(s, t corev1.Taint) bool {
	return s.Key == t.Key && s.Value == t.Value && s.Effect == t.Effect
}

// GroupAsVictim reports whether two states of a PodGroup are the same for the eviction of its pods.
func GroupAsVictim(keys *podclass.Keys, a, b *schedulingv1beta1.PodGroup) bool {
	const key = schedulingv1beta1.PreemptableKey
	return !podclass.Differs(keys.JobAnnotations, a.Annotations, b.Annotations) && !podclass.Differs(keys.JobLabels, a.Labels, b.Labels) &&
		a.Annotations[key] == b.Annotations[key] && a.Labels[key] == b.Labels[key] &&
		equality.Semantic.DeepEqual(a.Spec.SubGroupPolicy, b.Spec.SubGroupPolicy) &&
		a.Spec.MinMember == b.Spec.MinMember && maps.Equal(a.Spec.MinTaskMember, b.Spec.MinTaskMember) &&
		a.Spec.PriorityClassName == b.Spec.PriorityClassName && a.Spec.Queue == b.Spec.Queue
}

// Group reports whether two states of a PodGroup are the same for decisions. Most updates are statuses that the
// scheduler has written.
func Group(a, b *schedulingv1beta1.PodGroup) bool {
	return a.Generation == b.Generation && a.Generation != 0 && sameButFor(schedulingv1beta1.StandInsKey, a.Annotations, b.Annotations) &&
		maps.Equal(a.Labels, b.Labels)
}

// sameButFor reports whether two states of an object have the same annotations, apart from one that the scheduler
// writes.
func sameButFor(record string, a, b map[string]string) bool {
	count := len(b)
	if _, ok := b[record]; ok {
		count--
	}
	for key, value := range a {
		if key == record {
			continue
		}
		if other, ok := b[key]; !ok || other != value {
			return false
		}
		count--
	}
	return count == 0
}

// IsReady reports whether a node is not marked as not ready.
func IsReady(node *corev1.Node) bool {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return node.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return true
}

// QueueAnnotations reports whether two states of a queue have the same annotations, as far as the scheduler and its
// plugins read them.
func QueueAnnotations(keys *podclass.Keys, a, b *schedulingv1beta1.Queue) bool {
	return saysTheSame(a.Annotations, b.Annotations) && saysTheSame(b.Annotations, a.Annotations) && !podclass.Differs(properties.Keys(), a.Annotations, b.Annotations) &&
		!podclass.Differs(keys.QueueAnnotations, a.Annotations, b.Annotations) && (keys.PerQueue == nil || keys.PerQueue(a) == keys.PerQueue(b))
}

// Queue reports whether two states of a queue are the same for decisions. Most updates are counts that the scheduler
// has written.
func Queue(keys *podclass.Keys, a, b *schedulingv1beta1.Queue) bool {
	return a.UID == b.UID && a.Generation == b.Generation && a.Generation != 0 && a.Status.State == b.Status.State &&
		QueueAnnotations(keys, a, b) && !podclass.Differs(keys.QueueLabels, a.Labels, b.Labels)
}

// QueueButWeight reports whether two states of a queue are the same for decisions, apart from its weight.
func QueueButWeight(keys *podclass.Keys, a, b *schedulingv1beta1.Queue) bool {
	if a.UID != b.UID || a.Status.State != b.Status.State || !QueueAnnotations(keys, a, b) || podclass.Differs(keys.QueueLabels, a.Labels, b.Labels) {
		return false
	}
	spec := b.Spec // a copy
	spec.Weight = a.Spec.Weight
	return equality.Semantic.DeepEqual(&a.Spec, &spec)
}
