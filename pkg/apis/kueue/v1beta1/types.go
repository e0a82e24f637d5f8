package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// GroupVersion identifies the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: v1beta2.GroupName, Version: "v1beta1"}

// AddToScheme registers the kinds under their older version.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, v1beta2.Kinds()...)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// The kinds of the group, and their lists.
type (
	ClusterQueue              = v1beta2.ClusterQueue
	ClusterQueueList          = v1beta2.ClusterQueueList
	Cohort                    = v1beta2.Cohort
	CohortList                = v1beta2.CohortList
	LocalQueue                = v1beta2.LocalQueue
	LocalQueueList            = v1beta2.LocalQueueList
	ResourceFlavor            = v1beta2.ResourceFlavor
	ResourceFlavorList        = v1beta2.ResourceFlavorList
	Workload                  = v1beta2.Workload
	WorkloadList              = v1beta2.WorkloadList
	WorkloadPriorityClass     = v1beta2.WorkloadPriorityClass
	WorkloadPriorityClassList = v1beta2.WorkloadPriorityClassList
	AdmissionCheck            = v1beta2.AdmissionCheck
	AdmissionCheckList        = v1beta2.AdmissionCheckList
)
