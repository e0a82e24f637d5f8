package apis

import (
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	busv1alpha1 "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	flowv1alpha1 "hekla.sh/hekla/pkg/apis/flow/v1alpha1"
	kueuev1beta2 "hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	topologyv1alpha1 "hekla.sh/hekla/pkg/apis/topology/v1alpha1"
)

// AddToScheme registers every type of every Hekla API group in the given scheme. Registering twice is harmless.
func AddToScheme(scheme *runtime.Scheme) error {
	builder := runtime.NewSchemeBuilder(
		batchv1alpha1.AddToScheme,
		busv1alpha1.AddToScheme,
		flowv1alpha1.AddToScheme,
		kueuev1beta2.AddToScheme,
		schedulingv1beta1.AddToScheme,
		topologyv1alpha1.AddToScheme,
	)
	return builder.AddToScheme(scheme)
}
