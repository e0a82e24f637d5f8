package cluster

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

// Reservation is what a task takes on its node besides room. It is written before the pod is bound.
type Reservation struct {
	Volumes []VolumeReservation
	Devices []DeviceReservation
	// Patience is how long the volumes may take to be bound, and DevicePatience how long the devices may take to be ready.
	Patience, DevicePatience time.Duration
}

// VolumeReservation is the volume that a PersistentVolumeClaim is to have.
type VolumeReservation struct {
	Claim types.NamespacedName
	UID   types.UID // of the claim
	// Volume is the PersistentVolume that the claim is to be bound to; empty if one is to be made for the node.
	Volume    string
	VolumeUID types.UID
}

// DeviceReservation is what a ResourceClaim is to be given, and that the pod may use it.
type DeviceReservation struct {
	Claim      types.NamespacedName
	UID        types.UID // of the claim
	Allocation *resourcev1.AllocationResult

	// Made is the claim if it is made for the pod, since a DeviceClass stands for a resource that it requests; nil if it is there.
	// Its UID is not that of the claim then.
	Made *resourcev1.ResourceClaim
	// Requests says which request of the claim that is made serves which container. It is written into the status of the pod.
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

// reserved is what is reserved of one object.
type reserved struct {
	holders []holder // never none, in the order in which they came
	overlay Supply   // the object with all of it; nil if the API shows no such object, or all of it already
}

// holder is one task that holds something of an object.
type holder struct {
	task   *Task
	pod    resourcev1.ResourceClaimConsumerReference
	node   string
	volume *VolumeReservation
	device *DeviceReservation
	// isOver is set once the task is bound: what it holds was written before. It stands until the API shows the object anew.
	isOver bool
}

// Reserve notes what a task that was placed, or was promised a node, takes there besides room. It is undone with it.
func (c *Cluster) Reserve(t *Task, r *Reservation) {
	invariant(t.Status == Allocated || t.Status == Pipelined, "task %s reserves volumes or devices while %s", t.Key(), t.Status)
	c.log = append(c.log, operation{task: t, status: t.Status, node: t.Node, reservation: t.Reservation})
	c.hold(t, r)
}

// hold makes a reservation the one of a task, instead of the one it had. Nil is none.
func (c *Cluster) hold(t *Task, r *Reservation) {
	if t.Reservation == r {
		return
	}
	if t.Reservation != nil {
		c.eachReserved(t, t.Reservation, func(key SupplyKey, _ holder) {
			if held := c.supplies.reserved[key]; held != nil {
				held.holders = slices.DeleteFunc(held.holders, func(h holder) bool { return h.task == t && !h.isOver })
				c.overlay(key, held)
			}
		})
	}
	t.Reservation = r
	if r != nil {
		c.eachReserved(t, r, func(key SupplyKey, h holder) {
			held := c.supplies.reserved[key]
			if held == nil {
				held = &reserved{}
				c.supplies.reserved[key] = held
			}
			held.holders = append(held.holders, h)
			c.overlay(key, held)
		})
	}
}

// letGo ends a reservation after what happened outside. If the pod has its node, all was written before; else it is free.
func (c *Cluster) letGo(t *Task, isBound bool) {
	if t.Reservation == nil {
		return
	}
	if isBound {
		c.eachReserved(t, t.Reservation, func(key SupplyKey, _ holder) {
			held := c.supplies.reserved[key]
			for i := range held.holders {
				if h := &held.holders[i]; h.task == t {
					h.isOver = true
				}
			}
			if c.supplies.shown[key] == nil && held.overlay != nil {
				c.supplies.made[t] = key
			}
			// Nothing is to be seen over an object that shows it all: then it need not be awaited.
			if held.overlay == nil {
				held.holders = slices.DeleteFunc(held.holders, func(h holder) bool { return h.isOver })
				c.overlay(key, held)
			}
		})
		t.Reservation = nil
		return
	}
	c.hold(t, nil)
	c.note(SupplyFreed)
}

// dropOver drops what was held of an object by tasks that are bound: the API shows it now, or that it is gone.
func (c *Cluster) dropOver(key SupplyKey) {
	r := c.supplies.reserved[key]
	if r == nil {
		return
	}
	r.holders = slices.DeleteFunc(r.holders, func(h holder) bool {
		if h.isOver {
			delete(c.supplies.made, h.task)
		}
		return h.isOver
	})
	c.overlay(key, r)
}

// eachReserved calls a function for each object that a reservation of a task is about.
func (c *Cluster) eachReserved(t *Task, r *Reservation, do func(SupplyKey, holder)) {
	h := holder{task: t, pod: resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: t.Pod.Name, UID: t.UID()}}
	if t.Node != nil {
		h.node = t.Node.Name
	}
	for i := range r.Volumes {
		v := &r.Volumes[i]
		h.volume = v
		if v.Volume != "" {
			do(SupplyKey{Volume, types.NamespacedName{Name: v.Volume}}, h)
		} else {
			do(SupplyKey{VolumeClaim, v.Claim}, h)
		}
	}
	h.volume = nil
	for i := range r.Devices {
		h.device = &r.Devices[i]
		do(SupplyKey{DeviceClaim, r.Devices[i].Claim}, h)
	}
}

// overlay lays over an object what is reserved of it.
func (c *Cluster) overlay(key SupplyKey, held *reserved) {
	held.overlay = nil
	c.supplies.changed(key)
	if len(held.holders) == 0 {
		delete(c.supplies.reserved, key)
		return
	}
	for i := range held.holders {
		h := &held.holders[i]
		now := c.Supply(key)
		if now == nil && h.device != nil && h.device.Made != nil {
			now = h.device.Made
		}
		var next Supply
		switch o := now.(type) {
		case *corev1.PersistentVolumeClaim:
			next = h.overClaim(o)
		case *corev1.PersistentVolume:
			next = h.overVolume(o)
		case *resourcev1.ResourceClaim:
			next = h.overDevices(o)
		}
		if next != nil {
			held.overlay = next
		}
	}
}

// overClaim returns a claim for which a volume is made for the node, nil if it says so already or has got one.
func (h *holder) overClaim(claim *corev1.PersistentVolumeClaim) Supply {
	if claim.UID != h.volume.UID || claim.Spec.VolumeName != "" || claim.Annotations[storagehelpers.AnnSelectedNode] == h.node {
		return nil
	}
	claim = claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnSelectedNode, h.node)
	return claim
}

// overVolume returns a volume that is the claim's, nil if it is already, or somebody else's.
func (h *holder) overVolume(volume *corev1.PersistentVolume) Supply {
	if next := h.volume.Take(volume); next != nil {
		return next
	}
	return nil
}

// Take returns a volume that belongs to the claim, nil if it does already, or belongs to another.
func (r *VolumeReservation) Take(volume *corev1.PersistentVolume) *corev1.PersistentVolume {
	ref := volume.Spec.ClaimRef
	if volume.UID != r.VolumeUID || ref != nil && (ref.UID != "" || ref.Namespace != r.Claim.Namespace || ref.Name != r.Claim.Name) {
		return nil
	}
	volume = volume.DeepCopy()
	if ref == nil {
		// Whoever unbinds it knows by this that nobody had bound it by hand.
		metav1.SetMetaDataAnnotation(&volume.ObjectMeta, storagehelpers.AnnBoundByController, "yes")
	}
	volume.Spec.ClaimRef = &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: r.Claim.Namespace,
		Name: r.Claim.Name, UID: r.UID}
	return volume
}

// overDevices returns a claim that is allocated and may be used by the pod, nil if it says so already.
func (h *holder) overDevices(claim *resourcev1.ResourceClaim) Supply {
	if !h.device.IsOf(claim, h.pod.UID) {
		return nil
	}
	// A claim that was made for the pod before, and has other devices, is made anew.
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
		claim.Status.ReservedFor = append(claim.Status.ReservedFor, h.pod)
	}
	return claim
}
