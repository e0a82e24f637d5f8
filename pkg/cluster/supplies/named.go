package supplies

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"hekla.sh/hekla/pkg/cluster/pods"
)

// Named returns the claims that a pod names, in the order of its spec: those of volumes first. Claims that are made for
// the pod alone, of a template, are not among them.
func Named(pod *pods.Pod) []Key {
	var keys []Key
	name := func(kind Kind, name string) {
		keys = append(keys, Key{Kind: kind, NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: name}})
	}
	for i := range pod.Spec.Volumes {
		if claim := pod.Spec.Volumes[i].PersistentVolumeClaim; claim != nil {
			name(VolumeClaim, claim.ClaimName)
		}
	}
	for i := range pod.Spec.ResourceClaims {
		if claim := pod.Spec.ResourceClaims[i].ResourceClaimName; claim != nil {
			name(DeviceClaim, *claim)
		}
	}
	return keys
}

// IsUnbound reports whether a claim exists and has no volume and no device yet, nor a node that was chosen for it.
func (s *Store) IsUnbound(key Key) bool {
	switch claim := s.Get(key).(type) {
	case *corev1.PersistentVolumeClaim:
		return claim.Spec.VolumeName == "" && claim.Annotations[storagehelpers.AnnSelectedNode] == ""
	case *resourcev1.ResourceClaim:
		return claim.Status.Allocation == nil
	}
	return false
}

// HasPlace reports whether what a claim has can be used on some nodes alone: a node was chosen for it, or its volume or
// its devices are there.
func (s *Store) HasPlace(key Key) bool {
	switch claim := s.Get(key).(type) {
	case *corev1.PersistentVolumeClaim:
		if claim.Spec.VolumeName == "" {
			return claim.Annotations[storagehelpers.AnnSelectedNode] != ""
		}
		volume, _ := s.Get(Key{Kind: Volume, NamespacedName: types.NamespacedName{Name: claim.Spec.VolumeName}}).(*corev1.PersistentVolume)
		return volume != nil && volume.Spec.NodeAffinity != nil
	case *resourcev1.ResourceClaim:
		return claim.Status.Allocation != nil && claim.Status.Allocation.NodeSelector != nil
	}
	return false
}
