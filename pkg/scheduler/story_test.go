package scheduler_test

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// story lists all events so far, for finding a bug.
func (l *randomCluster) story() string {
	var b strings.Builder
	for i, t := range l.turns {
		if len(t.events) == 0 && t.decided == text(&decision.Decisions{}) {
			continue
		}
		fmt.Fprintf(&b, "\ncycle %d, %s, under %q\n", i, t.now.Format("15:04:05"), t.configuration)
		for _, e := range t.events {
			fmt.Fprintf(&b, "  %s\n", told(e))
		}
		fmt.Fprintf(&b, "  => %s\n", t.decided)
	}
	return b.String()
}

func told(e cache.Event) string {
	switch e := e.(type) {
	case cache.BindFailed:
		return "refused " + e.Pod.Name
	case cache.Delete:
		return "gone    " + subject(e)
	case cache.Set:
		switch o := e.Object.(type) {
		case *corev1.Node:
			return fmt.Sprintf("node    %s %v closed=%t %v %v", o.Name, amounts(o.Status.Allocatable), o.Spec.Unschedulable, o.Spec.Taints, o.Status.Conditions)
		case *schedulingv1beta1.Queue:
			return fmt.Sprintf("queue   %s %s below %q weight %d rank %d capability %v deserved %v guarantee %v %v holds %v", o.Name, o.Status.State,
				o.Spec.Parent, o.Spec.Weight, o.Spec.Priority, amounts(o.Spec.Capability), amounts(o.Spec.Deserved),
				amounts(o.Spec.Guarantee.Resource), o.Annotations, amounts(o.Status.Allocated))
		case *schedulingv1beta1.PodGroup:
			wants := "nothing"
			if o.Spec.MinResources != nil {
				wants = fmt.Sprint(amounts(*o.Spec.MinResources))
			}
			return fmt.Sprintf("group   %s in %s min %d %v wants %s class %q: %+v", o.UID, o.Spec.Queue, o.Spec.MinMember, o.Spec.MinTaskMember,
				wants, o.Spec.PriorityClassName, o.Status)
		case *corev1.Pod:
			return fmt.Sprintf("pod     %s %v %v on %q %s gates %d leaving %t affinity %t spread %t ports %d %v tolerates %d", o.UID,
				amounts(o.Spec.Containers[0].Resources.Requests), o.Annotations, o.Spec.NodeName, o.Status.Phase, len(o.Spec.SchedulingGates),
				o.DeletionTimestamp != nil, o.Spec.Affinity != nil, len(o.Spec.TopologySpreadConstraints) > 0, len(o.Spec.Containers[0].Ports),
				o.Spec.NodeSelector, len(o.Spec.Tolerations))
		}
		return "rank    " + subject(e)
	}
	return fmt.Sprint(e)
}

func amounts(list corev1.ResourceList) map[corev1.ResourceName]string {
	texts := map[corev1.ResourceName]string{}
	for name, quantity := range list {
		texts[name] = quantity.String()
	}
	return texts
}
