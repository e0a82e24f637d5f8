package eviction

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/plans"
	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/internal/gang"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/verdict"
)

// Search looks for victims on behalf of the preemptors of one action in one session.
type Search struct {
	session *framework.Session
	rules   *rules.Action

	capacity  capacity
	admission admission

	looks     int // at nodes, so far
	failures  map[preemptorShape]searchFailure
	evictable map[*cluster.Queue]int32 // the lowest priority of a job of the queue that has pods to evict
	decided   int                      // decisions of the session when all this was found out
}

// NewSearch returns a search by the rules of an action.
func NewSearch(s *framework.Session, action framework.EvictingAction) *Search {
	f := &Search{session: s, rules: rules.Of(s, action), capacity: newCapacity(s)}
	f.admission.search = f
	f.forget()
	return f
}

// SearchOf returns the search of an action in a session: what it finds out is kept for the rest of the session.
func SearchOf(s *framework.Session, action framework.EvictingAction) *Search {
	return framework.Keep(s, action.Name(), func() *Search { return NewSearch(s, action) })
}

// forget drops what was found out before the model changed for good.
func (f *Search) forget() {
	f.decided = decisions(f.session)
	f.failures = map[preemptorShape]searchFailure{}
	f.admission.forget()
	f.evictable = nil
}

// forgetIfDecided is forget if another action has changed the model for good.
func (f *Search) forgetIfDecided() {
	if f.decided != decisions(f.session) {
		f.forget()
	}
}

func decisions(s *framework.Session) int { return len(s.Plans) + len(s.Binds) }

// preemptorShape is what two preemptors have in common of which the second finds no victims if the first found none.
type preemptorShape struct {
	scope    decision.Scope
	queue    *cluster.Queue
	priority int32
	class    *cluster.Class
}

// searchFailure is how many pods could not be placed, and what was said.
type searchFailure struct {
	lacks  int
	spared []verdict.Spared
	vetoed []verdict.NodeReason
	waits  bool // for other plans to send their evictions
}

// Reclaim looks for victims for a job in other queues.
func (f *Search) Reclaim(j *cluster.Job) { f.find(decision.BetweenQueues, j) }

// Preempt looks for victims for a job in its own queue; for a lone pod, anywhere.
func (f *Search) Preempt(j *cluster.Job) { f.find(scopeInQueue(j), j) }

// PreemptWithin looks for victims for the pods of a job among the job's pods that rank lower.
func (f *Search) PreemptWithin(j *cluster.Job) { f.find(decision.WithinJob, j) }

// scopeInQueue is the scope in which a job preempts others of its queue: a lone pod preempts pods of any queue (rule A3).
func scopeInQueue(j *cluster.Job) decision.Scope {
	if j.IsLone() {
		return decision.Anywhere
	}
	return decision.BetweenJobs
}

// scopes returns the scopes of the action in which a job may preempt others, in the order in which they are tried.
func (f *Search) scopes(j *cluster.Job) []decision.Scope {
	return slices.DeleteFunc([]decision.Scope{decision.BetweenQueues, scopeInQueue(j)}, func(scope decision.Scope) bool {
		return !f.rules.Scopes.Has(scope)
	})
}

// find makes a plan for a job if there is one; else the job's verdict says why not.
func (f *Search) find(scope decision.Scope, j *cluster.Job) {
	s := f.session
	pods := plans.BySubgroup(j, s.Pending(j))
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
		// Pods that preempt none need the room that there is.
		pods = append(slices.DeleteFunc(pods, func(t *cluster.Task) bool { return !t.NeverPreempts() }), preempting...)
	}
	f.forgetIfDecided()
	shape, isComparable := f.shapeOf(scope, j, pods)
	isComparable = isComparable && len(preempting) == len(pods)
	if known, ok := f.failures[shape]; isComparable && ok && j.Lacks() >= known.lacks {
		f.refuse(scope, j, known)
		return
	}
	if !f.hasTime(j, scope) {
		s.Cluster.Postpone(j, scope)
		return
	}
	a := f.attempt(scope, j)
	lower, waits := a.lowerPlans()
	why := searchFailure{lacks: j.Lacks()}
	// Where the job would not fit if all pods left, it does not matter which of them may.
	if f.capacity.couldHold(pods, max(j.LacksPromises(), 1)) {
		f.looks += len(s.Cluster.Nodes())
		if (len(lower) > 0 || f.mayFindVictims(scope, j) || f.hasRoomOnItsWay(scope, j)) && a.planIn(domains, lower, pods) {
			return
		}
		a.rules.SetPod(preempting[0])
		why.spared, why.vetoed = a.spared(), a.candidates.vetoReasons()
	}
	why.waits = waits || a.victims.Waits()
	if isComparable {
		f.failures[shape] = why
	}
	f.refuse(scope, j, why)
}

// findFreeRoom promises room that is on its way to a job whose pods preempt none (rule P6).
func (f *Search) findFreeRoom(scope decision.Scope, j *cluster.Job, domains []*cluster.Domain, pods []*cluster.Task) {
	if f.hasRoomOnItsWay(scope, j) && f.attempt(scope, j).planIn(domains, nil, pods) {
		return
	}
	var spared []verdict.Spared
	if count := len(f.attempt(scope, j).pods()); count > 0 {
		spared = []verdict.Spared{{Reason: rules.NeverPreempts, Pods: count}}
	}
	f.refuse(scope, j, searchFailure{spared: spared})
}

// maxLooks bounds the search by one action in one cycle, in nodes looked at on behalf of preemptors of different shapes: some seconds
// on the largest clusters. Preemptors beyond it wait for the next cycle, and have half of that to themselves. The preemptors before
// them in the order may be looked at anew with every pod that ends, and must not use up every cycle.
const maxLooks = 250_000

func (f *Search) hasTime(j *cluster.Job, scope decision.Scope) bool {
	if j.Postponed.Has(scope) {
		return f.looks < maxLooks
	}
	return f.looks < maxLooks/2
}

// shapeOf describes a job whose pods are all of one class and of which none is placed. For other jobs every attempt is its own, and
// for all jobs if there are plugins that veto nodes: they look at the pod itself, and not at its class.
func (f *Search) shapeOf(scope decision.Scope, j *cluster.Job, pods []*cluster.Task) (shape preemptorShape, ok bool) {
	if len(cluster.OnePerClass(pods)) > 1 {
		return preemptorShape{}, false
	}
	return preemptorShape{scope: scope, queue: j.Queue, priority: j.Priority, class: pods[0].Class},
		len(f.session.Policy.Vetoers) == 0 && scope != decision.WithinJob && scope != decision.Anywhere && j.Ready() == 0 && !j.ChecksRoles() && goesAnywhere(j)
}

// goesAnywhere reports whether where a job may be placed depends on nothing but the classes of its pods.
func goesAnywhere(j *cluster.Job) bool { return !j.Proximity.IsHard() && len(j.Subgroups()) == 0 }

// hasRoomOnItsWay reports whether pods are leaving, whose room a job without victims may be promised in its turn (rule P4). A job that
// would not be served if the room were free is not promised it either.
func (f *Search) hasRoomOnItsWay(scope decision.Scope, j *cluster.Job) bool {
	s := f.session
	return scope != decision.WithinJob && !s.Cluster.Releasing.IsZero() && s.Overused(j.Queue) == nil
}

// mayFindVictims reports cheaply whether there could be any victims.
func (f *Search) mayFindVictims(scope decision.Scope, j *cluster.Job) bool {
	if scope == decision.WithinJob {
		return ranksItsPods(j)
	}
	if f.evictable == nil {
		f.evictable = map[*cluster.Queue]int32{}
		for _, g := range f.session.Cluster.Jobs() {
			if g.Queue == nil || g.IsForeign || g.Evictable() == 0 {
				continue
			}
			if lowest, ok := f.evictable[g.Queue]; !ok || g.Priority < lowest {
				f.evictable[g.Queue] = g.Priority
			}
		}
	}
	lowest, own := f.evictable[j.Queue]
	if scope == decision.BetweenJobs {
		return own && lowest < j.Priority
	}
	return scope == decision.Anywhere && own || len(f.evictable) > btoi(own)
}

// ranksItsPods reports whether a pod of a job that waits ranks above one that has its node.
func ranksItsPods(j *cluster.Job) bool {
	var highest, lowest int32
	waits, runs := false, false
	for _, t := range j.Tasks() {
		switch {
		case t.Status == cluster.Pending:
			if !waits || t.Priority > highest {
				waits, highest = true, t.Priority
			}
		case t.Status.Evictable():
			if !runs || t.Priority < lowest {
				runs, lowest = true, t.Priority
			}
		}
	}
	return waits && runs && lowest < highest
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// helps is what may turn the refusal of a preemptor around: any change of the nodes, the queues, the pods or itself.
const helps = verdict.HelpNode | verdict.HelpQueue | verdict.HelpPod | verdict.HelpJob

// helpsOf is what may turn the refusal of a job around. Volumes and devices belong to it for a job that needs them, since evictions
// open no node that lacks them.
func helpsOf(j *cluster.Job) verdict.Help {
	if slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool { return t.Status == cluster.Pending && t.Class.NeedsSupplies() }) {
		return helps | verdict.HelpSupply
	}
	return helps
}

// refuse says of a job that no pods are evicted for it, and why.
func (f *Search) refuse(scope decision.Scope, j *cluster.Job, why searchFailure) {
	spared := why.spared
	if scope == decision.BetweenQueues && j.IsLone() && f.session.Policy.Evicts(decision.Anywhere) {
		spared = nil // an action has looked at the same pods for it, and said so
	}
	v := &verdict.Verdict{Code: verdict.NotEnoughResources, Looked: true, Spared: spared, Vetoed: why.vetoed, Help: helpsOf(j)}
	if why.waits {
		v.Help |= verdict.HelpTime // that evictions are sent is no help in itself
	}
	f.session.AddVerdict(j, v)
}
