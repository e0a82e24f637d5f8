package eviction

import (
	"iter"
	"slices"

	"hekla.sh/hekla/internal/eviction/plans"
	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/internal/eviction/spared"
	"hekla.sh/hekla/internal/eviction/victims"
	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/verdict"
)

// Search looks for victims for the preemptors of one action in one session.
type Search struct {
	session *framework.Session
	rules   *rules.Action

	capacity  capacity
	admission admission

	looks     int // nodes looked at so far
	improving int // nodes tried so far to improve plans
	failures  map[preemptorShape]searchFailure
	smallest  map[likeShape][]failedRequest // of these failures, those that larger pods share
	evictable map[*quota.Node]int32         // the lowest priority of a job of the queue that has pods to evict
	floors    victims.FloorsByRules
	protected map[protectionKey][]verdict.Spared // where rules protect all pods: how many by which rule
	counted   spared.Counts
	triesAll  bool // for tests: no lower bounds
	// comparesCounts, for tests, gets counts of spared pods that nothing was tried for, and those by trying.
	comparesCounts func(counted, tried []verdict.Spared)
	promised       map[planRank]*cluster.Job // a job with a plan in force for each queue and priority, nil if not known
	decided        framework.Decided         // when all this was found out
}

// NewSearch returns a search by the rules of an action.
func NewSearch(s *framework.Session, action framework.EvictingAction) *Search {
	f := &Search{session: s, rules: rules.Of(s, action), capacity: capacityOf(s)}
	f.admission.search = f
	f.forget()
	return f
}

// SearchOf returns the search of an action in a session. What it has stored is used for the whole session.
func SearchOf(s *framework.Session, action framework.EvictingAction) *Search {
	return framework.Keep(s, action.Name(), func() *Search { return NewSearch(s, action) })
}

// forget drops what was stored before a decision changed the model.
func (f *Search) forget() {
	f.decided = f.session.Decided()
	f.failures, f.smallest = map[preemptorShape]searchFailure{}, map[likeShape][]failedRequest{}
	f.admission.forget()
	f.evictable = nil
	f.floors = victims.FloorsByRules{}
	f.promised = nil
	f.protected = map[protectionKey][]verdict.Spared{}
	f.counted = spared.Counts{}
}

// follow drops what no longer holds after the decisions since it was found out, whichever action has made them.
func (f *Search) follow() {
	now, before := f.session.Decided(), f.decided
	if now == before {
		return
	}
	if now.Binds != before.Binds || now.Ended != before.Ended {
		f.forget() // pods have begun to run, or stay after all
		return
	}
	for _, planned := range f.session.Plans[before.Plans:] {
		if p := planned.Plan; p == nil || p.Job == nil || !victims.Keep(p.Job) {
			f.forget()
			return
		}
	}
	for _, planned := range f.session.Plans[before.Plans:] {
		f.forgetPlanned(planned.Plan)
	}
}

// forgetPlanned is forget after a plan that came into force and displaced none. Such a plan adds no possible victim and
// makes none cheaper, so lower bounds stay valid.
func (f *Search) forgetPlanned(p *cluster.Plan) {
	evictable, floors, promised, counted := f.evictable, f.floors, f.promised, f.counted
	f.forget()
	f.evictable, f.floors, f.promised, f.counted = evictable, floors, promised, counted
	f.floors.Planned(p)
	f.counted.Planned(p)
	if promised != nil {
		promised[rankOf(p.Job)] = p.Job
	}
}

// planRank holds the properties of a job that decide whether a preemptor may take the room that a plan promises to it.
type planRank struct {
	queue    *cluster.Queue
	priority int32
}

func rankOf(j *cluster.Job) planRank { return planRank{queue: j.Queue, priority: j.Priority} }

// outranksAny reports whether a plan in force promises room that the preemptor may take.
func (f *Search) outranksAny(r *rules.Rules) bool {
	if f.promised == nil {
		f.promised = map[planRank]*cluster.Job{}
		for _, p := range f.session.Cluster.Plans().All() {
			if p.Job != nil {
				f.promised[rankOf(p.Job)] = p.Job
			}
		}
	}
	for _, j := range f.promised {
		if r.Outranks(j) {
			return true
		}
	}
	return false
}

// floorsFor returns the lower bounds for a preemptor, nil inside a job.
func (f *Search) floorsFor(s *victims.Selector, scope decision.Scope) *victims.Floors {
	if scope == decision.WithinJob || f.triesAll {
		return nil
	}
	return f.floors.For(s, f.evictableQueues)
}

// rightOf returns whether any queue with pods to evict may have to give way.
func (f *Search) rightOf(a *attempt) rules.Right {
	if f.triesAll {
		return rules.Right{MayTake: true}
	}
	return a.rules.Right(f.queuesWithVictims())
}

// Reclaim looks for victims for a job in other queues.
func (f *Search) Reclaim(j *cluster.Job) { f.find(decision.BetweenQueues, j) }

// Preempt looks for victims for a job in its own queue, or for a lone pod in all queues.
func (f *Search) Preempt(j *cluster.Job) { f.find(rules.ScopeInQueue(j), j) }

// PreemptWithin looks for victims for a job among its own pods of lower task priority.
func (f *Search) PreemptWithin(j *cluster.Job) { f.find(decision.WithinJob, j) }

// scopes returns the scopes of the action in which a job may preempt other jobs, in the order in which they are tried.
func (f *Search) scopes(j *cluster.Job) []decision.Scope {
	return slices.DeleteFunc([]decision.Scope{decision.BetweenQueues, rules.ScopeInQueue(j)}, func(scope decision.Scope) bool {
		return !f.rules.Scopes.Has(scope)
	})
}

// find makes a plan for a job, or notes a verdict that says why it cannot.
func (f *Search) find(scope decision.Scope, j *cluster.Job) {
	s := f.session
	pods := rules.WithoutFillers(s, j, plans.BySubgroup(j, s.Pending(j)))
	if len(pods) == 0 {
		return
	}
	if scope != decision.WithinJob {
		if v := s.HeldUp(j); v != nil {
			s.AddVerdict(j, v)
			return
		}
	}
	domains, v := gang.EvictionDomains(s, j)
	if v != nil {
		s.AddVerdict(j, v)
		return
	}
	if most := f.rules.MaxDomains; most > 0 && len(domains) > most {
		domains = domains[:most]
	}
	preempting := slices.DeleteFunc(slices.Clone(pods), (*cluster.Task).NeverPreempts)
	if len(preempting) == 0 {
		f.findFreeRoom(scope, j, domains, pods)
		return
	}
	if len(preempting) < len(pods) {
		// Pods that never preempt can only use free nodes, so they are placed first.
		pods = append(slices.DeleteFunc(pods, func(t *cluster.Task) bool { return !t.NeverPreempts() }), preempting...)
	}
	f.follow()
	shape, isComparable := f.shapeOf(scope, j, pods)
	resumes := f.resumes(scope, j)
	isComparable = isComparable && len(preempting) == len(pods) && !resumes
	if isComparable {
		if known, ok := f.knownFailure(shape, j.Lacks()); ok {
			f.refuse(scope, j, known)
			return
		}
	}
	if !f.hasTime(j, scope) {
		s.Cluster.Postpone(j, scope)
		return
	}
	a, all := f.attempt(scope, j), pods
	a.resumes = resumes
	if g := a.rules.Guarantees; g != nil {
		isComparable = isComparable && g.Ask.Next.IsZero() && a.rules.Variant() == 0
		pods = g.Ask.Of(pods)
	}
	lower, waits := a.lowerPlans()
	why := searchFailure{lacks: j.Lacks()}
	why.never = len(lower) == 0
	// If the job would not fit on empty nodes, it does not matter which pods may be evicted.
	if f.capacity.couldHold(pods, max(j.LacksPromises(), 1)) {
		finds, right := f.mayFindVictims(scope, j), f.rightOf(a)
		if finds && !right.MayTake {
			finds, why.never = false, false // which pods might leave does not matter then
			if len(lower) == 0 {
				why.right = right.Help
			}
		} else {
			finds = finds && a.candidates.MayOpenAny(pods)
			why.never = why.never && !finds
		}
		a.finds = finds
		if (len(lower) > 0 || finds || resumes || f.hasRoomOnItsWay(scope, j)) && a.planIn(domains, lower, pods) {
			f.looks += a.candidates.Tried()
			return
		}
		if finds {
			f.noteLooks(a, pods, &why)
		}
		a.rules.SetPod(preempting[0])
		why.spared, why.vetoed = f.sparedFor(a, right.MayTake, finds), a.candidates.VetoReasons()
	} else {
		why.tooLarge = true
	}
	why.ofQueue, why.promises = a.ofQueue, a.brokePromise
	if len(pods) < len(all) && f.takeRoomOnItsWay(scope, j, domains, lower, all, &why) {
		return
	}
	why.waits = waits || a.victims.Waits()
	if scope == decision.BetweenQueues {
		why.refine = func(v *verdict.Verdict) { a.rules.Guarantees.Refine(v, f.queuesWithVictims()) }
	}
	if isComparable && !a.brokeGuarantee {
		f.noteFailure(shape, a, why)
	}
	f.refuse(scope, j, why)
}

// resumes reports whether a job is served because its plan has ended, for which pods of other queues have left. What
// gave its queue a right to more than its share is then gone, and the room that they left counts as if they had it:
// otherwise their successors would get it, and be evicted for the job again (rule S6).
func (f *Search) resumes(scope decision.Scope, j *cluster.Job) bool {
	p := f.session.Resumed
	return p != nil && p.Job == j && scope == decision.BetweenQueues && p.Evictions > len(p.Spared)
}

// takeRoomOnItsWay plans for a job on nodes that are becoming free, and evicts no pods (rule P4). If that fails, it
// adds to why.
func (f *Search) takeRoomOnItsWay(scope decision.Scope, j *cluster.Job, domains []*cluster.Domain, lower []*cluster.Plan, pods []*cluster.Task,
	why *searchFailure) bool {
	if len(lower) == 0 && !f.hasRoomOnItsWay(scope, j) {
		return false
	}
	a := f.attempt(scope, j)
	a.evictsNone = true
	defer func() { why.ofQueue, why.promises = why.ofQueue|a.ofQueue, why.promises || a.brokePromise }()
	return a.planIn(domains, lower, pods)
}

// noteLooks counts the nodes that a search in vain has looked at, and notes what would let a pod of another queue be
// the first to leave.
func (f *Search) noteLooks(a *attempt, pods []*cluster.Task, why *searchFailure) {
	help, are := a.areNoneFirst(pods...)
	if !are {
		f.looks += len(f.session.Cluster.Nodes()) // for each of them it was found out why
		return
	}
	f.looks += a.candidates.Tried()
	if a.rules.Scope == decision.BetweenQueues {
		why.others = help
	}
}

// findFreeRoom plans for a job whose pods never preempt, on nodes that are becoming free (rule P6).
func (f *Search) findFreeRoom(scope decision.Scope, j *cluster.Job, domains []*cluster.Domain, pods []*cluster.Task) {
	var why searchFailure
	if f.takeRoomOnItsWay(scope, j, domains, nil, pods, &why) {
		return
	}
	if count := len(f.attempt(scope, j).pods()); count > 0 {
		why.spared = []verdict.Spared{{Why: verdict.RuleNeverPreempts.Protection(), Pods: count}}
	}
	f.refuse(scope, j, why)
}

// maxLooks bounds the search by one action in one cycle, in nodes tried on behalf of preemptors: some seconds on the
// largest clusters. Preemptors beyond it wait for the next cycle, and have half of that to themselves. The preemptors
// before them in the order may be looked at again with every pod that ends, and must not use up every cycle.
const maxLooks = 250_000

func (f *Search) hasTime(j *cluster.Job, scope decision.Scope) bool {
	if j.Postponed.Has(scope) {
		return f.looks < maxLooks
	}
	return f.looks < maxLooks/2
}

// hasRoomOnItsWay reports whether terminating pods make room that may be nominated for a job without victims (rule P4).
// A job whose queue is overused gets no such room, as it would get no free room either.
func (f *Search) hasRoomOnItsWay(scope decision.Scope, j *cluster.Job) bool {
	s := f.session
	return scope != decision.WithinJob && !s.Cluster.Releasing.IsZero() && s.Overused(j.Queue) == nil
}

// mayFindVictims is a cheap check whether there could be any victims.
func (f *Search) mayFindVictims(scope decision.Scope, j *cluster.Job) bool {
	if scope == decision.WithinJob {
		return rules.RanksItsPods(j)
	}
	if scope == decision.BetweenJobs {
		lowest, hasVictims := f.evictableQueues()[j.QuotaNode()]
		return hasVictims && lowest < j.Priority
	}
	for n := range f.queuesWithVictims() {
		if scope == decision.Anywhere || n != j.QuotaNode() {
			return true
		}
	}
	return false
}

// queuesWithVictims yields the keys of evictableQueues, each once. Until that is worked out, it looks at no more pods
// than it takes to answer the caller: most ask whether there is one queue of some kind.
func (f *Search) queuesWithVictims() iter.Seq[*quota.Node] {
	return func(yield func(*quota.Node) bool) {
		seen := map[*quota.Node]bool{}
		if f.evictable == nil {
			for n := range rules.QueuesOnNodes(f.session) {
				if seen[n] = true; !yield(n) {
					return
				}
			}
		}
		for n := range f.evictableQueues() {
			if !seen[n] && !yield(n) {
				return
			}
		}
	}
}

// evictableQueues is [rules.EvictableQueues], worked out once.
func (f *Search) evictableQueues() map[*quota.Node]int32 {
	if f.evictable == nil {
		f.evictable = rules.EvictableQueues(f.session)
	}
	return f.evictable
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// helps lists what may help a refused preemptor: any change of nodes, queues, pods or the job itself.
const helps = verdict.HelpNode | verdict.HelpQueue | verdict.HelpPod | verdict.HelpJob

// helpsOf lists what may help a refused job. If the job needs volumes or devices these are listed too, because
// evictions do not open a node that lacks them.
func helpsOf(j *cluster.Job) verdict.Help {
	if slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool { return t.Status == cluster.Pending && t.Class.NeedsSupplies() }) {
		return helps | verdict.HelpSupply
	}
	return helps
}

// refuse notes a verdict that no pods are evicted for a job, and why.
func (f *Search) refuse(scope decision.Scope, j *cluster.Job, why searchFailure) {
	protected := why.spared
	if scope == decision.BetweenQueues && j.IsLone() && f.session.Policy.Evicts(decision.Anywhere) {
		protected = nil // another action has reported the same pods
	}
	v := &verdict.Verdict{Code: verdict.NotEnoughResources, Looked: true, Spared: protected, Vetoed: why.vetoed, Help: helpsOf(j)}
	if help := why.help(scope); help != 0 && j.Verdict != nil && f.session.Judged(j) && j.Verdict.Help&(verdict.HelpNode|verdict.HelpRoom|verdict.HelpQueue|verdict.HelpOwnQueue|verdict.HelpStock) != 0 {
		// What room would do for it is known already.
		v.Help = v.Help&^(verdict.HelpNode|verdict.HelpQueue|verdict.HelpPod) | help
		v = f.session.WaitToReclaim(j, v)
	}
	v.Help |= why.ofQueue
	if why.waits {
		v.Help |= verdict.HelpTime // it helps that time passes: evictions that are sent are no event
	}
	if why.refine != nil {
		why.refine(v)
	}
	f.session.AddVerdict(j, v)
}
