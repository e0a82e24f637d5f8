package cache

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/internal/same"
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/wake"
)

// idOf is the ID of the job of a PodGroup.
func idOf(group *schedulingv1beta1.PodGroup) cluster.JobID {
	return cluster.GroupID(types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
}

func (k *Cache) setGroup(group *schedulingv1beta1.PodGroup) {
	id := idOf(group)
	j := k.writer.Jobs.Named(id)
	// The scheduler decides the phase. The phase in the API is older, unless an earlier process has decided it.
	isNew := j.Group == nil || j.Group.UID != group.UID
	switch {
	case j.Group == nil || j.Group.UID != group.UID:
		if j.Plan != nil {
			k.Plans().Cancel(j.Plan, "the job is gone")
		}
		j.Phase, j.Admission = group.Status.Phase, cluster.Admission{}
		k.forget(j)
		k.owners.question(j)
	case same.Group(j.Group, group):
		j.Group = group
		k.followEnd(j)
		k.Called.follow(j)
		k.owners.followPhase(j)
		return
	case j.Group.Generation != group.Generation:
		// The reason of a failed binding may be gone.
		j.NotBefore = time.Time{}
	}
	if j.Group == nil && !j.Usage.Allocated.IsZero() || j.Group != nil && !same.GroupAsVictim(k.writer.Classes().Keys(), j.Group, group) {
		k.Note(wake.VictimsChanged) // which of its pods may be evicted may have changed
	}
	if j.Group != nil && j.Group.Annotations[schedulingv1beta1.SchedulerNameKey] != group.Annotations[schedulingv1beta1.SchedulerNameKey] {
		k.owners.question(j)
	}
	needed := j.MinResources
	j.Read(k.Resources, group)
	k.Called.follow(j)
	j.Priority, j.NeverPreempts = k.ranks.rankOf(j, group.Spec.PriorityClassName)
	k.ranks.ranked[j] = struct{}{}
	k.owners.followPhase(j)
	if !needed.LessEqual(j.MinResources) {
		k.NoteFreed(j) // the job may claim less of its queue
	}
	k.account(j)
	k.belong(j)
	k.StandIns.Read(j, isNew)
	k.writer.Jobs.Renew(j)
	k.writer.Jobs.Settle(j)
	k.followEnd(j)
}

// isEnding reports whether the PodGroup of a job or its namespace is being deleted.
func (k *Cache) isEnding(j *cluster.Job) bool {
	if j.Group == nil {
		return false
	}
	n := k.Namespace(j.ID.Namespace)
	return j.Group.DeletionTimestamp != nil || n != nil && n.DeletionTimestamp != nil
}

// followEnd notes whether pods are still created for a job. None are for one that is being deleted.
func (k *Cache) followEnd(j *cluster.Job) {
	if ending := k.isEnding(j); ending != j.IsEnding {
		j.IsEnding = ending
		k.resettle(j)
	}
}

// followNamespace does so for the jobs of a namespace.
func (k *Cache) followNamespace(name string) {
	k.writer.Jobs.Each(func(j *cluster.Job) {
		if j.ID.Namespace == name {
			k.followEnd(j)
		}
	})
}

func (k *Cache) dropGroup(group *schedulingv1beta1.PodGroup) {
	j := k.Job(idOf(group))
	if j == nil || j.Group == nil || j.Group.UID != group.UID {
		return
	}
	if j.Plan != nil {
		k.Plans().Cancel(j.Plan, "the job is gone")
	}
	k.StandIns.Forget(j)
	j.Read(k.Resources, &schedulingv1beta1.PodGroup{})
	j.Group = nil
	if _, charged := k.queuesOf(j); charged != "" && metav1.GetControllerOfNoCopy(group) == nil {
		k.say(j, "", charged)
	} else if charged != "" && !j.IsForeign { // the pods of a job that is deleted follow it
		k.orphaned = append(k.orphaned, orphaned{job: j.ID})
	}
	k.account(j)
	j.Phase, j.Priority, j.NeverPreempts, j.IsForeign, j.IsEnding = "", 0, false, false, false
	k.ranks.forget(j)
	k.Called.follow(j)
	k.forget(j)
	k.belong(j)
	k.writer.Jobs.Settle(j)
	k.NoteFreed(j)
	k.owners.dropIfEmpty(j)
}

// belong updates the belonging of a job's tasks, and the classes of those without a node. While the queue tree is
// stale, the queues above are not known. Settle then updates every job.
func (k *Cache) belong(j *cluster.Job) {
	keys := k.writer.Classes().Keys()
	var b podclass.Belonging
	if g := j.Group; g != nil {
		b.JobAnnotations, b.JobLabels = podclass.Pick(g.Annotations, keys.JobAnnotations), podclass.Pick(g.Labels, keys.JobLabels)
		if keys.PerJob != nil && keys.PerJob(g) {
			b.Job = j.ID.Key()
		}
	}
	if q := j.Queue; q != nil && q.Object != nil {
		b.QueueAnnotations, b.QueueLabels = podclass.Pick(q.Object.Annotations, keys.QueueAnnotations), podclass.Pick(q.Object.Labels, keys.QueueLabels)
	}
	for q := j.Queue; q != nil && keys.PerQueue != nil; q = q.Parent {
		if q.Object != nil && keys.PerQueue(q.Object) {
			b.Queue = j.QueueName
			break
		}
	}
	if j.Internal.Belonging.Equal(&b) {
		return
	}
	j.Internal.Belonging = b
	for _, t := range j.Internal.Tasks {
		if t.Node != nil {
			k.writer.Nodes.Renew(t.Node) // answers about a node may depend on the jobs of its pods
		}
		if t.Status == cluster.Pending || t.Status == cluster.Gated || t.Status.Assumed() {
			k.writer.Tasks.SetClass(t, false)
		}
	}
}
