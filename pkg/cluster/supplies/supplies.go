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

// Kind is a kind of object that says which volumes and devices there are and who has them.
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
)

// KindOf returns the kind of an object, None if it is none of these.
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
	}
	return None
}

// Object is an object of one of these kinds.
type Object interface {
	runtime.Object
	metav1.Object
}

// Key names one.
type Key struct {
	Kind Kind
	types.NamespacedName
}

// KeyOf returns the key of an object.
func KeyOf(kind Kind, o Object) Key {
	return Key{kind, types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}}
}

// Store holds the volumes and devices: what the API server shows, and over it what is reserved.
type Store struct {
	shown    map[Key]Object
	reserved map[Key]*reserved
	made     map[Pod]Key // of pods that are bound: claims that were made for them and were never shown yet
	changes  changelog.Log[Key]
}

// maxChanges bounds the list of changes: ten thousand pods with a claim each, reserved and given back a few times.
const maxChanges = 1 << 16

// New returns an empty store.
func New() *Store {
	return &Store{shown: map[Key]Object{}, reserved: map[Key]*reserved{}, made: map[Pod]Key{}, changes: changelog.New[Key](maxChanges)}
}

// Get returns an object as it will be once what is reserved is written, nil if there is none. The caller must not change it.
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
			keys = append(keys, key) // a claim that is to be made
		}
	}
	return keys
}

// Changes returns which volumes and devices changed since a position, oldest first, and the position to ask from next.
// ok is false if that is too long ago to tell. The keys are valid until the next operation.
func (s *Store) Changes(since uint64) (keys []Key, next uint64, ok bool) {
	return s.changes.Since(since)
}

// Set says that the API server shows an object like this. It returns the object that was shown before, and whether anything differs.
func (s *Store) Set(kind Kind, o Object) (before Object, isNew bool) {
	key := KeyOf(kind, o)
	before = s.shown[key]
	if before != nil && before.GetResourceVersion() == o.GetResourceVersion() && o.GetResourceVersion() != "" {
		return before, false
	}
	s.shown[key] = o
	s.changes.Add(key)
	s.dropWritten(key)
	return before, true
}

// Delete says that an object is gone. It returns the object that was shown before, nil if that is not the one that is gone.
func (s *Store) Delete(kind Kind, o Object) Object {
	key := KeyOf(kind, o)
	before := s.shown[key]
	if before == nil || before.GetUID() != o.GetUID() {
		return nil
	}
	delete(s.shown, key)
	s.changes.Add(key)
	s.dropWritten(key)
	return before
}
