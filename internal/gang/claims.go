package gang

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// maxAnchors limits on how many nodes the first pod of those that share a claim is tried. Each try costs as much as the
// gang. The nodes with room for most of the pods come first.
const maxAnchors = 8

// anchored places a gang in which pods share an unbound claim. The volume or device is where the first of them is
// placed, and the others must be able to use it there. The best node for one pod may be too small for all, as is common
// with binpack. So the first is tried on several nodes, those with room for most of the others first. It reports
// whether the job is ready. If not, nothing has changed.
func anchored(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) bool {
	together := sharing(s.Cluster, tasks)
	if len(together) < 2 {
		return false
	}
	if lacks := j.Lacks(); lacks > 0 && lacks < len(together) {
		together = together[:lacks]
	}
	first := together[0]
	if s.MayAllocate(first) != nil || s.MayBind(first) != nil {
		return false
	}
	tried := 0
	for _, n := range roomiest(s, together) {
		if tried == maxAnchors {
			return false
		}
		if !s.Placer.Fits(first, n) || s.Placer.Veto(first, n) != "" {
			continue
		}
		tried++
		x := s.Begin()
		x.Place(first, n)
		if s.IsReady(j) {
			return true
		}
		if v, _ := tryGang(s, j, tasks); v == nil {
			return true
		}
		x.Undo()
	}
	return false
}

// withLessWanted places a gang with devices that its claims list later. All claims pass over as many alternatives, and
// over as few as possible. It reports whether the job is ready. If not, nothing has changed.
func withLessWanted(s *framework.Session, j *cluster.Job, tasks []*cluster.Task) bool {
	supplier, asks := s.Placer.(framework.Supplier)
	if !asks {
		return false
	}
	longest := 0
	for _, t := range cluster.OnePerClass(tasks) {
		if t.Status == cluster.Pending {
			longest = max(longest, supplier.Alternatives(t))
		}
	}
	isReady := false
	for passed := 1; passed < longest && !isReady; passed++ { // the API allows eight
		supplier.PassAlternatives(passed, func() {
			v, _ := tryGang(s, j, tasks)
			isReady = v == nil
		})
	}
	return isReady
}

// sharing returns those of some tasks that share an unbound claim, in their order. Of several such claims it chooses
// the first that a task names.
func sharing(c *model.Cluster, tasks []*cluster.Task) []*cluster.Task {
	var order []supplies.Key
	users := map[supplies.Key][]*cluster.Task{}
	for _, t := range tasks {
		if t.Status != cluster.Pending || !t.Class.NeedsSupplies() {
			continue
		}
		for _, key := range supplies.Named(t.Pod) {
			if users[key] == nil {
				order = append(order, key)
			}
			users[key] = append(users[key], t)
		}
	}
	for _, key := range order {
		if len(users[key]) > 1 && c.Supplies().IsUnbound(key) {
			return users[key]
		}
	}
	return nil
}

// roomiest returns the nodes of the current domain, those first that have room for the largest part of some tasks.
func roomiest(s *framework.Session, tasks []*cluster.Task) []*cluster.Node {
	nodes := s.Cluster.NodesIn(s.Domain())
	var wanted resources.Vector
	for _, t := range tasks {
		wanted.Add(t.Request())
	}
	part := make(map[*cluster.Node]resources.Ratio, len(nodes))
	for _, n := range nodes {
		part[n] = resources.Ratio{Num: 1, Den: 1}
		for i, amount := range wanted {
			d := resources.Dim(i)
			free := max(n.Allocatable.At(d)-n.Used.At(d)-n.Promised.At(d), 0)
			if ratio := (resources.Ratio{Num: free, Den: amount}); amount > 0 && ratio.Compare(part[n]) < 0 {
				part[n] = ratio
			}
		}
	}
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(m, n *cluster.Node) int { return part[n].Compare(part[m]) })
	return nodes
}
