package builder

import (
	"cmp"
	"fmt"
	"maps"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// PodName is the name of the index-th pod of a task.
func PodName(job, task string, index int) string {
	return fmt.Sprintf("%s-%s-%d", job, task, index)
}

// ClaimName is the name of the claim that a volume of the Job mounts. The claim that is made for a volume carries a
// part of the Job's UID, so that a Job never finds the data of an earlier one of its name.
func ClaimName(job *batch.Job, volume int) string {
	if name := job.Spec.Volumes[volume].VolumeClaimName; name != "" {
		return name
	}
	part, _, _ := strings.Cut(string(job.UID), "-")
	return fmt.Sprintf("%s-pvc-%s-%d", job.Name, part, volume)
}

// OwnerReference makes the Job the controller of what it creates.
func OwnerReference(job *batch.Job) *metav1.OwnerReference {
	return metav1.NewControllerRef(job, batch.GroupVersion.WithKind("Job"))
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

// Pod makes the pod with this index of a task of a defaulted Job. It has the template, the Job as its controller, and
// the Job's PriorityClass unless the template names one. The scheduler and users find it by its labels and annotations.
// The same arguments give the same pod.
func Pod(job *batch.Job, task *batch.TaskSpec, index int) *corev1.Pod {
	template := task.Template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            PodName(job.Name, task.Name, index),
			Namespace:       job.Namespace,
			Labels:          template.Labels,
			Annotations:     template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*OwnerReference(job)},
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
		pod.Labels[batch.TaskPartitionIDKey] = strconv.Itoa(task.Partition(index))
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

// mountVolumes mounts the Job's volumes into every container of the pod. A claim that is mounted in several places is
// one volume.
func mountVolumes(pod *corev1.Pod, job *batch.Job) {
	names := map[string]string{}
	for v := range job.Spec.Volumes {
		claim := ClaimName(job, v)
		name, known := names[claim]
		if !known {
			name = fmt.Sprintf("job-volume-%d", v)
			names[claim] = name
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}})
		}
		for c := range pod.Spec.Containers {
			container := &pod.Spec.Containers[c]
			container.VolumeMounts = append(container.VolumeMounts,
				corev1.VolumeMount{Name: name, MountPath: job.Spec.Volumes[v].MountPath})
		}
	}
}
