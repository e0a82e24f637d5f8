package simulator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
)

// leaving reports whether any pod is being deleted.
func (s *simulation) leaving() bool {
	for _, pod := range s.pods {
		if pod.DeletionTimestamp != nil {
			return true
		}
	}
	return false
}

// clearAway removes the pods that are being deleted, with Options.Grace only those whose time is up. Their owners
// create them again.
func (s *simulation) clearAway() {
	var gone []*corev1.Pod
	for _, pod := range s.pods {
		if pod.DeletionTimestamp != nil && s.isUp(pod) {
			gone = append(gone, pod)
		}
	}
	slices.SortFunc(gone, func(a, b *corev1.Pod) int { return cluster.CompareNames(keyOf(a), keyOf(b)) })
	for _, pod := range gone {
		s.remove(pod)
	}
}

// remove removes a pod. Its controller makes it again.
func (s *simulation) remove(pod *corev1.Pod) {
	delete(s.pods, keyOf(pod))
	delete(s.overdue, pod.UID)
	s.drop(pod)
	s.supplies.giveBack(pod)
	if s.returns(pod) {
		s.comeBack(pod)
	} else {
		s.dropGroupOf(pod)
	}
}

// isUp reports whether the time of a pod that is being deleted is up.
func (s *simulation) isUp(pod *corev1.Pod) bool {
	due := pod.DeletionTimestamp.Time
	if !s.options.Grace && due.After(s.now) {
		due = s.now
	}
	return !due.Add(s.overdue[pod.UID]).After(s.now)
}

// returns reports whether a pod is made again when it is gone: its controller, or the Job of the input it belongs to.
func (s *simulation) returns(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return false
	}
	if s.queued.IsOfWorkload(pod) && !s.queued.IsQueued(pod) {
		return false // it is made again when its Workload is admitted again
	}
	return metav1.GetControllerOfNoCopy(pod) != nil || s.managed[groupOf(pod)]
}

// Successor is how a controller makes a pod again that is gone. The zero value is the usual.
type Successor struct {
	// Name is that of the new pod, "" for the same.
	Name string
	// After is how much later it comes.
	After time.Duration
}

// successor is a pod that is to come.
type successor struct {
	at  time.Time
	pod *corev1.Pod
}

// makeDelayed makes the pods whose time has come.
func (s *simulation) makeDelayed() {
	s.delayed = slices.DeleteFunc(s.delayed, func(next successor) bool {
		isDue := !next.at.After(s.now)
		// It does not come if its group has gone, or another pod has its name.
		if isDue && s.pods[keyOf(next.pod)] == nil && s.groups[groupOf(next.pod)] != nil {
			next.pod.CreationTimestamp = metav1.NewTime(s.now)
			s.setPod(next.pod)
		}
		return isDue
	})
}

func groupOf(pod *corev1.Pod) cluster.JobID {
	return cluster.JobID{Namespace: pod.Namespace, Name: pod.Annotations[schedulingv1beta1.KubeGroupNameAnnotationKey]}
}

// comeBack makes a pod again: it has a UID of its own, which says how many there have been of the name, and waits for a
// node.
func (s *simulation) comeBack(pod *corev1.Pod) {
	var how Successor
	if s.options.Successor != nil {
		how = s.options.Successor(pod)
	}
	key := types.NamespacedName{Namespace: pod.Namespace, Name: cmp.Or(how.Name, pod.Name)}
	s.returned[key]++
	made := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: key.Name, Labels: maps.Clone(pod.Labels), Annotations: maps.Clone(pod.Annotations),
			OwnerReferences:   pod.OwnerReferences,
			UID:               types.UID(fmt.Sprintf("Pod %s, made again %d", key, s.returned[key])),
			CreationTimestamp: metav1.NewTime(s.now),
		},
		Spec:   *pod.Spec.DeepCopy(),
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	made.Spec.NodeName = ""
	s.queued.Renew(made)
	if how.After > 0 {
		s.delayed = append(s.delayed, successor{at: s.now.Add(how.After), pod: made})
		return
	}
	s.setPod(made)
}

// dropGroupOf removes the PodGroup that was made for a pod alone, as garbage collection does.
func (s *simulation) dropGroupOf(pod *corev1.Pod) {
	id := groupOf(pod)
	group := s.groups[id]
	if group == nil {
		return
	}
	if owner := metav1.GetControllerOfNoCopy(group); (applications{s}).isLastOfApplication(group) || owner != nil && owner.UID == pod.UID {
		delete(s.groups, id)
		s.drop(group)
	}
}

// groupID is the ID of the job of a PodGroup.
func groupID(group *schedulingv1beta1.PodGroup) cluster.JobID { return cluster.GroupID(keyOf(group)) }

func keyOf(o metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}
