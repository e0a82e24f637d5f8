package cluster

import (
	"slices"
	"time"
)

// follow keeps the list of the tasks whose room can be counted on.
func (c *Cluster) follow(t *Task) {
	if t.Status.Leaves() {
		c.leaving[t.Key()] = t
	} else {
		delete(c.leaving, t.Key())
	}
}

// LastToLeave is when the last of the tasks that are being deleted should be gone, zero if there is none.
func (c *Cluster) LastToLeave() time.Time {
	var last time.Time
	for _, t := range c.leaving {
		if stamp := t.Pod.DeletionTimestamp; t.Status == Releasing && stamp != nil && stamp.After(last) {
			last = stamp.Time
		}
	}
	return last
}

// Expire stops counting on tasks that should be gone for a while, and on refusals that are old.
func (c *Cluster) Expire(now time.Time) {
	invariant(len(c.log) == 0, "tasks expire inside a transaction")
	c.expireRefusals(now)
	var overdue []*Task
	for _, t := range c.leaving {
		if due := t.due(); !due.IsZero() && !now.Before(due) {
			overdue = append(overdue, t)
		}
	}
	slices.SortFunc(overdue, func(a, b *Task) int { return CompareNames(a.Key(), b.Key()) })
	for _, t := range overdue {
		c.move(t, Lingering, t.Node)
		if p := t.Evicts; p != nil {
			c.plans.stir(p)
		}
	}
}
