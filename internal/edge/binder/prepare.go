package binder

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/supplies"
)

// preparer binds the volumes and allocates the devices of a pod before the pod is bound. Each write may be repeated. It
// changes the object from a live read, because the caches do not hold whole objects.
type preparer struct{ client kubernetes.Interface }

// longestLook is the longest pause between two reads of a claim whose volume is being provisioned, or whose devices are
// not ready.
const longestLook = 5 * time.Second

// impossible is the error if a pod cannot get what was reserved for it. Another attempt would not help.
type impossible struct{ why string }

func (i impossible) Error() string { return i.why }

// progress is the state of a pod's volumes and devices.
type progress uint8

const (
	awaitsVolumes progress = iota // some volumes are not bound, and no devices are allocated
	awaitsDevices                 // some are not ready
	isPrepared                    // all are ready
)

// prepare writes what is not written yet, and returns the progress. It is called again until all volumes and devices
// are ready.
func (p preparer) prepare(ctx context.Context, t *binding) (progress, error) {
	areBound := true
	for i := range t.Reservation.Volumes {
		isBound, err := p.volume(ctx, &t.Bind, &t.Reservation.Volumes[i], t.isWritten)
		if err != nil {
			return awaitsVolumes, err
		}
		areBound = areBound && isBound
	}
	// Devices are allocated last, so that a pod that waits for a volume does not hold them.
	if !areBound {
		return awaitsVolumes, nil
	}
	areReady := true
	for i := range t.Reservation.Devices {
		isReady, err := p.devices(ctx, t, &t.Reservation.Devices[i])
		if err != nil {
			return awaitsDevices, err
		}
		areReady = areReady && isReady
	}
	if !areReady {
		return awaitsDevices, nil
	}
	return isPrepared, nil
}

// volume binds a volume to a claim, or selects the node for provisioning, and reports whether the claim is bound.
func (p preparer) volume(ctx context.Context, b *decision.Bind, v *supplies.VolumeReservation, isWritten bool) (isBound bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, apiserver.RequestTimeout)
	defer cancel()
	claims := p.client.CoreV1().PersistentVolumeClaims(v.Claim.Namespace)
	claim, err := claims.Get(ctx, v.Claim.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && claim.UID != v.UID:
		return false, impossible{fmt.Sprintf("PersistentVolumeClaim %s is gone", v.Claim)}
	case err != nil:
		return false, err
	case claim.Spec.VolumeName != "" && v.Volume != "" && claim.Spec.VolumeName != v.Volume:
		return false, impossible{fmt.Sprintf("PersistentVolumeClaim %s was bound to volume %s, not to %s", v.Claim, claim.Spec.VolumeName, v.Volume)}
	case claim.Spec.VolumeName != "":
		return metav1.HasAnnotation(claim.ObjectMeta, storagehelpers.AnnBindCompleted), p.reaches(ctx, b, claim)
	case v.Volume != "":
		return false, p.take(ctx, v)
	}
	switch node := claim.Annotations[storagehelpers.AnnSelectedNode]; {
	case node == b.Node:
		return false, nil
	case node == "" && isWritten:
		// Provisioners report in this way that they cannot provision.
		return false, impossible{fmt.Sprintf("no volume could be made for PersistentVolumeClaim %s on node %s", v.Claim, b.Node)}
	case node == "":
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnSelectedNode, b.Node)
		_, err := claims.Update(ctx, claim, metav1.UpdateOptions{})
		return false, err
	default:
		return false, impossible{fmt.Sprintf("PersistentVolumeClaim %s is to have its volume on node %s, not on %s", v.Claim, node, b.Node)}
	}
}

// reaches checks that the volume of a claim can be used on the node. It may be another volume than was reserved.
func (p preparer) reaches(ctx context.Context, b *decision.Bind, claim *corev1.PersistentVolumeClaim) error {
	volume, err := p.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if volume.Spec.NodeAffinity == nil {
		return nil
	}
	node, err := p.client.CoreV1().Nodes().Get(ctx, b.Node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := storagehelpers.CheckNodeAffinity(volume, node.Labels); err != nil {
		return impossible{fmt.Sprintf("PersistentVolumeClaim %s/%s was bound to volume %s, which node %s does not reach",
			claim.Namespace, claim.Name, volume.Name, b.Node)}
	}
	return nil
}

// take sets the claim of a volume. The volume controller then binds the claim.
func (p preparer) take(ctx context.Context, v *supplies.VolumeReservation) error {
	volumes := p.client.CoreV1().PersistentVolumes()
	volume, err := volumes.Get(ctx, v.Volume, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && volume.UID != v.VolumeUID {
		return impossible{fmt.Sprintf("PersistentVolume %s is gone", v.Volume)}
	}
	if err != nil {
		return err
	}
	if ref := volume.Spec.ClaimRef; ref != nil && ref.UID == v.UID {
		return nil
	}
	taken := v.Take(volume)
	if taken == nil {
		return impossible{fmt.Sprintf("PersistentVolume %s was taken by another claim", v.Volume)}
	}
	_, err = volumes.Update(ctx, taken, metav1.UpdateOptions{})
	return err
}
