package simulator

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingbuilder "hekla.sh/hekla/pkg/apis/scheduling/builder"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/pkg/plugins/guaranteedshares"
)

// groupFor makes the PodGroup of a pod. With guaranteed shares the pods of one application of YuniKorn share one, in which each has the
// role of its task group.
func (s *simulation) groupFor(pod *corev1.Pod, around schedulingbuilder.Surroundings) (group *schedulingv1beta1.PodGroup, role string) {
	group, _ = schedulingbuilder.PodGroup(pod, around)
	id := yunikorn.ApplicationID(pod.Labels, pod.Annotations)
	if id == "" || !s.scheduler.Policy().Uses(guaranteedshares.Name) {
		return group, ""
	}
	group.Name, group.OwnerReferences = applicationPrefix+id, nil
	group.Spec.MinMember = 1
	if path := yunikorn.QueuePath(pod.Labels, pod.Annotations); path != "" && pod.Annotations[schedulingv1beta1.QueueNameAnnotationKey] == "" {
		group.Spec.Queue = s.queueAt(path)
	}
	needed := corev1.ResourceList{}
	schedulingbuilder.AddUsage(needed, &pod.Spec, 1)
	group.Spec.MinResources = &needed
	schedulingbuilder.AddTaskGroups(group, pod)
	return group, schedulingbuilder.TaskGroupRole(pod)
}

// applicationPrefix begins the names of PodGroups of applications.
const applicationPrefix = schedulingv1beta1.PodGroupNamePrefix + "app-"

// isLastOfApplication reports whether the PodGroup of an application goes with a pod that is gone.
func (s *simulation) isLastOfApplication(group *schedulingv1beta1.PodGroup) bool {
	if !strings.HasPrefix(group.Name, applicationPrefix) || metav1.GetControllerOfNoCopy(group) != nil {
		return false
	}
	for _, pod := range s.pods {
		if pod.Namespace == group.Namespace && pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] == group.Name {
			return false
		}
	}
	return true
}

// queueAt returns the name of the queue for a path: the queue that has it, otherwise the queue of this name, with or without the root.
func (s *simulation) queueAt(path string) string {
	var queues []*schedulingv1beta1.Queue
	for _, o := range s.shown.objects {
		if q, ok := o.(*schedulingv1beta1.Queue); ok {
			queues = append(queues, q)
		}
	}
	slices.SortFunc(queues, func(a, b *schedulingv1beta1.Queue) int { return strings.Compare(a.Name, b.Name) })
	short := strings.TrimPrefix(path, yunikorn.RootQueue+".")
	for _, wanted := range []string{path, short, yunikorn.RootQueue + "." + short} {
		for _, q := range queues {
			if q.Annotations[schedulingv1beta1.QueuePathKey] == wanted {
				return q.Name
			}
		}
		for _, q := range queues {
			if q.Name == wanted {
				return q.Name
			}
		}
	}
	return path
}
