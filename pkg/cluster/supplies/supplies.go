package supplies

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster/internal/changelog"
)

// Kind is a kind of object about volumes and devices.
type Kind uint8

// The kinds.
const (
	None Kind = iota
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
	DeviceClaimTemplate
)

// KindOf returns the kind of an object, None if it has none of these kinds.
func KindOf(o runtime.Object) Kind {
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
	case *resourcev1.ResourceClaimTemplate:
		return DeviceClaimTemplate
	}
	return None
}

// Object is an object of one of these kinds.
type Object interface {
	runtime.Object
	metav1.Object
}

// Key identifies an object.
type Key struct {
	Kind Kind
	types.NamespacedName
}

// KeyOf returns the key of an object.
func KeyOf(kind Kind, o Object) Key {
	return Key{kind, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// Store holds the volumes and devices as the API server shows them, and the reservations.
type Store struct {
	shown    map[Key]Object
	reserved map[Key]*reserved
	written  map[Pod][]Key // what was written for bound pods, and the API server does not show yet
	changes  changelog.Log[Key]
}

// maxChanges limits the list of changes. It is enough for ten thousand pods with a claim each, reserved and released a
// few times.
const maxChanges = 1 << 16

// New returns an empty store.
func New() *Store {
	return &Store{shown: map[Key]Object{}, reserved: map[Key]*reserved{}, written: map[Pod][]Key{}, changes: changelog.New[Key](maxChanges)}
}

// Get returns an object as it will be after all reservations are written, nil if there is none. The caller must not
// change it.
func (s *Store) Get(key Key) Object {
	if r := s.reserved[key]; r != nil && r.overlay != nil {
		return r.overlay
	}
	return s.shown[key]
}

// Keys returns the keys of all volumes and devices, in no order.
func (s *Store) Keys() []Key {
	keys := make([]Key, 0, len(s.shown))
	for key := range s.shown {
		keys = append(keys, key)
	}
	for key, r := range s.reserved {
		if s.shown[key] == nil && r.overlay != nil {
			keys = append(keys, key) // a claim that is to be created
		}
	}
	return keys
}

// Changes returns which volumes and devices changed since a position, the oldest first, and the position for the next
// call. ok is false if that position is too old. The keys are valid until the next operation.
func (s *Store) Changes(since uint64) (keys []Key, next uint64, ok bool) {
	return s.changes.Since(since)
}

// Set adds or updates an object from the API. It returns the state before, and whether anything differs.
func (s *Store) Set(kind Kind, o Object) (before Object, isNew bool) {
	key := KeyOf(kind, o)
	before = s.shown[key]
	if before != nil && before.GetResourceVersion() == o.GetResourceVersion() && o.GetResourceVersion() != "" {
		return before, false
	}
	s.shown[key] = o
	s.changes.Add(key)
	s.pass(key)
	return before, true
}

// Delete removes an object. It returns its last state, nil if another object with this name exists now.
func (s *Store) Delete(kind Kind, o Object) Object {
	key := KeyOf(kind, o)
	before := s.shown[key]
	if before == nil || before.GetUID() != o.GetUID() {
		return nil
	}
	delete(s.shown, key)
	s.changes.Add(key)
	s.dropWritten(key, func(*holder) bool { return true })
	return before
}
