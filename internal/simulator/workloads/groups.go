package workloads

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"hekla.sh/hekla/internal/queueing"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
)

// group is pods that are queued together by themselves.
type group struct {
	queueing.Group
	pods []*corev1.Pod // that are not being deleted, the oldest first
}

// IsQueued reports whether a pod waits or runs by itself for a Workload: no job is queued in its place.
func (c *Controllers) IsQueued(pod *corev1.Pod) bool {
	if !c.Policy.IsOn || pod.Labels[v1beta2.QueueNameLabel] == "" {
		return false
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner == nil || owner.Kind != "Job" || c.unqueued[owner.UID]
}

// IsOfWorkload reports whether a pod belongs to a Workload, or waits for that. It needs no PodGroup.
func (c *Controllers) IsOfWorkload(pod *corev1.Pod) bool {
	return c.Policy.IsOn && (pod.Annotations[v1beta2.WorkloadAnnotation] != "" || c.IsQueued(pod))
}

// HoldPod puts the gate of admission on a pod that is queued by itself, as the webhook does. One that has a node, or
// was started, has none.
func (c *Controllers) HoldPod(pod *corev1.Pod) {
	if !c.IsQueued(pod) || pod.Spec.NodeName != "" || queueing.IsGated(pod) || pod.Annotations[v1beta2.WorkloadAnnotation] != "" {
		return
	}
	metav1.SetMetaDataLabel(&pod.ObjectMeta, v1beta2.ManagedLabel, v1beta2.ManagedValue)
	c.takeOver(&pod.Spec)
	pod.Spec.SchedulingGates = append(pod.Spec.SchedulingGates, corev1.PodSchedulingGate{Name: v1beta2.AdmissionGate})
}

// Renew makes a pod that comes back what its controller would make: what its start has added is gone, and it waits
// again.
func (c *Controllers) Renew(pod *corev1.Pod) {
	delete(pod.Annotations, v1beta2.WorkloadAnnotation)
	delete(pod.Labels, v1beta2.PodSetLabel)
	c.HoldPod(pod)
}

// groups are the groups of all pods that are queued by themselves, by the name of their Workload. A group that does not
// say how many pods it has is none.
func (c *Controllers) groups() map[types.NamespacedName]*group {
	all := map[types.NamespacedName]*group{}
	for _, pod := range c.Cluster.Pods() {
		if !c.IsQueued(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		of := queueing.Group{Namespace: pod.Namespace, Name: pod.Labels[v1beta2.PodGroupNameLabel], Total: 1}
		if of.Name == "" {
			of.IsAlone, of.Name = true, queueing.WorkloadName(corev1.SchemeGroupVersion.WithKind("Pod"), pod.Name, pod.UID)
		}
		key := types.NamespacedName{Namespace: of.Namespace, Name: of.Name}
		if all[key] == nil {
			all[key] = &group{Group: of}
		}
		all[key].pods = append(all[key].pods, pod)
	}
	for key, g := range all {
		slices.SortFunc(g.pods, comparePods)
		if g.IsAlone {
			continue
		}
		text := g.pods[0].Annotations[v1beta2.PodGroupTotalCountAnnotation]
		total, err := strconv.ParseInt(text, 10, 32)
		if err != nil || total < 1 {
			c.problems = append(c.problems, fmt.Errorf("pod %s: annotation %s is %q; it must be how many pods the group has",
				client.ObjectKeyFromObject(g.pods[0]), v1beta2.PodGroupTotalCountAnnotation, text))
			delete(all, key)
			continue
		}
		g.Total = int32(total)
	}
	return all
}

// makeOfGroups makes the Workloads of groups whose pods are there and wait. Those of groups that are gone go.
func (c *Controllers) makeOfGroups(groups map[types.NamespacedName]*group) (changed bool) {
	for _, key := range slices.SortedFunc(maps.Keys(groups), cluster.CompareNames) {
		g := groups[key]
		if c.workloads[key] != nil {
			continue
		}
		waiting := slices.DeleteFunc(slices.Clone(g.pods), func(p *corev1.Pod) bool { return !queueing.IsGated(p) })
		succeeded := slices.DeleteFunc(slices.Clone(g.pods), func(p *corev1.Pod) bool { return p.Status.Phase != corev1.PodSucceeded })
		if g.Pods = queueing.MembersOf(waiting, succeeded, g.Total); len(g.Pods) == 0 {
			continue
		}
		w, err := g.Group.Workload(lookup{c})
		if err != nil {
			c.problems = append(c.problems, fmt.Errorf("pod %s: %w", client.ObjectKeyFromObject(g.Pods[0]), err))
			continue
		}
		c.create(w, g.Pods[0].CreationTimestamp.Time)
		changed = true
	}
	for _, w := range c.Workloads() {
		if owner := metav1.GetControllerOfNoCopy(w); owner == nil || owner.Kind != "Pod" || c.exists(w, owner) {
			continue
		}
		c.Cluster.Drop(w)
		delete(c.workloads, client.ObjectKeyFromObject(w))
		changed = true
	}
	return changed
}

// exists reports whether the pod is there for which a Workload was made.
func (c *Controllers) exists(w *v1beta2.Workload, owner *metav1.OwnerReference) bool {
	pod := c.Cluster.Pods()[types.NamespacedName{Namespace: w.Namespace, Name: owner.Name}]
	return pod != nil && pod.UID == owner.UID
}

// start opens the gates of as many pods as were admitted.
func (g *group) start(c *Controllers, w *v1beta2.Workload, infos []queueing.PodSetInfo) (starts bool, err error) {
	started := slices.DeleteFunc(slices.Clone(g.pods), func(p *corev1.Pod) bool { return queueing.IsGated(p) || p.Status.Phase == corev1.PodFailed })
	free := queueing.FreePlaces(w.Spec.PodSets, infos, started)
	for _, pod := range g.pods {
		role := queueing.Role(pod)
		if g.IsAlone {
			role = v1beta2.DefaultPodSetName
		}
		at := slices.IndexFunc(infos, func(i queueing.PodSetInfo) bool { return i.Name == role })
		if !queueing.IsGated(pod) || at < 0 || free[role] <= 0 {
			continue
		}
		free[role]--
		pod = pod.DeepCopy()
		template := corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}
		if err := infos[at].Apply(&template); err != nil {
			return starts, queueing.Contradict(err)
		}
		pod.ObjectMeta, pod.Spec = template.ObjectMeta, template.Spec
		pod.Spec.SchedulingGates = slices.DeleteFunc(slices.Clone(pod.Spec.SchedulingGates), func(g corev1.PodSchedulingGate) bool {
			return g.Name == v1beta2.AdmissionGate || g.Name == v1beta2.TopologyGate
		})
		c.Cluster.Write(pod)
		starts = true
	}
	return starts, nil
}
