package resources

import (
	"iter"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Dim is the position of a resource in a [Vector].
type Dim int

// The dimensions every [Index] begins with.
const (
	CPU    Dim = iota // thousandths of a core
	Memory            // bytes
	Pods              // count
)

// MaxQuantity is the largest amount a single quantity may have; larger ones are cut to it. It is far above any node
// (256 TiB of memory, 280 billion cores), and low enough that sums over a large cluster cannot overflow.
const MaxQuantity = int64(1) << 48

// MaxNames is the largest number of resources that the request of one pod or gang may name, besides those of every
// node. Kubernetes has no such limit, and each new name makes vectors longer.
const MaxNames = 64

// MaxInvented is how many resources have a dimension of their own that no node, queue or other object of an
// administrator names. A cluster has a few, such as devices of nodes that are yet to come. Every pod may name others,
// and a model never forgets a dimension.
const MaxInvented = 256

// Further stands for the resources of a list beyond [MaxNames], and for those beyond [MaxInvented]. No node has any of
// it.
const Further corev1.ResourceName = "hekla.sh/further-resources"

// Index assigns dimensions to resource names, in the order in which the names are first seen. It belongs to one cluster
// model, and is used by the same goroutine.
//
// Quotas may be kept by flavor: 8 CPUs of the flavor spot, 4 of the flavor reserved. A resource of a flavor is an [FR],
// which is no dimension. Requests of pods and capacities of nodes have no flavor.
type Index struct {
	names  []corev1.ResourceName
	byName map[corev1.ResourceName]Dim

	flavored  []flavored // by FR
	ofFlavors map[flavored]FR

	invented  []bool // by dimension: only requests name it
	inventing int    // how many these are
	hides     bool   // Further has stood for names that may be given dimensions later
	revealed  int
}

// NewIndex returns an index that holds the three dimensions every pod has.
func NewIndex() *Index {
	x := &Index{byName: map[corev1.ResourceName]Dim{}, ofFlavors: map[flavored]FR{}}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods} {
		x.Dim(name)
	}
	return x
}

// Dim returns the dimension of a resource that an administrator names, and adds one if the name is new.
func (x *Index) Dim(name corev1.ResourceName) Dim {
	d, ok := x.byName[name]
	switch {
	case !ok:
		d = x.grow(name)
		if x.hides {
			x.revealed++
		}
	case x.invented[d]:
		x.invented[d] = false
		x.inventing--
	}
	return d
}

// AskedDim returns the dimension of a resource that a request names. It adds one if the name is new, up to
// [MaxInvented] of them. Further ones have the dimension of [Further].
func (x *Index) AskedDim(name corev1.ResourceName) Dim {
	if d, ok := x.byName[name]; ok {
		return d
	}
	if x.inventing >= MaxInvented && name != Further {
		x.hides = true
		return x.AskedDim(Further)
	}
	d := x.grow(name)
	x.invented[d] = true
	x.inventing++
	return d
}

// IsInvented reports whether only requests have named a resource.
func (x *Index) IsInvented(d Dim) bool { return x.invented[d] }

// Revealed counts the resources that were given a dimension after [Further] may have stood for them. When it grows,
// requests with an amount of Further must be read again.
func (x *Index) Revealed() int { return x.revealed }

func (x *Index) grow(name corev1.ResourceName) Dim {
	d := Dim(len(x.names))
	x.names, x.invented = append(x.names, name), append(x.invented, false)
	x.byName[name] = d
	return d
}

// Find returns the dimension of a resource that has been seen before.
func (x *Index) Find(name corev1.ResourceName) (Dim, bool) {
	d, ok := x.byName[name]
	return d, ok
}

// Name returns the resource of a dimension.
func (x *Index) Name(d Dim) corev1.ResourceName { return x.names[d] }

// Resources yields the dimensions, each with its name. No name comes twice.
func (x *Index) Resources() iter.Seq2[Dim, corev1.ResourceName] {
	return func(yield func(Dim, corev1.ResourceName) bool) {
		for d, name := range x.names {
			if !yield(Dim(d), name) {
				return
			}
		}
	}
}

// Len is the number of dimensions.
func (x *Index) Len() int { return len(x.names) }

// Vector turns a resource list into amounts. Negative quantities, which the API server does not accept, count as zero.
// The vector is no longer than the list needs, so names that only other objects use cost nothing.
func (x *Index) Vector(list corev1.ResourceList) Vector {
	x.addAll(list)
	last := Dim(-1)
	for name := range list {
		last = max(last, x.byName[name])
	}
	v := make(Vector, last+1)
	for name, quantity := range list {
		v[x.byName[name]] = amount(name, quantity)
	}
	return v
}

// Asked returns the Vector of a list from any user. The names beyond [MaxNames], in alphabetical order, count as
// [Further], so that the request fits on no node. So do names beyond [MaxInvented] that only requests use.
func (x *Index) Asked(list corev1.ResourceList) Vector {
	list = atMostNames(list)
	var fresh []corev1.ResourceName
	for name := range list {
		if _, isKnown := x.byName[name]; !isKnown {
			fresh = append(fresh, name)
		}
	}
	slices.Sort(fresh) // so that the order of a map never decides a dimension
	last := Dim(-1)
	for _, name := range fresh {
		last = max(last, x.AskedDim(name))
	}
	for name := range list {
		last = max(last, x.byName[name])
	}
	v := make(Vector, last+1)
	for name, quantity := range list {
		if d, isKnown := x.byName[name]; isKnown {
			v[d] = max(v[d], amount(name, quantity))
		} else {
			d := x.byName[Further]
			v[d] = max(v[d], 1)
		}
	}
	return v
}

// atMostNames replaces the names of a list beyond [MaxNames], in alphabetical order, by [Further].
func atMostNames(list corev1.ResourceList) corev1.ResourceList {
	if len(list) <= MaxNames {
		return list
	}
	var others []corev1.ResourceName
	kept := corev1.ResourceList{}
	for name, quantity := range list {
		switch name {
		case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods, corev1.ResourceEphemeralStorage:
			kept[name] = quantity
		default:
			others = append(others, name)
		}
	}
	slices.Sort(others)
	for _, name := range others[:min(len(others), MaxNames)] {
		kept[name] = list[name]
	}
	if len(others) > MaxNames {
		kept[Further] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	return kept
}

// Limits turns a resource list into limits: what is not listed is unlimited.
func (x *Index) Limits(list corev1.ResourceList) Limits {
	x.addAll(list)
	l := Limits{}
	for name, quantity := range list {
		l.Set(x.byName[name], amount(name, quantity))
	}
	return l
}

// addAll adds the new names of a list in alphabetical order, so that the order of a map never decides a dimension.
func (x *Index) addAll(list corev1.ResourceList) {
	var fresh []string
	for name := range list {
		if d, ok := x.byName[name]; !ok || x.invented[d] {
			fresh = append(fresh, string(name))
		}
	}
	sort.Strings(fresh)
	for _, name := range fresh {
		x.Dim(corev1.ResourceName(name))
	}
}

func amount(name corev1.ResourceName, quantity resource.Quantity) int64 {
	convert, most := quantity.Value, MaxQuantity
	if name == corev1.ResourceCPU {
		convert, most = quantity.MilliValue, MaxQuantity/1000
	}
	// Converting a value that does not fit into an int64 gives any number, so the limits are checked first.
	switch {
	case quantity.Sign() <= 0:
		return 0
	case isBeyond(&quantity):
		return MaxQuantity
	case quantity.CmpInt64(most+1) >= 0:
		return MaxQuantity
	}
	return min(convert(), MaxQuantity)
}

// isBeyond reports whether a quantity is larger than any int64. The API server accepts a pod that requests 1e3000000.
// Each exact comparison or addition of it would make a number of three million digits.
func isBeyond(quantity *resource.Quantity) bool {
	return quantity.AsApproximateFloat64() > math.MaxInt64
}

// Clamp replaces, in place, quantities that are larger than any int64 by MaxQuantity. So code that adds and compares
// them takes no longer than for other quantities.
func Clamp[Name ~string](lists ...map[Name]resource.Quantity) {
	for _, list := range lists {
		for name, quantity := range list {
			if isBeyond(&quantity) {
				list[name] = *resource.NewQuantity(MaxQuantity, resource.DecimalSI)
			}
		}
	}
}

// Clamped returns a list without quantities that are larger than any int64, as [Clamp] does. It is the list itself if
// there are none.
func Clamped(list corev1.ResourceList) corev1.ResourceList {
	for _, quantity := range list {
		if isBeyond(&quantity) {
			list = maps.Clone(list)
			Clamp(list)
			break
		}
	}
	return list
}

// List turns a vector into quantities, without zeros.
func (x *Index) List(v Vector) corev1.ResourceList {
	list := corev1.ResourceList{}
	for d, value := range v {
		if value != 0 {
			list[x.names[d]] = Quantity(x.names[d], value)
		}
	}
	return list
}

// LimitList turns limits into quantities: all that are present, also zeros.
func (x *Index) LimitList(l Limits) corev1.ResourceList {
	list := corev1.ResourceList{}
	for d := range Dim(len(x.names)) {
		if value, ok := l.At(d); ok {
			list[x.names[d]] = Quantity(x.names[d], value)
		}
	}
	return list
}

// Quantity returns an amount of a resource in the usual notation of Kubernetes.
func Quantity(name corev1.ResourceName, value int64) resource.Quantity {
	switch {
	case name == corev1.ResourceCPU:
		return *resource.NewMilliQuantity(value, resource.DecimalSI)
	case inBytes(name):
		return *resource.NewQuantity(value, resource.BinarySI)
	}
	return *resource.NewQuantity(value, resource.DecimalSI)
}

// Format prints a limit of a resource for users: "1500m" CPU, "2Gi" memory, "4" devices, "unlimited" if it is not set.
func Format(name corev1.ResourceName, value int64) string {
	if value == Unlimited {
		return "unlimited"
	}
	return FormatAmount(name, value)
}

// FormatAmount prints an amount of a resource for users, as [Format] does a limit that is set.
func FormatAmount(name corev1.ResourceName, value int64) string {
	if name != corev1.ResourceCPU && !inBytes(name) {
		return strconv.FormatInt(value, 10)
	}
	quantity := Quantity(name, value)
	return quantity.String()
}

func inBytes(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage || name == corev1.ResourceStorage ||
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}
