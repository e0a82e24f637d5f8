package job

import (
	"fmt"
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// BuildPod makes the index-th pod of a task of a defaulted Job: the template, the Job as controller, and the labels and
// annotations by which the scheduler and users find it. The same arguments give the same pod.
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

// controllerRef makes the Job the controller of what it creates.
func controllerRef(job *batch.Job) *metav1.OwnerReference {
	return metav1.NewControllerRef(job, batch.GroupVersion.WithKind("Job"))
}

// slot is one pod that a Job wants: the index-th replica of spec.tasks[task].
type slot struct {
	task, index int
}

// missingAndSurplus compares the pods a defaulted Job wants with those it has. A pod that is terminating still holds
// its name, so it is neither missing nor surplus.
func missingAndSurplus(job *batch.Job, pods []*corev1.Pod) (missing []slot, surplus []*corev1.Pod) {
	present := make(map[string]bool, len(pods))
	for _, pod := range pods {
		present[pod.Name] = true
	}
	wanted := make(map[string]bool, len(pods))
	for t := range job.Spec.Tasks {
		task := &job.Spec.Tasks[t]
		for index := range int(task.Replicas) {
			name := PodName(job.Name, task.Name, index)
			wanted[name] = true
			if !present[name] {
				missing = append(missing, slot{task: t, index: index})
			}
		}
	}
	for _, pod := range pods {
		if !wanted[pod.Name] && pod.DeletionTimestamp == nil {
			surplus = append(surplus, pod)
		}
	}
	return missing, surplus
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
