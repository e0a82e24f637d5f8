package supplies

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"
)

// Reservation is the volumes and devices that a task takes on its node. It is written before the pod is bound.
type Reservation struct {
	Volumes []VolumeReservation
	Devices []DeviceReservation
	// Patience is how long binding the volumes may take, DevicePatience how long the devices may take to get ready.
	Patience, DevicePatience time.Duration
}

// VolumeReservation is the volume for a PersistentVolumeClaim.
type VolumeReservation struct {
	Claim types.NamespacedName
	UID   types.UID // of the claim
	// Volume is the PersistentVolume to bind to the claim; empty if one is to be provisioned for the node.
	Volume    string
	VolumeUID types.UID
}

// DeviceReservation is the allocation of a ResourceClaim, and the reservation of the claim for the pod.
type DeviceReservation struct {
	Claim      types.NamespacedName
	UID        types.UID // of the claim
	Allocation *resourcev1.AllocationResult

	// Made is the claim if it must be created, because the pod requests an extended resource of a DeviceClass. It is
	// nil if the claim exists. The UID above is then not that of the claim.
	Made *resourcev1.ResourceClaim
	// Requests says which request of the created claim is for which container. It is written to the status of the pod.
	Requests []corev1.ContainerExtendedResourceRequest
}

// IsOf reports whether a claim is the one that is reserved for a pod.
func (r *DeviceReservation) IsOf(claim *resourcev1.ResourceClaim, pod types.UID) bool {
	if r.Made == nil {
		return claim.UID == r.UID
	}
	owner := metav1.GetControllerOfNoCopy(claim)
	return owner != nil && owner.UID == pod
}

// Pod identifies a pod with a reservation.
type Pod struct {
	types.NamespacedName
	UID types.UID
}

// reserved is what is reserved of one object.
type reserved struct {
	holders []holder // at least one, in the order in which they were added
	overlay Object   // the object with all reservations; nil if the API server shows no such object, or shows all of them
}

// holder is one pod with a reservation of an object.
type holder struct {
	pod    Pod
	node   string
	volume *VolumeReservation
	device *DeviceReservation
	// isWritten is set once the pod is bound, since its reservation was written before. It holds until the API server
	// shows what was written.
	isWritten bool
	// isPassed is set when a version without what was written has been shown since, and isGone when the pod is deleted.
	// After both the object is as it is shown.
	isPassed, isGone bool
}

// Hold adds the reservation of a pod that is placed on a node or pipelined to it.
func (s *Store) Hold(pod Pod, node string, r *Reservation) {
	r.each(pod, node, func(key Key, h holder) {
		held := s.reserved[key]
		if held == nil {
			held = &reserved{}
			s.reserved[key] = held
		}
		held.holders = append(held.holders, h)
		s.overlay(key, held)
	})
}

// Release removes a pod's reservation that was not written.
func (s *Store) Release(pod Pod, r *Reservation) {
	r.each(pod, "", func(key Key, _ holder) {
		if held := s.reserved[key]; held != nil {
			held.holders = slices.DeleteFunc(held.holders, func(h holder) bool { return h.pod == pod && !h.isWritten })
			s.overlay(key, held)
		}
	})
}

// Write says that a pod's reservation was written, because the pod has its node. The part that the API server does not
// show yet holds until it does.
func (s *Store) Write(pod Pod, r *Reservation) {
	r.each(pod, "", func(key Key, _ holder) {
		held := s.reserved[key]
		for i := range held.holders {
			if h := &held.holders[i]; h.pod == pod {
				h.isWritten = true
			}
		}
		s.written[pod] = append(s.written[pod], key)
		s.dropWritten(key, func(h *holder) bool { return s.isShown(key, h) })
	})
}

// Forget says that a pod is deleted. What was written for it, and was not shown yet, holds until another version is
// shown. A claim that was created for the pod, and was never shown, is deleted with it.
func (s *Store) Forget(pod Pod) {
	for _, key := range slices.Clone(s.written[pod]) {
		s.dropWritten(key, func(h *holder) bool {
			h.isGone = h.isGone || h.pod == pod
			return h.pod == pod && (h.isPassed || s.shown[key] == nil)
		})
	}
}

// pass takes in that another version of an object is shown.
func (s *Store) pass(key Key) {
	s.dropWritten(key, func(h *holder) bool {
		h.isPassed = true
		return h.isGone || s.isShown(key, h)
	})
}

// dropWritten drops reservations of bound pods of an object.
func (s *Store) dropWritten(key Key, isOver func(*holder) bool) {
	r := s.reserved[key]
	if r == nil {
		return
	}
	left := make([]holder, 0, len(r.holders))
	for _, h := range r.holders {
		if !h.isWritten || !isOver(&h) {
			left = append(left, h)
			continue
		}
		s.written[h.pod] = slices.DeleteFunc(s.written[h.pod], func(k Key) bool { return k == key })
		if len(s.written[h.pod]) == 0 {
			delete(s.written, h.pod)
		}
	}
	r.holders = left
	s.overlay(key, r)
}

// isShown reports whether the API server shows an object with what a holder has reserved, or with something that
// excludes it. Another version is older than what was written: it was made in between, such as by the finalizer that a
// claim gets before its devices, or is late.
func (s *Store) isShown(key Key, h *holder) bool {
	now := s.shown[key]
	return now != nil && h.over(now) == nil
}

// Keys returns the keys of the objects of a reservation, one for each part.
func (r *Reservation) Keys() []Key {
	var keys []Key
	r.each(Pod{}, "", func(key Key, _ holder) { keys = append(keys, key) })
	return keys
}

// Holders returns the number of unwritten reservations by object.
func (s *Store) Holders() map[Key]int {
	holders := map[Key]int{}
	for key, r := range s.reserved {
		for _, h := range r.holders {
			if !h.isWritten {
				holders[key]++
			}
		}
	}
	return holders
}

// each calls a function for each object of a reservation.
func (r *Reservation) each(pod Pod, node string, do func(Key, holder)) {
	h := holder{pod: pod, node: node}
	for i := range r.Volumes {
		v := &r.Volumes[i]
		h.volume = v
		if v.Volume != "" {
			do(Key{Volume, types.NamespacedName{Name: v.Volume}}, h)
		} else {
			do(Key{VolumeClaim, v.Claim}, h)
		}
	}
	h.volume = nil
	for i := range r.Devices {
		h.device = &r.Devices[i]
		do(Key{DeviceClaim, r.Devices[i].Claim}, h)
	}
}

// overlay applies all reservations to an object.
func (s *Store) overlay(key Key, held *reserved) {
	held.overlay = nil
	s.changes.Add(key)
	if len(held.holders) == 0 {
		delete(s.reserved, key)
		return
	}
	for i := range held.holders {
		h := &held.holders[i]
		now := s.Get(key)
		if now == nil && h.device != nil && h.device.Made != nil {
			now = h.device.Made
		}
		if next := h.over(now); next != nil {
			held.overlay = next
		}
	}
}

// over returns an object with the reservation, nil if it is there already, or cannot be.
func (h *holder) over(now Object) Object {
	switch o := now.(type) {
	case *corev1.PersistentVolumeClaim:
		return h.overClaim(o)
	case *corev1.PersistentVolume:
		return h.overVolume(o)
	case *resourcev1.ResourceClaim:
		return h.overDevices(o)
	}
	return nil
}

// overClaim returns a claim for which a volume is provisioned on the node, nil if the claim says so already or is
// bound.
func (h *holder) overClaim(claim *corev1.PersistentVolumeClaim) Object {
	if claim.UID != h.volume.UID || claim.Spec.VolumeName != "" || claim.Annotations[storagehelpers.AnnSelectedNode] == h.node {
		return nil
	}
	claim = claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnSelectedNode, h.node)
	return claim
}

// overVolume returns a volume that is bound to the claim, nil if it is already, or is bound to another claim.
func (h *holder) overVolume(volume *corev1.PersistentVolume) Object {
	if next := h.volume.Take(volume); next != nil {
		return next
	}
	return nil
}

// Take returns a volume that is bound to the claim, nil if it is already, or is bound to another claim.
func (r *VolumeReservation) Take(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	ref := volume.Spec.ClaimRef
	if volume.UID != r.VolumeUID || ref != nil && (ref.UID != "" || ref.Namespace != r.Claim.Namespace || ref.Name != r.Claim.Name) {
		return nil
	}
	volume = volume.DeepCopy()
	if ref == nil {
		// The volume controller knows by this that no user bound it.
		metav1.SetMetaDataAnnotation(&volume.ObjectMeta, storagehelpers.AnnBoundByController, "yes")
	}
	volume.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: r.Claim.Namespace,
		Name: r.Claim.Name, UID: r.UID}
	return volume
}

// overDevices returns a claim that is allocated and reserved for the pod, nil if it is already.
func (h *holder) overDevices(claim *resourcev1.ResourceClaim) Object {
	if !h.device.IsOf(claim, h.pod.UID) {
		return nil
	}
	// A claim that was created for the pod before, with other devices, is created again.
	isOther := h.device.Made != nil && claim.Status.Allocation != nil &&
		!equality.Semantic.DeepEqual(claim.Status.Allocation.Devices, h.device.Allocation.Devices)
	mayUse := slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == h.pod.UID })
	if claim.Status.Allocation != nil && mayUse && !isOther {
		return nil
	}
	claim = claim.DeepCopy()
	if claim.Status.Allocation == nil || isOther {
		claim.Status.Allocation = h.device.Allocation
	}
	if !mayUse {
		claim.Status.ReservedFor = append(claim.Status.ReservedFor,
			resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: h.pod.Name, UID: h.pod.UID})
	}
	return claim
}
