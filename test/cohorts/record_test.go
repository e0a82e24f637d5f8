package cohorts

import (
	"fmt"
	"maps"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/test/cohorts/world"
)

// unread says which stand-ins of a Workload are on other nodes than its admission says. A scheduler that begins, and
// who steers pods of other schedulers, read it so: they go through the nodes in its order, and count the pods that are
// there. What is left over at the end is not needed. It says nothing while places have neither pods nor stand-ins.
func unread(w *world.World, o *v1beta2.Workload) string {
	j := w.Job(cluster.WorkloadID(world.Namespace, o.Name))
	if j == nil || j.Plan != nil || heldBy(o) == "" || conditions.Is(o, v1beta2.Evicted) || o.DeletionTimestamp != nil {
		return ""
	}
	for i := range o.Status.Admission.PodSetAssignments {
		p := &o.Status.Admission.PodSetAssignments[i]
		pods, standIns, have := map[string]int32{}, map[string]int32{}, int32(0)
		for _, t := range j.Tasks() {
			switch {
			case t.Role != p.Name || t.Node == nil:
				continue
			case t.IsStandIn:
				standIns[t.Node.Name]++
			case t.Status.Counts() || t.Status.Leaves():
				pods[t.Node.Name]++
			default:
				continue
			}
			have++
		}
		_, needed := settings.PodsLeft(o, p)
		if missing := needed - have; missing != 0 {
			continue
		}
		left, read := int32(0), map[string]int32{}
		for _, count := range standIns {
			left += count
		}
		nodes, _ := settings.Nodes(p.TopologyAssignment)
		for _, n := range nodes {
			if places := min(max(n.Count-pods[n.Node], 0), left); places > 0 {
				read[n.Node] += places
				left -= places
			}
		}
		if !maps.Equal(read, standIns) {
			return fmt.Sprintf("%s has stand-ins of %s on %v in addition to pods on %v, its admission names %v", o.Name, p.Name, standIns, pods, nodes)
		}
	}
	return ""
}
