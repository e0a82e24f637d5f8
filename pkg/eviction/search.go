package eviction

import (
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Search looks for victims on behalf of the takers of one action in one session.
type Search struct {
	session   *framework.Session
	rules     Rules
	byDefault bool // what says nothing about being evicted may be
	isStrict  bool // the priority of queues decides, and does not only order
	upstream  bool // a tier of which nobody lets anybody go has not answered

	lowest   map[*cluster.Job]int64
	looks    int // at nodes, so far
	hopeless map[likeness]hopelessness
	shut     map[knock]resources.Vector // what was refused at the door
	givers   map[*cluster.Queue]int32   // the lowest priority of a job of the queue that holds nodes
	decided  int                        // decisions of the session when all this was found out
}

// NewSearch returns a search by the rules of an action.
func NewSearch(s *framework.Session, rules Rules) *Search {
	f := &Search{session: s, rules: rules, lowest: map[*cluster.Job]int64{}}
	f.byDefault, f.isStrict, f.upstream = compatibility(s)
	f.forget()
	return f
}

// forget drops what was found out before the model changed for good.
func (f *Search) forget() {
	f.decided = decisions(f.session)
	f.hopeless = map[likeness]hopelessness{}
	f.shut = map[knock]resources.Vector{}
	f.givers = nil
}

func decisions(s *framework.Session) int { return len(s.Plans) + len(s.Binds) }

// likeness is what two takers have in common of which the second has no hope if the first had none.
type likeness struct {
	level    level
	queue    *cluster.Queue
	priority int32
	class    *cluster.Class
}

// hopelessness is how many pods could not be placed, and what was said.
type hopelessness struct {
	lacks  int
	spared []verdict.Spared
	waits  bool // for a lower plan to send its evictions: then its room can be taken
}

// Reclaim looks for room for a job in other queues.
func (f *Search) Reclaim(j *cluster.Job) { f.take(betweenQueues, j) }

// Preempt looks for room for a job in its own queue; for a lone pod, anywhere.
func (f *Search) Preempt(j *cluster.Job) {
	if j.IsLone() {
		f.take(anywhere, j)
	} else {
		f.take(betweenJobs, j)
	}
}

// PreemptWithin looks for room for the pods of a job among those of its own that rank lower.
func (f *Search) PreemptWithin(j *cluster.Job) { f.take(withinJob, j) }

// take makes a plan for a job if there is one; else the job's verdict says why not.
func (f *Search) take(l level, j *cluster.Job) {
	s := f.session
	tasks := s.Pending(j)
	if len(tasks) == 0 {
		return
	}
	takers := slices.DeleteFunc(slices.Clone(tasks), (*cluster.Task).NeverPreempts)
	if len(takers) == 0 {
		var spared []verdict.Spared
		if pods := len(f.attempt(l, j).pods()); pods > 0 {
			spared = []verdict.Spared{{Reason: preemptsNever, Pods: pods}}
		}
		f.refuse(l, j, hopelessness{spared: spared})
		return
	}
	if len(takers) < len(tasks) {
		// Those for which nobody leaves need the room that there is.
		tasks = append(slices.DeleteFunc(tasks, func(t *cluster.Task) bool { return !t.NeverPreempts() }), takers...)
	}
	if f.decided != decisions(s) {
		f.forget() // another action has changed the model for good
	}
	like, isAlike := f.likenessOf(l, j, tasks)
	isAlike = isAlike && len(takers) == len(tasks)
	if known, ok := f.hopeless[like]; isAlike && ok && j.Lacks() >= known.lacks {
		f.refuse(l, j, known)
		return
	}
	if way := cluster.Ways(1) << l; !f.hasTime(j, way) {
		s.Cluster.Postpone(j, way)
		return
	}
	a := f.attempt(l, j)
	lower, waits := a.lower()
	why := hopelessness{lacks: j.Lacks(), waits: waits}
	// Where the job would not fit if all pods left, it does not matter which of them may.
	if a.couldHold(tasks) {
		f.looks += len(s.Cluster.Nodes())
		if (len(lower) > 0 || f.hasGivers(l, j)) && f.plan(a, lower, tasks) {
			return
		}
		a.need(takers[0])
		why.spared = a.spared()
	}
	if isAlike {
		f.hopeless[like] = why
	}
	f.refuse(l, j, why)
}

// maxLooks bounds the search for room by one action in one cycle, in nodes looked at on behalf of takers that have no likeness to one before:
// some seconds on the largest clusters. Takers beyond it wait for the next cycle, and have half of that to themselves, so that
// those before them in the order, which may be looked at anew with every pod that ends, do not use up every cycle.
const maxLooks = 250_000

func (f *Search) hasTime(j *cluster.Job, way cluster.Ways) bool {
	if j.Postponed&way != 0 {
		return f.looks < maxLooks
	}
	return f.looks < maxLooks/2
}

// couldHold reports whether the nodes of the right kind could hold what the job needs at the least if nothing else were
// there. It is one quick pass where the search would take everything away in vain.
func (a *attempt) couldHold(tasks []*cluster.Task) bool {
	lacks := a.taker.LacksPromises()
	if lacks == 0 {
		lacks = 1
	}
	var seen []*cluster.Class
	room := 0
	for _, t := range tasks {
		if slices.Contains(seen, t.Class) {
			continue
		}
		seen = append(seen, t.Class)
		alike := 0
		for _, other := range tasks {
			if other.Class == t.Class {
				alike++
			}
		}
		room += min(a.places(t, min(alike, lacks)), alike)
	}
	return room >= lacks
}

// places is how many tasks like one the nodes could hold if nothing else were there, at most so many.
func (a *attempt) places(t *cluster.Task, most int) int {
	places, s := 0, a.search.session
	for _, n := range s.Cluster.Nodes() {
		if !s.Outlook.CanOpen(t, n) {
			continue
		}
		fit := most
		for i, amount := range t.Request() {
			if amount > 0 {
				fit = min(fit, int(n.Allocatable.At(resources.Dim(i))/amount))
			}
		}
		if places += fit; places >= most {
			return most
		}
	}
	return places
}

// likenessOf describes a job whose pods are all alike and of which none is placed. For others every attempt is its own.
func (f *Search) likenessOf(l level, j *cluster.Job, tasks []*cluster.Task) (likeness, bool) {
	for _, t := range tasks {
		if t.Class != tasks[0].Class {
			return likeness{}, false
		}
	}
	return likeness{level: l, queue: j.Queue, priority: j.Priority, class: tasks[0].Class},
		l != withinJob && l != anywhere && j.Ready() == 0 && !j.ChecksRoles()
}

// hasGivers reports cheaply whether anybody could give at all.
func (f *Search) hasGivers(l level, j *cluster.Job) bool {
	if l == withinJob {
		return ranksItsPods(j)
	}
	if f.givers == nil {
		f.givers = map[*cluster.Queue]int32{}
		for _, g := range f.session.Cluster.Jobs() {
			if g.Queue == nil || g.Count(cluster.Running)+g.Count(cluster.Bound) == 0 {
				continue
			}
			if lowest, ok := f.givers[g.Queue]; !ok || g.Priority < lowest {
				f.givers[g.Queue] = g.Priority
			}
		}
	}
	if l == betweenJobs {
		lowest, ok := f.givers[j.Queue]
		return ok && lowest < j.Priority
	}
	_, own := f.givers[j.Queue]
	return l == anywhere && own || len(f.givers) > btoi(own)
}

// ranksItsPods reports whether a pod of a job that waits ranks above one that has its node.
func ranksItsPods(j *cluster.Job) bool {
	var highest, lowest int32
	waits, runs := false, false
	for _, t := range j.Tasks() {
		switch t.Status {
		case cluster.Pending:
			if !waits || t.Priority > highest {
				waits, highest = true, t.Priority
			}
		case cluster.Running, cluster.Bound:
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

// plan tries in turn what may make room, and puts the first plan in force that does.
func (f *Search) plan(a *attempt, lower []*cluster.Plan, tasks []*cluster.Task) bool {
	x := f.session.Begin()
	if f.tiers(a, func() bool { return a.run(x, tasks) }) || f.overrule(a, x, lower, tasks) {
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

// run places the job's tasks, by evictions where it must. If it fails, nothing of it is left.
func (a *attempt) run(x framework.Transaction, tasks []*cluster.Task) bool {
	s := a.search.session
	orders := [][]*cluster.Task{tasks}
	if !alike(tasks) {
		// A small task can take the last room that fits a large one, hardly ever the other way round.
		bySize := slices.Clone(tasks)
		slices.SortStableFunc(bySize, func(t, u *cluster.Task) int {
			a, _ := resources.DominantShare(t.Request(), s.Cluster.Total)
			b, _ := resources.DominantShare(u.Request(), s.Cluster.Total)
			return b.Compare(a)
		})
		orders = append(orders, bySize)
	}
	for i := range orders {
		orders[i] = requestingFirst(orders[i])
	}
	for _, w := range []way{nodeByNode, allLeave, allLeaveLargestFirst} {
		if w == allLeaveLargestFirst && !a.wasRefused {
			break // all have left who may, in whatever order they are asked
		}
		for _, order := range orders {
			y := s.Begin()
			a.begin()
			a.need(order[0])
			if (w == nodeByNode || a.clear(y, w)) && a.placeAll(y, order, w != nodeByNode) {
				a.settle(y)
				if a.staysWithinShare(y) && a.keepsGuarantees() {
					return true
				}
			}
			y.Undo()
		}
		if slices.ContainsFunc(tasks, (*cluster.Task).NeverPreempts) {
			break // for a pod that preempts nobody, nobody leaves
		}
		if a.level == withinJob {
			orders = [][]*cluster.Task{tasks[:1]} // who may leave depends on whom it is for
		}
	}
	return false
}

// way is how a plan is looked for.
type way uint8

const (
	nodeByNode           way = iota // each task opens a node of its own
	allLeave                        // all leave who may, and come back
	allLeaveLargestFirst            // the same, and those are asked first who hold most of what is wanted
)

// keepsGuarantees reports whether the taker's queue and those above it, with all that the plan takes from them and gives them,
// hold what they are guaranteed, or no less than before (law Q2): the units were asked for one task of the taker.
func (a *attempt) keepsGuarantees() bool {
	for q := a.taker.Queue; q != nil; q = q.Parent {
		for i, floor := range q.Guarantee {
			d := resources.Dim(i)
			if after := q.Subtree.Allocated.At(d); after < floor && after < a.before[q].At(d) {
				return false
			}
		}
	}
	return true
}

// staysWithinShare reports whether the taker's queue, with all that the plan gives it, holds no more than its share if any of
// it comes from a queue of its own priority (law Q4): the units were asked when less of the gang was placed.
func (a *attempt) staysWithinShare(x framework.Transaction) bool {
	takesFromEquals := slices.ContainsFunc(a.taken, func(u unit) bool {
		return u.job.Queue != a.taker.Queue && a.relation(u.job.Queue) == 0
	})
	if !takesFromEquals {
		return true
	}
	var seen []*cluster.Class
	for _, t := range a.placed {
		if slices.Contains(seen, t.Class) {
			continue
		}
		seen = append(seen, t.Class)
		n := t.Node
		a.need(t)
		x.Unpipeline(t)
		may := a.mayTake()
		x.Pipeline(t, n)
		if !may {
			return false
		}
	}
	return true
}

func alike(tasks []*cluster.Task) bool {
	for _, t := range tasks {
		if t.Class != tasks[0].Class {
			return false
		}
	}
	return true
}

// begin forgets what was tried.
func (a *attempt) begin() {
	clear(a.gangs)
	clear(a.byKind)
	a.asked, a.taken, a.placed = nil, nil, nil
	a.version++
}

// clear lets everything leave that may, anywhere. It reports whether anything did.
func (a *attempt) clear(x framework.Transaction, w way) bool {
	var all []*cluster.Task
	for _, n := range a.search.session.Cluster.Nodes() {
		all = append(all, n.Tasks()...)
	}
	a.largestFirst = w == allLeaveLargestFirst
	a.taken = a.ask(x, a.herdsOf(all), nil)
	a.largestFirst = false
	a.version++
	return len(a.taken) > 0
}

// requestingFirst puts the tasks that request nothing behind the others: for them nobody leaves that has requests (law P3).
func requestingFirst(tasks []*cluster.Task) []*cluster.Task {
	tasks = slices.Clone(tasks)
	slices.SortStableFunc(tasks, func(t, u *cluster.Task) int { return btoi(t.BestEffort()) - btoi(u.BestEffort()) })
	return tasks
}

// placeAll places as many of the tasks as their job needs to start, and then, while it is starving still, each that finds
// room. It reports whether the job has what it needs, and more than before. cleared says that all have left who may: before
// the first task that requests nothing is placed, those come back who need not have.
func (a *attempt) placeAll(x framework.Transaction, tasks []*cluster.Task, cleared bool) bool {
	j, s := a.taker, a.search.session
	failed := map[kind]bool{}
	settle := func(next *cluster.Task) {
		if cleared && next.BestEffort() {
			a.settle(x)
			cleared = false
		}
	}
	for _, t := range tasks {
		if j.LacksPromises() == 0 {
			break
		}
		settle(t)
		if j.WantsPromise(t.Role) && !failed[a.kindOf(t)] && !a.place(x, t) {
			failed[a.kindOf(t)] = true
		}
	}
	if j.LacksPromises() > 0 {
		return false
	}
	for _, t := range tasks {
		if t.Status != cluster.Pending || failed[a.kindOf(t)] {
			continue
		}
		if a.level != withinJob && !s.IsStarving(j) {
			break
		}
		settle(t)
		if !a.place(x, t) {
			failed[a.kindOf(t)] = true
		}
	}
	return len(a.placed) > 0
}

// place finds a node for a task: one that it fits on as the plan stands, or else the cheapest that evictions open.
func (a *attempt) place(x framework.Transaction, t *cluster.Task) bool {
	a.need(t)
	s := a.search.session
	if a.mayPlace(t) {
		if n := s.Outlook.Best(t); n != nil {
			x.Pipeline(t, n)
			a.placed = append(a.placed, t)
			a.version++
			return true
		}
	}
	if !a.cheapest(x, t) {
		return false
	}
	a.placed = append(a.placed, t)
	return true
}

// settle lets everybody stay who need not leave, now that the whole gang has its nodes (law K4).
func (a *attempt) settle(x framework.Transaction) {
	a.sort(a.taken)
	for range maxRounds {
		before := len(a.taken)
		a.taken = a.giveBack(x, a.taken, nil, func(u *unit) bool { return a.stands(x, u) })
		if len(a.taken) == before {
			return
		}
	}
}

// maxRounds is how often all that leaves is asked whether it can stay. One round is enough where pods neither attract nor
// repel each other and no budget is broken: then what comes back only takes room. Each round more costs as much as the first,
// and chains in which every pod that comes back lets one more come back are not worth it.
const maxRounds = 8

// stands reports whether the taker's pods still have their room with a unit back in its place.
func (a *attempt) stands(x framework.Transaction, u *unit) bool {
	for _, t := range u.tasks {
		for i := range t.Node.Promised {
			if d := resources.Dim(i); t.Node.Promised[i] > 0 && t.Request().At(d) > 0 && t.Node.Future(d) < 0 {
				return false
			}
		}
	}
	c := a.search.session.Cluster
	var seen []*cluster.Class
	for _, t := range a.placed {
		isNear := slices.ContainsFunc(u.tasks, func(v *cluster.Task) bool { return v.Node == t.Node })
		isFirst := !slices.Contains(seen, t.Class)
		if !isNear && !isFirst && !c.DependsOnPods(t.Class) {
			continue
		}
		if isFirst {
			seen = append(seen, t.Class)
		}
		n := t.Node
		x.Unpipeline(t)
		ok := a.fits(t, n)
		x.Pipeline(t, n)
		if !ok {
			return false
		}
	}
	return true
}

// mayAnybodyLeave reports whether at least one unit may.
func (a *attempt) mayAnybodyLeave() bool {
	x := a.search.session.Begin()
	defer x.Undo()
	a.begin()
	return a.clear(x, allLeave)
}

// SearchOf returns the search of an action in a session: what it finds out is kept for the rest of the session.
func SearchOf(s *framework.Session, rules Rules) *Search {
	return framework.Keep(s, rules.Action, func() *Search { return NewSearch(s, rules) })
}

// Takers returns the jobs of a queue that may look for room, in the order in which they are served: those that were let in,
// want nodes, and for which no room is being made.
func Takers(s *framework.Session, q *cluster.Queue) []*cluster.Job {
	var jobs []*cluster.Job
	for _, j := range s.Jobs(q) {
		if !j.AtTheDoor() && j.Plan == nil && j.Count(cluster.Pending) > 0 && !s.Now.Before(j.NotBefore) && s.Validate(j) == nil {
			jobs = append(jobs, j)
		}
	}
	slices.SortFunc(jobs, s.CompareJobs)
	return jobs
}
