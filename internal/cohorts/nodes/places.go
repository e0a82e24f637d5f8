package nodes

import (
	"slices"

	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
)

// Places are the nodes of a session.
type Places struct {
	session *framework.Session
	forms   *Forms

	x      framework.Transaction // of all that is tried
	isOpen bool
	away   map[*workload.Workload][]*cluster.Task // those that have left, with the tasks that were evicted for that
	gone   quota.Held                             // what of the pods that leave those hold that have left, by queue
	trial  trial
	// promised is the job that Promise has placed, until that is kept.
	promised *cluster.Job
	scratch  cluster.Job // of stand-ins that are tried
	most     int64       // pods that all nodes together may have, -1 before it is asked for
}

// trial is the stand-ins of the last question. They wait in the model until another question is asked.
type trial struct {
	of    *workload.Workload
	parts []workload.Part
	tasks []*cluster.Task
	first []*cluster.Task // one of each part that has pods
}

// New returns the nodes of a session.
func New(s *framework.Session, forms *Forms) *Places {
	return &Places{session: s, forms: forms, away: map[*workload.Workload][]*cluster.Task{}, most: -1}
}

// exceedsNodes reports whether parts have more pods than all nodes together may have. No stand-ins are made for these:
// a Workload may ask for any number of pods, also without requests.
func (p *Places) exceedsNodes(parts []workload.Part) bool {
	if p.most < 0 {
		p.most = 0
		for _, n := range p.session.Cluster.Nodes() {
			p.most += n.Allocatable.At(resources.Pods)
		}
	}
	left := p.most
	for i := range parts {
		left -= int64(parts[i].Count)
	}
	return left < 0
}

// begin opens the transaction of all that is tried.
func (p *Places) begin() {
	if !p.isOpen {
		p.x, p.isOpen = p.session.Begin(), true
	}
}

// rest undoes all that was tried, if no Workload is away and nothing is promised.
func (p *Places) rest() {
	if p.isOpen && len(p.away) == 0 && p.promised == nil {
		p.x.Undo()
		p.isOpen, p.trial = false, trial{}
	}
}

// End undoes all that was tried. Workloads that have left must have returned before.
func (p *Places) End() {
	if len(p.away) > 0 || p.promised != nil {
		panic("invariant: a Workload has left its nodes and not returned, or what it was promised is not kept")
	}
	p.rest()
}

// try makes the stand-ins of a question.
func (p *Places) try(w *workload.Workload, parts []workload.Part) *trial {
	if p.trial.of == w && slices.EqualFunc(p.trial.parts, parts, isSame) {
		return &p.trial
	}
	p.drop()
	p.begin()
	p.scratch.ID = cluster.JobID{Kind: decision.OfTrial, Namespace: w.Namespace, Name: w.Name}
	p.scratch.Workload = w
	account(p.session.Cluster, &p.scratch, w)
	p.trial = trial{of: w, parts: slices.Clone(parts)}
	p.trial.tasks, p.trial.first = p.standIns(&p.scratch, parts)
	return &p.trial
}

// isSame reports whether two parts ask for the same.
func isSame(a, b workload.Part) bool {
	return a.PodSet == b.PodSet && a.Count == b.Count && a.Added == b.Added && slices.Equal(a.Flavors, b.Flavors)
}

// standIns adds the stand-ins of parts to a job.
func (p *Places) standIns(j *cluster.Job, parts []workload.Part) (all, first []*cluster.Task) {
	for i := range parts {
		part := &parts[i]
		podset := &cluster.Podset{Name: j.Workload.PodSets[part.PodSet].Name, Count: int(part.Count),
			Template: p.forms.Of(p.session.Cluster.Resources, j.Workload, part)}
		for index := range podset.Count {
			t := p.x.AddStandIn(j, podset, index)
			if index == 0 {
				first = append(first, t)
			}
			all = append(all, t)
		}
	}
	return all, first
}

// drop takes the stand-ins of the last question away.
func (p *Places) drop() {
	if p.rest(); p.isOpen {
		for _, t := range p.trial.tasks {
			p.x.DropStandIn(t)
		}
		p.trial = trial{}
	}
}

// CanPlace reports whether all pods of the parts find nodes together, next to all that hold or are promised nodes. What
// they request must be within the capability of the queue that the Workload's tree is attached to.
func (p *Places) CanPlace(w *workload.Workload, parts []workload.Part) bool {
	if p.exceedsNodes(parts) {
		return false
	}
	tasks := p.try(w, parts).tasks
	if p.overCapability(&p.scratch, tasks) != nil {
		return false
	}
	y := p.session.Begin()
	ok := gang.Together(p.session, tasks, len(p.away) > 0)
	y.Undo()
	return ok
}

// jobOf returns the job with the pods and stand-ins of a Workload, nil if it has none.
func (p *Places) jobOf(w *workload.Workload) *cluster.Job {
	return p.session.Cluster.Job(cluster.WorkloadID(w.Namespace, w.Name))
}

// Opens reports whether a Workload stands on a node that could hold a pod of the parts, if no pod stood there, or holds
// some of a capability that they lack.
func (p *Places) Opens(victim, w *workload.Workload, parts []workload.Part) bool {
	j := p.jobOf(victim)
	if j == nil || p.exceedsNodes(parts) {
		return false
	}
	q := p.try(w, parts)
	if p.sharesCapability(j, q.tasks) {
		return true
	}
	for _, v := range j.Tasks() {
		if v.Node == nil {
			continue
		}
		for _, t := range q.first {
			if p.session.Outlook.CanOpen(t, v.Node) {
				return true
			}
		}
	}
	return false
}

// Stays reports whether a Workload cannot leave now, because one of its pods is being bound.
func (p *Places) Stays(victim *workload.Workload) bool {
	j := p.jobOf(victim)
	return j != nil && j.Count(cluster.Binding)+j.Count(cluster.Allocated) > 0
}

// Leave takes the pods of a Workload from their nodes, as far as answers go.
func (p *Places) Leave(victim *workload.Workload) {
	if _, isAway := p.away[victim]; isAway {
		panic("invariant: workload " + victim.Key() + " leaves twice")
	}
	p.begin()
	p.away[victim] = p.evict(victim)
	p.count(p.jobOf(victim), +1)
}

// evict evicts the tasks of a Workload that do not leave already.
func (p *Places) evict(victim *workload.Workload) (evicted []*cluster.Task) {
	if j := p.jobOf(victim); j != nil {
		for _, t := range j.Tasks() {
			if t.Status.Yields() {
				p.x.Evict(t)
				evicted = append(evicted, t)
			}
		}
	}
	return evicted
}

// Return puts the pods of a Workload back.
func (p *Places) Return(victim *workload.Workload) {
	evicted, isAway := p.away[victim]
	if !isAway {
		panic("invariant: workload " + victim.Key() + " returns and has not left")
	}
	p.count(p.jobOf(victim), -1)
	for _, t := range evicted {
		p.x.Spare(t)
	}
	delete(p.away, victim)
	p.rest()
}

// Promise places the parts as CanPlace would, and keeps the nodes for them until Keep or Plan is called.
func (p *Places) Promise(w *workload.Workload, parts []workload.Part) bool {
	if p.exceedsNodes(parts) {
		return false
	}
	p.drop()
	p.begin()
	j := p.jobOf(w)
	if j == nil {
		j = &cluster.Job{ID: cluster.WorkloadID(w.Namespace, w.Name)}
	}
	j.Workload = w
	account(p.session.Cluster, j, w)
	y := p.session.Begin()
	tasks, _ := p.standIns(j, parts)
	if p.overCapability(j, tasks) != nil || !gang.Together(p.session, tasks, len(p.away) > 0) {
		y.Undo()
		return false
	}
	j.MinMember = len(tasks)
	p.promised = j
	return true
}

// Keep makes the stand-ins that Promise has placed hold their nodes, until pods take their places.
func (p *Places) Keep() {
	p.x.Commit()
	p.isOpen, p.promised, p.trial = false, nil, trial{}
}

// Plan puts a plan in force that holds what Promise has placed, and for which the pods of the victims leave. Its job is
// set.
func (p *Places) Plan(plan *cluster.Plan, victims []workload.Victim) {
	plan.Job = p.promised
	for _, v := range victims {
		plan.Victims = append(plan.Victims, p.evict(v.Workload)...)
	}
	slices.SortFunc(plan.Victims, cluster.CompareTasks)
	plan.Evictions = len(plan.Victims)
	p.x.Promise(&framework.Planned{Plan: plan})
	p.isOpen, p.promised, p.trial = false, nil, trial{}
}
