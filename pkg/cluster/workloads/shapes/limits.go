package shapes

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"hekla.sh/hekla/pkg/apis/podspec"
)

// rules are what the API server adds to pods when they are created, and what it refuses.
type rules struct {
	limits  map[string]map[string]*corev1.LimitRange // by namespace and name
	classes map[string]*nodev1.RuntimeClass
}

// SetLimits notes a LimitRange of a namespace; nil is gone. It reports whether that changes anything: then the shapes
// of the Workloads of the namespace must be asked for again.
func (t *Table) SetLimits(namespace, name string, o *corev1.LimitRange) (changed bool) {
	before := t.rules.limits[namespace][name]
	switch {
	case o == nil && before == nil, o != nil && before != nil && equality.Semantic.DeepEqual(before.Spec, o.Spec):
		return false
	case o == nil:
		if delete(t.rules.limits[namespace], name); len(t.rules.limits[namespace]) == 0 {
			delete(t.rules.limits, namespace)
		}
		return true
	case t.rules.limits == nil:
		t.rules.limits = map[string]map[string]*corev1.LimitRange{}
	}
	if t.rules.limits[namespace] == nil {
		t.rules.limits[namespace] = map[string]*corev1.LimitRange{}
	}
	t.rules.limits[namespace][name] = o
	return true
}

// SetRuntimeClass notes a RuntimeClass; nil is gone. It reports whether that changes anything: then all shapes must be
// asked for again.
func (t *Table) SetRuntimeClass(name string, o *nodev1.RuntimeClass) (changed bool) {
	before := t.rules.classes[name]
	switch {
	case o == nil && before == nil,
		o != nil && before != nil && equality.Semantic.DeepEqual(before.Overhead, o.Overhead) && equality.Semantic.DeepEqual(before.Scheduling, o.Scheduling):
		return false
	case o == nil:
		delete(t.rules.classes, name)
		return true
	case t.rules.classes == nil:
		t.rules.classes = map[string]*nodev1.RuntimeClass{}
	}
	t.rules.classes[name] = o
	return true
}

// in are the LimitRanges of a namespace, by name.
func (r *rules) in(namespace string) []*corev1.LimitRange {
	all := make([]*corev1.LimitRange, 0, len(r.limits[namespace]))
	for _, name := range slices.Sorted(maps.Keys(r.limits[namespace])) {
		all = append(all, r.limits[namespace][name])
	}
	return all
}

// given is what the API server completes pods by.
func (r *rules) given(spec *corev1.PodSpec, ranges []*corev1.LimitRange) podspec.Given {
	given := podspec.Given{LimitRanges: ranges}
	if spec.RuntimeClassName != nil {
		given.RuntimeClass = r.classes[*spec.RuntimeClassName]
	}
	return given
}

// problem says, in Kueue's words, why the API server would refuse pods of templates, "" if it would not.
func problem(templates []*corev1.PodTemplateSpec, ranges []*corev1.LimitRange) string {
	var above, outside field.ErrorList
	for i, template := range templates {
		path := field.NewPath("spec", "podSets").Index(i).Child("template", "spec")
		eachContainer(&template.Spec, path, func(c *corev1.Container, path *field.Path) {
			above = append(above, refused(path, larger(c.Resources.Requests, c.Resources.Limits), "requests must not exceed its limits")...)
		})
		for _, o := range ranges {
			for j := range o.Spec.Limits {
				outside = append(outside, violations(&template.Spec, path, &o.Spec.Limits[j])...)
			}
		}
	}
	switch {
	case len(above) > 0:
		return fmt.Sprintf("resources validation failed: %v", above.ToAggregate())
	case len(outside) > 0:
		return fmt.Sprintf("resources didn't satisfy LimitRange constraints: %v", outside.ToAggregate())
	}
	return ""
}

// violations are the containers, or the pod, that an item of a LimitRange does not allow.
func violations(spec *corev1.PodSpec, path *field.Path, item *corev1.LimitRangeItem) (found field.ErrorList) {
	const above, below = "requests must not be above the limitRange max", "requests must not be below the limitRange min"
	const ratio = "limits must not be above the limitRange maxLimitRequestRatio of the requests, and both must be set"
	switch item.Type {
	case corev1.LimitTypeContainer:
		eachContainer(spec, path, func(c *corev1.Container, path *field.Path) {
			least, most := bounds(c.Resources.Requests, c.Resources.Limits)
			found = append(found, refused(path, larger(most, item.Max), above)...)
			found = append(found, refused(path, larger(item.Min, least), below)...)
			found = append(found, refused(path, beyond(item.MaxLimitRequestRatio, c.Resources.Requests, c.Resources.Limits), ratio)...)
		})
	case corev1.LimitTypePod:
		total := podspec.Requests(spec)
		found = append(found, refused(path, larger(total, item.Max), above)...)
		found = append(found, refused(path, larger(item.Min, total), below)...)
		if len(item.MaxLimitRequestRatio) > 0 {
			limits := podspec.Limits(spec)
			found = append(found, refused(path, beyond(item.MaxLimitRequestRatio, total, limits), ratio)...)
		}
	}
	return found
}

func eachContainer(spec *corev1.PodSpec, path *field.Path, look func(*corev1.Container, *field.Path)) {
	for i := range spec.InitContainers {
		look(&spec.InitContainers[i], path.Child("initContainers").Index(i))
	}
	for i := range spec.Containers {
		look(&spec.Containers[i], path.Child("containers").Index(i))
	}
}

func refused(path *field.Path, names []corev1.ResourceName, why string) field.ErrorList {
	if len(names) == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, names, why)}
}

// larger are the resources of which one list has more than another one that has them too, in order.
func larger(list, than corev1.ResourceList) (names []corev1.ResourceName) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		if bound, has := than[name]; has && quantity.Cmp(bound) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// beyond are the resources whose limit is a larger multiple of the request than allowed, in order. As in the API
// server, one without a limit or without a request is among them.
func beyond(ratios, requests, limits corev1.ResourceList) (names []corev1.ResourceName) {
	for _, name := range slices.Sorted(maps.Keys(ratios)) {
		most, request, limit := ratios[name], requests[name], limits[name]
		if request.IsZero() || limit.IsZero() || limit.AsApproximateFloat64() > most.AsApproximateFloat64()*request.AsApproximateFloat64() {
			names = append(names, name)
		}
	}
	return names
}

// bounds are the smaller and the larger of the requests and limits of a container.
func bounds(requests, limits corev1.ResourceList) (least, most corev1.ResourceList) {
	least, most = corev1.ResourceList{}, corev1.ResourceList{}
	maps.Copy(least, limits)
	maps.Copy(least, requests)
	maps.Copy(most, least)
	for name, limit := range limits {
		if request, has := requests[name]; has && limit.Cmp(request) > 0 {
			most[name] = limit
		}
	}
	return least, most
}
