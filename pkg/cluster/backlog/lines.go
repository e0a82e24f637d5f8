package backlog

import (
	"math"
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/verdict"
)

// line are the groups that lack some of one stock. So a change of the stock costs nothing while even the smallest lack
// is not met.
type line struct {
	members []member
	least   int64 // none needs less
}

// member is one of the lacks of a group.
type member struct {
	*group
	lack int
}

// needed is how much the group needs of the stock.
func (m member) needed() int64 { return m.key.Lacks[m.lack].Needed }

// cohort are the groups that the same kinds of help may help. So a change costs nothing if it is none of these.
type cohort struct {
	groups []*group
	// seen are the counts at which the groups that were in the cohort then were not helped. Those that came later were
	// not helped before.
	seen wake.Counts
}

// cohortKey is what helps a cohort. queue is nil unless some help is counted by queue.
type cohortKey struct {
	help  verdict.Help
	queue *quota.Node
}

// add makes the group of a key. Nothing must have happened that helps it.
func (b *Backlog) add(key cluster.RestKey, counts *wake.Counts) *group {
	g := &group{key: key}
	b.resting[key] = g
	in := cohortKey{key.Help, key.Queue}
	c := b.cohorts[in]
	if c == nil {
		c = &cohort{seen: counts.In(key.Queue)}
		b.cohorts[in] = c
	}
	g.inCohort = len(c.groups)
	c.groups = append(c.groups, g)
	if key.Class != nil {
		b.ofRoom[g] = true
	}
	for i, lack := range key.Lacks {
		if lack.Stock == nil {
			continue
		}
		l := b.stocks[lack.Stock]
		if l == nil {
			l = &line{least: math.MaxInt64}
			b.stocks[lack.Stock] = l
		}
		g.at[i] = len(l.members)
		l.members, l.least = append(l.members, member{g, i}), min(l.least, lack.Needed)
	}
	return g
}

// drop drops a group without jobs.
func (b *Backlog) drop(g *group) {
	delete(b.resting, g.key)
	delete(b.ofRoom, g)
	in := cohortKey{g.key.Help, g.key.Queue}
	c := b.cohorts[in]
	moved := c.groups[len(c.groups)-1]
	c.groups[g.inCohort], moved.inCohort = moved, g.inCohort
	c.groups[len(c.groups)-1] = nil
	if c.groups = c.groups[:len(c.groups)-1]; len(c.groups) == 0 {
		delete(b.cohorts, in)
	}
	for i, lack := range g.key.Lacks {
		if lack.Stock == nil {
			continue
		}
		l := b.stocks[lack.Stock]
		last := l.members[len(l.members)-1]
		l.members[g.at[i]], last.at[last.lack] = last, g.at[i]
		l.members[len(l.members)-1] = member{}
		if l.members = l.members[:len(l.members)-1]; len(l.members) == 0 {
			delete(b.stocks, lack.Stock)
		}
	}
}

// Recount counts the room that resting jobs wait for and did not get though it was there.
func (b *Backlog) Recount(room cluster.RoomCounter) {
	for g := range b.ofRoom {
		if g.room.Had && g.room.Class.InUse() {
			room(g.room.Class)
		}
	}
}

// findEnough adds the jobs of the groups for which there may be enough now of what they wait for.
func (b *Backlog) findEnough(room cluster.RoomCounter, roomed Roomed) {
	found := func(g *group) {
		roomed[g.key] = slices.Clone(g.jobs)
		b.oldest = time.Time{} // this cycle need not look at all of them
	}
	for g := range b.ofRoom {
		if !b.OverlooksStocks && g.room.IsThere(room) {
			found(g)
		}
	}
	for stock, l := range b.stocks {
		left := stock.Left()
		if b.OverlooksStocks || left < l.least {
			continue
		}
		l.least = math.MaxInt64
		for _, m := range l.members {
			if m.needed() <= left {
				found(m.group)
			}
			l.least = min(l.least, m.needed())
		}
	}
}
