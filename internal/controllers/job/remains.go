package job

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// groupsByJob is the index of PodGroups by the name of the Job that controls them.
const groupsByJob = "controllingJob"

func indexGroup(object client.Object) []string {
	if owner := controllingJob(object); owner != nil {
		return []string{owner.Name}
	}
	return nil
}

// dropGroups deletes the PodGroups of Jobs that had a name and are gone; uid is the Job that has it, "" if none seems
// to. The garbage collector would delete them too, but it may take half a minute to learn of a kind that is new to a
// cluster. Until then they would hold quota for pods that are never created. A conflict is an error, since no event
// need tell of what it was with.
func (r *Reconciler) dropGroups(ctx context.Context, name types.NamespacedName, uid types.UID) error {
	list := &scheduling.PodGroupList{}
	err := r.client.List(ctx, list, client.InNamespace(name.Namespace), client.MatchingFields{groupsByJob: name.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("listing PodGroups: %w", err)
	}
	var left []*scheduling.PodGroup
	for i := range list.Items {
		if group := &list.Items[i]; controllingJob(group).UID != uid && group.DeletionTimestamp == nil {
			left = append(left, group)
		}
	}
	if len(left) == 0 {
		return nil
	}
	// The cache may only not show the Job yet.
	job := &batch.Job{}
	if err := r.live.Get(ctx, name, job); client.IgnoreNotFound(err) != nil {
		return err
	}
	for _, group := range left {
		if controllingJob(group).UID == job.UID {
			continue
		}
		// The version, since a client may have made it independent of the Job before that went (--cascade=orphan).
		err := r.client.Delete(ctx, group, client.Preconditions{UID: &group.UID, ResourceVersion: &group.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting PodGroup %s/%s: %w", group.Namespace, group.Name, err)
		}
	}
	return nil
}
