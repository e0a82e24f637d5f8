package simulator

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/simulator/workloads"
)

// podsOfJobs returns the pods that the Job controller of Kubernetes makes for the Jobs of the input, in addition to
// those that are given.
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
		j = j.DeepCopy()
		if s.queued.HoldJob(j) {
			continue
		}
		lacks := workloads.PodsWanted(j) - given[j.UID]
		for index := 0; lacks > 0; index++ {
			pod := workloads.PodOf(j, index)
			if names[keyOf(pod)] {
				continue
			}
			s.input.CreatePod(pod)
			made = append(made, pod)
			lacks--
		}
	}
	return made
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
