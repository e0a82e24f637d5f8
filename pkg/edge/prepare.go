package edge

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"hekla.sh/hekla/pkg/cluster"
)

// preparer writes what a pod takes besides room before the pod is bound: its volumes, and its devices. Each write may be
// repeated, and is made to what a live read shows: the caches do not hold the objects whole.
type preparer struct{ client kubernetes.Interface }

// longestLook is the longest pause between two looks at a claim whose volume is being made.
const longestLook = 5 * time.Second

// impossible is why a pod cannot have what was reserved for it. Asking again is no use.
type impossible struct{ why string }

func (i impossible) Error() string { return i.why }

// prepare writes what is not written yet, and reports whether all is there. It is called again until it is; isWritten is set
// once it has returned without an error.
func (p preparer) prepare(ctx context.Context, b *cluster.Bind, isWritten bool) (isReady bool, err error) {
	isReady = true
	for i := range b.Reservation.Volumes {
		bound, err := p.volume(ctx, b, &b.Reservation.Volumes[i], isWritten)
		if err != nil {
			return false, err
		}
		isReady = isReady && bound
	}
	// Devices are given out last: whoever waits for a volume does not hold them.
	for i := range b.Reservation.Devices {
		if !isReady {
			break
		}
		if err := p.devices(ctx, b, &b.Reservation.Devices[i]); err != nil {
			return false, err
		}
	}
	return isReady, nil
}

// volume gives a claim to a volume, or a node to a claim, and reports whether the claim is bound.
func (p preparer) volume(ctx context.Context, b *cluster.Bind, v *cluster.VolumeReservation, isWritten bool) (isBound bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
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
		// So provisioners say that they cannot.
		return false, impossible{fmt.Sprintf("no volume could be made for PersistentVolumeClaim %s on node %s", v.Claim, b.Node)}
	case node == "":
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnSelectedNode, b.Node)
		_, err := claims.Update(ctx, claim, metav1.UpdateOptions{})
		return false, err
	default:
		return false, impossible{fmt.Sprintf("PersistentVolumeClaim %s is to have its volume on node %s, not on %s", v.Claim, node, b.Node)}
	}
}

// reaches makes sure that the volume that a claim was bound to can be used on the node: it may be another than was foreseen.
func (p preparer) reaches(ctx context.Context, b *cluster.Bind, claim *corev1.PersistentVolumeClaim) error {
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

// take gives a volume to a claim. Who binds the claim to it is the controller of volumes.
func (p preparer) take(ctx context.Context, v *cluster.VolumeReservation) error {
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

// devices gives devices to a claim, and the claim to the pod.
func (p preparer) devices(ctx context.Context, b *cluster.Bind, d *cluster.DeviceReservation) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	claims := p.client.ResourceV1().ResourceClaims(d.Claim.Namespace)
	claim, err := claims.Get(ctx, d.Claim.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && (claim.UID != d.UID || claim.DeletionTimestamp != nil):
		return impossible{fmt.Sprintf("ResourceClaim %s is gone", d.Claim)}
	case err != nil:
		return err
	case claim.Status.Allocation != nil && !equality.Semantic.DeepEqual(claim.Status.Allocation.Devices, d.Allocation.Devices):
		return impossible{fmt.Sprintf("ResourceClaim %s was given other devices meanwhile", d.Claim)}
	case claim.Status.Allocation != nil && isReservedFor(claim, b.UID):
		return nil
	}
	if claim.Status.Allocation == nil {
		if !slices.Contains(claim.Finalizers, resourcev1.Finalizer) {
			claim.Finalizers = append(claim.Finalizers, resourcev1.Finalizer)
			if claim, err = claims.Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
		claim.Status.Allocation = d.Allocation
	}
	claim.Status.ReservedFor = append(claim.Status.ReservedFor,
		resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: b.Pod.Name, UID: b.UID})
	_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}

func isReservedFor(claim *resourcev1.ResourceClaim, pod types.UID) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod })
}

// release takes back what devices were given for a pod that is not bound after all, in the reverse order. Volumes stay: the
// claim has been promised one. What cannot be taken back now is tried again with the pod's next binding, or goes with the pod.
func (p preparer) release(ctx context.Context, b *cluster.Bind) error {
	for _, d := range slices.Backward(b.Reservation.Devices) {
		if err := p.releaseDevices(ctx, b, &d); err != nil {
			return err
		}
	}
	return nil
}

func (p preparer) releaseDevices(ctx context.Context, b *cluster.Bind, d *cluster.DeviceReservation) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	claims := p.client.ResourceV1().ResourceClaims(d.Claim.Namespace)
	claim, err := claims.Get(ctx, d.Claim.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (claim.UID != d.UID || !isReservedFor(claim, b.UID)) {
		return nil
	}
	if err != nil {
		return err
	}
	claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor,
		func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == b.UID })
	if len(claim.Status.ReservedFor) == 0 {
		claim.Status.Allocation, claim.Status.Devices = nil, nil
	}
	_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}
