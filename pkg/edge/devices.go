package edge

import (
	"context"
	"fmt"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"hekla.sh/hekla/pkg/cluster"
)

// devices gives devices to a claim, and the claim to the pod, and reports whether the devices are ready.
func (p preparer) devices(ctx context.Context, t *binding, d *cluster.DeviceReservation) (areReady bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	claims := p.client.ResourceV1().ResourceClaims(d.Claim.Namespace)
	claim, err := claims.Get(ctx, d.Claim.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) || err == nil && (claim.UID != d.UID || claim.DeletionTimestamp != nil):
		return false, impossible{fmt.Sprintf("ResourceClaim %s is gone", d.Claim)}
	case err != nil:
		return false, err
	case claim.Status.Allocation != nil && !equality.Semantic.DeepEqual(claim.Status.Allocation.Devices, d.Allocation.Devices):
		return false, impossible{fmt.Sprintf("ResourceClaim %s was given other devices meanwhile", d.Claim)}
	case claim.Status.Allocation != nil:
		// Who does not have them yet is not to hold on to devices that others wait for in vain.
		areReady, err := readiness(claim, t.handed, t.Reservation.DevicePatience)
		if err != nil || isReservedFor(claim, t.UID) {
			return areReady, err
		}
	}
	if claim, err = p.giveDevices(ctx, t, d, claim); err != nil {
		return false, err
	}
	return readiness(claim, t.handed, t.Reservation.DevicePatience)
}

// giveDevices writes into a claim what devices it has, if it has none, and that the pod may use them.
func (p preparer) giveDevices(ctx context.Context, t *binding, d *cluster.DeviceReservation, claim *resourcev1.ResourceClaim) (*resourcev1.ResourceClaim, error) {
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

// readiness reports whether the devices of a claim meet the conditions under which a pod may be bound to them. It is impossible
// if one has failed, or if they have had their time: since they were given out, or since the binding was begun if the API
// server does not say when that was.
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
				return false, impossible{fmt.Sprintf("device %s/%s/%s of ResourceClaim %s/%s has failed: %s, %s: %s", result.Driver, result.Pool,
					result.Device, claim.Namespace, claim.Name, name, failed.Reason, failed.Message)}
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
		return false, impossible{fmt.Sprintf("the devices of ResourceClaim %s/%s were not ready within %s", claim.Namespace, claim.Name, patience)}
	}
	return false, nil
}

// conditionsOf returns what the driver says of a device that was given out, or of a share of it.
func conditionsOf(claim *resourcev1.ResourceClaim, result *resourcev1.DeviceRequestAllocationResult) []metav1.Condition {
	for i := range claim.Status.Devices {
		d := &claim.Status.Devices[i]
		if d.Driver == result.Driver && d.Pool == result.Pool && d.Device == result.Device && ptr.Deref(d.ShareID, "") == string(ptr.Deref(result.ShareID, "")) {
			return d.Conditions
		}
	}
	return nil
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
	if apierrors.IsNotFound(err) || err == nil && (claim.UID != d.UID || claim.Status.Allocation == nil) {
		return nil
	}
	if err != nil {
		return err
	}
	// Devices that nobody may use stay with their claim, unless they have failed: then nobody else would take them from it.
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
