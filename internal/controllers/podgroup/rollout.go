package podgroup

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/queueing"
	groupbuilder "hekla.sh/hekla/pkg/apis/scheduling/builder"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// A minimum applies to a whole workload, and a PodGroup may have only a part of its pods. While a Deployment replaces
// its pods, those of the old and the new ReplicaSet are in two PodGroups. Neither may reach the minimum before the
// other has gone, and the other waits for it. A StatefulSet creates its pods one after the other, the next when the
// last one is ready, unless it creates them in parallel. Enforcing the minimum would stop both for ever. So the pods of
// the other PodGroups count, and the minimum does not include pods that cannot exist yet.

// lowered is the minimum of a PodGroup, given its number of living pods, the minimum of the workload, and the number of
// pods of other PodGroups on nodes.
func lowered(wanted, living, elsewhere int32) int32 {
	return max(1, min(wanted-elsewhere, living))
}

// siblingCounts counts the pods of a workload.
type siblingCounts struct {
	// living is the number of living pods of the PodGroup.
	living int32

	// others is the number of living pods of the other PodGroups, elsewhere the number of them on nodes.
	others, elsewhere int32
}

func (c *siblingCounts) addOther(pod *corev1.Pod) {
	if !isAlive(pod) {
		return
	}
	c.others++
	if pod.Spec.NodeName != "" {
		c.elsewhere++
	}
}

// lower sets the minimum of the PodGroup to what can be met now, and records the wanted minimum. It returns a sentence
// for the user.
func (r *Reconciler) lower(ctx context.Context, group *scheduling.PodGroup, model *corev1.Pod, pods []*corev1.Pod, owner *metav1.PartialObjectMetadata) (string, error) {
	wanted := group.Spec.MinMember
	if wanted < 2 || owner == nil {
		return "", nil
	}
	group.Annotations[scheduling.GroupMinMemberAnnotationKey] = fmt.Sprint(wanted)
	var count siblingCounts
	for _, pod := range pods {
		if isAlive(pod) {
			count.living++
		}
	}
	var note string
	switch kind := (metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: owner.Kind}); {
	case owner.TypeMeta != kind:
		return "", nil
	case owner.Kind == "ReplicaSet":
		if err := r.countSiblings(ctx, owner, &count); err != nil || count.others == 0 {
			return "", err
		}
	case owner.Kind == "StatefulSet" && count.living < wanted:
		if isParallel, err := r.isParallel(ctx, owner); err != nil || isParallel {
			return "", err
		}
		note = fmt.Sprintf("annotation %s: %d pods cannot start together, because StatefulSet %s makes one after the other; "+
			"set its podManagementPolicy to Parallel", scheduling.GroupMinMemberAnnotationKey, wanted, owner.Name)
	default:
		return "", nil
	}
	if group.Spec.MinMember = lowered(wanted, count.living, count.elsewhere); group.Spec.MinMember < wanted {
		needed := corev1.ResourceList{}
		groupbuilder.AddUsage(needed, &model.Spec, group.Spec.MinMember)
		group.Spec.MinResources = &needed
	}
	return note, nil
}

// countSiblings counts the pods of the other ReplicaSets of the Deployment that controls this one.
func (r *Reconciler) countSiblings(ctx context.Context, replicaSet *metav1.PartialObjectMetadata, count *siblingCounts) error {
	deployment := metav1.GetControllerOfNoCopy(replicaSet)
	if deployment == nil || deployment.Kind != "Deployment" {
		return nil
	}
	list := &corev1.PodList{}
	err := r.client.List(ctx, list, client.InNamespace(replicaSet.Namespace),
		client.MatchingFields{podsByFamily: familyOf(replicaSet.Name)}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return err
	}
	isSibling := map[types.UID]bool{replicaSet.UID: false}
	for i := range list.Items {
		pod := &list.Items[i]
		reference := metav1.GetControllerOfNoCopy(pod)
		is, known := isSibling[reference.UID]
		if !known {
			owner, err := queueing.ReadOwner(ctx, r.live, pod.Namespace, reference)
			if err != nil {
				return err
			}
			above := (*metav1.OwnerReference)(nil)
			if owner != nil {
				above = metav1.GetControllerOfNoCopy(owner)
			}
			is = above != nil && above.UID == deployment.UID
			isSibling[reference.UID] = is
		}
		if is {
			count.addOther(pod)
		}
	}
	return nil
}

// isParallel says whether a StatefulSet makes all its pods at once.
func (r *Reconciler) isParallel(ctx context.Context, owner *metav1.PartialObjectMetadata) (bool, error) {
	set := &appsv1.StatefulSet{}
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(owner), set); err != nil {
		return false, fmt.Errorf("reading StatefulSet %s/%s: %w", owner.Namespace, owner.Name, err)
	}
	return set.Spec.PodManagementPolicy == appsv1.ParallelPodManagement, nil
}

// familyOf is the name of the Deployment that has made a ReplicaSet of this name.
func familyOf(replicaSet string) string {
	if dash := strings.LastIndexByte(replicaSet, '-'); dash > 0 {
		return replicaSet[:dash]
	}
	return replicaSet
}

// familyOfPod is the family of a pod of a ReplicaSet, and "" of any other.
func familyOfPod(pod client.Object) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "ReplicaSet" || owner.APIVersion != appsv1.SchemeGroupVersion.String() {
		return ""
	}
	return familyOf(owner.Name)
}

// relation is what PodGroups with a minimum are found by when one of the pods changes that it depends on: the family of
// its ReplicaSet, or the UID of any other controller. A PodGroup has that of its pods.
func relation(controlled client.Object) string {
	if family := familyOfPod(controlled); family != "" {
		return family
	}
	if owner := metav1.GetControllerOfNoCopy(controlled); owner != nil {
		return string(owner.UID)
	}
	return ""
}

// hasMinimum says whether the workload of a PodGroup of ours wants several pods at least, and how many it needs may
// change.
func hasMinimum(group *scheduling.PodGroup) bool {
	return group.Annotations[scheduling.GroupMinMemberAnnotationKey] != "" && isOurs(group)
}
