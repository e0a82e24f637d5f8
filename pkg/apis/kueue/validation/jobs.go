package validation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

var (
	labels      = field.NewPath("metadata", "labels")
	annotations = field.NewPath("metadata", "annotations")
)

// JobLabels are the labels of a job or pod that [QueuedUpdate] has a say about, and JobAnnotations the annotations.
var (
	JobLabels      = []string{v1beta2.QueueNameLabel, v1beta2.PrebuiltWorkloadLabel, v1beta2.PriorityClassLabel, v1beta2.MaxExecTimeSecondsLabel, v1beta2.PodGroupNameLabel}
	JobAnnotations = []string{v1beta2.AdmissionGatedByAnnotation, v1beta2.RetriableInGroupAnnotation}
)

// Queued says what is wrong with the labels and annotations of a job or pod that names a LocalQueue.
func Queued(o metav1.Object) field.ErrorList {
	var problems field.ErrorList
	for _, label := range []string{v1beta2.QueueNameLabel, v1beta2.PrebuiltWorkloadLabel, v1beta2.PodGroupNameLabel} {
		if name, is := o.GetLabels()[label]; is && (name != "" || label != v1beta2.QueueNameLabel) {
			for _, why := range validation.IsDNS1123Subdomain(name) {
				problems = append(problems, field.Invalid(labels.Key(label), name, why))
			}
		}
	}
	if text, is := o.GetLabels()[v1beta2.MaxExecTimeSecondsLabel]; is {
		if seconds, err := strconv.ParseInt(text, 10, 32); err != nil || seconds <= 0 {
			problems = append(problems, field.Invalid(labels.Key(v1beta2.MaxExecTimeSecondsLabel), text, "must be a number of seconds greater than 0"))
		}
	}
	return append(problems, gates(o)...)
}

// maxGate is how long the name of a gate may be.
const maxGate = 63

// gates checks the annotation that gates the admission.
func gates(o metav1.Object) field.ErrorList {
	text, path := o.GetAnnotations()[v1beta2.AdmissionGatedByAnnotation], annotations.Key(v1beta2.AdmissionGatedByAnnotation)
	if text == "" {
		return nil
	}
	var problems field.ErrorList
	var seen []string
	for gate := range strings.SplitSeq(text, ",") {
		switch {
		case gate == "":
			problems = append(problems, field.Invalid(path, text, "a gate has no name"))
		case len(gate) > maxGate:
			problems = append(problems, field.TooLong(path, gate, maxGate))
		case slices.Contains(seen, gate):
			problems = append(problems, field.Duplicate(path, gate))
		}
		seen = append(seen, gate)
	}
	return problems
}

// QueuedUpdate says what is wrong with a change of the labels and annotations of a job or pod. wasSuspended and
// isSuspended say whether it waits for its workload, and mustName that its namespace has a LocalQueue for jobs that
// name none.
func QueuedUpdate(o, before metav1.Object, wasSuspended, isSuspended, mustName bool) field.ErrorList {
	var problems field.ErrorList
	differs := func(label string) bool { return o.GetLabels()[label] != before.GetLabels()[label] }
	stays := func(label string) {
		if differs(label) {
			problems = append(problems, field.Invalid(labels.Key(label), o.GetLabels()[label], apivalidation.FieldImmutableErrorMsg))
		}
	}
	if !isSuspended {
		stays(v1beta2.QueueNameLabel)
		stays(v1beta2.PrebuiltWorkloadLabel)
	}
	if o.GetLabels()[v1beta2.QueueNameLabel] == "" && before.GetLabels()[v1beta2.QueueNameLabel] != "" && mustName {
		problems = append(problems, field.Invalid(labels.Key(v1beta2.QueueNameLabel), "", "queue-name must not be empty in namespace with default queue"))
	}
	if !wasSuspended || !isSuspended {
		stays(v1beta2.MaxExecTimeSecondsLabel)
	}
	switch class, had := o.GetLabels()[v1beta2.PriorityClassLabel], before.GetLabels()[v1beta2.PriorityClassLabel]; {
	case class != "" && had == "" && !isSuspended:
		problems = append(problems, field.Invalid(labels.Key(v1beta2.PriorityClassLabel), class, "WorkloadPriorityClass cannot be added to a non-suspended workload"))
	case class == "" && had != "":
		problems = append(problems, field.Invalid(labels.Key(v1beta2.PriorityClassLabel), class, "WorkloadPriorityClass cannot be removed from a workload"))
	}
	if before.GetLabels()[v1beta2.PodGroupNameLabel] != "" {
		stays(v1beta2.PodGroupNameLabel)
	}
	path := annotations.Key(v1beta2.AdmissionGatedByAnnotation)
	if had, has := before.GetAnnotations()[v1beta2.AdmissionGatedByAnnotation], o.GetAnnotations()[v1beta2.AdmissionGatedByAnnotation]; has != "" && has != had {
		if had == "" {
			problems = append(problems, field.Forbidden(path, "cannot add admission gate after creation"))
		} else if all := strings.Split(had, ","); slices.ContainsFunc(strings.Split(has, ","), func(gate string) bool { return !slices.Contains(all, gate) }) {
			problems = append(problems, field.Forbidden(path, "can only remove gates, not add new ones"))
		}
	}
	if before.GetAnnotations()[v1beta2.RetriableInGroupAnnotation] == "false" && o.GetAnnotations()[v1beta2.RetriableInGroupAnnotation] != "false" {
		problems = append(problems, field.Forbidden(annotations.Key(v1beta2.RetriableInGroupAnnotation), "unretriable pod group can't be converted to retriable"))
	}
	already := map[string]bool{}
	for _, problem := range Queued(before) {
		already[problem.Error()] = true
	}
	for _, problem := range Queued(o) {
		if !already[problem.Error()] {
			problems = append(problems, problem)
		}
	}
	return problems
}

// GroupedPod says what is wrong with what a pod says of its group: it names the group and says how many pods that has,
// or neither.
func GroupedPod(o metav1.Object) field.ErrorList {
	name := o.GetLabels()[v1beta2.PodGroupNameLabel]
	text, counts := o.GetAnnotations()[v1beta2.PodGroupTotalCountAnnotation]
	both := fmt.Sprintf("both the '%s' annotation and the '%s' label should be set", v1beta2.PodGroupTotalCountAnnotation, v1beta2.PodGroupNameLabel)
	path := annotations.Key(v1beta2.PodGroupTotalCountAnnotation)
	switch {
	case name == "" && counts:
		return field.ErrorList{field.Required(labels.Key(v1beta2.PodGroupNameLabel), both)}
	case name != "" && !counts:
		return field.ErrorList{field.Required(path, both)}
	case counts:
		if count, err := strconv.ParseInt(text, 10, 32); err != nil || count < 1 {
			return field.ErrorList{field.Invalid(path, text, "must be how many pods the group has")}
		}
	}
	if built := o.GetLabels()[v1beta2.PrebuiltWorkloadLabel]; built != "" && name != "" && built != name {
		return field.ErrorList{field.Invalid(labels.Key(v1beta2.PrebuiltWorkloadLabel), built, "prebuilt workload and pod group should be equal")}
	}
	return nil
}
