package expected

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/pods"
)

// Pods are one for each of them, as objects that do not exist, at most so many; none if there would be more.
func Pods(j *cluster.Job, most int) (all []*corev1.Pod) {
	sets, count := Sets(j)
	if count > most {
		return nil
	}
	for _, set := range sets {
		for range set.Count {
			pod := set.Template.Object().DeepCopy()
			pod.Name = fmt.Sprintf("expected-%s-%d", j.ID.Name, len(all))
			pod.Annotations[batch.TaskSpecKey] = set.Name
			all = append(all, pod)
		}
	}
	return all
}

// AreExpected reports whether pods of a job are expected: it waits for admission, and has fewer than must start
// together.
func AreExpected(j *cluster.Job) bool {
	return j.IsPendingAdmission() && len(j.Tasks()) < least(j)
}

// least is how many pods of a job must start together.
func least(j *cluster.Job) int { return int(max(j.MinMember, 1)) }

// Sets are what the pods of a job are expected to be that do not exist yet, and how many. Each has an equal part of
// its minResources, and each task as many as must start together and are not there. There are none if the job does not
// say what it needs.
func Sets(j *cluster.Job) (sets []*cluster.Podset, count int) {
	if j.Group.Spec.MinResources == nil {
		return nil, 0
	}
	minimums, named := j.Group.Spec.MinTaskMember, 0
	for _, minimum := range minimums {
		named += int(minimum)
	}
	whole := max(least(j), named)
	missing, others := map[string]int{}, whole-named
	for task, minimum := range minimums {
		missing[task] = int(minimum)
	}
	for _, t := range j.Tasks() { // those of a gang that was evicted, of which some are there again
		switch {
		case missing[t.Role] > 0:
			missing[t.Role]--
		case others > 0:
			others--
		}
	}
	pod := pods.New(podOf(j, int64(whole)))
	for _, task := range slices.Sorted(maps.Keys(minimums)) {
		sets, count = append(sets, &cluster.Podset{Name: task, Count: missing[task], Template: pod}), count+missing[task]
	}
	return append(sets, &cluster.Podset{Name: batch.DefaultTaskSpec, Count: others, Template: pod}), count + others
}

// podOf is one of some equal pods that request together what a job needs.
func podOf(j *cluster.Job, count int64) *corev1.Pod {
	requests := corev1.ResourceList{}
	for name, quantity := range *j.Group.Spec.MinResources {
		part := quantity.DeepCopy()
		if name == corev1.ResourceCPU {
			part.SetMilli((quantity.MilliValue() + count - 1) / count)
		} else {
			part.Set((quantity.Value() + count - 1) / count)
		}
		if !isOfQuota(name) {
			requests[name] = part
		}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{SchedulerName: j.Scheduler(), PriorityClassName: j.Group.Spec.PriorityClassName, Priority: &j.Priority,
		Containers: []corev1.Container{{Name: "expected", Resources: corev1.ResourceRequirements{Requests: requests}}}}}
	pod.Namespace = j.ID.Namespace
	pod.Annotations = map[string]string{schedulingv1beta1.KubeGroupNameAnnotationKey: j.ID.Name}
	return pod
}

// isOfQuota reports whether only ResourceQuotas count a resource.
func isOfQuota(name corev1.ResourceName) bool {
	for _, prefix := range []string{corev1.DefaultResourceRequestsPrefix, "limits.", "count/", "pods"} {
		if len(name) >= len(prefix) && string(name[:len(prefix)]) == prefix {
			return true
		}
	}
	return false
}
