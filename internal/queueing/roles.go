package queueing

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// shape is what makes pods equal for admission: what they request, and on which nodes they can be.
type shape struct {
	InitContainers, Containers []containerShape
	NodeSelector               map[string]string
	Affinity                   *corev1.Affinity
	Tolerations                []corev1.Toleration
	RuntimeClassName           *string
	Priority                   *int32
	PreemptionPolicy           *corev1.PreemptionPolicy
	TopologySpread             []corev1.TopologySpreadConstraint
	Overhead                   corev1.ResourceList
	ResourceClaims             []corev1.PodResourceClaim
}

type containerShape struct {
	Resources     corev1.ResourceRequirements
	RestartPolicy *corev1.ContainerRestartPolicy
	Ports         []corev1.ContainerPort
}

func shapesOf(of []corev1.Container) []containerShape {
	var shapes []containerShape
	for i := range of {
		shapes = append(shapes, containerShape{of[i].Resources, of[i].RestartPolicy, of[i].Ports})
	}
	return shapes
}

// roleLength is how many digits of the hash of a shape name a podset.
const roleLength = 8

// Role names the podset of a pod: pods of one shape are in one, unless their annotation says otherwise.
func Role(pod *corev1.Pod) string {
	if role := pod.Annotations[v1beta2.RoleHashAnnotation]; role != "" {
		return strings.ToLower(role)
	}
	s := &pod.Spec
	text, err := json.Marshal(shape{shapesOf(s.InitContainers), shapesOf(s.Containers), s.NodeSelector, s.Affinity, s.Tolerations, s.RuntimeClassName,
		s.Priority, s.PreemptionPolicy, s.TopologySpreadConstraints, s.Overhead, s.ResourceClaims})
	if err != nil {
		panic(err) // a pod spec has a form in JSON
	}
	hash := sha256.Sum256(text)
	return hex.EncodeToString(hash[:])[:roleLength]
}

// podSetsOf are the podsets of a group of pods, in the order of their names. With fast admission the first pod stands
// for all.
func podSetsOf(group []*corev1.Pod, total int32) []v1beta2.PodSet {
	if group[0].Annotations[v1beta2.PodGroupFastAdmissionAnnotation] == "true" {
		return RequestTopology([]v1beta2.PodSet{{Name: Role(group[0]), Count: total, Template: templateOf(group[0])}})
	}
	var sets []v1beta2.PodSet
	for _, pod := range group {
		role := Role(pod)
		if of := pod.Labels[v1beta2.PodSetLabel]; of != "" && !IsGated(pod) {
			role = of // it was started, and what it got then is part of its shape now
		}
		if at := slices.IndexFunc(sets, func(s v1beta2.PodSet) bool { return s.Name == role }); at >= 0 {
			sets[at].Count++
		} else {
			sets = append(sets, v1beta2.PodSet{Name: role, Count: 1, Template: templateOf(pod)})
		}
	}
	slices.SortFunc(sets, func(a, b v1beta2.PodSet) int { return cmp.Compare(a.Name, b.Name) })
	return RequestTopology(sets)
}

// templateOf is the template that a pod could have been made from.
func templateOf(pod *corev1.Pod) corev1.PodTemplateSpec {
	spec := pod.Spec.DeepCopy()
	spec.NodeName = ""
	spec.SchedulingGates = slices.DeleteFunc(spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool {
		return g.Name == v1beta2.AdmissionGate || g.Name == v1beta2.TopologyGate
	})
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(pod.Labels), Annotations: maps.Clone(pod.Annotations)}, Spec: *spec}
	RemoveMarks(&template)
	return template
}
