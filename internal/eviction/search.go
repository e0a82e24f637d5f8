package eviction

import (
	"slices"

	"hekla.sh/hekla/internal/placement"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Search looks for victims on behalf of the takers of one action in one session.
type Search struct {
	session   *framework.Session
	action    string // whose plans are made
	rules     framework.EvictionRules
	byDefault bool // what says nothing about being evicted may be
	isStrict  bool // the priority of queues decides, and does not only order
	upstream  bool // a tier of which nobody lets anybody go has not answered

	lowest   map[*cluster.Job]int64
	looks    int // at nodes, so far
	failures map[preemptorShape]searchFailure
	refused  map[admissionShape][]*refused // at admission
	asked    int                           // pods on behalf of jobs at admission, so far
	held     map[*cluster.Class]holding    // how many pods of a class empty nodes could hold
	largest  resources.Vector              // the most that any node has of each resource, nil if not worked out
	givers   map[*cluster.Queue]int32      // the lowest priority of a job of the queue that holds nodes
	decided  int                           // decisions of the session when all this was found out
}

// NewSearch returns a search by the rules of an action.
func NewSearch(s *framework.Session, action framework.EvictingAction) *Search {
	f := &Search{session: s, action: action.Name(), rules: action.EvictionRules(), lowest: map[*cluster.Job]int64{}, held: map[*cluster.Class]holding{}}
	f.byDefault, f.isStrict, f.upstream = compatibility(s)
	f.forget()
	return f
}

// forget drops what was found out before the model changed for good.
func (f *Search) forget() {
	f.decided = decisions(f.session)
	f.failures = map[preemptorShape]searchFailure{}
	f.refused = map[admissionShape][]*refused{}
	f.givers = nil
}

func decisions(s *framework.Session) int { return len(s.Plans) + len(s.Binds) }

// preemptorShape is what two takers have in common of which the second has no hope if the first had none.
type preemptorShape struct {
	scope    cluster.Scope
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

// Reclaim looks for room for a job in other queues.
func (f *Search) Reclaim(j *cluster.Job) { f.take(cluster.BetweenQueues, j) }

// Preempt looks for room for a job in its own queue; for a lone pod, anywhere.
func (f *Search) Preempt(j *cluster.Job) {
	f.take(scopeInQueue(j), j)
}

// PreemptWithin looks for room for the pods of a job among those of its own that rank lower.
func (f *Search) PreemptWithin(j *cluster.Job) { f.take(cluster.WithinJob, j) }

// take makes a plan for a job if there is one; else the job's verdict says why not.
func (f *Search) take(scope cluster.Scope, j *cluster.Job) {
	s := f.session
	tasks := bySubgroup(j, s.Pending(j))
	if len(tasks) == 0 {
		return
	}
	if scope != cluster.WithinJob {
		if v := s.HeldUp(j); v != nil {
			s.AddVerdict(j, v)
			return
		}
	}
	if _, v := placement.RoomIn(s, j); v != nil {
		s.AddVerdict(j, v)
		return
	}
	takers := slices.DeleteFunc(slices.Clone(tasks), (*cluster.Task).NeverPreempts)
	if len(takers) == 0 {
		if f.hasRoomOnItsWay(scope, j) && f.plan(f.attempt(scope, j), nil, tasks) {
			return
		}
		var spared []verdict.Spared
		if pods := len(f.attempt(scope, j).pods()); pods > 0 {
			spared = []verdict.Spared{{Reason: preemptsNever, Pods: pods}}
		}
		f.refuse(scope, j, searchFailure{spared: spared})
		return
	}
	if len(takers) < len(tasks) {
		// Those for which nobody leaves need the room that there is.
		tasks = append(slices.DeleteFunc(tasks, func(t *cluster.Task) bool { return !t.NeverPreempts() }), takers...)
	}
	if f.decided != decisions(s) {
		f.forget() // another action has changed the model for good
	}
	like, isAlike := f.shapeOf(scope, j, tasks)
	isAlike = isAlike && len(takers) == len(tasks)
	if known, ok := f.failures[like]; isAlike && ok && j.Lacks() >= known.lacks {
		f.refuse(scope, j, known)
		return
	}
	if !f.hasTime(j, scope) {
		s.Cluster.Postpone(j, scope)
		return
	}
	a := f.attempt(scope, j)
	lower := a.lower()
	why := searchFailure{lacks: j.Lacks()}
	// Where the job would not fit if all pods left, it does not matter which of them may.
	if a.couldHold(tasks, max(j.LacksPromises(), 1)) {
		f.looks += len(s.Cluster.Nodes())
		if (len(lower) > 0 || f.hasGivers(scope, j) || f.hasRoomOnItsWay(scope, j)) && f.plan(a, lower, tasks) {
			return
		}
		a.need(takers[0])
		why.spared, why.vetoed = a.spared(), a.vetoes()
	}
	why.waits = a.waits
	if isAlike {
		f.failures[like] = why
	}
	f.refuse(scope, j, why)
}

// maxLooks bounds the search for room by one action in one cycle, in nodes looked at on behalf of takers that have no shape
// to one before: some seconds on the largest clusters. Takers beyond it wait for the next cycle, and have half of that to
// themselves, so that those before them in the order, which may be looked at anew with every pod that ends, do not use up every
// cycle.
const maxLooks = 250_000

func (f *Search) hasTime(j *cluster.Job, scope cluster.Scope) bool {
	if j.Postponed.Has(scope) {
		return f.looks < maxLooks
	}
	return f.looks < maxLooks/2
}

// shapeOf describes a job whose pods are all alike and of which none is placed. For others every attempt is its own.
func (f *Search) shapeOf(scope cluster.Scope, j *cluster.Job, tasks []*cluster.Task) (preemptorShape, bool) {
	if len(cluster.OnePerClass(tasks)) > 1 {
		return preemptorShape{}, false
	}
	return preemptorShape{scope: scope, queue: j.Queue, priority: j.Priority, class: tasks[0].Class},
		scope != cluster.WithinJob && scope != cluster.Anywhere && j.Ready() == 0 && !j.ChecksRoles() && goesAnywhere(j)
}

// hasRoomOnItsWay reports whether pods are leaving, whose room a job that can evict nobody may be promised in its turn (law P4): a
// job that would not be served if the room were free is not promised it either.
func (f *Search) hasRoomOnItsWay(scope cluster.Scope, j *cluster.Job) bool {
	s := f.session
	return scope != cluster.WithinJob && !s.Cluster.Releasing.IsZero() && s.Overused(j.Queue) == nil
}

// hasGivers reports cheaply whether anybody could give at all.
func (f *Search) hasGivers(scope cluster.Scope, j *cluster.Job) bool {
	if scope == cluster.WithinJob {
		return ranksItsPods(j)
	}
	if f.givers == nil {
		f.givers = map[*cluster.Queue]int32{}
		for _, g := range f.session.Cluster.Jobs() {
			if g.Queue == nil || g.IsForeign || g.Evictable() == 0 {
				continue
			}
			if lowest, ok := f.givers[g.Queue]; !ok || g.Priority < lowest {
				f.givers[g.Queue] = g.Priority
			}
		}
	}
	if scope == cluster.BetweenJobs {
		lowest, ok := f.givers[j.Queue]
		return ok && lowest < j.Priority
	}
	_, own := f.givers[j.Queue]
	return scope == cluster.Anywhere && own || len(f.givers) > btoi(own)
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

// planHere tries in turn what may make room where the taker may be, and puts the first plan in force that does.
func (f *Search) planHere(a *attempt, lower []*cluster.Plan, tasks []*cluster.Task) bool {
	x := f.session.Begin()
	found := f.tiers(a, func() bool { return a.run(x, tasks) }) || f.overrule(a, x, lower, tasks)
	if found && KeepsPromises(f.session, a.moved(), nil) {
		a.finish(x)
		return true
	}
	x.Undo()
	return false
}

// tiers runs an attempt with the votes of all tiers or, where an empty answer is no answer, with those of one tier after
// the other until somebody may leave.
func (f *Search) tiers(a *attempt, run func() bool) bool {
	if !f.upstream {
		return run()
	}
	for a.poll.From = 0; a.poll.From < max(a.poll.Tiers(), 1); a.poll.From++ {
		if run() {
			return true
		}
		if a.mayAnybodyLeave() {
			return false
		}
	}
	a.poll.From = 0
	return false
}

// mayAnybodyLeave reports whether at least one unit may.
func (a *attempt) mayAnybodyLeave() bool {
	x := a.search.session.Begin()
	defer x.Undo()
	a.begin()
	return a.clear(x, allLeave)
}

// SearchOf returns the search of an action in a session: what it finds out is kept for the rest of the session.
func SearchOf(s *framework.Session, action framework.EvictingAction) *Search {
	return framework.Keep(s, action.Name(), func() *Search { return NewSearch(s, action) })
}

// Takers returns the jobs of a queue that may look for room, in the order in which they are served: those that were admitted,
// want nodes, and for which no room is being made.
func Takers(s *framework.Session, q *cluster.Queue) []*cluster.Job {
	var jobs []*cluster.Job
	for _, j := range s.Jobs(q) {
		if isTaker(s, j) {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, s.CompareJobs)
	return jobs
}

// InTurn looks for room for the starving: the queue whose turn it is by the order of queues has one of its jobs looked at, the first in
// theirs. What is planned for that counts when the next queue is chosen, as in allocate: of queues that are equal otherwise the
// one that has less comes next, whatever their names. It returns all takers, those that are not starving too, in the order in which
// they had their turn.
func InTurn(s *framework.Session, look func(j *cluster.Job)) (takers []*cluster.Job) {
	left := map[*cluster.Queue][]*cluster.Job{}
	var queues []*cluster.Queue
	for _, q := range s.Queues() {
		if left[q] = Takers(s, q); len(left[q]) > 0 {
			queues = append(queues, q)
		}
	}
	turn := framework.NewHeap(queues, s.CompareQueues)
	for turn.Len() > 0 {
		q := turn.First()
		j, before := left[q][0], decisions(s)
		left[q] = left[q][1:]
		takers = append(takers, j)
		if s.IsStarving(j) {
			s.LookAt(j, func() { look(j) })
		}
		if len(left[q]) == 0 {
			turn.Pop()
		}
		if decisions(s) != before {
			turn.Reorder() // a plan changes what queues hold, the givers' too
		}
	}
	return takers
}

func isTaker(s *framework.Session, j *cluster.Job) bool {
	return !j.IsPendingAdmission() && j.Plan == nil && j.Count(cluster.Pending) > 0 && !s.Now.Before(j.NotBefore) && s.Validate(j) == nil
}

// resume looks for other victims for those whose plan has failed after pods had left for it, before anybody else is served: the room
// that is there already would go to those who replace the pods that left, and they would be evicted in turn (laws S1, S2).
func resume(s *framework.Session) {
	for _, p := range s.Cluster.TakeInterruptedPlans() {
		action := s.Policy.EvictingAction(p.Action)
		if j := p.Job; action != nil && isTaker(s, j) {
			s.LookAt(j, func() { action.MakeRoom(s, j) })
		}
	}
}
