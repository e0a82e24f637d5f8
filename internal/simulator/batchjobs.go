package simulator

import (
	"fmt"
	"maps"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// podsOfJobs returns the pods that the Job controller of Kubernetes makes for the Jobs of the input, beside those that are given.
func (s *simulation) podsOfJobs() (made []*corev1.Pod) {
	given := map[types.UID]int{}
	names := map[types.NamespacedName]bool{}
	for _, pod := range s.input.Pods {
		names[keyOf(pod)] = true
		if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && isAlive(pod) {
			given[owner.UID]++
		}
	}
	for _, j := range s.input.BatchJobs {
		lacks := podsWanted(j) - given[j.UID]
		for index := 0; lacks > 0; index++ {
			pod := podOf(j, index)
			if names[keyOf(pod)] {
				continue
			}
			s.input.CompletePod(pod)
			made = append(made, pod)
			lacks--
		}
	}
	return made
}

// podsWanted is how many pods of a Job run at a time: none of one that is over, suspended, or managed by another controller.
func podsWanted(j *batchv1.Job) int {
	for _, c := range j.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return 0
		}
	}
	if ptr.Deref(j.Spec.Suspend, false) || ptr.Deref(j.Spec.ManagedBy, batchv1.JobControllerName) != batchv1.JobControllerName {
		return 0
	}
	wanted := ptr.Deref(j.Spec.Parallelism, 1)
	if j.Spec.Completions != nil {
		wanted = min(wanted, *j.Spec.Completions-j.Status.Succeeded)
	}
	return int(wanted)
}

// podOf is a pod of a Job. Its name ends in a number, where the controller puts random letters.
func podOf(j *batchv1.Job, index int) *corev1.Pod {
	template := j.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = j.Namespace, fmt.Sprintf("%s-%d", j.Name, index)
	pod.UID, pod.CreationTimestamp = types.UID("Pod "+keyOf(pod).String()), j.CreationTimestamp
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(j, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod.Labels = maps.Clone(pod.Labels)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, batchv1.JobNameLabel, j.Name)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, batchv1.ControllerUidLabel, string(j.UID))
	if ptr.Deref(j.Spec.CompletionMode, batchv1.NonIndexedCompletion) == batchv1.IndexedCompletion {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, batchv1.JobCompletionIndexAnnotation, strconv.Itoa(index))
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, batchv1.JobCompletionIndexAnnotation, strconv.Itoa(index))
	}
	return pod
}

// ownerOf returns the annotations of the Job that controls a pod, nil if none of the input does.
func (s *simulation) ownerOf(pod *corev1.Pod) map[string]string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != "Job" || owner.APIVersion != batchv1.SchemeGroupVersion.String() {
		return nil
	}
	for _, j := range s.input.BatchJobs {
		if j.Namespace == pod.Namespace && j.Name == owner.Name {
			return j.Annotations
		}
	}
	return nil
}
