package simulator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "hekla.sh/hekla/pkg/apis/batch/v1alpha1"
	schedulingbuilder "hekla.sh/hekla/pkg/apis/scheduling/builder"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/apis/yunikorn"
	"hekla.sh/hekla/pkg/plugins/guaranteedshares"
)

// applications does what the PodGroup controller does.
type applications struct{ *simulation }

// grouped gives a pod of ours that names no PodGroup one of its own, as the controller does. With guaranteed shares the
// labels of YuniKorn's users count: the pods of one application share a PodGroup, in which each has the role of its
// task group.
func (s applications) grouped(pod *corev1.Pod) *corev1.Pod {
	if !slices.Contains(s.options.SchedulerNames, pod.Spec.SchedulerName) ||
		pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] != "" || s.queued.IsOfWorkload(pod) {
		return pod
	}
	around := schedulingbuilder.Surroundings{Owner: s.ownerOf(pod)}
	if namespace := s.input.Namespaces[pod.Namespace]; namespace != nil {
		around.Namespace = namespace.Annotations
	}
	readsYuniKorn := s.scheduler.Policy().Uses(guaranteedshares.Name)
	if path := yunikorn.QueuePath(pod.Labels, pod.Annotations); readsYuniKorn && path != "" {
		around.LabelQueue, around.LabelProblem = schedulingbuilder.FindQueue(path, s.queueAt, s.hasQueue)
	}
	isOfApplication := readsYuniKorn && schedulingbuilder.ApplicationGroupName(pod) != ""
	build := schedulingbuilder.PodGroup
	if isOfApplication {
		build = schedulingbuilder.ApplicationGroup
	}
	group, _ := build(pod, around)
	group = s.groupFor(group, pod, isOfApplication)
	pod = pod.DeepCopy()
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, schedulingv1beta1.KubeGroupNameAnnotationKey, group.Name)
	if role, _ := schedulingbuilder.TaskGroupRole(pod, group); isOfApplication && role != "" {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, batchv1alpha1.TaskSpecKey, role)
	}
	return pod
}

// groupFor returns the PodGroup that a pod joins: the one there is of its name, otherwise the wanted one, which it
// creates. An application none of whose pods is alive begins again.
func (s applications) groupFor(wanted *schedulingv1beta1.PodGroup, pod *corev1.Pod, isOfApplication bool) *schedulingv1beta1.PodGroup {
	id := groupID(wanted)
	current := s.groups[id]
	switch {
	case current == nil:
		wanted.UID = types.UID("PodGroup " + id.String())
		wanted.CreationTimestamp = pod.CreationTimestamp
		s.setGroup(wanted)
		return wanted
	case isOfApplication && isAlive(pod) && schedulingbuilder.IsApplicationGroup(current) && !s.hasMember(current, isAlive):
		current = schedulingbuilder.Renew(current, wanted)
		s.shown.write(current, true)
		s.setGroup(current)
	}
	return current
}

// isAlive reports whether a pod waits or runs.
func isAlive(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

// hasMember reports whether any pod of a PodGroup is such as a function wants.
func (s applications) hasMember(group *schedulingv1beta1.PodGroup, isSuch func(*corev1.Pod) bool) bool {
	for _, pod := range s.pods {
		if pod.Namespace == group.Namespace && pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey] == group.Name && isSuch(pod) {
			return true
		}
	}
	return false
}

// isLastOfApplication reports whether the PodGroup of an application goes with a pod that is gone.
func (s applications) isLastOfApplication(group *schedulingv1beta1.PodGroup) bool {
	return schedulingbuilder.IsApplicationGroup(group) && metav1.GetControllerOfNoCopy(group) == nil &&
		!s.hasMember(group, func(*corev1.Pod) bool { return true })
}

// queueAt returns the name of the first Queue that has a path in YuniKorn, "" if none has.
func (s applications) queueAt(path string) (name string) {
	for _, o := range s.shown.objects {
		if q, is := o.(*schedulingv1beta1.Queue); is && q.Annotations[schedulingv1beta1.QueuePathKey] == path && (name == "" || q.Name < name) {
			name = q.Name
		}
	}
	return name
}

func (s applications) hasQueue(name string) bool {
	for _, o := range s.shown.objects {
		if q, is := o.(*schedulingv1beta1.Queue); is && q.Name == name {
			return true
		}
	}
	return false
}
