package job

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

// none stands for no task, or no pod of the task, in an occurrence or demand.
const none = -1

// occurrence is something that a lifecycle policy may answer. It is read off the present state and not off a stream of
// events, so that nothing is lost that happened while no controller ran, and an answer that failed is tried again.
type occurrence struct {
	event bus.Event

	// task is the position in spec.tasks and index the number of the pod in it, or none.
	task, index int

	// exitCodes are those of the containers of a failed pod that are not 0.
	exitCodes []int32

	// since is when it became so; the zero time if the state does not tell.
	since time.Time

	// what is it as a sentence.
	what string
}

// occurrences lists what there is to be answered of a defaulted Job that makes pods, the Job's own first, then by task
// and pod. Unseen names the pods that were created and that the cache does not show. A Job without policies has none.
func occurrences(job *batch.Job, pods []*corev1.Pod, unseen sets.Set[string], group *scheduling.PodGroup) []occurrence {
	if !hasPolicies(job) || reachedMinSuccess(job, pods) {
		return nil
	}
	var found []occurrence
	if observed := job.Status.ObservedGeneration; observed != 0 && observed != job.Generation {
		found = append(found, occurrence{event: bus.JobUpdatedEvent, task: none, index: none, what: "the spec of the Job was changed"})
	}
	members, names := membersByTask(job, pods), slotsOf(job)
	coming := make([][]int, len(job.Spec.Tasks))
	for pod := range unseen {
		if slot, isWanted := names.find(pod); isWanted {
			coming[slot.task] = append(coming[slot.task], slot.index)
		}
	}
	if group != nil && group.Status.Phase == scheduling.PodGroupUnknown && isTorn(members) {
		found = append(found, occurrence{event: bus.JobUnknownEvent, task: none, index: none,
			what: "part of the gang runs, the rest cannot be placed"})
	}
	for t, members := range members {
		found = append(found, podOccurrences(job, t, members)...)
		found = append(found, taskOccurrences(job, t, members)...)
		found = append(found, evictions(job, t, members, coming[t])...)
	}
	return found
}

func hasPolicies(job *batch.Job) bool {
	return len(job.Spec.Policies) > 0 ||
		slices.ContainsFunc(job.Spec.Tasks, func(task batch.TaskSpec) bool { return len(task.Policies) > 0 })
}

// reachedMinSuccess says whether the Job has all it was started for. What happens to the rest of it does not matter.
func reachedMinSuccess(job *batch.Job, pods []*corev1.Pod) bool {
	if job.Spec.MinSuccess == nil {
		return false
	}
	status := batch.JobStatus{}
	count(&status, pods)
	return status.Succeeded >= *job.Spec.MinSuccess
}

// member is a pod that counts for its task: of the Job's present version, wanted, and not terminating.
type member struct {
	*corev1.Pod
	index int
}

// membersByTask returns the members of each task in the order of their index.
func membersByTask(job *batch.Job, pods []*corev1.Pod) [][]member {
	position := make(map[string]int, len(job.Spec.Tasks))
	for t := range job.Spec.Tasks {
		position[job.Spec.Tasks[t].Name] = t
	}
	members := make([][]member, len(job.Spec.Tasks))
	for _, pod := range pods {
		t, known := position[pod.Annotations[batch.TaskSpecKey]]
		index, err := strconv.Atoi(pod.Annotations[batch.TaskIndexKey])
		if !known || err != nil || index >= int(job.Spec.Tasks[t].Replicas) || pod.DeletionTimestamp != nil || isOutdated(job, pod) {
			continue
		}
		members[t] = append(members[t], member{pod, index})
	}
	for _, members := range members {
		slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.index, b.index) })
	}
	return members
}

// isOutdated says whether the pod was made before the Job's pods were last replaced as a whole.
func isOutdated(job *batch.Job, pod *corev1.Pod) bool {
	version, err := strconv.Atoi(pod.Annotations[batch.JobVersionKey])
	return err == nil && version < int(job.Status.Version)
}

// isTorn says whether some members have started and others wait. Right after a restart all wait, and the phase that the
// scheduler wrote before it must not be taken for news.
func isTorn(tasks [][]member) bool {
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

func podOccurrences(job *batch.Job, t int, members []member) []occurrence {
	var found []occurrence
	for _, member := range members {
		switch member.Status.Phase {
		case corev1.PodFailed:
			codes, since := failure(member.Pod)
			what := fmt.Sprintf("pod %s failed", member.Name)
			if len(codes) > 0 {
				what += fmt.Sprintf(" with exit code %d", codes[0])
			}
			found = append(found, occurrence{event: bus.PodFailedEvent, task: t, index: member.index, exitCodes: codes, since: since, what: what})
		case corev1.PodPending:
			found = append(found, occurrence{event: bus.PodPendingEvent, task: t, index: member.index, since: member.CreationTimestamp.Time,
				what: fmt.Sprintf("pod %s is pending", member.Name)})
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

// taskOccurrences tells of a task that has completed, or whose containers were restarted in place more often than the
// task allows, or that has ended with a failure.
func taskOccurrences(job *batch.Job, t int, members []member) []occurrence {
	task := &job.Spec.Tasks[t]
	var succeeded, failed, restarts int32
	for _, member := range members {
		switch member.Status.Phase {
		case corev1.PodSucceeded:
			succeeded++
		case corev1.PodFailed:
			failed++
		default:
			restarts += containerRestarts(member.Pod)
		}
	}
	switch {
	case task.Replicas == 0:
		return nil
	case succeeded == task.Replicas:
		return []occurrence{{event: bus.TaskCompletedEvent, task: t, index: none, what: fmt.Sprintf("task %s completed", task.Name)}}
	case restarts > task.MaxRetry:
		return []occurrence{{event: bus.TaskFailedEvent, task: t, index: none,
			what: fmt.Sprintf("containers of task %s were restarted %d times, its maxRetry is %d", task.Name, restarts, task.MaxRetry)}}
	case succeeded+failed == task.Replicas:
		return []occurrence{{event: bus.TaskFailedEvent, task: t, index: none,
			what: fmt.Sprintf("task %s ended with %d of %d pods failed", task.Name, failed, task.Replicas)}}
	}
	return nil
}

func containerRestarts(pod *corev1.Pod) int32 {
	var restarts int32
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			restarts += statuses[i].RestartCount
		}
	}
	return restarts
}

// evictions tells of pods that are gone, or going, without the Job's doing and before they finished; coming are those that
// were made and are not shown. The controller deletes pods only in phases of its own and puts into the status how many are
// left; so if there are fewer than the status says, somebody else deleted some. Which pods they were is not on record. They
// are made in the order of their index, so as many as are gone are named of those that are not there, from the first on.
func evictions(job *batch.Job, t int, members []member, coming []int) []occurrence {
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
	// Scaling down takes pods away too, and finished ones may be cleaned up.
	lost := min(recorded, task.Replicas) - int32(len(there)) - max(0, recordedFinished-finished)
	if lost <= 0 {
		return nil
	}
	var found []occurrence
	gaps(there, task.Replicas, func(index int) bool {
		found = append(found, eviction(job, t, index))
		return len(found) < int(lost)
	})
	return found
}

func eviction(job *batch.Job, t, index int) occurrence {
	return occurrence{event: bus.PodEvictedEvent, task: t, index: index,
		what: fmt.Sprintf("pod %s was evicted or deleted", builder.PodName(job.Name, job.Spec.Tasks[t].Name, index))}
}

// isBack says whether the pod of the index runs, or has finished.
func isBack(members []member, index int) bool {
	return slices.ContainsFunc(members, func(m member) bool { return m.index == index && m.Status.Phase != corev1.PodPending })
}
