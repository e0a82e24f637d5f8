package lifecycle

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
)

// Slot is one pod that a Job wants: the index-th replica of spec.tasks[task].
type Slot struct {
	Task, Index int
}

// Slots finds the replica of a defaulted Job that a pod is, by the name of the pod.
type Slots struct {
	prefix    string
	positions map[string]int
	tasks     []batch.TaskSpec
}

// SlotsOf returns the slots of a defaulted Job.
func SlotsOf(job *batch.Job) Slots {
	s := Slots{prefix: job.Name + "-", positions: make(map[string]int, len(job.Spec.Tasks)), tasks: job.Spec.Tasks}
	for t := range job.Spec.Tasks {
		s.positions[job.Spec.Tasks[t].Name] = t
	}
	return s
}

// Find returns the replica that a pod of this name is; false if the Job wants none of the name.
func (s Slots) Find(pod string) (Slot, bool) {
	rest, isOurs := strings.CutPrefix(pod, s.prefix)
	dash := strings.LastIndexByte(rest, '-')
	if !isOurs || dash < 0 {
		return Slot{}, false
	}
	t, isKnown := s.positions[rest[:dash]]
	index, err := strconv.Atoi(rest[dash+1:])
	if !isKnown || err != nil || index < 0 || index >= int(s.tasks[t].Replicas) || strconv.Itoa(index) != rest[dash+1:] {
		return Slot{}, false
	}
	return Slot{t, index}, true
}

// gaps calls visit with the indexes from 0 that are not among the taken ones, in order, until it returns false. That
// costs as much as there are pods, not as many as the task is to have.
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

// MissingAndSurplus compares the pods that a defaulted Job needs, without those of tasks that are held back, with the
// pods that it has. These are the pods in the cache, and those that were created and do not show yet, by name. A pod
// that is terminating still holds its name, so it is neither missing nor surplus. At most so many missing ones are
// named; isPart says that there are more.
func MissingAndSurplus(
	job *batch.Job, pods []*corev1.Pod, unseen sets.Set[string], held []string, limit int,
) (missing []Slot, isPart bool, surplus []*corev1.Pod) {
	names := SlotsOf(job)
	taken := make([][]int, len(job.Spec.Tasks))
	for _, pod := range pods {
		if slot, isWanted := names.Find(pod.Name); isWanted {
			taken[slot.Task] = append(taken[slot.Task], slot.Index)
		} else if pod.DeletionTimestamp == nil {
			surplus = append(surplus, pod)
		}
	}
	for name := range unseen {
		if slot, isWanted := names.Find(name); isWanted {
			taken[slot.Task] = append(taken[slot.Task], slot.Index)
		}
	}
	for t := range job.Spec.Tasks {
		if held[t] != "" {
			continue
		}
		gaps(taken[t], job.Spec.Tasks[t].Replicas, func(index int) bool {
			isPart = len(missing) == limit
			if !isPart {
				missing = append(missing, Slot{Task: t, Index: index})
			}
			return !isPart
		})
	}
	return missing, isPart, surplus
}

// Leftovers are the pods that have to go when the Job is in a phase that makes none. Pods that have finished stay, for
// their logs. A Job that restarts only gets rid of outdated pods, which are all of them if it restarts as a whole; and
// of none if it is about to fail for want of retries.
func Leftovers(job *batch.Job, pods []*corev1.Pod) []*corev1.Pod {
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

// numberOutdated counts the outdated pods that are not deleted yet.
func numberOutdated(job *batch.Job, pods []*corev1.Pod) int32 {
	var number int32
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil && isOutdated(job, pod) {
			number++
		}
	}
	return number
}
