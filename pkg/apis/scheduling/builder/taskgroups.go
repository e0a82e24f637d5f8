package builder

import (
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batch "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	scheduling "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
)

// TaskGroupRole returns the role of a pod in the PodGroup of its application: its task group. It is "" if the pod names
// none, or names a role of a Job already. The sentence says that the application has no such task group; the pod is
// then scheduled apart from the gang.
func TaskGroupRole(pod *corev1.Pod, group *scheduling.PodGroup) (role, problem string) {
	role = pod.Annotations[yunikorn.TaskGroupNameKey]
	if role == "" || pod.Annotations[batch.TaskSpecKey] != "" {
		return "", ""
	}
	if _, is := group.Spec.MinTaskMember[role]; !is {
		problem = fmt.Sprintf("annotation %s: PodGroup %s has no task group %q; the pod is scheduled by itself",
			yunikorn.TaskGroupNameKey, group.Name, role)
	}
	return role, problem
}

// addTaskGroups makes the PodGroup of an application a gang, if its first pod has task groups: each group is a role
// with a minimum. The scheduler finds the form of pods that do not exist yet in the annotations. It returns sentences
// about annotations that could not be read.
func addTaskGroups(group *scheduling.PodGroup, first *corev1.Pod) (problems []string) {
	text := first.Annotations[yunikorn.TaskGroupsKey]
	if text == "" {
		return nil
	}
	groups, err := yunikorn.ReadTaskGroups(text)
	if err != nil {
		return []string{fmt.Sprintf("annotation %s: %s; the pods are scheduled without task groups", yunikorn.TaskGroupsKey,
			strings.ReplaceAll(err.Error(), "\n", "; "))}
	}
	parameters := first.Annotations[yunikorn.GangParametersKey]
	_, wrong := yunikorn.ReadGangParameters(parameters)
	for _, problem := range wrong {
		problems = append(problems, fmt.Sprintf("annotation %s: %s", yunikorn.GangParametersKey, problem))
	}
	metav1.SetMetaDataAnnotation(&group.ObjectMeta, yunikorn.TaskGroupsKey, text)
	if parameters != "" {
		metav1.SetMetaDataAnnotation(&group.ObjectMeta, yunikorn.GangParametersKey, parameters)
	}
	needed := corev1.ResourceList{}
	group.Spec.MinMember, group.Spec.MinTaskMember = 0, map[string]int32{}
	for i := range groups {
		g := &groups[i]
		group.Spec.MinMember += g.MinMember
		group.Spec.MinTaskMember[g.Name] = g.MinMember
		requests := maps.Clone(g.MinResource)
		delete(requests, corev1.ResourcePods) // AddUsage counts them
		AddUsage(needed, &corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}}}, g.MinMember)
	}
	group.Spec.MinResources = &needed
	return problems
}
