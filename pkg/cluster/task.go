package cluster

import (
	"cmp"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/budget"
	"hekla.sh/hekla/pkg/cluster/internal/taints"
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/resources"
)

// Task is one pod. Pods of other schedulers are tasks too, once they have a node: they take room.
type Task struct {
	Pod      *corev1.Pod // as last seen; shared, never changed
	Job      *Job        // nil if it names no PodGroup
	Role     string      // the named task of the batch Job, "default" if the pod names none
	Index    int         // position within the role, -1 if unknown
	Priority int32       // ranks it inside its job
	Class    *Class
	Status   Status
	Subgroup *Subgroup // of its job, nil if it is in none
	Node     *Node     // nil unless it holds a node, or one is promised to it

	// Reservation is what it takes on its node besides room and is not seen in the API yet, nil if nothing.
	Reservation *supplies.Reservation

	// Evicts is the plan that the task leaves for, nil if none does.
	Evicts *Plan

	// Refusal is what is remembered of its evictions that the API server refused, nil if none was.
	Refusal *Refusal

	// Internal is for the packages below this one.
	Internal TaskInternals
}

// TaskInternals are what package model, and package cache above it, keep of a task for themselves.
type TaskInternals struct {
	Was           Status       // while it is Evicting: what the API shows
	Budgets       budget.Found // that cover its pod
	InJob, InNode int          // positions in their lists

	// What the pod is counted for, so that it can be counted no more when it has changed.
	Scheduler   string              // in the pods of its job
	Priority    int32               // there, too
	Tolerations []taints.Toleration // of this scheduler's pods
	Terms       []string            // in the table of classes
}

// Key returns namespace and name.
func (t *Task) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: t.Pod.Namespace, Name: t.Pod.Name}
}

// UID returns the pod's UID.
func (t *Task) UID() types.UID { return t.Pod.UID }

// Request is what the task takes from a node, its place in the node's pod count included.
func (t *Task) Request() resources.Vector { return t.Class.Request }

// BestEffort reports whether the task requests nothing.
func (t *Task) BestEffort() bool { return t.Class.BestEffort }

// Created is when the pod was created.
func (t *Task) Created() time.Time { return t.Pod.CreationTimestamp.Time }

// CompareTasks is the order of the tasks of a job where no plugin has a say: by index within the Job's task, those without
// one last, then by age.
func CompareTasks(a, b *Task) int {
	// As an unsigned number, "no index" is larger than any. Passing over it instead would make circles: an index that
	// comes first, an age that comes first, and a task in between that has no index.
	if c := cmp.Compare(uint(a.Index), uint(b.Index)); c != 0 {
		return c
	}
	if c := a.Created().Compare(b.Created()); c != 0 {
		return c
	}
	return cmp.Compare(a.UID(), b.UID())
}

// Started is when the pod started, or got its node, or was created: the first of these that is known.
func (t *Task) Started() time.Time {
	if start := t.Pod.Status.StartTime; start != nil {
		return start.Time
	}
	for i := range t.Pod.Status.Conditions {
		if c := &t.Pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return t.Created()
}

// IsHeld reports whether the gate of queue admission is still on the pod of a task that waits for a node.
func (t *Task) IsHeld() bool { return t.Status != Gated && HasOnlyQueueGate(t.Pod) }

// Mark is what the pod says about being evicted (volcano.sh/preemptable): its annotation, else its label, else the
// annotation or label of its PodGroup. ok is false if none says anything.
func (t *Task) Mark() (mark string, ok bool) {
	const key = schedulingv1beta1.PreemptableKey
	if mark, ok = t.Pod.Annotations[key]; ok {
		return mark, true
	}
	if mark, ok = t.Pod.Labels[key]; ok {
		return mark, true
	}
	if t.Job == nil || t.Job.Group == nil {
		return "", false
	}
	if mark, ok = t.Job.Group.Annotations[key]; ok {
		return mark, true
	}
	mark, ok = t.Job.Group.Labels[key]
	return mark, ok
}

// NeverPreempts reports whether the pod, or the PriorityClass of its job, says that it preempts none (rule P6).
func (t *Task) NeverPreempts() bool {
	policy := t.Pod.Spec.PreemptionPolicy
	return policy != nil && *policy == corev1.PreemptNever || t.Job != nil && t.Job.NeverPreempts
}

// lingersAfter is how long after its time a pod that is being deleted may still be expected to go: the kubelet and the
// watch take their seconds.
const lingersAfter = 30 * time.Second

// Grace is how long the pod may take to end after it was told to.
func (t *Task) Grace() time.Duration {
	if seconds := t.Pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// Due is when the task's going is not counted on any longer, zero if it is not being deleted. The API sets the time of
// deletion to when the grace period ends.
func (t *Task) Due() time.Time {
	if t.Status != Releasing || t.Pod.DeletionTimestamp == nil {
		return time.Time{}
	}
	return t.Pod.DeletionTimestamp.Add(lingersAfter)
}

// Read takes over what the pod says of the task itself. An index or priority that cannot be read counts as not given.
func (t *Task) Read(pod *corev1.Pod) {
	t.Pod = pod
	t.Internal.Budgets = budget.Found{}
	t.Role = cmp.Or(pod.Annotations[batchv1alpha1.TaskSpecKey], batchv1alpha1.DefaultTaskSpec)
	t.Index = -1
	if index, err := strconv.Atoi(pod.Annotations[batchv1alpha1.TaskIndexKey]); err == nil && index >= 0 {
		t.Index = index
	}
	t.Priority = 0
	if pod.Spec.Priority != nil {
		t.Priority = *pod.Spec.Priority
	}
	if value, err := strconv.ParseInt(pod.Annotations[schedulingv1beta1.TaskPriorityAnnotationKey], 10, 32); err == nil {
		t.Priority = int32(value)
	}
}

// Belonging returns what placement needs to know of the job and the queue of a task.
func (t *Task) Belonging() podclass.Belonging {
	if t.Job == nil {
		return podclass.Belonging{}
	}
	b := t.Job.Internal.Belonging
	if b.Job != (JobID{}) {
		b.Role = t.Role
	}
	return b
}

// IsHeldOnNode reports whether a task is counted with its job and stands on a node.
func (t *Task) IsHeldOnNode() bool { return t.Job != nil && t.Node != nil && t.Status.Counts() }
