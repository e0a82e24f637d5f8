package validation

import (
	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// ResourceFlavor says what is wrong with a ResourceFlavor.
func ResourceFlavor(f *v1beta2.ResourceFlavor) field.ErrorList {
	if problem := unreadable(f); problem != nil {
		return problem
	}
	problems := inOrder(metav1validation.ValidateLabels(f.Spec.NodeLabels, spec.Child("nodeLabels")))
	for i := range f.Spec.NodeTaints {
		problems = append(problems, taint(&f.Spec.NodeTaints[i], spec.Child("nodeTaints").Index(i))...)
	}
	for i := range f.Spec.Tolerations {
		if t := &f.Spec.Tolerations[i]; t.Key != "" {
			problems = append(problems, metav1validation.ValidateLabelName(t.Key, spec.Child("tolerations").Index(i).Child("key"))...)
		}
	}
	return problems
}

func taint(t *corev1.Taint, path *field.Path) field.ErrorList {
	problems := metav1validation.ValidateLabelName(t.Key, path.Child("key"))
	for _, text := range validation.IsValidLabelValue(t.Value) {
		problems = append(problems, field.Invalid(path.Child("value"), t.Value, text))
	}
	switch t.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		problems = append(problems, field.NotSupported(path.Child("effect"), t.Effect,
			[]corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}))
	}
	return problems
}
