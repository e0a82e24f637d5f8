package cluster

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/budget"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/internal/priority"
	"hekla.sh/hekla/pkg/cluster/internal/taints"
	"hekla.sh/hekla/pkg/cluster/podclass"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/resources"
)

// Task is one pod, or a stand-in for one that does not exist yet. Pods of other schedulers are tasks too once they have
// a node, because they use resources.
type Task struct {
	Pod      *Pod   // as last seen; shared, never changed
	Job      *Job   // nil if the pod names no PodGroup
	Role     string // the named task of the batch Job or the pod set of the Workload, "default" if the pod names none
	Index    int    // position within the role, -1 if unknown
	Priority int32  // task priority inside its job
	Class    *Class
	Status   Status
	// IsStandIn says that the pod does not exist yet. Pod is then the form that it is expected to have, see [Podset].
	IsStandIn bool
	mark      marking // of the pod itself, see Mark
	isPlain   bool    // see isPlain
	// allowance is that of the record of its eviction, see [Task.ReadAllowance]; 0 if there is none.
	allowance time.Duration
	Subgroup  *Subgroup // of its job, nil if it is in none
	Node      *Node     // nil unless it is placed or pipelined

	// Reservation has the volumes and devices that it takes and that do not show in the API yet, nil if there are none.
	Reservation *supplies.Reservation

	// Evicts is the plan of which the task is a victim, nil if it is not one.
	Evicts *Plan

	// Refusal records refused evictions of its pod, nil if there were none.
	Refusal *Refusal

	// Internal is for the packages below this one.
	Internal TaskInternals
}

// TaskInternals are the fields that only the packages model and cache use.
type TaskInternals struct {
	Was           Status       // while the task is Evicting: the status in the API
	Budgets       budget.Found // the budgets that cover its pod
	InJob, InNode int          // positions in their lists

	// What is counted for the pod, so that it can be subtracted when the pod has changed.
	Scheduler   string              // in the counts of its job
	Rank        priority.Rank       // in the counts of its job
	Tolerations []taints.Toleration // of this scheduler's pods
	Terms       []string            // in the table of classes
	NamedGroup  JobID               // the PodGroup that it names while it is in a Workload
	Account     string              // in the counts of its job: the queue that was charged when it got its node
}

// Key returns namespace and name.
func (t *Task) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: t.Pod.Namespace, Name: t.Pod.Name}
}

// UID returns the pod's UID.
func (t *Task) UID() types.UID { return t.Pod.UID }

// NodeName is the name of its node, "" if it has none.
func (t *Task) NodeName() string {
	if t.Node == nil {
		return ""
	}
	return t.Node.Name
}

// Request is what the task requests of a node, with one in the dimension of pods.
func (t *Task) Request() resources.Vector { return t.Class.Request }

// BestEffort reports whether the task requests nothing.
func (t *Task) BestEffort() bool { return t.Class.BestEffort }

// Created is when the pod was created.
func (t *Task) Created() time.Time { return t.Pod.CreationTimestamp.Time }

// CompareTasks compares tasks of a job where no plugin decides: by index within the role, those without an index last,
// then by age.
func CompareTasks(a, b *Task) int {
	// As an unsigned number, "no index" is larger than any index. Skipping it instead would not be transitive, if a
	// task without an index is between the others by age.
	if c := cmp.Compare(uint(a.Index), uint(b.Index)); c != 0 {
		return c
	}
	if c := a.Created().Compare(b.Created()); c != 0 {
		return c
	}
	return cmp.Compare(a.UID(), b.UID())
}

// Started is when the pod started, otherwise when it got its node, otherwise when it was created.
func (t *Task) Started() time.Time {
	if at, ok := t.Pod.Status.Started(); ok {
		return at
	}
	if at, ok := t.Pod.Status.Scheduled(); ok {
		return at
	}
	return t.Created()
}

// IsHeld reports whether the pod of a pending task still has the scheduling gate of queue admission.
func (t *Task) IsHeld() bool { return t.Status != Gated && HasOnlyQueueGate(t.Pod) }

// Mark is the value of volcano.sh/preemptable: the pod's annotation, otherwise its label, otherwise the annotation or
// label of its PodGroup. ok is false if there is none.
func (t *Task) Mark() (mark string, ok bool) {
	if t.mark != notMarked || t.Job == nil || t.Job.Group == nil {
		return t.mark.of(t.Pod.Annotations, t.Pod.Labels)
	}
	return t.Job.mark.of(t.Job.Group.Annotations, t.Job.Group.Labels)
}

// marking is what an object itself says by volcano.sh/preemptable. Searches for victims ask that of every pod.
type marking uint8

const (
	notMarked marking = iota
	markedTrue
	markedFalse
	markedOtherwise
)

// of returns the mark of the object that has a marking. ok is false if it has none.
func (m marking) of(annotations, labels map[string]string) (mark string, ok bool) {
	switch m {
	case notMarked:
		return "", false
	case markedTrue:
		return "true", true
	case markedFalse:
		return "false", true
	}
	return ownMark(annotations, labels)
}

// ownMark is the value of volcano.sh/preemptable of an object: the annotation, otherwise the label. ok is false if it
// has neither.
func ownMark(annotations, labels map[string]string) (mark string, ok bool) {
	if mark, ok = annotations[schedulingv1beta1.PreemptableKey]; !ok {
		mark, ok = labels[schedulingv1beta1.PreemptableKey]
	}
	return mark, ok
}

func markingOf(annotations, labels map[string]string) marking {
	switch mark, ok := ownMark(annotations, labels); {
	case !ok:
		return notMarked
	case mark == "true":
		return markedTrue
	case mark == "false":
		return markedFalse
	}
	return markedOtherwise
}

// IsNominee reports whether another scheduler has nominated the pod to its node. The room is left to it, but it may
// never come.
func (t *Task) IsNominee() bool { return t.Status == Pipelined && t.Job == nil }

// NeverPreempts reports whether the pod, or the PriorityClass of its job, has the preemptionPolicy Never (rule P6).
func (t *Task) NeverPreempts() bool {
	policy := t.Pod.Spec.PreemptionPolicy
	return policy != nil && *policy == corev1.PreemptNever || t.Job != nil && t.Job.NeverPreempts
}

// How long after its grace period a terminating pod is still counted on to end. The kubelet and the watch take some
// seconds. A pod of a job of which others have taken longer gets as much time as these and the least in addition, at
// most the longest. Otherwise each pod that takes the place of a victim would be evicted in turn, and none counted on.
// It is forgotten after a while, since what made them late may be over.
const (
	LeastAllowance   = 30 * time.Second
	longestAllowance = 15 * time.Minute
	latenessCounts   = time.Hour
)

// Grace is the grace period of the pod.
func (t *Task) Grace() time.Duration {
	if seconds := t.Pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		return time.Duration(*seconds) * time.Second
	}
	return corev1.DefaultTerminationGracePeriodSeconds * time.Second
}

// Allowance is how long after its grace period the task is counted on to end: what was decided when it was evicted, or
// what would be if it were evicted now.
func (t *Task) Allowance(now time.Time) time.Duration {
	if t.allowance == 0 && t.Job != nil {
		return t.Job.allowance(now)
	}
	return max(t.allowance, LeastAllowance)
}

// ReadAllowance reads how long the pod is counted on to end from the record of its eviction.
func (t *Task) ReadAllowance() {
	t.allowance = 0
	if r, ok := decision.EvictionOf(t.Pod); ok {
		seconds := min(r.Allowance, int64(longestAllowance/time.Second))
		t.allowance = max(time.Duration(seconds)*time.Second, LeastAllowance)
	}
}

// Due is until when a terminating task is counted on to end, zero if it is not terminating. Its deletionTimestamp is
// the end of the grace period.
func (t *Task) Due() time.Time {
	if t.Status != Releasing || t.Pod.DeletionTimestamp == nil {
		return time.Time{}
	}
	return t.Pod.DeletionTimestamp.Add(max(t.allowance, LeastAllowance))
}

// Read reads the pod's fields of the task itself. An index or priority that cannot be read is ignored.
func (t *Task) Read(pod *Pod) {
	t.Pod, t.mark, t.isPlain = pod, markingOf(pod.Annotations, pod.Labels), isPlain(pod)
	t.Internal.Budgets = budget.Found{}
	t.ReadAllowance()
	if t.Role = pod.Labels[v1beta2.PodSetLabel]; t.Role == "" || pod.Annotations[v1beta2.WorkloadAnnotation] == "" {
		t.Role = cmp.Or(pod.Annotations[batchv1alpha1.TaskSpecKey], batchv1alpha1.DefaultTaskSpec)
	}
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

// Belonging returns what placement needs to know about the job and queue of a task.
func (t *Task) Belonging() podclass.Belonging {
	if t.Job == nil {
		return podclass.Belonging{}
	}
	b := t.Job.Internal.Belonging
	if b.Job != (types.NamespacedName{}) {
		b.Role = t.Role
	}
	return b
}

// LargestFirst returns tasks sorted by their dominant share of a total, the largest first.
func LargestFirst(tasks []*Task, total resources.Vector) []*Task {
	sorted := slices.Clone(tasks)
	slices.SortStableFunc(sorted, func(t, u *Task) int {
		a, _ := resources.DominantShare(t.Request(), total)
		b, _ := resources.DominantShare(u.Request(), total)
		return b.Compare(a)
	})
	return sorted
}
