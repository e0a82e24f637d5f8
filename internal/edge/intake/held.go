package intake

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"hekla.sh/hekla/pkg/cluster"
)

// Held is a ResourceClaim whose devices pods hold that have no node.
type Held struct {
	Claim *resourcev1.ResourceClaim // of the cache: it must not be changed
	Pods  []resourcev1.ResourceClaimConsumerReference
}

// HeldDevices returns the claims with devices that are reserved for pods without a node, or owned by one if they are
// reserved for none. It looks at pods of some schedulers only.
func (i *Inbox) HeldDevices(schedulerNames []string) []Held {
	pods, claims := i.storeOf("pods"), i.storeOf("resourceclaims")
	if claims == nil {
		return nil
	}
	var all []Held
	for _, o := range claims.List() {
		if claim, is := o.(*resourcev1.ResourceClaim); is && claim.Status.Allocation != nil {
			if waiting := waitingHolders(pods, claim, schedulerNames); len(waiting) > 0 {
				all = append(all, Held{claim, waiting})
			}
		}
	}
	return all
}

// storeOf returns the cache of a kind, nil if it is not watched.
func (i *Inbox) storeOf(kind string) toolscache.Store {
	for _, w := range i.watched() {
		if w.name == kind {
			return w.store
		}
	}
	return nil
}

// waitingHolders returns the pods that hold a claim and have no node.
func waitingHolders(pods toolscache.Store, claim *resourcev1.ResourceClaim, schedulerNames []string) (waiting []resourcev1.ResourceClaimConsumerReference) {
	holders := claim.Status.ReservedFor
	if owner := metav1.GetControllerOfNoCopy(claim); len(holders) == 0 && owner != nil && owner.Kind == "Pod" {
		holders = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: owner.Name, UID: owner.UID}}
	}
	for _, h := range holders {
		if h.APIGroup != "" || h.Resource != "pods" {
			continue
		}
		known, _, _ := pods.GetByKey(claim.Namespace + "/" + h.Name) // a map in memory: it cannot fail
		pod, is := known.(*cluster.Pod)
		if is && pod.UID == h.UID && pod.NodeName == "" && pod.DeletionTimestamp == nil && slices.Contains(schedulerNames, pod.Spec.SchedulerName) &&
			pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			waiting = append(waiting, h)
		}
	}
	return waiting
}
