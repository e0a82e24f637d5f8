package lifecycle

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"hekla.sh/hekla/pkg/apis/batch/builder"
	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	bus "hekla.sh/hekla/pkg/apis/bus/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// None means no task, or no pod of the task, in an occurrence or demand.
const None = -1

// Occurrence is something to which a lifecycle policy may react. It follows from the current state and not from a
// stream of events. So nothing is lost while no controller runs, and a reaction that failed is tried again.
type Occurrence struct {
	Event bus.Event

	// Task is the position in spec.tasks and index the number of the pod in it, or none.
	Task, Index int

	// exitCodes are those of the containers of a failed pod that are not 0.
	exitCodes []int32

	// Since is when it happened; zero if the state does not show that.
	Since time.Time

	// What describes it as a sentence.
	What string
}

// Occurrences lists the occurrences of a defaulted Job that creates pods, the Job's own first, then by task and pod.
// Unseen names the pods that were created and that the cache does not show. A Job without policies has none.
func Occurrences(job *batch.Job, pods []*corev1.Pod, unseen sets.Set[string], group *scheduling.PodGroup) []Occurrence {
	if !HasPolicies(job) || reachedMinSuccess(job, pods) {
		return nil
	}
	var found []Occurrence
	if observed := job.Status.ObservedGeneration; observed != 0 && observed != job.Generation {
		found = append(found, Occurrence{Event: bus.JobUpdatedEvent, Task: None, Index: None, What: "the spec of the Job was changed"})
	}
	members, names := MembersByTask(job, pods), SlotsOf(job)
	coming := make([][]int, len(job.Spec.Tasks))
	for pod := range unseen {
		if slot, isWanted := names.Find(pod); isWanted {
			coming[slot.Task] = append(coming[slot.Task], slot.Index)
		}
	}
	if group != nil && group.Status.Phase == scheduling.PodGroupUnknown && isTorn(members) {
		found = append(found, Occurrence{Event: bus.JobUnknownEvent, Task: None, Index: None,
			What: "part of the gang runs, the rest cannot be placed"})
	}
	for t, members := range members {
		found = append(found, podOccurrences(job, t, members)...)
		found = append(found, taskOccurrences(job, t, members)...)
		found = append(found, evictions(job, t, members, coming[t])...)
	}
	return found
}

// HasPolicies says whether the Job, or a task of it, has a policy.
func HasPolicies(job *batch.Job) bool {
	return len(job.Spec.Policies) > 0 ||
		slices.ContainsFunc(job.Spec.Tasks, func(task batch.TaskSpec) bool { return len(task.Policies) > 0 })
}

// reachedMinSuccess reports whether the Job has reached minSuccess, so that the rest of it does not matter.
func reachedMinSuccess(job *batch.Job, pods []*corev1.Pod) bool {
	if job.Spec.MinSuccess == nil {
		return false
	}
	status := batch.JobStatus{}
	count(&status, pods)
	return status.Succeeded >= *job.Spec.MinSuccess
}

// Member is a pod that counts for its task: of the Job's present version, wanted, and not terminating.
type Member struct {
	*corev1.Pod
	index int
}

// MembersByTask returns the members of each task in the order of their index.
func MembersByTask(job *batch.Job, pods []*corev1.Pod) [][]Member {
	position := make(map[string]int, len(job.Spec.Tasks))
	for t := range job.Spec.Tasks {
		position[job.Spec.Tasks[t].Name] = t
	}
	members := make([][]Member, len(job.Spec.Tasks))
	for _, pod := range pods {
		t, known := position[pod.Annotations[batch.TaskSpecKey]]
		index, err := strconv.Atoi(pod.Annotations[batch.TaskIndexKey])
		if !known || err != nil || index >= int(job.Spec.Tasks[t].Replicas) || pod.DeletionTimestamp != nil || isOutdated(job, pod) {
			continue
		}
		members[t] = append(members[t], Member{pod, index})
	}
	for _, members := range members {
		slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.index, b.index) })
	}
	return members
}

// isOutdated says whether the pod was made before the Job's pods were last replaced as a whole.
func isOutdated(job *batch.Job, pod *corev1.Pod) bool {
	version, err := strconv.Atoi(pod.Annotations[batch.JobVersionKey])
	return err == nil && version < int(job.Status.Version)
}

// isTorn reports whether some members have started and others wait. Right after a restart all wait, and the phase that
// the scheduler wrote before must not count.
func isTorn(tasks [][]Member) bool {
	var waiting, started bool
	for _, members := range tasks {
		for _, member := range members {
			if member.Status.Phase == corev1.PodPending {
				waiting = true
			} else {
				started = true
			}
		}
	}
	return waiting && started
}

func podOccurrences(job *batch.Job, t int, members []Member) []Occurrence {
	var found []Occurrence
	for _, member := range members {
		switch member.Status.Phase {
		case corev1.PodFailed:
			codes, since := failure(member.Pod)
			what := fmt.Sprintf("pod %s failed", member.Name)
			if len(codes) > 0 {
				what += fmt.Sprintf(" with exit code %d", codes[0])
			}
			found = append(found, Occurrence{Event: bus.PodFailedEvent, Task: t, Index: member.index, exitCodes: codes, Since: since, What: what})
		case corev1.PodPending:
			found = append(found, Occurrence{Event: bus.PodPendingEvent, Task: t, Index: member.index, Since: member.CreationTimestamp.Time,
				What: fmt.Sprintf("pod %s is pending", member.Name)})
		}
	}
	return found
}

// failure returns the exit codes other than 0 of a pod's containers, and when the last of them ended.
func failure(pod *corev1.Pod) (codes []int32, at time.Time) {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			ended := statuses[i].State.Terminated
			if ended == nil || ended.ExitCode == 0 {
				continue
			}
			codes = append(codes, ended.ExitCode)
			if ended.FinishedAt.After(at) {
				at = ended.FinishedAt.Time
			}
		}
	}
	return codes, at
}

// taskOccurrences returns the occurrence of a task that has completed, or has ended with a failure, or whose containers
// were restarted more often than the task allows.
func taskOccurrences(job *batch.Job, t int, members []Member) []Occurrence {
	task := &job.Spec.Tasks[t]
	var succeeded, failed, restarts int32
	for _, member := range members {
		switch member.Status.Phase {
		case corev1.PodSucceeded:
			succeeded++
		case corev1.PodFailed:
			failed++
		default:
			restarts += ContainerRestarts(member.Pod)
		}
	}
	switch {
	case task.Replicas == 0:
		return nil
	case succeeded == task.Replicas:
		return []Occurrence{{Event: bus.TaskCompletedEvent, Task: t, Index: None, What: fmt.Sprintf("task %s completed", task.Name)}}
	case restarts > task.MaxRetry:
		return []Occurrence{{Event: bus.TaskFailedEvent, Task: t, Index: None,
			What: fmt.Sprintf("containers of task %s were restarted %d times, its maxRetry is %d", task.Name, restarts, task.MaxRetry)}}
	case succeeded+failed == task.Replicas:
		return []Occurrence{{Event: bus.TaskFailedEvent, Task: t, Index: None,
			What: fmt.Sprintf("task %s ended with %d of %d pods failed", task.Name, failed, task.Replicas)}}
	}
	return nil
}

// ContainerRestarts is how often the containers of a pod were restarted.
func ContainerRestarts(pod *corev1.Pod) int32 {
	var restarts int32
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			restarts += statuses[i].RestartCount
		}
	}
	return restarts
}

// evictions returns the occurrences of pods that another client has deleted before they finished. coming are created
// pods that the cache does not show yet. The controller deletes pods only in certain phases, and writes to the status
// how many are left. So if there are fewer than the status says, another client has deleted some. Which pods they were
// is not recorded. Pods are created in the order of their index, so the first missing ones are named.
func evictions(job *batch.Job, t int, members []Member, coming []int) []Occurrence {
	task := &job.Spec.Tasks[t]
	var recorded, recordedFinished, finished int32
	for phase, number := range job.Status.TaskStatusCount[task.Name].Phase {
		recorded += number
		if phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			recordedFinished += number
		}
	}
	there := coming
	for _, member := range members {
		there = append(there, member.index)
		if member.Status.Phase == corev1.PodSucceeded || member.Status.Phase == corev1.PodFailed {
			finished++
		}
	}
	// Scaling down deletes pods too, and finished pods may be cleaned up.
	lost := min(recorded, task.Replicas) - int32(len(there)) - max(0, recordedFinished-finished)
	if lost <= 0 {
		return nil
	}
	var found []Occurrence
	gaps(there, task.Replicas, func(index int) bool {
		found = append(found, Eviction(job, t, index))
		return len(found) < int(lost)
	})
	return found
}

// Eviction is the occurrence that a pod of a task was evicted or deleted.
func Eviction(job *batch.Job, t, index int) Occurrence {
	return Occurrence{Event: bus.PodEvictedEvent, Task: t, Index: index,
		What: fmt.Sprintf("pod %s was evicted or deleted", builder.PodName(job.Name, job.Spec.Tasks[t].Name, index))}
}

// IsBack reports whether the pod with the index runs, or has finished.
func IsBack(members []Member, index int) bool {
	return slices.ContainsFunc(members, func(m Member) bool { return m.index == index && m.Status.Phase != corev1.PodPending })
}
