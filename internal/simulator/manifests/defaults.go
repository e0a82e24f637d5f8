package manifests

import (
	"cmp"
	"sync"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	batchdefaults "k8s.io/kubernetes/pkg/apis/batch/v1"
	coredefaults "k8s.io/kubernetes/pkg/apis/core/v1"
	policydefaults "k8s.io/kubernetes/pkg/apis/policy/v1"
	resourcedefaults "k8s.io/kubernetes/pkg/apis/resource/v1"
	devicetaintdefaults "k8s.io/kubernetes/pkg/apis/resource/v1beta2"
	schedulingdefaults "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	storagedefaults "k8s.io/kubernetes/pkg/apis/storage/v1"

	"hekla.sh/hekla/pkg/cluster/supplies"
)

// apiServer fills in what the API server fills in when an object is created, by the API server's own functions for
// every kind of Kubernetes that is read. Manifests of a cluster have it, and those that people write do not: a
// claim without allocationMode is for exactly one device.
var apiServer = sync.OnceValue(func() *runtime.Scheme {
	scheme := NewScheme()
	for _, register := range []func(*runtime.Scheme) error{coredefaults.RegisterDefaults, batchdefaults.RegisterDefaults, policydefaults.RegisterDefaults,
		schedulingdefaults.RegisterDefaults, storagedefaults.RegisterDefaults, resourcedefaults.RegisterDefaults,
		devicetaintdefaults.RegisterDefaults} {
		if err := register(scheme); err != nil {
			panic("invariant: the defaults of API types can be registered: " + err.Error())
		}
	}
	return scheme
})

// setDefaults fills in what the API server, and after it the controller of volumes, write into an object by itself.
func setDefaults(o runtime.Object) {
	apiServer().Default(o)
	switch o := o.(type) {
	case *corev1.Namespace:
		metav1.SetMetaDataLabel(&o.ObjectMeta, corev1.LabelMetadataName, o.Name)
		o.Status.Phase = cmp.Or(o.Status.Phase, corev1.NamespaceActive)
	case *corev1.Pod:
		o.Status.Phase = cmp.Or(o.Status.Phase, corev1.PodPending)
	case *corev1.PersistentVolume:
		if o.Status.Phase == corev1.VolumePending {
			o.Status.Phase = corev1.VolumeAvailable
		}
	}
}

// tolerationSeconds is how long a pod that says nothing of it stays on a node that has failed.
const tolerationSeconds = 300

// tolerateFailures adds the tolerations that the API server gives each new pod.
func tolerateFailures(spec *corev1.PodSpec) {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		tolerates := false
		for i := range spec.Tolerations {
			t := &spec.Tolerations[i]
			tolerates = tolerates || (t.Key == key || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
		}
		if !tolerates {
			seconds := int64(tolerationSeconds)
			spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})
		}
	}
}

// CompleteClaim makes of a new claim what the API server makes of it, by the StorageClasses among the objects: one that
// names no class has the default one.
func CompleteClaim(claim *corev1.PersistentVolumeClaim, among []supplies.Object) {
	setDefaults(claim)
	if claim.Spec.VolumeName != "" || storagehelpers.PersistentVolumeClaimHasClass(claim) {
		return
	}
	if class := defaultClass(among); class != nil {
		claim.Spec.StorageClassName = &class.Name
	}
}

// defaultClass returns the StorageClass of claims that name none, nil if there is none: of several defaults the newest,
// and of those of one second the first by name.
func defaultClass(objects []supplies.Object) (found *storagev1.StorageClass) {
	for _, o := range objects {
		class, is := o.(*storagev1.StorageClass)
		if !is || class.Annotations[defaultClassAnnotation] != "true" && class.Annotations[betaDefaultClassAnnotation] != "true" {
			continue
		}
		if found == nil || found.CreationTimestamp.Before(&class.CreationTimestamp) ||
			found.CreationTimestamp.Equal(&class.CreationTimestamp) && class.Name < found.Name {
			found = class
		}
	}
	return found
}

// Annotations of a StorageClass that make it the default.
const (
	defaultClassAnnotation     = "storageclass.kubernetes.io/is-default-class"
	betaDefaultClassAnnotation = "storageclass.beta.kubernetes.io/is-default-class"
)
