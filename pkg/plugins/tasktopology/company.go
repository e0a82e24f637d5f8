package tasktopology

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// company are the pods that belong with a role and have no node yet that the API shows, by role. Placing them, or taking that
// back, does not change it: it stays the same for a session.
type company []guests

// guests are the pods of one role of a company.
type guests struct {
	role    string
	count   int64
	request resources.Vector // what the largest takes, of each resource
}

// companyOf returns who belongs with a pod of a role that waits, itself left out.
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

// most is what room for the whole company is worth: half of what the first pod that is there is worth, so that room for many
// never outweighs one.
const most = 25 * framework.Point

// prospects scores the part of a company that would have room on a node beside a pod of a class: each role by itself, not all
// at once.
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
