package gang

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/framework"
)

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
