package supplies

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"hekla.sh/hekla/pkg/resources"
)

// Boundless is how much a node has of a resource that it does not count itself but DeviceClasses stand for: more than there are
// devices. How many of them a pod can get is for the plugin for devices to say. A cluster of many such nodes has no more of
// it than one of large nodes has bytes of memory.
const Boundless = 1 << 40

// Served are the resources that DeviceClasses stand for, each with how many do. A pod that requests one of them from a node
// that has none is given devices.
type Served struct {
	index *resources.Index
	count map[resources.Dim]int
}

// NewServed returns that no resource is served.
func NewServed(index *resources.Index) *Served {
	return &Served{index: index, count: map[resources.Dim]int{}}
}

// Replace counts what a DeviceClass stands for instead of what it stood for before; nil, and an object of another kind, stands for
// nothing. It reports whether other resources are served now.
func (s *Served) Replace(before, now Object) (changed bool) {
	gone, come := s.resourcesOf(before), s.resourcesOf(now)
	if slices.Equal(gone, come) {
		return false
	}
	for _, d := range come {
		s.count[d]++
		changed = changed || s.count[d] == 1
	}
	for _, d := range gone {
		if s.count[d]--; s.count[d] == 0 {
			delete(s.count, d)
			changed = true
		}
	}
	return changed
}

// resourcesOf returns the resources that a DeviceClass stands for.
func (s *Served) resourcesOf(o Object) []resources.Dim {
	class, ok := o.(*resourcev1.DeviceClass)
	if !ok {
		return nil
	}
	dims := []resources.Dim{s.index.Dim(corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix + class.Name))}
	if name := class.Spec.ExtendedResourceName; name != nil && *name != "" {
		dims = append(dims, s.index.Dim(corev1.ResourceName(*name)))
	}
	return dims
}

// AddTo adds what is served to what a node has of its own.
func (s *Served) AddTo(allocatable *resources.Vector) {
	for d := range s.count {
		if allocatable.At(d) == 0 {
			allocatable.Set(d, Boundless)
		}
	}
}

// Serves reports whether a request may be met by devices that the pod does not name.
func (s *Served) Serves(request resources.Vector) bool {
	for d := range s.count {
		if request.At(d) > 0 {
			return true
		}
	}
	return false
}
