package tasktopology

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// company is the pods to place near a role, by role: those that have no node yet in the API. Placing them, or undoing
// that, does not change it, so that it stays the same for a session.
type company []guests

// guests are the pods of one role of a company.
type guests struct {
	role    string
	count   int64
	request resources.Vector // the largest request of each resource
}

// companyOf returns the company of a pending pod of a role, without the pod itself.
func companyOf(j *cluster.Job, role string, own bonds) company {
	var c company
	if j == nil {
		return c
	}
	for _, t := range j.Tasks() {
		if own[t.Role] <= 0 || t.Status != cluster.Pending && t.Status != cluster.Gated && !t.Status.Assumed() {
			continue
		}
		i := slices.IndexFunc(c, func(g guests) bool { return g.role == t.Role })
		if i < 0 {
			i, c = len(c), append(c, guests{role: t.Role})
		}
		c[i].count++
		c[i].request.AtLeast(t.Request())
	}
	for i := range c {
		if c[i].role == role {
			c[i].count-- // itself
		}
	}
	slices.SortFunc(c, func(a, b guests) int { return cmp.Compare(a.role, b.role) })
	return c
}

func (c company) equal(d company) bool {
	return slices.EqualFunc(c, d, func(a, b guests) bool { return a.role == b.role && a.count == b.count && a.request.Equal(b.request) })
}

// most is the score of a node with room for the whole company: half of what the first pod that is there adds. So room
// never counts more than a pod.
const most = 25 * framework.Point

// prospects scores the part of a company that has room on a node beside a pod of a class. It looks at each role alone,
// not at all together.
func (c company) prospects(k *cluster.Class, n *cluster.Node) int64 {
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
