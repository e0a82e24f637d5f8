package resources

import corev1 "k8s.io/api/core/v1"

// FR is a resource of a flavor: its position in an [Index], in the order in which they are first seen. It is no [Dim],
// so a [Vector] has no amounts of it, and no walk over dimensions meets it. Several have the name of one resource.
type FR int

// Amount is so much of one resource.
type Amount struct {
	Dim   Dim
	Value int64
}

// flavored is a resource of a flavor.
type flavored struct {
	flavor string
	name   corev1.ResourceName
}

// OfFlavor returns the position of a resource of a flavor, and adds one if it is new. That gives the resource no
// dimension.
func (x *Index) OfFlavor(flavor string, name corev1.ResourceName) FR {
	key := flavored{flavor, name}
	fr, ok := x.ofFlavors[key]
	if !ok {
		fr = FR(len(x.flavored))
		x.flavored, x.ofFlavors[key] = append(x.flavored, key), fr
	}
	return fr
}

// FlavorOf returns the flavor of an FR.
func (x *Index) FlavorOf(fr FR) string { return x.flavored[fr].flavor }

// ResourceOf returns the resource of an FR.
func (x *Index) ResourceOf(fr FR) corev1.ResourceName { return x.flavored[fr].name }
