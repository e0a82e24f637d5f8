package statuses

import (
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/framework"
)

// Plans adds the writes of plans that began and of those that were cancelled. A plan that did both in one cycle is not
// written.
func (r *Reporter) Plans(c *model.Cluster, began []*framework.Planned, d *decision.Decisions) {
	for _, planned := range began {
		// What is written of the plans of Workloads, the reader of Workloads says.
		if p := planned.Plan; p.IsInForce() && (p.Job == nil || p.Job.Workload == nil) {
			d.Plans = append(d.Plans, r.start(p, planned.Evictions))
		}
	}
	for _, p := range c.Plans().TakeCancelled() {
		if p.Job != nil && p.Job.Workload != nil {
			continue
		}
		end := decision.PlanEnd{ID: p.ID, Why: p.Why}
		if p.Job != nil {
			end.Job = p.Job.ID
		}
		for _, t := range p.Unpromised {
			if t.IsStandIn {
				continue
			}
			end.Nominations = append(end.Nominations, decision.Nomination{Pod: t.Key(), UID: t.UID(), Job: end.Job})
		}
		for _, t := range p.Spared {
			spared := decision.Spared{Pod: t.Key(), UID: t.UID()}
			if !t.MayBeAsked() {
				spared.Refused, spared.Refusals = t.Refusal.Why, t.Refusal.Times
			}
			end.Spared = append(end.Spared, spared)
		}
		d.Ended = append(d.Ended, end)
	}
}

func (r *Reporter) start(p *cluster.Plan, evictions []decision.Eviction) decision.PlanStart {
	s := decision.PlanStart{ID: p.ID, Action: p.Action, Scope: p.Scope, Since: p.Since, Evictions: evictions}
	j := p.Job
	if j == nil {
		return s
	}
	s.Job, s.UID = j.ID, j.UID()
	s.Group = decision.GroupStatus{Job: j.ID, UID: j.UID(), Status: *r.memory.group(j)}
	for _, t := range p.Promised() {
		if t.IsStandIn {
			continue
		}
		s.Nominations = append(s.Nominations, decision.Nomination{Pod: t.Key(), UID: t.UID(), Node: t.Node.Name, Job: j.ID})
	}
	return s
}
