package supplies

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"hekla.sh/hekla/pkg/resources"
)

// Boundless is the amount on every node of a resource that DeviceClasses provide and the node does not count: more than
// there are devices. The plugin for devices decides how many a pod can get. The sum over many such nodes is no larger
// than that of the bytes of memory of large nodes.
const Boundless = 1 << 40

// Served counts the extended resources that DeviceClasses provide, with the number of classes. A pod that requests one
// of them on a node that has none of its own gets devices.
type Served struct {
	index *resources.Index
	count map[resources.Dim]int
}

// NewServed returns a Served without resources.
func NewServed(index *resources.Index) *Served {
	return &Served{index: index, count: map[resources.Dim]int{}}
}

// Replace replaces a DeviceClass by a newer state. Nil, and an object of another kind, provide nothing. It reports
// whether the provided resources have changed.
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

// resourcesOf returns the resources that a DeviceClass provides.
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

// AddTo adds the provided resources to those of a node.
func (s *Served) AddTo(allocatable *resources.Vector) {
	for d := range s.count {
		if allocatable.At(d) == 0 {
			allocatable.Set(d, Boundless)
		}
	}
}

// Serves reports whether a request may need devices that the pod does not name.
func (s *Served) Serves(request resources.Vector) bool {
	for d := range s.count {
		if request.At(d) > 0 {
			return true
		}
	}
	return false
}
