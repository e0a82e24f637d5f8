package job

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// slot is one pod that a Job wants: the index-th replica of spec.tasks[task].
type slot struct {
	task, index int
}

// slots tells of the pods of a defaulted Job by their names which replica each of them is.
type slots struct {
	prefix    string
	positions map[string]int
	tasks     []batch.TaskSpec
}

func slotsOf(job *batch.Job) slots {
	s := slots{prefix: job.Name + "-", positions: make(map[string]int, len(job.Spec.Tasks)), tasks: job.Spec.Tasks}
	for t := range job.Spec.Tasks {
		s.positions[job.Spec.Tasks[t].Name] = t
	}
	return s
}

// find returns the replica that a pod of this name is; false if the Job wants none of the name.
func (s slots) find(pod string) (slot, bool) {
	rest, isOurs := strings.CutPrefix(pod, s.prefix)
	dash := strings.LastIndexByte(rest, '-')
	if !isOurs || dash < 0 {
		return slot{}, false
	}
	t, isKnown := s.positions[rest[:dash]]
	index, err := strconv.Atoi(rest[dash+1:])
	if !isKnown || err != nil || index < 0 || index >= int(s.tasks[t].Replicas) || strconv.Itoa(index) != rest[dash+1:] {
		return slot{}, false
	}
	return slot{t, index}, true
}

// gaps calls visit with the indexes from 0 that are not among the taken ones, in order, until it returns false. That costs
// as much as there are pods, not as many as the task is to have.
func gaps(taken []int, replicas int32, visit func(index int) bool) {
	slices.Sort(taken)
	next := 0
	for _, index := range append(taken, int(replicas)) {
		for ; next < min(index, int(replicas)); next++ {
			if !visit(next) {
				return
			}
		}
		next = max(next, index+1)
	}
}

// missingAndSurplus compares the pods a defaulted Job wants, but for the tasks that are held back, with those it has: those
// that are shown, and those that were made and are not shown yet, by name. A pod that is terminating still holds its name,
// so it is neither missing nor surplus. At most so many missing ones are named; isPart says that there are more.
func missingAndSurplus(
	job *batch.Job, pods []*corev1.Pod, unseen sets.Set[string], held []string, limit int,
) (missing []slot, isPart bool, surplus []*corev1.Pod) {
	names := slotsOf(job)
	taken := make([][]int, len(job.Spec.Tasks))
	for _, pod := range pods {
		if slot, isWanted := names.find(pod.Name); isWanted {
			taken[slot.task] = append(taken[slot.task], slot.index)
		} else if pod.DeletionTimestamp == nil {
			surplus = append(surplus, pod)
		}
	}
	for name := range unseen {
		if slot, isWanted := names.find(name); isWanted {
			taken[slot.task] = append(taken[slot.task], slot.index)
		}
	}
	for t := range job.Spec.Tasks {
		if held[t] != "" {
			continue
		}
		gaps(taken[t], job.Spec.Tasks[t].Replicas, func(index int) bool {
			isPart = len(missing) == limit
			if !isPart {
				missing = append(missing, slot{task: t, index: index})
			}
			return !isPart
		})
	}
	return missing, isPart, surplus
}

// leftovers are the pods that have to go when the Job is in a phase that makes none. Pods that have finished stay, for
// their logs. A Job that restarts only gets rid of outdated pods, which are all of them if it restarts as a whole; and
// of none if it is about to fail for want of retries.
func leftovers(job *batch.Job, pods []*corev1.Pod) []*corev1.Pod {
	restarting := job.Status.State.Phase == batch.Restarting
	if restarting && isExhausted(job, &job.Status) {
		return nil
	}
	var left []*corev1.Pod
	for _, pod := range pods {
		finished := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if pod.DeletionTimestamp == nil && (restarting && isOutdated(job, pod) || !restarting && !finished) {
			left = append(left, pod)
		}
	}
	return left
}

// numberOutdated counts the outdated pods that nobody has deleted yet.
func numberOutdated(job *batch.Job, pods []*corev1.Pod) int32 {
	var number int32
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && isOutdated(job, pod) {
			number++
		}
	}
	return number
}
