package supply

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

// Ledger is a client that notes which volumes and claims it is told to write, and answers as if they were written. The
// plugins that get it use nothing else of a client; a new version of them that does fails at once.
type Ledger struct {
	kubernetes.Interface
	volumes []*corev1.PersistentVolume
	claims  []*corev1.PersistentVolumeClaim
}

// Take returns what was noted since it was called last.
func (l *Ledger) Take() (volumes []*corev1.PersistentVolume, claims []*corev1.PersistentVolumeClaim) {
	volumes, claims = l.volumes, l.claims
	l.volumes, l.claims = nil, nil
	return volumes, claims
}

// CoreV1 returns the part for volumes and claims.
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
