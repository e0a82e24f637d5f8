package explain

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
)

// Node explains what a node has and which pods are on it.
func (m *Model) Node(name string) (Node, error) {
	n := m.cluster.Node(name)
	if n == nil {
		return Node{}, NotFound{Kind: "Node", Name: name}
	}
	idle := make(resources.Vector, len(n.Allocatable))
	for d := range idle {
		idle[d] = max(n.Free(resources.Dim(d)), 0)
	}
	tasks := slices.Clone(n.Tasks())
	slices.SortFunc(tasks, func(t, u *cluster.Task) int { return cluster.CompareNames(t.Key(), u.Key()) })
	answer := Node{Node: name, Known: n.Object != nil, Ready: n.Ready(), Allocatable: m.amounts(n.Allocatable), Used: m.amounts(n.Used),
		Leaving: m.amounts(n.Releasing), Promised: m.amounts(n.Promised), Idle: m.amounts(idle), PodCount: len(tasks)}
	answer.Unschedulable = n.Object != nil && n.Object.Spec.Unschedulable
	for _, h := range n.HyperNodes() {
		answer.HyperNodes = append(answer.HyperNodes, h.Name)
	}
	for _, t := range tasks[:min(len(tasks), MaxListed)] {
		pod := NodePod{Pod: t.Key().String(), Status: t.Status.String(), Requests: m.amounts(t.Request())}
		if t.Job != nil {
			pod.Job, pod.Queue = t.Job.ID.String(), t.Job.QueueName
		}
		answer.Pods = append(answer.Pods, pod)
	}
	return answer, nil
}
