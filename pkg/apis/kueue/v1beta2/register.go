package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of this package.
const GroupName = "kueue.x-k8s.io"

var (
	// GroupVersion identifies the API group and version of this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1beta2"}

	// SchemeGroupVersion is GroupVersion under the name that generated clients look for.
	SchemeGroupVersion = GroupVersion

	// SchemeBuilder collects the registration of this package's types.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers this package's types in a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource qualifies a resource name of this package with its group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

// Kinds returns an empty object of each kind, and of its list.
func Kinds() []runtime.Object {
	return []runtime.Object{
		&ClusterQueue{}, &ClusterQueueList{}, &Cohort{}, &CohortList{}, &LocalQueue{}, &LocalQueueList{},
		&ResourceFlavor{}, &ResourceFlavorList{}, &Workload{}, &WorkloadList{},
		&WorkloadPriorityClass{}, &WorkloadPriorityClassList{}, &AdmissionCheck{}, &AdmissionCheckList{},
	}
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, Kinds()...)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
