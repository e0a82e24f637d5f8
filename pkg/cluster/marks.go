package cluster

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"hekla.sh/hekla/pkg/apis/yunikorn"
)

// UnreadableMark is an object whose annotation allow-preemption is neither "true" nor "false", so that it counts as
// "true".
type UnreadableMark struct {
	Object corev1.ObjectReference
	Value  string
}

// Marks collects objects with such marks.
type Marks struct{ unreadable []UnreadableMark }

// Take returns the objects whose annotation has changed to such a value since the last call, in the order of events.
func (m *Marks) Take() []UnreadableMark {
	marks := m.unreadable
	m.unreadable = nil
	return marks
}

// isUnreadable reports whether annotations have a mark that cannot be read and that they did not have before.
func isUnreadable(before, now map[string]string) bool {
	value, ok := now[yunikorn.AllowPreemptionKey]
	if !ok || value == "true" || value == "false" {
		return false
	}
	last, had := before[yunikorn.AllowPreemptionKey]
	return !had || last != value
}

// OfPod looks at the mark of a pod that is shown.
func (m *Marks) OfPod(t *Task, pod *Pod) {
	var before map[string]string
	if t.Pod != nil {
		before = t.Pod.Annotations
	}
	if !isUnreadable(before, pod.Annotations) {
		return
	}
	m.unreadable = append(m.unreadable, UnreadableMark{Value: pod.Annotations[yunikorn.AllowPreemptionKey],
		Object: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}})
}

// OfClass looks at the mark of a PriorityClass. known is its last state, nil if there is none.
func (m *Marks) OfClass(known, class *schedulingv1.PriorityClass) {
	var before map[string]string
	if known != nil {
		before = known.Annotations
	}
	if !isUnreadable(before, class.Annotations) {
		return
	}
	m.unreadable = append(m.unreadable, UnreadableMark{Value: class.Annotations[yunikorn.AllowPreemptionKey], Object: corev1.ObjectReference{
		APIVersion: schedulingv1.SchemeGroupVersion.String(), Kind: "PriorityClass", Name: class.Name, UID: class.UID}})
}
