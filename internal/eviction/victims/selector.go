package victims

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Unit is what is evicted as one.
type Unit struct {
	Job   *cluster.Job
	Tasks []*cluster.Task // one, or all that are left of a gang
	Whole bool            // Tasks are all that are left of a gang

	held       resources.Vector // sum of the requests of a whole gang; nil for one task
	top        importance       // of the most important task
	unbudgeted bool             // no disruption budget covers any task of a whole gang
	gone       []*cluster.Task  // tasks evicted by leave
}

// OneTask returns the unit of one pod.
func OneTask(t *cluster.Task) Unit { return Unit{Job: t.Job, Tasks: []*cluster.Task{t}} }

// TasksOf returns the tasks of units.
func TasksOf(units []Unit) []*cluster.Task {
	var tasks []*cluster.Task
	for i := range units {
		tasks = append(tasks, units[i].Tasks...)
	}
	return tasks
}

// leave evicts a unit. With local, it evicts only the pods on this node of a whole gang, which may stand on thousands
// of nodes.
func (u *Unit) leave(x framework.Transaction, local *cluster.Node) {
	u.gone = u.Tasks
	if local != nil && u.Whole {
		u.gone = nil
		for _, t := range local.Tasks() {
			if t.Job == u.Job && t.Status.Yields() {
				u.gone = append(u.gone, t)
			}
		}
	}
	for _, t := range u.gone {
		x.Evict(t)
	}
}

// Leave evicts the units that were found before, at the same point of the plan.
func Leave(x framework.Transaction, units []Unit) { LeaveOn(x, units, nil) }

// LeaveOn is Leave with a local node, see [Options].
func LeaveOn(x framework.Transaction, units []Unit, local *cluster.Node) {
	for i := range units {
		units[i].leave(x, local)
	}
}

// stay undoes leave.
func (u *Unit) stay(x framework.Transaction) {
	for _, t := range u.gone {
		x.Spare(t)
	}
}

// Requested is the sum of the requests of a unit.
func (u *Unit) Requested() resources.Vector {
	if u.held != nil {
		return u.held
	}
	return u.Tasks[0].Request()
}

// Selector chooses victims for one preemptor. It stores what it knows about gangs until [Selector.Reset].
type Selector struct {
	rules   *rules.Rules
	gangs   map[gangKey]*gang
	version int
	waits   bool
	tops    []importance // space to work in, of the pods of one gang
	spared  string       // the numbers of the queues from which the preemptor may not evict pods, see [FloorsByRules.For]
}

// gangKey is a gang, and whether the preemptor's pod requests nothing, because then other pods are protected (rule P3).
type gangKey struct {
	job        *cluster.Job
	bestEffort bool
}

// New returns a selector of victims by some rules.
func New(r *rules.Rules) *Selector { return &Selector{rules: r, gangs: map[gangKey]*gang{}} }

// Version counts the changes of the plan. What was worked out at an earlier version may be out of date.
func (s *Selector) Version() int { return s.version }

// PlanChanged counts a change: units are evicted or tasks placed as part of the plan.
func (s *Selector) PlanChanged() { s.version++ }

// Reset drops what is stored before another draft is tried.
func (s *Selector) Reset() {
	clear(s.gangs)
	s.version++
}

// Waits reports whether a gang could not be evicted as a whole until the plan of another job has sent its evictions.
func (s *Selector) Waits() bool { return s.waits }

// Wait makes [Selector.Waits] return true, because that was found out before.
func (s *Selector) Wait() { s.waits = true }

// gang is what is known of a job that may be evicted as a whole.
type gang struct {
	tasks      []*cluster.Task // nil if it may not be
	held       resources.Vector
	top        importance
	cost       Cost
	unbudgeted bool // no disruption budget covers any of the tasks

	// answer says why the gang may not be evicted as the first unit in addition to those of the plan, none if it may.
	// It is the same for all nodes of the gang until the plan changes.
	answer  verdict.Protection
	version int // of the plan
	kind    rules.Kind
}

// known returns what is stored about a gang, nil if there is nothing yet.
func (s *Selector) known(j *cluster.Job) *gang { return s.gangs[s.gangKey(j)] }

func (s *Selector) gangKey(j *cluster.Job) gangKey {
	pod := s.rules.Pod()
	return gangKey{job: j, bestEffort: pod != nil && pod.BestEffort()}
}

// WholeGang returns the unit of all that is left of a gang. ok is false if it may not be evicted as a whole: the action
// does not allow that, a rule protects one of its pods, or one of them cannot be evicted at the moment.
func (s *Selector) WholeGang(j *cluster.Job) (u Unit, ok bool) {
	if !s.rules.AllowWholeGang {
		return Unit{}, false
	}
	g := s.known(j)
	if g == nil {
		g = s.lookAtGang(j)
		s.gangs[s.gangKey(j)] = g
	}
	if g.tasks == nil {
		return Unit{}, false
	}
	tasks, held := g.tasks, g.held
	if j.Count(cluster.Evicting) > 0 && slices.ContainsFunc(tasks, isEvicting) {
		// Its surplus was evicted before.
		tasks, held = slices.DeleteFunc(slices.Clone(tasks), isEvicting), nil
		if len(tasks) == 0 {
			return Unit{}, false
		}
		held = cluster.RequestOf(tasks)
	}
	u = Unit{Job: j, Tasks: tasks, Whole: true, held: held, top: g.top, unbudgeted: g.unbudgeted}
	u.top.endsJob = s.rules.Ends(j, len(tasks))
	return u, true
}

func isEvicting(t *cluster.Task) bool { return t.Status == cluster.Evicting }

func (s *Selector) lookAtGang(j *cluster.Job) *gang {
	g := &gang{unbudgeted: true}
	tops := s.tops[:0]
	for _, t := range j.Tasks() {
		switch {
		case t.Status == cluster.Evicting && (t.Evicts == nil || t.Evicts == s.rules.Preemptor.Plan), t.Status.Yields():
			if s.rules.ProtectsPod(t).Exists() {
				return &gang{} // the caller has found that no rule protects the job
			}
			if g.tasks == nil {
				g.tasks = make([]*cluster.Task, 0, len(j.Tasks()))
			}
			g.tasks = append(g.tasks, t)
			g.held.Add(t.Request())
			g.unbudgeted = g.unbudgeted && len(s.rules.Session.Cluster.Budgets(t)) == 0
			i := s.importanceOf(t)
			if len(g.tasks) == 1 || i.compare(&g.top) > 0 {
				g.top = i
			}
			g.cost.add(&i)
			tops = append(tops, i)
		case t.Status.Counts():
			return &gang{}
		case t.Status == cluster.Evicting:
			// Another plan is to evict this pod. If that plan is cancelled, the pod would be all that is left of the
			// gang.
			s.waits = true
			return &gang{}
		}
	}
	s.tops = tops
	g.tasks = inOrder(g.tasks, orderOf(len(tops), func(i, j int) int { return tops[i].compare(&tops[j]) }))
	return g
}

// WhyProtected says why a unit may not be evicted at this point of the plan, none if it may.
func (s *Selector) WhyProtected(u *Unit) verdict.Protection {
	return s.rules.WhyProtected(u.Tasks, u.Whole, u.held)
}

// TakesByRight reports whether the preemptor needs a right to any of the units.
func (s *Selector) TakesByRight(units []Unit) bool {
	return slices.ContainsFunc(units, func(u Unit) bool { return s.rules.NeedsRight(u.Job) })
}

// Sort sorts units by the order of eviction at this moment.
func (s *Selector) Sort(units []Unit) {
	slices.SortStableFunc(units, func(u, v Unit) int { return s.compare(&u, &v) })
}

// SortAfresh is Sort for all units of a plan. It forgets which unit ends its job, since that depends on the order.
func (s *Selector) SortAfresh(units []Unit) {
	for i := range units {
		units[i].top.endsJob = s.rules.Ends(units[i].Job, 0)
	}
	s.Sort(units)
}

// compare compares units by the order of eviction (rule Q8): first the queue of lower priority, then the queue further
// above its share at this point of the plan, then the less important unit. By rule G8 the class and the rank of a unit
// count before its queue.
func (s *Selector) compare(u, v *Unit) int {
	if s.rules.RanksJobs() {
		if c := u.top.compareRank(&v.top); c != 0 {
			return c
		}
	}
	if p, q := u.Job.QuotaNode(), v.Job.QuotaNode(); p != q {
		if c := s.rules.Queues.Compare(p, q); c != 0 {
			return c
		}
	}
	return u.top.compare(&v.top)
}
