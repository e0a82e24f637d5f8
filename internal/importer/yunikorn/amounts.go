package yunikorn

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"hekla.sh/hekla/internal/importer/source"
	"hekla.sh/hekla/pkg/apis/bounds"
)

// vcore is the resource that Kubernetes calls cpu.
const vcore = "vcore"

// resourceName returns the name of a resource in Kubernetes.
func resourceName(name string) corev1.ResourceName {
	if name == vcore {
		return corev1.ResourceCPU
	}
	return corev1.ResourceName(name)
}

// amounts reads quantities of resources.
func readAmounts(r *source.Report, entries []source.Entry) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, e := range entries {
		name := resourceName(e.Key)
		quantity, err := bounds.ParseQuantity(strings.TrimSpace(e.Text))
		if err != nil {
			r.Refuse(e.Field, "is %q, allowed is a quantity such as 500m, 10 or 64Gi", source.Shorten(e.Text))
			continue
		}
		if problem := problemOf(name, quantity); problem != "" {
			r.Refuse(e.Field, "is %q: %s", source.Shorten(e.Text), problem)
			continue
		}
		if _, twice := list[name]; twice {
			r.Refuse(e.Field, "%s is the same resource as cpu; keep one of them", vcore)
			continue
		}
		list[name] = quantity
	}
	return list
}

// problemOf says why a queue cannot have so much of a resource, "" if it can.
func problemOf(name corev1.ResourceName, quantity resource.Quantity) string {
	if problems := validation.IsQualifiedName(string(name)); len(problems) > 0 {
		return "its name is no name of a resource: " + problems[0]
	}
	if quantity.Sign() < 0 {
		return "it is negative"
	}
	isDivisible := name == corev1.ResourceCPU || name == corev1.ResourceMemory || name == corev1.ResourceEphemeralStorage
	if !isDivisible && quantity.MilliValue()%1000 != 0 {
		return "it comes in whole numbers only"
	}
	return ""
}

// isZero reports whether there are amounts, and all of them are zero.
func isZero(list corev1.ResourceList) bool {
	for _, quantity := range list {
		if !quantity.IsZero() {
			return false
		}
	}
	return len(list) > 0
}

// names returns the names of the resources, sorted.
func names(list corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// describe lists amounts for a message.
func describe(list corev1.ResourceList) string {
	var parts []string
	for _, name := range names(list) {
		quantity := list[name]
		parts = append(parts, fmt.Sprintf("%s %s", name, quantity.String()))
	}
	return strings.Join(parts, ", ")
}

// exceeding returns the first resource of which a list has more than another that names it.
func exceeding(list, bound corev1.ResourceList) (name corev1.ResourceName, has, limit resource.Quantity, found bool) {
	for _, name := range names(list) {
		has := list[name]
		if limit, isNamed := bound[name]; isNamed && has.Cmp(limit) > 0 {
			return name, has, limit, true
		}
	}
	return "", has, limit, false
}

// sum adds a list to another.
func sum(to, list corev1.ResourceList) {
	for name, quantity := range list {
		total := to[name]
		total.Add(quantity)
		to[name] = total
	}
}

// lowest returns the smaller amount of each resource that one of the lists names.
func lowest(a, b corev1.ResourceList) corev1.ResourceList {
	result := a.DeepCopy()
	if result == nil {
		result = corev1.ResourceList{}
	}
	for name, quantity := range b {
		if other, isNamed := result[name]; !isNamed || quantity.Cmp(other) < 0 {
			result[name] = quantity
		}
	}
	return result
}
