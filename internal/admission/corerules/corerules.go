package corerules

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	core "k8s.io/kubernetes/pkg/apis/core"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/capabilities"
)

// init says what the validation of Kubernetes asks of the process it runs in: whether privileged containers, and those
// that run in the host of a Windows node, may be made. It can be said once, and before the first question. Whether the
// cluster allows them is for its API server to say (--allow-privileged), and for Pod Security, when pods are made.
func init() { capabilities.Setup(true, 0) }

// PodTemplate says what would be wrong with the pods of a template.
func PodTemplate(template *corev1.PodTemplateSpec, path *field.Path) field.ErrorList {
	defaulted := &corev1.PodTemplate{Template: *template.DeepCopy()}
	defaults.SetObjectDefaults_PodTemplate(defaulted)
	internal := &core.PodTemplateSpec{}
	if err := defaults.Convert_v1_PodTemplateSpec_To_core_PodTemplateSpec(&defaulted.Template, internal, nil); err != nil {
		return field.ErrorList{field.InternalError(path, err)}
	}
	// With the template as the one that was there before, all that it uses is allowed.
	options := podutil.GetValidationOptionsFromPodTemplate(internal, internal)
	return corevalidation.ValidatePodTemplateSpec(internal, path, options)
}

// Quantity says what is wrong with so much of a resource: less than nothing, or a part of what comes in wholes.
func Quantity(name corev1.ResourceName, quantity resource.Quantity, path *field.Path) field.ErrorList {
	return corevalidation.ValidateResourceQuantityValue(core.ResourceName(name), quantity, path)
}
