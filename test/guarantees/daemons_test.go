package guarantees

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
)

// addDaemon adds the pod of a DaemonSet for a node that has none yet.
func (s *story) addDaemon() error {
	set, node, queue := fmt.Sprintf("agent%d", s.random.IntN(3)), s.anyNode(), s.leaves[s.random.IntN(len(s.leaves))]
	name := set + "-" + node
	if s.pod(name) != nil {
		return nil
	}
	// All pods of a DaemonSet are of the queue of its first one, whose PodGroup they share.
	for _, o := range s.led.Objects() {
		if pod, ok := o.(*corev1.Pod); ok && isOfDaemonSet(pod) && pod.OwnerReferences[0].Name == set {
			queue = s.queueOf[nameOf(pod)]
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "work", CreationTimestamp: metav1.NewTime(s.led.Now()), Generation: 1,
		Labels:          map[string]string{"queue": queue},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: set, UID: types.UID(set), Controller: new(true)}}}}
	pod.Spec.PriorityClassName = fmt.Sprintf("p%d", s.random.IntN(2)*10)
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
			{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}}}
	return s.addPod(pod, queue, 1+s.random.IntN(2))
}

func (s *story) anyNode() string {
	nodes := 0
	for _, o := range s.led.Objects() {
		if _, ok := o.(*corev1.Node); ok {
			nodes++
		}
	}
	return fmt.Sprintf("n%d", s.random.IntN(nodes))
}

func isOfDaemonSet(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

// onlyNode is the node that the affinity of a pod of a DaemonSet names.
func onlyNode(pod *corev1.Pod) string {
	if pod.Spec.Affinity == nil {
		return ""
	}
	return pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
}

// daemonPlan checks rule G10: pods of DaemonSets take room on their nodes, from pods that are not of higher priority,
// within the capabilities of their queues. Pods on other nodes only leave if their gang cannot do without those on
// these.
func (j *judge) daemonPlan(placed, victims []*corev1.Pod) error {
	toQueue, nodes := j.groupOf(placed[0]).Spec.Queue, map[string]bool{}
	for _, pod := range placed {
		if !isOfDaemonSet(pod) || onlyNode(pod) != j.at[pod.UID] {
			return fmt.Errorf("G10: pod %s is placed on node %s", pod.Name, j.at[pod.UID])
		}
		nodes[onlyNode(pod)] = true
	}
	for _, v := range victims {
		switch {
		case isOfDaemonSet(v):
			return fmt.Errorf("G10: victim %s is of a DaemonSet", v.Name)
		case !nodes[v.Spec.NodeName] && !j.breaks(nodes, j.groupOf(v), victims):
			return fmt.Errorf("G10: victim %s is on node %s", v.Name, v.Spec.NodeName)
		case j.priority(v) > j.priority(placed[0]):
			return fmt.Errorf("G10: the priority of victim %s is %d, that of the pod %d", v.Name, j.priority(v), j.priority(placed[0]))
		case j.groupOf(v).Spec.Queue == toQueue:
			return fmt.Errorf("G3: victim %s is of the same queue %s", v.Name, toQueue)
		}
	}
	if err := j.isWithinCapabilities(toQueue); err != nil {
		return err
	}
	return j.areNeeded(victims, toQueue)
}

// breaks reports whether a job has victims, or places for pods that do not exist yet, on any of some nodes, without
// which it does not have the pods that it needs.
func (j *judge) breaks(nodes map[string]bool, group *schedulingv1beta1.PodGroup, victims []*corev1.Pod) bool {
	for at := range j.places {
		if at.group == group.Name && nodes[at.node] {
			return true
		}
	}
	here, others := 0, 0
	for uid, node := range j.at {
		if node != "" && j.groupOf(j.pods[uid]) == group {
			others++
		}
	}
	for _, v := range victims {
		if j.groupOf(v) == group && nodes[v.Spec.NodeName] {
			here++
		} else if j.groupOf(v) == group {
			others++
		}
	}
	return here > 0 && (j.sparkOf(group.Name) != nil || others < int(group.Spec.MinMember))
}
