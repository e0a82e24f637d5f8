package supply

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/cluster/supplies"
)

// Ask sets the pod of the next questions. A stand-in is asked with the claims that will be made for its pod: those of its generic ephemeral
// volumes are shown as if they existed.
func (s *Shelf) Ask(pod *corev1.Pod) {
	s.devices.Ask(pod)
	if !isStandIn(pod) {
		return
	}
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
			s.imagine(pod, v)
		}
	}
}

// isStandIn reports whether a pod is the form of one that does not exist: its name is none that a pod could have.
func isStandIn(pod *corev1.Pod) bool { return strings.Contains(pod.Name, "/") }

// imagine shows the claim of an ephemeral volume, and for one that is bound at once, by the StorageClass, a volume that can be on each node:
// where it will be is not known before.
func (s *Shelf) imagine(pod *corev1.Pod, v *corev1.Volume) {
	template, name := v.Ephemeral.VolumeClaimTemplate, ephemeral.VolumeClaimName(pod, v)
	claims := s.stores[supplies.VolumeClaim]
	if _, is, err := claims.GetByKey(cache.ObjectName{Namespace: pod.Namespace, Name: name}.String()); err != nil || is {
		must(err)
		return
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: name, UID: types.UID(string(pod.UID) + "/" + v.Name),
			Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true)}}},
		Spec: *template.Spec.DeepCopy(),
	}
	if claim.Spec.VolumeMode == nil {
		claim.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeFilesystem)
	}
	class := s.classOf(claim)
	if class != nil {
		claim.Spec.StorageClassName = &class.Name
	}
	if class != nil && ptr.Deref(class.VolumeBindingMode, storagev1.VolumeBindingImmediate) == storagev1.VolumeBindingImmediate {
		claim = claim.DeepCopy()
		claim.Spec.VolumeName = string(claim.UID)
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnBindCompleted, "yes")
		must(s.stores[supplies.Volume].Update(&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName, UID: claim.UID},
			Spec: corev1.PersistentVolumeSpec{Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: class.Name,
				VolumeMode: claim.Spec.VolumeMode, ClaimRef: &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
		}))
	}
	must(claims.Update(claim))
}

// classOf is the StorageClass that a claim names, or that the API server gives to one that names none: the newest default, the first by
// name of several; nil if there is none.
func (s *Shelf) classOf(claim *corev1.PersistentVolumeClaim) *storagev1.StorageClass {
	if name := claim.Spec.StorageClassName; name != nil {
		o, is, err := s.stores[supplies.StorageClass].GetByKey(*name)
		must(err)
		if !is {
			return nil
		}
		return o.(*storagev1.StorageClass)
	}
	var found *storagev1.StorageClass
	for _, class := range sorted[*storagev1.StorageClass](s.stores[supplies.StorageClass]) {
		if class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" && (found == nil || found.CreationTimestamp.Before(&class.CreationTimestamp)) {
			found = class
		}
	}
	return found
}
