package plans

import (
	"fmt"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
)

// Shuffle evicts pods that plugins have chosen.
func Shuffle(s *framework.Session, action string, chosen []framework.Chosen) {
	x := s.Begin()
	p := &cluster.Plan{Action: action, Since: s.Now}
	planned := &framework.Planned{Plan: p}
	for _, c := range chosen {
		t := c.Task
		if !t.Status.Evictable() || t.Job == nil || t.Job.IsForeign || !t.MayBeAsked() {
			continue
		}
		if slices.ContainsFunc(s.Cluster.Budgets(t), func(b *cluster.Budget) bool { return b.Left() <= 0 }) {
			continue // no preemptor needs the room, so a disruption budget is never violated
		}
		if p.ID == "" { // an ID is not given to a plan that evicts nothing
			p.ID = s.Cluster.Plans().NewID(s.Now)
		}
		x.Evict(t)
		p.Victims = append(p.Victims, t)
		planned.Evictions = append(planned.Evictions, decision.Eviction{Pod: t.Key(), UID: t.UID(), Node: t.Node.Name, VictimJob: t.Job.ID,
			Plan: p.ID, Action: action, Rule: c.Rule, Message: fmt.Sprintf("%s %s", c.Why, Mention(p.ID)), Allowance: t.Allowance(s.Now)})
	}
	if len(p.Victims) == 0 {
		x.Undo()
		return
	}
	p.Evictions = len(p.Victims)
	p.Deadline = Deadline(s, p, nil)
	x.Promise(planned)
}
