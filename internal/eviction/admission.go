package eviction

import (
	"cmp"
	"slices"

	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Opens reports whether a job would be admitted after evictions that are lawful for it (law J4). Nothing is changed. If it would
// not, why says what is in the way of them, to be told beside the refusal; nil if there is nothing to tell.
func (f *Search) Opens(j *cluster.Job) (ok bool, why *verdict.Verdict) {
	for _, scope := range [...]cluster.Scope{cluster.BetweenQueues, scopeInQueue(j)} {
		if !f.rules.Scopes.Has(scope) {
			continue
		}
		opens, refusal := f.opens(scope, j)
		if opens {
			return true, nil
		}
		why = cmp.Or(why, refusal)
	}
	return false, why
}

// scopeInQueue is the scope in which a job takes from others of its queue: for a lone pod, from any (law A3).
func scopeInQueue(j *cluster.Job) cluster.Scope {
	if j.IsLone() {
		return cluster.Anywhere
	}
	return cluster.BetweenJobs
}

func (f *Search) opens(scope cluster.Scope, j *cluster.Job) (ok bool, why *verdict.Verdict) {
	s := f.session
	if f.decided != decisions(s) {
		f.forget()
	}
	if j.NeverPreempts || !f.hasGivers(scope, j) {
		return false, nil
	}
	if j.Count(cluster.Pending) > 0 && j.Valid() >= j.MinMember && !s.IsStarving(j) {
		return false, nil // the action would evict nobody for it
	}
	c := f.admissionRequestOf(scope, j)
	if why := f.neverFits(&c); why != "" {
		return false, &verdict.Verdict{Code: verdict.NotEnoughResources, Help: helpsOf(j), Detail: why}
	}
	for _, r := range f.refused[c.shape] {
		if r.covers(&c) {
			return false, r.why
		}
	}
	if !f.mayAsk(j, scope) {
		s.Cluster.Postpone(j, scope)
		return false, nil
	}
	r := f.ask(&c)
	if r == nil {
		return true, nil
	}
	f.remember(&c, r)
	return false, r.why
}

// maxAsked bounds, in pods asked to leave, what one action finds out in one cycle about jobs that wait for admission and are like
// none refused before: about a second. Jobs beyond it are asked about in the next cycle, and have half of it to themselves, see
// [Search.hasTime].
const maxAsked = 400_000

func (f *Search) mayAsk(j *cluster.Job, scope cluster.Scope) bool {
	if j.Postponed.Has(scope) {
		return f.asked < maxAsked
	}
	return f.asked < maxAsked/2
}

// admissionRequest is what a job asks for at admission.
type admissionRequest struct {
	job   *cluster.Job
	shape admissionShape
	first *cluster.Task    // that waits, nil if none does
	lacks resources.Vector // of its minResources

	// What plugins may look at besides: quotas are about one namespace, and may be about one class of it, the number of pods, and
	// limits, which minResources names too.
	namespace, class string
	members          int
	named, has       resources.Vector
}

// admissionShape is what two jobs must have in common for the refusal of one to say anything of the other: on whose authority
// they would take, and all that laws and votes read of them but amounts.
type admissionShape struct {
	scope    cluster.Scope
	queue    *cluster.Queue
	priority int32
	mark     string
	class    *cluster.Class // of the pod that others would leave for, nil if none waits
}

func (f *Search) admissionRequestOf(scope cluster.Scope, j *cluster.Job) admissionRequest {
	c := admissionRequest{job: j, lacks: j.MinResources, namespace: j.ID.Namespace, class: j.Group.Spec.PriorityClassName,
		members: j.MinMember, has: j.Usage.Request}
	if !j.Usage.Allocated.IsZero() || !j.Gated.IsZero() {
		c.lacks = make(resources.Vector, len(j.MinResources))
		for d := range c.lacks {
			c.lacks[d] = j.LacksResource(resources.Dim(d))
		}
	}
	if list := j.Group.Spec.MinResources; list != nil {
		c.named = f.session.Cluster.Resources.Asked(*list)
	}
	c.shape = admissionShape{scope: scope, queue: j.Queue, priority: j.Priority, mark: markOf(j)}
	if j.Count(cluster.Pending) > 0 {
		c.first = f.session.Pending(j)[0]
		c.shape.class = c.first.Class
	}
	return c
}

func markOf(j *cluster.Job) string {
	const key = schedulingv1beta1.PreemptableKey
	if mark, ok := j.Group.Annotations[key]; ok {
		return mark
	}
	return j.Group.Labels[key]
}

// refused is a job that was refused after all had left who may.
type refused struct {
	admissionRequest
	why *verdict.Verdict
	// isAlone is set if laws protect every pod from jobs of its shape: then it does not matter what they ask for.
	isAlone bool
	// byAmounts is set if what is missing is an amount that the queues or the cluster lack, whoever asks for it.
	byAmounts bool
}

// covers reports whether another job of the same shape must be refused too: it asks for no less, in all that the refusal was
// about. One that asks for something else besides may take from others.
func (r *refused) covers(c *admissionRequest) bool {
	if r.isAlone {
		return true
	}
	if !r.lacks.LessEqual(c.lacks) || !namesTheSame(r.lacks, c.lacks) {
		return false
	}
	return r.byAmounts || r.namespace == c.namespace && r.class == c.class && r.members <= c.members &&
		r.named.LessEqual(c.named) && c.has.LessEqual(r.has)
}

// maxRefused bounds how many refused jobs of one shape are remembered: each asked for less of something than those before it,
// so that there are few even in a long backlog.
const maxRefused = 32

func (f *Search) remember(c *admissionRequest, r *refused) {
	r.admissionRequest = *c
	r.has = c.has.Clone()
	known := f.refused[c.shape]
	if len(known) == maxRefused {
		known = known[1:]
	}
	f.refused[c.shape] = append(known, r)
}

// namesTheSame reports whether two amounts are of the same resources.
func namesTheSame(v, w resources.Vector) bool {
	for i := range max(len(v), len(w)) {
		if d := resources.Dim(i); (v.At(d) > 0) != (w.At(d) > 0) {
			return false
		}
	}
	return true
}

// ask lets pods leave, as laws and votes have it, until the job would be admitted. It returns nil then, and else what is in the
// way.
func (f *Search) ask(c *admissionRequest) *refused {
	s, j := f.session, c.job
	x := s.Begin()
	defer x.Undo()
	a := f.attempt(c.shape.scope, j)
	if c.first != nil {
		a.need(c.first)
	}
	all := s.Cluster.TasksOnNodes()
	f.asked += len(all)
	var last *verdict.Verdict
	opens := func() bool {
		if last = s.MayEnqueue(j); last == nil {
			last = quota.OverCapability(s.Cluster.Resources, j.QuotaNode(), c.lacks)
		}
		return last == nil
	}
	isAlone := true
	if f.tiers(a, func() bool {
		groups := a.groupByJob(all)
		isAlone = isAlone && len(groups) == 0
		return len(a.askUntil(x, groups, nil, opens)) > 0 && opens()
	}) {
		return nil
	}
	if last == nil {
		last = s.MayEnqueue(j) // nobody was asked
	}
	r := &refused{isAlone: isAlone, byAmounts: isAboutAmounts(last)}
	x.Undo()
	if isAlone || r.byAmounts {
		r.why = f.protected(a)
	}
	return r
}

// isAboutAmounts reports whether a refusal at admission says that a queue or the cluster has too little left.
func isAboutAmounts(v *verdict.Verdict) bool {
	return v != nil && slices.Contains([]verdict.Code{verdict.OverCommitted, verdict.OverCapability, verdict.OverCluster, verdict.TooLargeForQueue}, v.Code)
}

// protected says who may not leave for the taker of an attempt, nil if everybody may.
func (f *Search) protected(a *attempt) *verdict.Verdict {
	if a.scope == cluster.BetweenQueues && a.taker.IsLone() && f.session.Policy.Evicts(cluster.Anywhere) {
		return nil // an action has looked at the same pods for it
	}
	spared := a.spared()
	if len(spared) == 0 {
		return nil
	}
	return &verdict.Verdict{Code: verdict.NotEnoughResources, Help: helps, Looked: true, Spared: spared}
}
