package cluster

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/resources"
)

// SupplyKind is a kind of object that says which volumes and devices there are and who has them.
type SupplyKind uint8

// The kinds.
const (
	NoSupply SupplyKind = iota
	VolumeClaim
	Volume
	StorageClass
	CSINode
	CSIDriver
	CSICapacity
	Attachment
	DeviceClaim
	DeviceSlice
	DeviceClass
	DeviceTaintRule
)

// SupplyKindOf returns the kind of an object, NoSupply if it is none of these.
func SupplyKindOf(o runtime.Object) SupplyKind {
	switch o.(type) {
	case *corev1.PersistentVolumeClaim:
		return VolumeClaim
	case *corev1.PersistentVolume:
		return Volume
	case *storagev1.StorageClass:
		return StorageClass
	case *storagev1.CSINode:
		return CSINode
	case *storagev1.CSIDriver:
		return CSIDriver
	case *storagev1.CSIStorageCapacity:
		return CSICapacity
	case *storagev1.VolumeAttachment:
		return Attachment
	case *resourcev1.ResourceClaim:
		return DeviceClaim
	case *resourcev1.ResourceSlice:
		return DeviceSlice
	case *resourcev1.DeviceClass:
		return DeviceClass
	case *resourcev1beta2.DeviceTaintRule:
		return DeviceTaintRule
	}
	return NoSupply
}

// Supply is an object of one of these kinds.
type Supply interface {
	runtime.Object
	metav1.Object
}

// SupplyKey names one.
type SupplyKey struct {
	Kind SupplyKind
	types.NamespacedName
}

// supplies are the volumes and devices of the model: what the API shows, and over it what is reserved.
type supplies struct {
	shown    map[SupplyKey]Supply
	reserved map[SupplyKey]*reserved
	users    map[types.NamespacedName][]*Task // of PersistentVolumeClaims: the tasks whose pods name them
	made     map[*Task]SupplyKey              // of tasks that are bound: claims that were made for them and were never shown yet

	changes []SupplyKey // in the order in which they changed; see SupplyChanges
	dropped uint64      // how many changes were forgotten
}

// Supply returns an object as it will be once what is reserved is written, nil if there is none. Nobody changes it.
func (c *Cluster) Supply(key SupplyKey) Supply {
	if r := c.supplies.reserved[key]; r != nil && r.overlay != nil {
		return r.overlay
	}
	return c.supplies.shown[key]
}

// SupplyKeys returns the keys of all volumes and devices, in no order.
func (c *Cluster) SupplyKeys() []SupplyKey {
	keys := make([]SupplyKey, 0, len(c.supplies.shown))
	for key := range c.supplies.shown {
		keys = append(keys, key)
	}
	for key, r := range c.supplies.reserved {
		if c.supplies.shown[key] == nil && r.overlay != nil {
			keys = append(keys, key) // a claim that is to be made
		}
	}
	return keys
}

// SupplyChanges returns which volumes and devices changed since a position, oldest first, and the position to ask from next.
// ok is false if that is too long ago to tell. The keys are good until the next operation.
func (c *Cluster) SupplyChanges(since uint64) (keys []SupplyKey, next uint64, ok bool) {
	s := &c.supplies
	next = s.dropped + uint64(len(s.changes))
	if since < s.dropped {
		return nil, next, false
	}
	return s.changes[since-s.dropped:], next, true
}

// Users returns the tasks whose pods name a PersistentVolumeClaim, in no particular order. The caller must not change the slice.
func (c *Cluster) Users(claim types.NamespacedName) []*Task { return c.supplies.users[claim] }

// maxSupplyChanges bounds the list of changes: ten thousand pods with a claim each, reserved and given back a few times.
const maxSupplyChanges = 1 << 16

func (s *supplies) changed(key SupplyKey) {
	if len(s.changes) >= maxSupplyChanges {
		half := len(s.changes) / 2
		s.dropped += uint64(half)
		s.changes = append(s.changes[:0], s.changes[half:]...)
	}
	s.changes = append(s.changes, key)
}

func (c *Cluster) setSupply(kind SupplyKind, o Supply) {
	key := SupplyKey{kind, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
	before := c.supplies.shown[key]
	if before != nil && before.GetResourceVersion() == o.GetResourceVersion() && o.GetResourceVersion() != "" {
		return
	}
	c.supplies.shown[key] = o
	c.serve(before, o)
	c.note(SupplyShown)
	c.supplies.changed(key)
	c.dropOver(key)
}

func (c *Cluster) dropSupply(kind SupplyKind, o Supply) {
	key := SupplyKey{kind, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
	before := c.supplies.shown[key]
	if before == nil || before.GetUID() != o.GetUID() {
		return
	}
	delete(c.supplies.shown, key)
	c.serve(before, nil)
	c.note(SupplyShown)
	c.supplies.changed(key)
	c.dropOver(key)
}

// enroll lists a task with the claims that its pod names, or takes it off.
func (c *Cluster) enroll(t *Task, pod *corev1.Pod, isThere bool) {
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		claim := types.NamespacedName{Namespace: pod.Namespace, Name: source.ClaimName}
		users := slices.DeleteFunc(c.supplies.users[claim], func(u *Task) bool { return u == t })
		if isThere {
			users = append(users, t)
		}
		if len(users) == 0 {
			delete(c.supplies.users, claim)
		} else {
			c.supplies.users[claim] = users
		}
	}
}

// demand is what a pod needs besides room, as far as it tells one class from another. Pods whose claims are made for them
// alone are each of a class of their own.
type demand struct {
	Namespace string                          `json:",omitempty"`
	UID       types.UID                       `json:",omitempty"`
	Volumes   []corev1.Volume                 `json:",omitempty"`
	Claims    []corev1.PodResourceClaim       `json:",omitempty"`
	Made      []corev1.PodResourceClaimStatus `json:",omitempty"` // the claims that were made from templates
	IsServed  bool                            `json:",omitempty"` // it requests resources that DeviceClasses stand for
}

// demandOf returns what a pod needs of volumes and devices, nil if nothing.
func (c *Cluster) demandOf(pod *corev1.Pod, request resources.Vector) *demand {
	isServed := c.isServed(request)
	if len(pod.Spec.Volumes) == 0 && len(pod.Spec.ResourceClaims) == 0 && !isServed {
		return nil
	}
	n := &demand{Namespace: pod.Namespace, Claims: pod.Spec.ResourceClaims, Made: pod.Status.ResourceClaimStatuses,
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

// isPlaced reports whether a volume cannot be mounted anywhere, or not everywhere at once.
func isPlaced(v *corev1.VolumeSource) bool {
	return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil ||
		v.ISCSI != nil || v.RBD != nil || v.AzureDisk != nil || v.AzureFile != nil || v.Cinder != nil || v.PortworxVolume != nil ||
		v.VsphereVolume != nil
}
