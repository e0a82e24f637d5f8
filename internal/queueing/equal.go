package queueing

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// ArePodSetsEqual reports whether podsets are equal for admission: pods of one ask for as much as those of the other,
// and can be on the same nodes. The podsets may come from different hands. So the defaults of the API server count as
// written. The order of what has none does not count. Neither does what no decision reads, such as images,
// environments, labels and the name of the scheduler.
func ArePodSetsEqual(a, b []v1beta2.PodSet) bool {
	return slices.EqualFunc(a, b, func(a, b v1beta2.PodSet) bool {
		return nameOf(&a) == nameOf(&b) && a.Count == b.Count && apiequality.Semantic.DeepEqual(a.MinCount, b.MinCount) &&
			apiequality.Semantic.DeepEqual(needsOf(&a.Template.Spec), needsOf(&b.Template.Spec))
	})
}

func nameOf(set *v1beta2.PodSet) string { return cmp.Or(set.Name, v1beta2.DefaultPodSetName) }

// needs are what a pod asks for, and where it can be. Its fields are exported for the comparison.
type needs struct {
	InitContainers, Containers []containerNeeds
	Resources                  *corev1.ResourceRequirements
	Overhead                   corev1.ResourceList
	RuntimeClass               string
	NodeName                   string
	NodeSelector               map[string]string
	Affinity                   corev1.Affinity
	Tolerations                []corev1.Toleration
	Spread                     []corev1.TopologySpreadConstraint
	Claims                     []corev1.PodResourceClaim
	Volumes                    []volumeNeeds
}

type containerNeeds struct {
	Resources     corev1.ResourceRequirements
	RestartPolicy *corev1.ContainerRestartPolicy
	HostPorts     []corev1.ContainerPort
}

// volumeNeeds is a volume that can be on some nodes only.
type volumeNeeds struct {
	Claim     string
	Ephemeral *corev1.PersistentVolumeClaimSpec
	Driver    string
}

func needsOf(spec *corev1.PodSpec) *needs {
	n := &needs{
		InitContainers: needsOfContainers(spec.InitContainers, spec.HostNetwork), Containers: needsOfContainers(spec.Containers, spec.HostNetwork),
		Overhead: spec.Overhead, NodeName: spec.NodeName, NodeSelector: spec.NodeSelector, Tolerations: sortedTolerations(spec.Tolerations),
		Spread: spec.TopologySpreadConstraints, Claims: spec.ResourceClaims, Volumes: volumes(spec.Volumes),
	}
	if spec.Resources != nil {
		r := requested(spec.Resources)
		n.Resources = &r
	}
	if spec.RuntimeClassName != nil {
		n.RuntimeClass = *spec.RuntimeClassName
	}
	if spec.Affinity != nil {
		n.Affinity = *spec.Affinity
	}
	return n
}

// requested is what is asked for, with what is limited and not requested.
func requested(r *corev1.ResourceRequirements) corev1.ResourceRequirements {
	all := corev1.ResourceRequirements{Limits: r.Limits, Requests: corev1.ResourceList{}}
	for _, list := range []corev1.ResourceList{r.Limits, r.Requests} {
		for name, quantity := range list {
			all.Requests[name] = quantity
		}
	}
	all.Claims = append(all.Claims, r.Claims...)
	return all
}

func needsOfContainers(of []corev1.Container, isOnHost bool) []containerNeeds {
	all := make([]containerNeeds, len(of))
	for i := range of {
		all[i] = containerNeeds{Resources: requested(&of[i].Resources), RestartPolicy: of[i].RestartPolicy}
		for _, p := range of[i].Ports {
			port := corev1.ContainerPort{HostPort: p.HostPort, HostIP: p.HostIP, Protocol: cmp.Or(p.Protocol, corev1.ProtocolTCP)}
			if isOnHost && port.HostPort == 0 {
				port.HostPort = p.ContainerPort
			}
			if port.HostPort != 0 {
				all[i].HostPorts = append(all[i].HostPorts, port)
			}
		}
	}
	return all
}

func sortedTolerations(of []corev1.Toleration) []corev1.Toleration {
	all := make([]corev1.Toleration, len(of))
	for i := range of {
		all[i] = of[i]
		all[i].Operator = cmp.Or(of[i].Operator, corev1.TolerationOpEqual)
	}
	slices.SortFunc(all, func(a, b corev1.Toleration) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Effect, b.Effect), cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Value, b.Value))
	})
	return all
}

func volumes(of []corev1.Volume) []volumeNeeds {
	var all []volumeNeeds
	for i := range of {
		switch v := &of[i]; {
		case v.PersistentVolumeClaim != nil:
			all = append(all, volumeNeeds{Claim: v.PersistentVolumeClaim.ClaimName})
		case v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil:
			spec := v.Ephemeral.VolumeClaimTemplate.Spec
			if spec.VolumeMode == nil {
				filesystem := corev1.PersistentVolumeFilesystem
				spec.VolumeMode = &filesystem
			}
			all = append(all, volumeNeeds{Ephemeral: &spec})
		case v.CSI != nil:
			all = append(all, volumeNeeds{Driver: v.CSI.Driver})
		}
	}
	return all
}
