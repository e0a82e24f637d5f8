package validation

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// maxPodSets is how many podsets a Workload may have.
const maxPodSets = 18

// Workload says what is wrong with a Workload.
func Workload(w *v1beta2.Workload) field.ErrorList {
	if problem := unreadable(w); problem != nil {
		return problem
	}
	s, path := &w.Spec, spec.Child("podSets")
	var problems field.ErrorList
	if len(s.PodSets) == 0 {
		problems = append(problems, field.Required(path, "a workload has at least one podset"))
	}
	problems = append(problems, most(path, "podsets", len(s.PodSets), maxPodSets)...)
	names, shrinking := sets.New[string](), 0
	for i := range s.PodSets {
		p, path := &s.PodSets[i], path.Index(i)
		if names.Has(p.Name) {
			problems = append(problems, field.Duplicate(path.Child("name"), p.Name))
		}
		names.Insert(p.Name)
		if p.Count < 0 {
			problems = append(problems, field.Invalid(path.Child("count"), p.Count, "must be greater than or equal to 0"))
		}
		problems = append(problems, requests(&p.Template.Spec, path.Child("template", "spec"))...)
		if p.MinCount == nil {
			continue
		}
		if *p.MinCount < 1 || *p.MinCount > p.Count {
			problems = append(problems, field.Invalid(path.Child("minCount"), *p.MinCount, "minCount should be positive and less or equal to count"))
		}
		if shrinking++; shrinking > 1 {
			problems = append(problems, field.Invalid(path.Child("minCount"), *p.MinCount, "at most one podSet can use minCount"))
		}
	}
	return append(problems, priorityClasses(s)...)
}

// requests checks what pods of a template ask for: nothing below zero, which would add to a quota, and no pods, which
// are counted.
func requests(s *corev1.PodSpec, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	check := func(list corev1.ResourceList, path *field.Path) {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			quantity := list[name]
			problems = append(problems, notNegative(&quantity, path.Key(string(name)))...)
			if name == corev1.ResourcePods {
				problems = append(problems, field.Invalid(path.Key(string(name)), name, "the key is reserved for internal kueue use"))
			}
		}
	}
	all := func(containers []corev1.Container, path *field.Path) {
		for i := range containers {
			path := path.Index(i).Child("resources")
			check(containers[i].Resources.Requests, path.Child("requests"))
			check(containers[i].Resources.Limits, path.Child("limits"))
		}
	}
	all(s.InitContainers, path.Child("initContainers"))
	all(s.Containers, path.Child("containers"))
	if s.Resources != nil {
		check(s.Resources.Requests, path.Child("resources", "requests"))
		check(s.Resources.Limits, path.Child("resources", "limits"))
	}
	check(s.Overhead, path.Child("overhead"))
	return problems
}

// priorityClasses checks that both spellings of the class say the same.
func priorityClasses(s *v1beta2.WorkloadSpec) field.ErrorList {
	ref := s.PriorityClassRef
	if ref == nil || s.PriorityClassName == "" {
		return nil
	}
	problems := differ(nil, spec.Child("priorityClassName"), s.PriorityClassName, "priorityClassRef.name", ref.Name)
	source := v1beta2.PodPriorityClassSource
	if ref.Kind == v1beta2.WorkloadPriorityClassKind {
		source = v1beta2.WorkloadPriorityClassSource
	}
	return differ(problems, spec.Child("priorityClassSource"), s.PriorityClassSource, "that of priorityClassRef", source)
}

// WorkloadUpdate says what is wrong with a change of a Workload: while quota is reserved, its podsets and its queue
// stay. What was wrong before refuses no change.
func WorkloadUpdate(w, before *v1beta2.Workload) field.ErrorList {
	was := sets.New[string]()
	for _, problem := range Workload(before) {
		was.Insert(problem.Error())
	}
	problems := slices.DeleteFunc(Workload(w), func(p *field.Error) bool { return was.Has(p.Error()) })
	const reserved = v1beta2.QuotaReserved
	if !meta.IsStatusConditionTrue(before.Status.Conditions, reserved) {
		return problems
	}
	if !equality.Semantic.DeepEqual(w.Spec.PodSets, before.Spec.PodSets) {
		problems = append(problems, field.Forbidden(spec.Child("podSets"), "field is immutable while quota is reserved"))
	}
	if meta.IsStatusConditionTrue(w.Status.Conditions, reserved) && w.Spec.QueueName != before.Spec.QueueName {
		problems = append(problems, field.Invalid(spec.Child("queueName"), w.Spec.QueueName,
			fmt.Sprintf("field is immutable while quota is reserved; it was %q", before.Spec.QueueName)))
	}
	return problems
}
