package binder

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/supplies"
)

// devices allocates the devices of a claim, reserves the claim for the pod, and reports whether the devices are ready.
func (p preparer) devices(ctx context.Context, t *binding, d *supplies.DeviceReservation) (areReady bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, apiserver.RequestTimeout)
	defer cancel()
	claims := p.client.ResourceV1().ResourceClaims(d.Claim.Namespace)
	claim, err := claims.Get(ctx, d.Claim.Name, metav1.GetOptions{})
	if d.Made != nil {
		if claim, err = p.makeClaim(ctx, t, d, claim, err); err != nil {
			return false, err
		}
	}
	switch {
	case apierrors.IsNotFound(err) || err == nil && (!d.IsOf(claim, t.UID) || claim.DeletionTimestamp != nil):
		return false, impossible{fmt.Sprintf("ResourceClaim %s is gone", d.Claim)}
	case err != nil:
		return false, err
	case claim.Status.Allocation != nil && !equality.Semantic.DeepEqual(claim.Status.Allocation.Devices, d.Allocation.Devices):
		return false, impossible{fmt.Sprintf("ResourceClaim %s was given other devices meanwhile", d.Claim)}
	case claim.Status.Allocation != nil:
		// A pod that waits in vain must not keep devices from other pods.
		areReady, err := readiness(claim, t.handed, t.Reservation.DevicePatience)
		if err != nil {
			return false, err
		}
		if isReservedFor(claim, t.UID) {
			return areReady, p.tell(ctx, t, d)
		}
	}
	if claim, err = p.giveDevices(ctx, t, d, claim); err != nil {
		return false, err
	}
	if err := p.tell(ctx, t, d); err != nil {
		return false, err
	}
	return readiness(claim, t.handed, t.Reservation.DevicePatience)
}

// makeClaim creates the claim for extended resources of a pod, if there is none. One that was created before, with
// other devices, is deleted first. found is the result of a read.
func (p preparer) makeClaim(ctx context.Context, t *binding, d *supplies.DeviceReservation, found *resourcev1.ResourceClaim,
	err error) (*resourcev1.ResourceClaim, error) {
	claims := p.client.ResourceV1().ResourceClaims(d.Claim.Namespace)
	switch {
	case apierrors.IsNotFound(err):
		return claims.Create(ctx, d.Made, metav1.CreateOptions{})
	case err != nil:
		return nil, err
	case !d.IsOf(found, t.UID):
		return nil, impossible{fmt.Sprintf("ResourceClaim %s is not that of the pod", d.Claim)}
	case found.DeletionTimestamp != nil:
		return nil, fmt.Errorf("the ResourceClaim %s that was made for the pod before is being deleted", d.Claim)
	case !equality.Semantic.DeepEqual(found.Spec, d.Made.Spec),
		found.Status.Allocation != nil && !equality.Semantic.DeepEqual(found.Status.Allocation.Devices, d.Allocation.Devices):
		if err := p.unmake(ctx, found); err != nil {
			return nil, err
		}
		return claims.Create(ctx, d.Made, metav1.CreateOptions{})
	}
	return found, nil
}

// unmake deletes a claim that was created for extended resources of a pod.
func (p preparer) unmake(ctx context.Context, claim *resourcev1.ResourceClaim) error {
	claims := p.client.ResourceV1().ResourceClaims(claim.Namespace)
	if i := slices.Index(claim.Finalizers, resourcev1.Finalizer); i >= 0 {
		claim.Finalizers = slices.Delete(claim.Finalizers, i, i+1)
		if _, err := claims.Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	err := claims.Delete(ctx, claim.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &claim.UID}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// tell writes the created claim to the status of the pod, and which request of it is for which container. The kubelet
// needs that to provide the devices.
func (p preparer) tell(ctx context.Context, t *binding, d *supplies.DeviceReservation) error {
	if d.Made == nil {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": t.UID}, "status": corev1.PodStatus{
		ExtendedResourceClaimStatus: &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: d.Claim.Name, RequestMappings: d.Requests}}})
	if err != nil {
		return err
	}
	pods := p.client.CoreV1().Pods(t.Pod.Namespace)
	_, err = pods.Patch(ctx, t.Pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// giveDevices writes the allocation of a claim, if it has none, and reserves the claim for the pod.
func (p preparer) giveDevices(ctx context.Context, t *binding, d *supplies.DeviceReservation,
	claim *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
	claims := p.client.ResourceV1().ResourceClaims(d.Claim.Namespace)
	if claim.Status.Allocation == nil {
		if !slices.Contains(claim.Finalizers, resourcev1.Finalizer) {
			claim.Finalizers = append(claim.Finalizers, resourcev1.Finalizer)
			var err error
			if claim, err = claims.Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
				return nil, err
			}
		}
		claim.Status.Allocation = d.Allocation.DeepCopy()
		claim.Status.Allocation.AllocationTimestamp = ptr.To(metav1.Now())
	}
	claim.Status.ReservedFor = append(claim.Status.ReservedFor,
		resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: t.Pod.Name, UID: t.UID})
	return claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
}

// readiness reports whether the devices of a claim meet their binding conditions. The error is impossible if one has
// failed, or if the patience is over. It counts from the allocation, or from the start of the binding if the API server
// does not say when that was.
func readiness(claim *resourcev1.ResourceClaim, begun time.Time, patience time.Duration) (areReady bool, err error) {
	areReady = true
	for i := range claim.Status.Allocation.Devices.Results {
		result := &claim.Status.Allocation.Devices.Results[i]
		if len(result.BindingConditions) == 0 {
			continue
		}
		conditions := conditionsOf(claim, result)
		for _, name := range result.BindingFailureConditions {
			if failed := meta.FindStatusCondition(conditions, name); failed != nil && failed.Status == metav1.ConditionTrue {
				return false, impossible{fmt.Sprintf("device %s/%s/%s of ResourceClaim %s/%s has failed: %s, %s: %s", result.Driver,
					result.Pool, result.Device, claim.Namespace, claim.Name, name, failed.Reason, failed.Message)}
			}
		}
		for _, name := range result.BindingConditions {
			areReady = areReady && meta.IsStatusConditionTrue(conditions, name)
		}
	}
	if areReady {
		return true, nil
	}
	if at := claim.Status.Allocation.AllocationTimestamp; at != nil {
		begun = at.Time
	}
	if time.Since(begun) > patience {
		return false, impossible{fmt.Sprintf("the devices of ResourceClaim %s/%s were not ready within %s", claim.Namespace, claim.Name,
			patience)}
	}
	return false, nil
}

// conditionsOf returns the conditions of an allocated device, or of a share of it, as the driver reports them.
func conditionsOf(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) []metav1.Condition {
	for i := range claim.Status.Devices {
		d := &claim.Status.Devices[i]
		if d.Driver == result.Driver && d.Pool == result.Pool && d.Device == result.Device &&
			ptr.Deref(d.ShareID, "") == string(ptr.Deref(result.ShareID, "")) {
			return d.Conditions
		}
	}
	return nil
}

func isReservedFor(claim *resourcev1.ResourceClaim, pod types.UID) bool {
	return slices.ContainsFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod })
}

// release releases the devices of a pod that is not bound after all, in the reverse order. Volumes stay bound to their
// claims. What cannot be released now is tried again with the pod's next binding, or is deleted with the pod.
func (p preparer) release(ctx context.Context, b *decision.Bind) error {
	for _, d := range slices.Backward(b.Reservation.Devices) {
		if err := p.releaseDevices(ctx, b, &d); err != nil {
			return err
		}
	}
	return nil
}

func (p preparer) releaseDevices(ctx context.Context, b *decision.Bind, d *supplies.DeviceReservation) error {
	ctx, cancel := context.WithTimeout(ctx, apiserver.RequestTimeout)
	defer cancel()
	claims := p.client.ResourceV1().ResourceClaims(d.Claim.Namespace)
	claim, err := claims.Get(ctx, d.Claim.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && !d.IsOf(claim, b.UID):
		return nil
	case err != nil:
		return err
	case d.Made != nil:
		return p.unmake(ctx, claim)
	case claim.Status.Allocation == nil:
		return nil
	}
	// Devices of a claim without pods stay allocated, unless they have failed: no other component would then deallocate
	// them.
	if !isReservedFor(claim, b.UID) {
		if _, failed := readiness(claim, time.Now(), b.Reservation.DevicePatience); failed == nil || len(claim.Status.ReservedFor) > 0 {
			return nil
		}
	}
	claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor,
		func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == b.UID })
	if len(claim.Status.ReservedFor) == 0 {
		claim.Status.Allocation, claim.Status.Devices = nil, nil
	}
	_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	return err
}
