package supply

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/ephemeral"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/cluster/supplies"
)

// Ask sets the pod of the next questions. A stand-in is asked with the claims that will be made for its pod: those of
// its generic ephemeral volumes, and those that are made from ResourceClaimTemplates, are shown as if they existed. The
// caller follows the model first.
func (s *Shelf) Ask(pod *corev1.Pod) {
	if s.devices.asking == pod && s.askedAt == s.seen {
		return
	}
	s.devices.Ask(pod)
	s.askedAt = s.seen
	s.forgetDevices()
	if !isStandIn(pod) {
		return
	}
	of := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	s.forgetVolumes(of)
	for i := range pod.Spec.ResourceClaims {
		if c := &pod.Spec.ResourceClaims[i]; c.ResourceClaimTemplateName != nil {
			s.imagineDevices(pod, c)
		}
	}
	for i := range pod.Spec.Volumes {
		if v := &pod.Spec.Volumes[i]; v.Ephemeral != nil && v.Ephemeral.VolumeClaimTemplate != nil {
			s.imagine(of, pod, v)
		}
	}
}

// isStandIn reports whether a pod is the form of one that does not exist: its name is none that a pod could have.
func isStandIn(pod *corev1.Pod) bool { return strings.Contains(pod.Name, "/") }

// imagine shows the claim of an ephemeral volume, and for one that is bound at once, by the StorageClass, a volume that
// can be on each node: where it will be is not known before. They stay as long as the stand-in does: it counts for the
// limits of its node.
func (s *Shelf) imagine(of types.NamespacedName, pod *corev1.Pod, v *corev1.Volume) {
	template, name := v.Ephemeral.VolumeClaimTemplate, ephemeral.VolumeClaimName(pod, v)
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
		s.imagineVolume(of, &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName, UID: claim.UID},
			Spec: corev1.PersistentVolumeSpec{Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: class.Name,
				VolumeMode: claim.Spec.VolumeMode, ClaimRef: &corev1.ObjectReference{Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
		})
	}
	s.imagineVolume(of, claim)
}

// fewImagined is for how many stand-ins claims and volumes are shown before one looks which of them are gone.
const fewImagined = 1 << 10

func (s *Shelf) imagineVolume(of types.NamespacedName, o supplies.Object) {
	if s.imagined[of] == nil && len(s.imagined) >= max(fewImagined, 2*s.living) {
		for other := range s.imagined {
			if s.cluster.Task(other) == nil {
				s.forgetVolumes(other)
			}
		}
		s.living = len(s.imagined)
	}
	s.imagined[of] = append(s.imagined[of], o)
	must(s.stores[supplies.KindOf(o)].Update(o))
}

// forgetVolumes shows nothing any more that was shown for a stand-in.
func (s *Shelf) forgetVolumes(of types.NamespacedName) {
	shown := s.imagined[of]
	delete(s.imagined, of)
	for _, o := range shown {
		s.show(supplies.KeyOf(supplies.KindOf(o), o))
	}
}

// imagineDevices shows the claim that will be made from a template. If the template does not exist, there is none.
func (s *Shelf) imagineDevices(pod *corev1.Pod, c *corev1.PodResourceClaim) {
	made, _, err := resourceclaim.Name(pod, c)
	if err != nil || made == nil {
		return
	}
	name := types.NamespacedName{Namespace: pod.Namespace, Name: *made}
	claims := s.stores[supplies.DeviceClaim]
	_, isReserved, err := claims.GetByKey(cache.ObjectName(name).String())
	must(err)
	o, hasTemplate, err := s.stores[supplies.DeviceClaimTemplate].GetByKey(cache.ObjectName{Namespace: pod.Namespace, Name: *c.ResourceClaimTemplateName}.String())
	must(err)
	if isReserved || !hasTemplate {
		return
	}
	template := &o.(*resourcev1.ResourceClaimTemplate).Spec
	must(claims.Update(&resourcev1.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: *made, UID: types.UID(string(pod.UID) + "/" + c.Name), Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: ptr.To(true)}}},
		Spec: *template.Spec.DeepCopy(),
	}))
	s.asked = append(s.asked, name)
}

// forgetDevices shows no claims any more that were shown for the last stand-in and that it has not reserved.
func (s *Shelf) forgetDevices() {
	for _, name := range s.asked {
		s.show(supplies.Key{Kind: supplies.DeviceClaim, NamespacedName: name})
	}
	s.asked = s.asked[:0]
}

// IsImagined reports whether a claim will be made from a template, for a pod that does not exist.
func IsImagined(claim *resourcev1.ResourceClaim) bool { return strings.Contains(claim.Name, "/") }

// classOf is the StorageClass that a claim names, or that the API server gives to one that names none: the newest
// default, the first by name of several; nil if there is none.
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
