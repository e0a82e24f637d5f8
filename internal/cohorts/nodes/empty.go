package nodes

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/resources"
)

// CouldPlace reports whether all pods of the parts would find nodes if no pod stood there but their own. Pods that
// attract or repel each other count as if they did not. A queue above that could never hold what they request stands in
// the way.
func (p *Places) CouldPlace(w *workload.Workload, parts []workload.Part) bool {
	if p.exceedsNodes(parts) {
		return false
	}
	q := p.try(w, parts)
	if !couldHold(&p.scratch, q.tasks) {
		return false
	}
	e := empty{places: p, used: map[*cluster.Node]resources.Vector{}}
	kinds := kindsOf(q.tasks)
	if len(kinds) > 1 { // large pods first: small ones find room next to them
		total := p.session.Cluster.Total
		slices.SortStableFunc(kinds, func(a, b kind) int {
			x, _ := resources.DominantShare(a.task.Request(), total)
			y, _ := resources.DominantShare(b.task.Request(), total)
			return y.Compare(x)
		})
	}
	for i := range kinds {
		if !e.hold(&kinds[i], i == len(kinds)-1) {
			return false
		}
	}
	return true
}

// kind is a number of equal tasks.
type kind struct {
	task  *cluster.Task
	count int64
}

func kindsOf(tasks []*cluster.Task) (kinds []kind) {
	for _, t := range tasks {
		i := slices.IndexFunc(kinds, func(k kind) bool { return isAlike(k.task, t) })
		if i < 0 {
			i = len(kinds)
			kinds = append(kinds, kind{task: t})
		}
		kinds[i].count++
	}
	return kinds
}

// isAlike reports whether two stand-ins of a question ask for the same. Each has a class of its own if they need
// volumes or devices.
func isAlike(t, u *cluster.Task) bool {
	return t.Class == u.Class || t.Role == u.Role && t.Class.NeedsSupplies() && t.Class.Plain == u.Class.Plain
}

// empty is the nodes as if there were no pods but those that were put there.
type empty struct {
	places *Places
	used   map[*cluster.Node]resources.Vector
}

// hold puts tasks on nodes, those first that can hold the fewest of them, and reports whether there was room for all.
// isLast says that no other tasks follow.
func (e *empty) hold(k *kind, isLast bool) bool {
	type room struct {
		node *cluster.Node
		pods int64
	}
	var rooms []room
	var all int64
	s := e.places.session
	for _, n := range s.Cluster.Nodes() {
		if n.Object == nil || !s.Outlook.CanOpen(k.task, n) {
			continue
		}
		if pods := e.room(n, k.task.Request()); pods > 0 {
			if all += min(pods, k.count); isLast && all >= k.count {
				return true
			}
			rooms = append(rooms, room{n, pods})
		}
	}
	slices.SortStableFunc(rooms, func(a, b room) int { return cmp.Compare(a.pods, b.pods) })
	left := k.count
	for i := 0; i < len(rooms) && left > 0; i++ {
		r := &rooms[i]
		pods := min(r.pods, left)
		used := e.used[r.node].Clone()
		used.AddScaled(k.task.Request(), pods)
		e.used[r.node] = used
		left -= pods
	}
	return left == 0
}

// room is how many pods a node has room for.
func (e *empty) room(n *cluster.Node, request resources.Vector) int64 {
	pods, used := resources.Unlimited, e.used[n]
	for i, amount := range request {
		if d := resources.Dim(i); amount > 0 {
			pods = min(pods, (n.Allocatable.At(d)-used.At(d))/amount)
		}
	}
	return max(pods, 0)
}
