package job

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// PodName is the name of the index-th pod of a task.
func PodName(job, task string, index int) string {
	return fmt.Sprintf("%s-%s-%d", job, task, index)
}

// inheritedByPods are the keys that a pod takes from its Job's annotations, since the scheduler and its plugins read
// them on pods. What the Job says wins over the template.
var inheritedByPods = [...]string{
	scheduling.PreemptableKey,
	scheduling.CooldownTimeKey,
	scheduling.RevocableZoneKey,
	scheduling.JDBMinAvailableKey,
	scheduling.JDBMaxUnavailableKey,
}

// BuildPod makes the index-th pod of a task of a defaulted Job: the template, the Job as controller, its PriorityClass unless the
// template names one, and the labels and annotations by which the scheduler and users find it. The same arguments give the
// same pod.
func BuildPod(job *batch.Job, task *batch.TaskSpec, index int) *corev1.Pod {
	template := task.Template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            PodName(job.Name, task.Name, index),
			Namespace:       job.Namespace,
			Labels:          template.Labels,
			Annotations:     template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*controllerRef(job)},
		},
		Spec: template.Spec,
	}
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = job.Spec.SchedulerName
	}
	// With it come the priority, and all that goes by it: quotas, kubelets short of memory, autoscalers.
	pod.Spec.PriorityClassName = classOf(job, task)
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	for _, key := range inheritedByPods {
		if value, found := job.Annotations[key]; found {
			pod.Annotations[key] = value
		}
	}
	for _, key := range [...]string{scheduling.PreemptableKey, scheduling.CooldownTimeKey, batch.JobTypeKey} {
		if value, found := job.Labels[key]; found {
			pod.Labels[key] = value
		}
	}
	identity := map[string]string{
		batch.JobNameKey:   job.Name,
		batch.TaskSpecKey:  task.Name,
		batch.TaskIndexKey: strconv.Itoa(index),
		batch.QueueNameKey: job.Spec.Queue,
	}
	maps.Copy(pod.Labels, identity)
	maps.Copy(pod.Annotations, identity)
	pod.Labels[batch.JobNamespaceKey] = job.Namespace
	pod.Annotations[scheduling.KubeGroupNameAnnotationKey] = PodGroupName(job)
	pod.Annotations[batch.JobVersionKey] = strconv.Itoa(int(job.Status.Version))
	pod.Annotations[batch.JobRetryCountKey] = strconv.Itoa(int(job.Status.RetryCount))
	pod.Annotations[batch.PodTemplateKey] = job.Name + "-" + task.Name
	if task.PartitionPolicy != nil {
		pod.Labels[batch.TaskPartitionIDKey] = strconv.Itoa(partitionOf(task, index))
	}
	if task.TopologyPolicy != "" {
		pod.Annotations[scheduling.NumaPolicyKey] = string(task.TopologyPolicy)
	}
	mountVolumes(pod, job)
	return pod
}

// classOf is the PriorityClass of the pods of a task.
func classOf(job *batch.Job, task *batch.TaskSpec) string {
	return cmp.Or(task.Template.Spec.PriorityClassName, job.Spec.PriorityClassName)
}

// controllerRef makes the Job the controller of what it creates.
func controllerRef(job *batch.Job) *metav1.OwnerReference {
	return metav1.NewControllerRef(job, batch.GroupVersion.WithKind("Job"))
}

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
