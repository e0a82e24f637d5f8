package manifests

import (
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	resourcedefaults "k8s.io/kubernetes/pkg/apis/resource/v1"
	storagedefaults "k8s.io/kubernetes/pkg/apis/storage/v1"
)

// setDefaults fills in what the API server fills in when an object is created. Manifests of a cluster have it, and
// those that people write do not: a claim without allocationMode is for exactly one device.
func setDefaults(o runtime.Object) {
	switch decoded := o.(type) {
	case *resourcev1.ResourceClaim:
		resourcedefaults.SetObjectDefaults_ResourceClaim(decoded)
	case *resourcev1.ResourceClaimTemplate:
		resourcedefaults.SetObjectDefaults_ResourceClaimTemplate(decoded)
	case *resourcev1.ResourceSlice:
		resourcedefaults.SetObjectDefaults_ResourceSlice(decoded)
	case *storagev1.StorageClass:
		storagedefaults.SetObjectDefaults_StorageClass(decoded)
	case *storagev1.CSIDriver:
		storagedefaults.SetObjectDefaults_CSIDriver(decoded)
	}
}
