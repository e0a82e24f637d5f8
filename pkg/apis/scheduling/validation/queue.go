package validation

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"hekla.sh/hekla/pkg/apis/bounds"
	"hekla.sh/hekla/pkg/apis/scheduling/properties"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// ValidateQueueProperties checks the annotations for the plugin guaranteed-shares. Values that the queue had before, as
// annotations of before, are not checked again.
func ValidateQueueProperties(queue *scheduling.Queue, before map[string]string) field.ErrorList {
	var errors field.ErrorList
	_, problems := properties.Read(queue.Annotations)
	for _, p := range problems {
		if old, had := before[p.Key]; had && old == p.Value {
			continue
		}
		errors = append(errors, field.Invalid(field.NewPath("metadata", "annotations").Key(p.Key), p.Value,
			fmt.Sprintf("queue %s: allowed is %s", queue.Name, p.Allowed)))
	}
	return errors
}

// ValidateQueueHierarchy checks the place in the tree of hierarchical drf, which is written in annotations.
func ValidateQueueHierarchy(queue *scheduling.Queue) field.ErrorList {
	path, weights := queue.Annotations[scheduling.HierarchyAnnotationKey], queue.Annotations[scheduling.HierarchyWeightsAnnotationKey]
	if path == "" && weights == "" {
		return nil
	}
	annotations := field.NewPath("metadata", "annotations")
	atPath, atWeights := annotations.Key(scheduling.HierarchyAnnotationKey), annotations.Key(scheduling.HierarchyWeightsAnnotationKey)
	names, numbers := strings.Split(path, "/"), strings.Split(weights, "/")
	if len(names) != len(numbers) {
		return field.ErrorList{field.Invalid(atWeights, weights, fmt.Sprintf("%s must have the same length with %s: the path %q has %d parts, the weights have %d",
			scheduling.HierarchyAnnotationKey, scheduling.HierarchyWeightsAnnotationKey, path, len(names), len(numbers)))}
	}
	var problems field.ErrorList
	for i := range names {
		if names[i] == "" {
			problems = append(problems, field.Invalid(atPath, path, "its parts must not be empty"))
		}
		switch weight, err := bounds.ParseNumber(numbers[i]); {
		case err != nil:
			problems = append(problems, field.Invalid(atWeights, weights, fmt.Sprintf("%s in the %s is invalid number: %q is not a number above 0", numbers[i], weights, numbers[i])))
		case weight <= 0:
			problems = append(problems, field.Invalid(atWeights, weights, fmt.Sprintf("%s in the %s must be larger than 0: it is a weight", numbers[i], weights)))
		}
	}
	return problems
}
