package binder

import (
	"context"
	"slices"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/edge/apiserver"
)

// whileTakenBack is how long a binding waits before it is tried again whose pod gives devices back.
const whileTakenBack = 100 * time.Millisecond

// TakeBack takes the devices of a claim back from pods that have no node, and reports whether it has. A binding that
// did not come to its end leaves them there, when its process ended or the claim could not be written: they are of one
// node, where the pod may have no room any more, and no other pod can have them. Nothing is done if one of the pods has
// a node by now, or its binding is under way, or if the claim is not as it was seen.
func (b *Binder) TakeBack(ctx context.Context, seen *resourcev1.ResourceClaim, pods []resourcev1.ResourceClaimConsumerReference) (bool, error) {
	if !b.holdBack(pods) {
		return false, nil
	}
	defer b.letGo(pods)
	ctx, cancel := context.WithTimeout(ctx, apiserver.RequestTimeout)
	defer cancel()
	for _, holder := range pods {
		pod, err := apiserver.ReadPod(ctx, b.pods, types.NamespacedName{Namespace: seen.Namespace, Name: holder.Name})
		switch {
		case apierrors.IsNotFound(err), err == nil && (pod.UID != holder.UID || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil):
			return false, nil // what holds the devices then is not what was seen
		case err != nil:
			return false, err
		}
	}
	claims := b.preparer.client.ResourceV1().ResourceClaims(seen.Namespace)
	claim, err := claims.Get(ctx, seen.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (claim.UID != seen.UID || claim.ResourceVersion != seen.ResourceVersion) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor, func(r resourcev1.ResourceClaimConsumerReference) bool {
		return slices.ContainsFunc(pods, func(holder resourcev1.ResourceClaimConsumerReference) bool { return r.UID == holder.UID })
	})
	if len(claim.Status.ReservedFor) == 0 {
		claim.Status.Allocation, claim.Status.Devices = nil, nil
	}
	_, err = claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil
	}
	return err == nil, err
}

// holdBack holds the bindings of some pods back, and reports whether none is under way.
func (b *Binder) holdBack(pods []resourcev1.ResourceClaimConsumerReference) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.isClosed || slices.ContainsFunc(pods, func(p resourcev1.ResourceClaimConsumerReference) bool { return b.underWay[p.UID] > 0 }) {
		return false
	}
	for _, p := range pods {
		b.takesBack[p.UID] = true
	}
	return true
}

func (b *Binder) letGo(pods []resourcev1.ResourceClaimConsumerReference) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for _, p := range pods {
		delete(b.takesBack, p.UID)
	}
}

func (b *Binder) isTakenBackFrom(pod types.UID) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.takesBack[pod]
}
