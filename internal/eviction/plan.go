package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// A plan waits for its last victim as long as that may take to end, and a minute beyond for the requests and the kubelet; for
// room that others are leaving, as long.
const planSlack = time.Minute

// finish puts an attempt that has succeeded in force.
func (a *attempt) finish(x framework.Transaction) {
	s := a.search.session
	if len(a.taken) == 0 && a.fitsNow() && a.bind(x) {
		return
	}
	p := &cluster.Plan{ID: s.Cluster.NewPlanID(s.Now), Job: a.taker, Action: a.search.action, Scope: a.scope, Since: s.Now, Sequence: a.placed}
	planned := &framework.Planned{Plan: p}
	for i := range a.taken {
		u := &a.taken[i]
		for _, t := range u.tasks {
			p.Victims = append(p.Victims, t)
			planned.Evictions = append(planned.Evictions, a.eviction(p, u, t, pastBudget(s.Cluster, &a.search.rules, t)))
		}
	}
	p.Evictions = len(p.Victims)
	if p.Evictions > 0 {
		p.Law = planned.Evictions[0].Law
	}
	p.Deadline = deadline(s, p, a.placed)
	x.Promise(planned)
	a.endOverruled()
	a.search.forget()
	judge(s, p)
}

// moved are the tasks that the attempt has placed or evicted.
func (a *attempt) moved() []*cluster.Task { return append(tasksOf(a.taken), a.placed...) }

// endOverruled ends the plans whose room the taker has.
func (a *attempt) endOverruled() {
	s := a.search.session
	if s.IsTrial() {
		return // what they promise is back when the trial ends
	}
	for _, lower := range a.overruled {
		s.Cluster.Cancel(lower, "job "+a.taker.Name()+" of higher priority takes the room that was promised")
		s.AddVerdict(lower.Job, nil)
	}
}

// pastBudget reports whether a victim is to be deleted without asking for a budget, now that all victims count: the rules
// know none, or one that covers it is overdrawn. Then every pod that the budget covers goes past it, for the first that is
// deleted uses up what was left. The API server evicts no pod that two budgets cover; both were asked here.
func pastBudget(c *cluster.Cluster, rules *framework.EvictionRules, t *cluster.Task) bool {
	budgets := c.Budgets(t)
	return !rules.Budgets || len(budgets) > 1 || slices.ContainsFunc(budgets, func(b *cluster.Budget) bool { return b.Left() < 0 })
}

// bind gives a job that nobody has to leave for what it needs to start, at once: were it left to allocate, a later taker of
// this action could count on the same room. What goes beyond a job's minimum is left to the action that allocates, if that is to come. It
// reports whether no plan is needed.
func (a *attempt) bind(x framework.Transaction) bool {
	j, s := a.taker, a.search.session
	if j.Lacks() == 0 && s.WillAllocate() {
		x.Undo()
		// Should allocate give the room to others, what helps an attempt to evict helps the job.
		s.AddVerdict(j, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: helps})
		return true
	}
	y := s.Begin()
	for _, m := range withdraw(x, a.placed) {
		t, n := m.task, m.node
		if s.Overused(j.Queue) != nil || s.MayAllocate(t) != nil || s.MayBind(t) != nil || !s.Placer.Fits(t, n) {
			y.Undo()
			return false
		}
		x.Place(t, n)
	}
	if !s.IsReady(j) {
		y.Undo()
		return false
	}
	x.Commit()
	a.endOverruled()
	s.AddVerdict(j, nil)
	a.search.forget()
	return true
}

// fitsNow reports whether all that is promised is free at this moment.
func (a *attempt) fitsNow() bool {
	for _, t := range a.placed {
		n := t.Node
		for i, amount := range t.Request() {
			if d := resources.Dim(i); amount > 0 && n.Allocatable.At(d)-n.Used.At(d)-n.Promised.At(d) < 0 {
				return false
			}
		}
	}
	return true
}

// deadline is when the room of a plan should be there.
func deadline(s *framework.Session, p *cluster.Plan, promised []*cluster.Task) time.Time {
	now := s.Now
	last := now
	if slices.ContainsFunc(promised, func(t *cluster.Task) bool { return t.Class.NeedsSupplies() || s.Cluster.DependsOnPods(t.Class) }) {
		// What keeps such a pod from its node may be leaving anywhere.
		if gone := s.Cluster.LastToLeave(); gone.After(last) {
			last = gone
		}
	}
	for _, t := range p.Victims {
		if gone := now.Add(t.Grace()); gone.After(last) {
			last = gone
		}
	}
	for _, t := range promised {
		for _, other := range t.Node.Tasks() {
			if stamp := other.Pod.DeletionTimestamp; other.Status == cluster.Releasing && stamp != nil && stamp.After(last) {
				last = stamp.Time
			}
		}
	}
	return last.Add(planSlack)
}

// eviction is what is to be written about a victim.
func (a *attempt) eviction(p *cluster.Plan, u *unit, t *cluster.Task, pastBudget bool) cluster.Eviction {
	law, message := a.say(u, t)
	if u.whole && len(u.tasks) > 1 {
		message += "; its gang cannot run without it and is evicted as a whole (rule J2)"
	}
	return cluster.Eviction{Pod: t.Key(), UID: t.UID(), Node: t.Node.Name, Giver: t.Job.ID, For: a.taker.ID, Plan: p.ID, Action: p.Action,
		Law: law, Message: fmt.Sprintf("%s %s", message, mention(p.ID)), PastBudget: pastBudget}
}

// mention is how the messages of a plan's victims name it.
func mention(plan string) string { return "(plan " + plan + ")" }

// say says which job preempts a victim, by which rule, with the numbers.
func (a *attempt) say(u *unit, t *cluster.Task) (law, message string) {
	taker, giver := a.taker, u.job
	switch {
	case a.scope == cluster.WithinJob:
		highest := slices.MaxFunc(a.placed, func(t, v *cluster.Task) int { return cmp.Compare(t.Priority, v.Priority) })
		return "P1", fmt.Sprintf("Preempted by pod %s (task priority %d) of the same job: higher task priority than %d (rule P1)",
			highest.Pod.Name, highest.Priority, t.Priority)
	case a.scope == cluster.Anywhere:
		return "A3", fmt.Sprintf("Preempted by job %s (priority %d) in queue %s: a lone pod of higher priority than %d (rule A3)",
			taker.Name(), taker.Priority, taker.QueueName, giver.Priority)
	case a.scope == cluster.BetweenJobs:
		return "J1", fmt.Sprintf("Preempted by job %s (priority %d) in queue %s: higher job priority than %d (rule J1)",
			taker.Name(), taker.Priority, taker.QueueName, giver.Priority)
	case !a.queues.NeedsRight(giver.QuotaNode()):
		return "Q1", fmt.Sprintf("Preempted by job %s in queue %s (queue priority %d): higher queue priority than %d of queue %s (rule Q1)",
			taker.Name(), taker.QueueName, a.queues.Priority(taker.QuotaNode()), a.queues.Priority(giver.QuotaNode()), giver.QueueName)
	}
	message = fmt.Sprintf("Preempted by job %s in queue %s: queue %s holds more than it deserves (rule Q1)", taker.Name(), taker.QueueName, giver.QueueName)
	if keeps := a.keeps(giver.QuotaNode(), t); keeps != "" {
		message += "; it keeps " + keeps
	}
	return "Q1", message
}

// keeps says what a queue keeps of what it deserves, in the resources of a task.
func (a *attempt) keeps(q *quota.Node, t *cluster.Task) string {
	standing := a.queues.Standing(q)
	var parts []string
	for i, amount := range t.Request() {
		d := resources.Dim(i)
		limit, ok := standing.Deserved.At(d)
		if amount <= 0 || !ok || d == resources.Pods {
			continue
		}
		name := a.search.session.Cluster.Resources.Name(d)
		parts = append(parts, fmt.Sprintf("%s %s and deserves %s", name, resources.Format(name, standing.Held.At(d)),
			resources.Format(name, limit)))
	}
	return strings.Join(parts, ", ")
}

// judge says of a job with a plan how far it has come.
func judge(s *framework.Session, p *cluster.Plan) {
	v := &verdict.Verdict{Code: verdict.Preempting, Help: verdict.HelpNode | verdict.HelpPod | verdict.HelpTime,
		Placed: p.Evictions - len(p.Victims), Wanted: p.Evictions}
	if p.Evictions == 0 {
		v.Detail = "they were being deleted before, and no pod is evicted for it"
	}
	s.Cluster.SetVerdict(p.Job, v)
}

// helps is what may turn the refusal of a taker around: any change of the nodes, the queues, the pods or itself.
const helps = verdict.HelpNode | verdict.HelpQueue | verdict.HelpPod | verdict.HelpJob

// helpsOf is what may turn the refusal of a job around: for one that needs volumes or devices these too, since evictions open no
// node that lacks what it needs besides room.
func helpsOf(j *cluster.Job) verdict.Help {
	if slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool { return t.Status == cluster.Pending && t.Class.NeedsSupplies() }) {
		return helps | verdict.HelpSupply
	}
	return helps
}

// refuse says of a job that nobody leaves for it, and why.
func (f *Search) refuse(scope cluster.Scope, j *cluster.Job, why searchFailure) {
	spared := why.spared
	if scope == cluster.BetweenQueues && j.IsLone() && f.session.Policy.Evicts(cluster.Anywhere) {
		spared = nil // an action has looked at the same pods for it, and said so
	}
	v := &verdict.Verdict{Code: verdict.NotEnoughResources, Looked: true, Spared: spared, Vetoed: why.vetoed, Help: helpsOf(j)}
	if why.waits {
		v.Help |= verdict.HelpTime // that evictions are sent is no help in itself
	}
	f.session.AddVerdict(j, v)
}

// vetoes counts the nodes that evictions would open and that a vetoer refuses (law K7), by what it says.
func (a *attempt) vetoes() []verdict.NodeReason {
	var reasons []verdict.NodeReason
	for _, n := range a.search.session.Cluster.Nodes() {
		if why := a.vetoed[n]; why != "" {
			reasons = verdict.CountNode(reasons, why, n.Name)
		}
	}
	return reasons
}

// pods returns the pods that the taker could have looked at.
func (a *attempt) pods() []*cluster.Task {
	all := a.taker.Tasks()
	if a.scope != cluster.WithinJob {
		all = a.search.session.Cluster.TasksOnNodes()
	}
	return slices.DeleteFunc(slices.Clone(all), func(t *cluster.Task) bool { return !a.concerns(t) })
}

// spared counts the pods that may not leave for the taker, by law, the most frequent first: those that a law protects
// whatever else leaves, and those that one protects once all have left that may. These are not counted; they would not be
// enough.
func (a *attempt) spared() []verdict.Spared {
	_, spared := a.whoMayLeave(a.pods())
	return spared
}

// whoMayLeave returns the pods that may leave together, as laws and votes have it, and counts the others by law.
func (a *attempt) whoMayLeave(pods []*cluster.Task) (leaving []*cluster.Task, spared []verdict.Spared) {
	counts := map[string]int{}
	for _, t := range pods {
		if why := a.forbids(t); why != "" {
			counts[why]++
		}
	}
	x := a.search.session.Begin()
	a.begin()
	groups := a.groupByJob(pods)
	a.refused = map[*cluster.Task]string{}
	leaving = tasksOf(a.ask(x, groups, nil))
	for _, h := range groups {
		for _, t := range h.tasks {
			if t.Status != cluster.Evicting {
				counts[cmp.Or(a.refused[t], atItsMinimum)]++
			}
		}
	}
	a.refused = nil
	x.Undo()
	spared = make([]verdict.Spared, 0, len(counts))
	for reason, pods := range counts {
		spared = append(spared, verdict.Spared{Reason: reason, Pods: pods})
	}
	slices.SortFunc(spared, func(s, t verdict.Spared) int {
		return cmp.Or(cmp.Compare(t.Pods, s.Pods), cmp.Compare(s.Reason, t.Reason))
	})
	return leaving, spared
}
