package rules

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// story lists all events, for finding a bug.
func (w *testCluster) story() string {
	var b strings.Builder
	b.WriteString(w.setting.yaml())
	for i, t := range w.turns {
		if t.crash {
			b.WriteString("\nthe scheduler is thrown away, and a new one starts\n")
			continue
		}
		if len(t.events) == 0 && t.story.IsEmpty() {
			continue
		}
		fmt.Fprintf(&b, "\ncycle %d, %s\n", i, t.now.Format("15:04:05"))
		for _, e := range t.events {
			fmt.Fprintf(&b, "  %s\n", told(e))
		}
		tellDecisions(&b, t.story)
	}
	return b.String()
}

func tellDecisions(b *strings.Builder, d *decision.Decisions) {
	for _, e := range d.Ended {
		fmt.Fprintf(b, "  => plan %s of %s ends: %s\n", e.ID, e.Job.Name, e.Why)
	}
	for _, bind := range d.Binds {
		fmt.Fprintf(b, "  => bind %s to %s\n", bind.Pod.Name, bind.Node)
	}
	for _, p := range d.Plans {
		fmt.Fprintf(b, "  => plan %s of %s\n", p.ID, p.Job.Name)
		for _, n := range p.Nominations {
			fmt.Fprintf(b, "     promises %s to %s\n", n.Node, n.Pod.Name)
		}
		for _, e := range p.Evictions {
			fmt.Fprintf(b, "     evicts %s (%s) from %s past=%t: %s\n", e.Pod.Name, e.UID, e.Node, e.PastBudget, e.Message)
		}
	}
	for _, g := range d.Groups {
		said := ""
		for _, c := range g.Status.Conditions {
			said += fmt.Sprintf("; %s %s %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
		fmt.Fprintf(b, "  => status %s %s%s\n", g.Job.Name, g.Status.Phase, said)
	}
}

func told(e cache.Event) string {
	switch e := e.(type) {
	case cache.BindFailed:
		return "refused bind " + e.Pod.Name
	case cache.PlanFailed:
		return "refused plan " + e.Plan
	case cache.Delete:
		return "gone   " + strings.TrimPrefix(told(cache.Set(e)), "  ")
	case cache.Set:
		switch o := e.Object.(type) {
		case *corev1.Node:
			return fmt.Sprintf("node   %s %s %v cordoned=%t taints=%d", o.Name, amountsOf(o.Status.Allocatable), o.Labels["zone"],
				o.Spec.Unschedulable, len(o.Spec.Taints))
		case *schedulingv1beta1.Queue:
			reclaimable := o.Spec.Reclaimable == nil || *o.Spec.Reclaimable
			return fmt.Sprintf("queue  %s %s below %q priority=%d weight=%d deserved[%s] guarantee[%s] capability[%s] reclaimable=%t", o.Name,
				o.Status.State, o.Spec.Parent, o.Spec.Priority, o.Spec.Weight, amountsOf(o.Spec.Deserved),
				amountsOf(o.Spec.Guarantee.Resource), amountsOf(o.Spec.Capability), reclaimable)
		case *schedulingv1beta1.PodGroup:
			wants := ""
			if o.Spec.MinResources != nil {
				wants = amountsOf(*o.Spec.MinResources).String()
			}
			return fmt.Sprintf("job    %s (%s) in %s class=%q min=%d %v wants[%s] lone=%t phase=%s mark=%q%q", o.Name, o.UID, o.Spec.Queue,
				o.Spec.PriorityClassName, o.Spec.MinMember, o.Spec.MinTaskMember, wants, len(o.OwnerReferences) > 0, o.Status.Phase,
				o.Annotations[schedulingv1beta1.PreemptableKey], o.Labels[schedulingv1beta1.PreemptableKey])
		case *corev1.Pod:
			return toldPod(o)
		case *schedulingv1.PriorityClass:
			return fmt.Sprintf("class  %s=%d", o.Name, o.Value)
		case *policyv1.PodDisruptionBudget:
			return fmt.Sprintf("budget %s of %v min=%s allows %d", o.Name, o.Spec.Selector.MatchLabels, o.Spec.MinAvailable, o.Status.DisruptionsAllowed)
		}
	}
	return fmt.Sprint(e)
}

func toldPod(o *corev1.Pod) string {
	var b strings.Builder
	fmt.Fprintf(&b, "pod    %s (%s) [%s] %s", o.Name, o.UID, amountsOf(o.Spec.Containers[0].Resources.Requests), o.Status.Phase)
	if o.Spec.NodeName != "" {
		fmt.Fprintf(&b, " on %s", o.Spec.NodeName)
	}
	if o.Status.StartTime != nil {
		fmt.Fprintf(&b, " since %s", o.Status.StartTime.Format("15:04:05"))
	}
	if o.Status.NominatedNodeName != "" {
		fmt.Fprintf(&b, " nominated=%s", o.Status.NominatedNodeName)
	}
	if o.DeletionTimestamp != nil {
		fmt.Fprintf(&b, " ends %s", o.DeletionTimestamp.Format("15:04:05"))
	}
	for _, c := range o.Status.Conditions {
		if c.Type == corev1.DisruptionTarget {
			fmt.Fprintf(&b, " target=%s", c.Status)
		}
	}
	fmt.Fprintf(&b, " mark=%q%q rank=%q role=%s app=%s", o.Annotations[schedulingv1beta1.PreemptableKey], o.Labels[schedulingv1beta1.PreemptableKey],
		o.Annotations[schedulingv1beta1.TaskPriorityAnnotationKey], o.Annotations["volcano.sh/task-spec"], o.Labels["app"])
	if len(o.Spec.NodeSelector) > 0 {
		fmt.Fprintf(&b, " wants zone %s", o.Spec.NodeSelector["zone"])
	}
	if len(o.Spec.Tolerations) > 0 {
		b.WriteString(" tolerates all")
	}
	if o.Spec.PriorityClassName != "" {
		b.WriteString(" class=" + o.Spec.PriorityClassName)
	}
	return b.String()
}
