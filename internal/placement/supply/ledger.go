package supply

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedresourcev1 "k8s.io/client-go/kubernetes/typed/resource/v1"

	"hekla.sh/hekla/pkg/apis/bounds"
)

// Ledger is a client that records writes of volumes, claims and the status of a pod, and answers as if they were
// written. The plugins use nothing else of a client. A newer version that does panics at once.
type Ledger struct {
	kubernetes.Interface
	volumes []*corev1.PersistentVolume
	claims  []*corev1.PersistentVolumeClaim
	patch   []byte
}

// Take returns the volumes and claims written since the last call.
func (l *Ledger) Take() (volumes []*corev1.PersistentVolume, claims []*corev1.PersistentVolumeClaim) {
	volumes, claims = l.volumes, l.claims
	l.volumes, l.claims = nil, nil
	return volumes, claims
}

// TakeRequests returns which request of a created claim is for which container, as written since the last call.
func (l *Ledger) TakeRequests() ([]corev1.ContainerExtendedResourceRequest, error) {
	var pod corev1.Pod
	err := bounds.UnmarshalJSON(l.patch, &pod)
	l.patch = nil
	if err != nil || pod.Status.ExtendedResourceClaimStatus == nil {
		return nil, err
	}
	return pod.Status.ExtendedResourceClaimStatus.RequestMappings, nil
}

// ResourceV1 returns the part for resource claims.
func (l *Ledger) ResourceV1() typedresourcev1.ResourceV1Interface { return resource{} }

type resource struct {
	typedresourcev1.ResourceV1Interface
}

func (resource) ResourceClaims(string) typedresourcev1.ResourceClaimInterface {
	return resourceClaims{}
}

// resourceClaims are not recorded, because allocations are known before they are written.
type resourceClaims struct {
	typedresourcev1.ResourceClaimInterface
}

func (resourceClaims) Update(_ context.Context, o *resourcev1.ResourceClaim, _ metav1.UpdateOptions) (*resourcev1.ResourceClaim, error) {
	return o, nil
}

func (resourceClaims) UpdateStatus(_ context.Context, o *resourcev1.ResourceClaim, _ metav1.UpdateOptions) (*resourcev1.ResourceClaim, error) {
	return o, nil
}

// CoreV1 returns the part for volumes, claims and pods.
func (l *Ledger) CoreV1() typedcorev1.CoreV1Interface { return core{ledger: l} }

type core struct {
	typedcorev1.CoreV1Interface
	ledger *Ledger
}

func (c core) PersistentVolumes() typedcorev1.PersistentVolumeInterface {
	return volumes{ledger: c.ledger}
}

func (c core) PersistentVolumeClaims(string) typedcorev1.PersistentVolumeClaimInterface {
	return claims{ledger: c.ledger}
}

func (c core) Pods(string) typedcorev1.PodInterface { return pods{ledger: c.ledger} }

type pods struct {
	typedcorev1.PodInterface
	ledger *Ledger
}

func (p pods) Patch(_ context.Context, _ string, _ types.PatchType, patch []byte, _ metav1.PatchOptions, _ ...string) (*corev1.Pod, error) {
	p.ledger.patch = patch
	return &corev1.Pod{}, nil
}

type volumes struct {
	typedcorev1.PersistentVolumeInterface
	ledger *Ledger
}

func (v volumes) Update(_ context.Context, o *corev1.PersistentVolume, _ metav1.UpdateOptions) (*corev1.PersistentVolume, error) {
	v.ledger.volumes = append(v.ledger.volumes, o)
	return o, nil
}

type claims struct {
	typedcorev1.PersistentVolumeClaimInterface
	ledger *Ledger
}

func (c claims) Update(_ context.Context, o *corev1.PersistentVolumeClaim, _ metav1.UpdateOptions) (*corev1.PersistentVolumeClaim, error) {
	c.ledger.claims = append(c.ledger.claims, o)
	return o, nil
}
