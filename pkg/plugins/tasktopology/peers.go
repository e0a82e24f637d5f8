package tasktopology

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// peers are the pods to place near a role, by role: those that have no node yet in the API. Placing them, or undoing
// that, does not change it, so that it stays the same for a session.
type peers []rolePeers

// rolePeers are the pods of one role among peers.
type rolePeers struct {
	role    string
	count   int64
	request resources.Vector // the largest request of each resource
}

// peersOf returns the peers of a pending pod of a role, without the pod itself.
func peersOf(j *cluster.Job, role string, own bonds) peers {
	var c peers
	if j == nil {
		return c
	}
	for _, t := range j.Tasks() {
		if own[t.Role] <= 0 || t.Status != cluster.Pending && t.Status != cluster.Gated && !t.Status.Assumed() {
			continue
		}
		i := slices.IndexFunc(c, func(g rolePeers) bool { return g.role == t.Role })
		if i < 0 {
			i, c = len(c), append(c, rolePeers{role: t.Role})
		}
		c[i].count++
		c[i].request.AtLeast(t.Request())
	}
	for i := range c {
		if c[i].role == role {
			c[i].count-- // itself
		}
	}
	slices.SortFunc(c, func(a, b rolePeers) int { return cmp.Compare(a.role, b.role) })
	return c
}

func (c peers) equal(d peers) bool {
	return slices.EqualFunc(c, d, func(a, b rolePeers) bool { return a.role == b.role && a.count == b.count && a.request.Equal(b.request) })
}

// most is the score of a node with room for all peers: half of what the first pod that is there adds. So room
// never counts more than a pod.
const most = 25 * framework.Point

// scoreRoom scores the part of the peers that have room on a node next to a pod of a class. It looks at each role
// alone, not at all together.
func (c peers) scoreRoom(k *cluster.Class, n *cluster.Node) int64 {
	var room, all int64
	for i := range c {
		g := &c[i]
		all += g.count
		fit := g.count
		for d, amount := range g.request {
			if dim := resources.Dim(d); amount > 0 {
				fit = min(fit, max(n.Free(dim)-k.Request.At(dim), 0)/amount)
			}
		}
		room += fit
	}
	if all == 0 {
		return 0
	}
	return most * room / all
}
