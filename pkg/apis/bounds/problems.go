package bounds

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxTold is how many problems of an object are told: enough to see what is wrong with it.
const maxTold = 100

// Told returns the problems of an object that messages show. They are sorted, because rules iterate over maps, and the
// same mistake must have the same message each time. If there are very many, only the first and their number are
// returned. An object may have a hundred thousand, and putting all into one sentence takes minutes.
func Told(problems field.ErrorList) field.ErrorList {
	type line struct {
		text    string
		problem *field.Error
	}
	lines := make([]line, len(problems))
	for i, problem := range problems {
		lines[i] = line{problem.Error(), problem}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return cmp.Compare(a.text, b.text) })
	told := make(field.ErrorList, 0, min(len(lines), maxTold+1))
	for _, l := range lines[:min(len(lines), maxTold)] {
		told = append(told, l.problem)
	}
	if len(problems) > maxTold {
		told = append(told, field.Invalid(field.NewPath("spec"), field.OmitValueType{},
			fmt.Sprintf("there are %d problems, and these are %d of them", len(problems), maxTold)))
	}
	return told
}
