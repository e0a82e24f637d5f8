package podclass

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster/pods"
	"hekla.sh/hekla/pkg/resources"
)

// demand is what tells classes apart in volumes and devices. Pods with claims of their own each have a class of their
// own.
type demand struct {
	Namespace string                          `json:",omitempty"`
	UID       types.UID                       `json:",omitempty"`
	Volumes   []corev1.Volume                 `json:",omitempty"`
	Claims    []corev1.PodResourceClaim       `json:",omitempty"`
	Made      []corev1.PodResourceClaimStatus `json:",omitempty"` // the claims made from templates
	IsServed  bool                            `json:",omitempty"` // it requests resources of a DeviceClass
}

// demandOf returns what a pod needs of volumes and devices, nil if nothing.
func (t *Table) demandOf(pod *pods.Pod, request resources.Vector) *demand {
	isServed := t.served.Serves(request)
	if len(pod.Spec.Volumes) == 0 && len(pod.Spec.ResourceClaims) == 0 && !isServed {
		return nil
	}
	n := &demand{Namespace: pod.Namespace, Claims: pod.Spec.ResourceClaims, Made: pod.Status.ResourceClaimStatuses(),
		IsServed: isServed}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Ephemeral != nil {
			n.UID = pod.UID
		}
		if isPlaced(&v.VolumeSource) {
			n.Volumes = append(n.Volumes, *v)
		}
	}
	if len(n.Claims) > 0 || isServed {
		n.UID = pod.UID
	}
	if len(n.Volumes) == 0 && len(n.Claims) == 0 && !isServed {
		return nil
	}
	return n
}

// isPlaced reports whether a volume limits the nodes on which it can be mounted.
func isPlaced(v *corev1.VolumeSource) bool {
	return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil ||
		v.ISCSI != nil || v.RBD != nil || v.AzureDisk != nil || v.AzureFile != nil || v.Cinder != nil || v.PortworxVolume != nil ||
		v.VsphereVolume != nil
}
