package bounds

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxTold is how many problems of an object are told: enough to see what is wrong with it.
const maxTold = 100

// Told are problems of an object as they are to be told: in an order, since rules go over maps and the same mistake is to be told in
// the same words each time, and if there are very many the first of them and how many there are. An object may have a hundred
// thousand, and to put all into one sentence takes minutes.
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
