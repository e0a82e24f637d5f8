package nodes

import "hekla.sh/hekla/pkg/apis/kueue/settings"

// isNamed reports whether those who read the admission in its order come to the nodes of the stand-ins (invariant 8).
// An admission without nodes, as Kueue makes them, says nothing of them.
func (f *filling) isNamed() bool {
	held := &f.e.Held.PodSets[f.i]
	if len(f.standIns) == 0 || len(held.Nodes) == 0 {
		return true
	}
	standIns, left := map[string]int32{}, int32(len(f.standIns))
	for _, t := range f.standIns {
		standIns[t.Node.Name]++
	}
	for _, c := range held.Nodes {
		pods := f.onNode[c.Node] - standIns[c.Node]
		places := min(max(c.Count-pods, 0), left)
		if places != standIns[c.Node] {
			return false
		}
		left -= places
	}
	return left == 0
}

// toName are the nodes that the admission is to name: those of pods and stand-ins. It has as many as there are places,
// also if some are not needed any more: the last node has those in addition.
func (f *filling) toName() []settings.NodeCount {
	held := &f.e.Held.PodSets[f.i]
	left := held.Count
	for name, count := range f.onNode {
		if n := f.session.Cluster.Node(name); n == nil || n.Object == nil {
			delete(f.onNode, name) // a pod that leaves has no node to come back to
			continue
		}
		left -= count
	}
	nodes := inOrder(f.onNode)
	if len(nodes) == 0 || left < 0 { // all have ended, or there are pods that no place was held for
		return held.Nodes
	}
	nodes[len(nodes)-1].Count += left
	return nodes
}
