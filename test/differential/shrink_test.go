package differential

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// maxTries bounds how many scenarios are led to find a smaller one that fails in the same way.
const maxTries = 4000

// shrink leaves out of a scenario what it fails without, in the same way.
func shrink(w *scenario) *scenario {
	kind, tries := lead(w).kind(), 0
	fails := func(smaller *scenario) bool {
		tries++
		return tries < maxTries && lead(smaller).kind() == kind
	}
	for again := true; again; {
		again = false
		for i := len(w.changes) - 1; i >= 0; i-- {
			smaller := *w
			smaller.changes = slices.Delete(slices.Clone(w.changes), i, i+1)
			if fails(&smaller) {
				w, again = &smaller, true
			}
		}
		for size := max(len(w.objects)/4, 1); size >= 1; size /= 2 {
			for i := 0; i+size <= len(w.objects); {
				smaller := *w
				smaller.objects = slices.Delete(slices.Clone(w.objects), i, i+size)
				if fails(&smaller) {
					w, again = &smaller, true
				} else {
					i++
				}
			}
		}
		for i := range w.objects {
			for _, plainer := range plainerOnes(w.objects[i]) {
				smaller := *w
				smaller.objects = slices.Clone(w.objects)
				smaller.objects[i] = plainer
				if fails(&smaller) {
					w, again = &smaller, true
					break
				}
			}
		}
		for i := len(w.configuration.plugins) - 1; i >= 0; i-- {
			smaller := *w
			smaller.configuration.plugins = slices.Delete(slices.Clone(w.configuration.plugins), i, i+1)
			if fails(&smaller) {
				w, again = &smaller, true
			}
		}
		for _, how := range []func(*configuration){
			func(c *configuration) { c.actions = "allocate" }, func(c *configuration) { c.actions = actionLists[1] },
			func(c *configuration) { c.actions = "allocate, preempt, backfill" }, func(c *configuration) { c.actions = "allocate, reclaim, backfill" },
			func(c *configuration) { c.actions = actionLists[2] }, func(c *configuration) { c.actions = actionLists[3] },
			func(c *configuration) { c.sharer = "" }, func(c *configuration) { c.sharer = "capacity" }, func(c *configuration) { c.tree = false },
		} {
			smaller := *w
			if how(&smaller.configuration); len(smaller.configuration.yaml()) < len(w.configuration.yaml()) && fails(&smaller) {
				w, again = &smaller, true
			}
		}
	}
	return w
}

// plainerOnes are objects that say less, one thing each.
func plainerOnes(o runtime.Object) (all []runtime.Object) {
	switch o := o.(type) {
	case *corev1.Pod:
		with := func(differs bool, how func(*corev1.Pod)) {
			if differs {
				plainer := o.DeepCopy()
				how(plainer)
				all = append(all, plainer)
			}
		}
		with(o.Spec.Affinity != nil, func(p *corev1.Pod) { p.Spec.Affinity = nil })
		with(o.Spec.TopologySpreadConstraints != nil, func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints = nil })
		with(o.Spec.Volumes != nil, func(p *corev1.Pod) { p.Spec.Volumes = nil })
		with(o.Spec.ResourceClaims != nil, func(p *corev1.Pod) { p.Spec.ResourceClaims = nil })
		with(o.Spec.Tolerations != nil, func(p *corev1.Pod) { p.Spec.Tolerations = nil })
		with(o.Spec.NodeSelector != nil, func(p *corev1.Pod) { p.Spec.NodeSelector = nil })
		with(o.Spec.SchedulingGates != nil, func(p *corev1.Pod) { p.Spec.SchedulingGates = nil })
		with(o.Spec.Containers[0].Ports != nil, func(p *corev1.Pod) { p.Spec.Containers[0].Ports = nil })
		with(o.DeletionTimestamp != nil, func(p *corev1.Pod) { p.DeletionTimestamp = nil })
		with(o.Labels["app"] != "", func(p *corev1.Pod) { delete(p.Labels, "app") })
		with(o.Annotations["volcano.sh/cooldown-time"] != "", func(p *corev1.Pod) { delete(p.Annotations, "volcano.sh/cooldown-time") })
		with(o.OwnerReferences != nil, func(p *corev1.Pod) { p.OwnerReferences = nil })
	case *schedulingv1beta1.PodGroup:
		with := func(differs bool, how func(*schedulingv1beta1.PodGroup)) {
			if differs {
				plainer := o.DeepCopy()
				how(plainer)
				all = append(all, plainer)
			}
		}
		with(o.Spec.NetworkTopology != nil, func(g *schedulingv1beta1.PodGroup) { g.Spec.NetworkTopology = nil })
		with(o.Spec.SubGroupPolicy != nil, func(g *schedulingv1beta1.PodGroup) { g.Spec.SubGroupPolicy = nil })
		with(o.Spec.MinTaskMember != nil, func(g *schedulingv1beta1.PodGroup) { g.Spec.MinTaskMember = nil })
		with(o.Spec.MinResources != nil, func(g *schedulingv1beta1.PodGroup) { g.Spec.MinResources = nil })
		with(o.OwnerReferences != nil, func(g *schedulingv1beta1.PodGroup) { g.OwnerReferences = nil })
		with(o.Spec.PriorityClassName != "", func(g *schedulingv1beta1.PodGroup) { g.Spec.PriorityClassName = "" })
		with(o.Status.Phase != schedulingv1beta1.PodGroupInqueue, func(g *schedulingv1beta1.PodGroup) { g.Status.Phase = schedulingv1beta1.PodGroupInqueue })
	case *schedulingv1beta1.Queue:
		with := func(differs bool, how func(*schedulingv1beta1.Queue)) {
			if differs {
				plainer := o.DeepCopy()
				how(plainer)
				all = append(all, plainer)
			}
		}
		with(len(o.Spec.Capability) > 0, func(q *schedulingv1beta1.Queue) { q.Spec.Capability = nil })
		with(len(o.Spec.Deserved) > 0, func(q *schedulingv1beta1.Queue) { q.Spec.Deserved = nil })
		with(len(o.Spec.Guarantee.Resource) > 0, func(q *schedulingv1beta1.Queue) { q.Spec.Guarantee.Resource = nil })
		with(o.Spec.Parent != "", func(q *schedulingv1beta1.Queue) { q.Spec.Parent = "" })
		with(o.Spec.Priority != 0, func(q *schedulingv1beta1.Queue) { q.Spec.Priority = 0 })
		with(o.Spec.Reclaimable != nil, func(q *schedulingv1beta1.Queue) { q.Spec.Reclaimable = nil })
		with(o.Spec.Affinity != nil, func(q *schedulingv1beta1.Queue) { q.Spec.Affinity = nil })
		with(o.Spec.Weight != 1, func(q *schedulingv1beta1.Queue) { q.Spec.Weight = 1 })
	}
	return all
}
