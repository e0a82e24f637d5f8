package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/supplies"
)

// claimsSettle is how soon a pod is looked at again whose claims are still being made.
const claimsSettle = time.Second

// awaitsClaims reports whether claims that are made for a pod alone do not exist yet, or get their volume without
// waiting for a node. The pod fits on no node until then, which is no fault of the node that is held for it.
func (k *Keeper) awaitsClaims(t *cluster.Task) bool {
	pod := t.Pod
	get := func(kind supplies.Kind, namespace, name string) supplies.Object {
		return k.session.Cluster.Supplies().Get(supplies.Key{Kind: kind, NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.Ephemeral == nil {
			continue
		}
		claim, is := get(supplies.VolumeClaim, pod.Namespace, pod.Name+"-"+v.Name).(*corev1.PersistentVolumeClaim)
		if !is {
			return true
		}
		class, _ := get(supplies.StorageClass, "", storagehelpers.GetPersistentVolumeClaimClass(claim)).(*storagev1.StorageClass)
		waits := class != nil && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
		if claim.Spec.VolumeName == "" && !waits {
			return true
		}
	}
	made := map[string]*string{}
	for _, m := range pod.Status.ResourceClaimStatuses() {
		made[m.Name] = m.ResourceClaimName
	}
	for i := range pod.Spec.ResourceClaims {
		c := &pod.Spec.ResourceClaims[i]
		if c.ResourceClaimTemplateName == nil {
			continue
		}
		name, isMade := made[c.Name]
		if !isMade || name != nil && get(supplies.DeviceClaim, pod.Namespace, *name) == nil {
			return true
		}
	}
	return false
}
