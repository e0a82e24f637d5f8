package cache

import (
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/internal/same"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/wake"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// statusOf returns the status of a pod in the API.
func (k *Cache) statusOf(pod *cluster.Pod) cluster.Status {
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return cluster.Succeeded
	case corev1.PodFailed:
		return cluster.Failed
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return cluster.Releasing
	case pod.NodeName == "" && len(pod.Spec.SchedulingGates) > 0 && !(k.options.OpensQueueGates && cluster.HasOnlyQueueGate(pod)):
		return cluster.Gated
	case pod.NodeName == "":
		return cluster.Pending
	case pod.Status.Phase == corev1.PodRunning:
		return cluster.Running
	case pod.Status.Phase == corev1.PodUnknown:
		return cluster.Unknown
	}
	return cluster.Bound
}

// isNominee reports whether another scheduler has nominated a pod to a node and may bind it there any moment.
// kube-scheduler does that when it has evicted pods for it. The room is left to it, or the replacements of those pods
// would take it and be evicted in turn.
func (k *Cache) isNominee(pod *cluster.Pod) bool {
	return pod.Status.NominatedNodeName != "" && !k.isOurs(pod) && k.statusOf(pod) == cluster.Pending
}

// setPod applies a pod. An assumed status stays until the pod shows otherwise.
func (k *Cache) setPod(pod *cluster.Pod) {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	t := k.Task(key)
	if t != nil && t.UID() != pod.UID {
		// Deleted and created again under the same name.
		k.dropTask(t)
		t = nil
	}
	if !k.isOurs(pod) && pod.NodeName == "" {
		k.owners.setForeign(key, pod)
		if !k.isNominee(pod) {
			if t != nil {
				k.dropTask(t)
			}
			return
		}
	} else {
		k.owners.dropForeign(key)
	}
	if t == nil {
		t = k.writer.Tasks.Add(key, pod)
		k.updateTask(t, pod)
		k.refusals.recall(t)
		return
	}
	k.updateTask(t, pod)
}

func (k *Cache) updateTask(t *cluster.Task, pod *cluster.Pod) {
	k.tellMoved(t, pod)
	status, node := k.statusOf(pod), (*cluster.Node)(nil)
	switch {
	case status.Finished():
		// It holds no resources, and its node may be deleted.
	case pod.NodeName != "":
		node = k.writer.Nodes.Named(pod.NodeName)
	case k.isNominee(pod):
		status, node = cluster.Pipelined, k.writer.Nodes.Named(pod.Status.NominatedNodeName)
	case t.Status == cluster.Pipelined && (t.Job == nil || t.Job.ID != k.jobOf(pod)):
		// The nominated node was for its former job.
	case t.Status.Assumed() && status == cluster.Pending:
		status, node = t.Status, t.Node
	}
	shown := cluster.Pending
	switch {
	case t.Status == cluster.Evicting && t.Node == node && (status == cluster.Bound || status == cluster.Running || status == cluster.Unknown):
		shown, status = status, cluster.Evicting // its eviction is decided and does not show yet
	case t.Status == cluster.Lingering && status == cluster.Releasing:
		status = cluster.Lingering
	}
	state := model.TaskState{Pod: pod, Status: status, Shown: shown, Node: node}
	was, from := t.Status, t.Node
	if t.Pod != nil && same.Pod(t.Pod, pod) && k.isOf(t, k.jobOf(pod)) && from == node && was.Weighs(status) &&
		(t.Pod.RequestsAlike(pod) || t.Class.Request.Equal(k.writer.Classes().Request(pod))) {
		k.writer.Tasks.Restate(t, state)
		k.countAccount(t, status)
		return
	}
	switch {
	case status.Evictable() && !was.Evictable(), status.Holds() && from != node:
		k.Note(wake.PodPlaced)
	case was == cluster.Evicting && status == cluster.Releasing:
		k.Note(wake.PodEnding) // of others the ledger notes that they make room
	case (status.Holds() || status == cluster.Pipelined) && t.Pod != nil && !same.PodAsVictim(k.writer.Classes().Keys(), t.Pod, pod):
		k.Note(wake.PodRelabelled)
	}
	if t.Refusal != nil && (status.Finished() || status == cluster.Releasing || !same.PodAsVictim(k.writer.Classes().Keys(), t.Pod, pod)) {
		k.refusals.reconsider(func(other *cluster.Task) bool { return other == t })
	}
	if k.isOurs(pod) {
		k.Marks.OfPod(t, pod)
	}
	before := t.Job
	if status.Finished() {
		k.late.noteEnd(t)
	}
	k.writer.Tasks.Show(t, state, func() { k.join(t, status) })
	k.StandIns.Look(before)
	k.StandIns.Look(t.Job)
	k.Workloads.Look(before)
	k.Workloads.Look(t.Job)
	k.countAccount(t, status)
	if !status.Leaves() && status != cluster.Lingering {
		k.Plans().RemoveVictim(t)
	}
	if t.Job == nil && status == cluster.Pending {
		k.ungrouped = append(k.ungrouped, t)
	}
}

// join adds a task to all totals by its current pod.
func (k *Cache) join(t *cluster.Task, status cluster.Status) {
	t.Internal.Terms = k.writer.Classes().CountTerms(t.Internal.Terms, t.Pod, !status.Finished())
	if k.isOurs(t.Pod) && !status.Finished() {
		k.nodes.tolerate(t, t.Pod.Spec.Tolerations)
	} else {
		k.nodes.tolerate(t, nil)
	}
	k.joinJob(t)
	k.writer.Tasks.SetClass(t, !(status == cluster.Pending || status == cluster.Gated || status.Assumed()))
}

// groupOf is the job that a pod names, a Workload or else a PodGroup, zero if it names none. While no Workloads are
// admitted, a pod belongs to none. A pod with a node belongs to that in which it got it.
func (k *base) groupOf(pod *cluster.Pod) cluster.JobID {
	if _, job := accountOf(pod); job != "" {
		if id := decision.ParseJobID(pod.Namespace, job); id.Kind == decision.OfPodGroup || !k.ignoresWorkloads {
			return id
		}
	}
	if workload := pod.Annotations[v1beta2.WorkloadAnnotation]; workload != "" && !k.ignoresWorkloads {
		return cluster.WorkloadID(pod.Namespace, workload)
	}
	return annotatedGroup(pod)
}

// annotatedGroup is the PodGroup that the annotation of a pod names, zero if it names none.
func annotatedGroup(pod *cluster.Pod) cluster.JobID {
	group := pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]
	if group == "" {
		return cluster.JobID{}
	}
	return cluster.GroupID(types.NamespacedName{Namespace: pod.Namespace, Name: group})
}

// jobOf is the job in which the pod is a task, zero if it is in none. A nominee of another scheduler is in none,
// because only what has a node counts for jobs of others.
func (k *Cache) jobOf(pod *cluster.Pod) cluster.JobID {
	if k.isNominee(pod) {
		return cluster.JobID{}
	}
	return k.groupOf(pod)
}

// isOf reports whether a task is in a job, or in none if the ID is zero.
func (*base) isOf(t *cluster.Task, id cluster.JobID) bool {
	if t.Job == nil {
		return id == cluster.JobID{}
	}
	return t.Job.ID == id
}

// namedGroup is the PodGroup that the pod of a task in a Workload names, too, zero if there is none.
func namedGroup(t *cluster.Task) cluster.JobID {
	if t.Job == nil || t.IsStandIn || !t.Job.IsOfWorkload() {
		return cluster.JobID{}
	}
	return annotatedGroup(t.Pod)
}

// countNamedGroup counts a task of a Workload for the PodGroup that its pod names. That waits for no pods of its own.
func (k *Cache) countNamedGroup(t *cluster.Task) {
	was, now := t.Internal.NamedGroup, namedGroup(t)
	if was == now {
		return
	}
	t.Internal.NamedGroup = now
	if now != (cluster.JobID{}) {
		j := k.writer.Jobs.Named(now)
		j.Elsewhere++
		k.resettle(j)
	}
	if was != (cluster.JobID{}) {
		j := k.Job(was)
		j.Elsewhere--
		k.resettle(j)
		k.owners.dropIfEmpty(j)
	}
}

// resettle updates what follows from whether further pods of a job come.
func (k *Cache) resettle(j *cluster.Job) {
	k.writer.Jobs.Settle(j)
	k.writer.Jobs.Renew(j)
	k.NoteFreed(j)
}

// joinJob adds the task to the job that its pod names.
func (k *Cache) joinJob(t *cluster.Task) {
	defer k.countNamedGroup(t)
	var j *cluster.Job
	if id := k.jobOf(t.Pod); id != (cluster.JobID{}) {
		j = k.writer.Jobs.Named(id)
	}
	if t.Job == j {
		if j != nil {
			k.writer.Tasks.Join(t, j) // its labels may have changed
			k.owners.reenlist(t)
			k.ranks.rerank(t)
		}
		return
	}
	k.leaveJob(t)
	if j != nil {
		k.writer.Tasks.Join(t, j)
		t.Internal.Scheduler = t.Pod.Spec.SchedulerName
		k.owners.enlist(j, t.Internal.Scheduler, +1)
		k.ranks.rank(t, +1)
	}
}

func (k *Cache) leaveJob(t *cluster.Task) {
	j := t.Job
	if j == nil {
		return
	}
	k.ranks.rank(t, -1)
	k.chargeTo(t, "")
	k.writer.Tasks.Leave(t)
	k.owners.enlist(j, t.Internal.Scheduler, -1)
	k.owners.dropIfEmpty(j)
}

// deletePod removes a pod, unless another one has its name meanwhile.
func (k *Cache) deletePod(key types.NamespacedName, uid types.UID) {
	if t := k.Task(key); t != nil && t.UID() == uid {
		k.dropTask(t)
	}
	if k.owners.foreignPods[key].uid == uid {
		k.owners.dropForeign(key)
	}
}

func (k *Cache) dropTask(t *cluster.Task) {
	j := t.Job
	k.late.noteEnd(t)
	k.StandIns.Look(j)
	k.Workloads.Look(j)
	k.writer.Tasks.Remove(t, func() {
		t.Internal.Terms = k.writer.Classes().CountTerms(t.Internal.Terms, t.Pod, false)
		k.nodes.tolerate(t, nil)
		k.Plans().RemoveVictim(t)
		k.leaveJob(t)
		k.countNamedGroup(t)
	})
	k.followAccount(j)
	k.refusals.forget(t)
	k.forgotten.Tasks = append(k.forgotten.Tasks, t)
}
