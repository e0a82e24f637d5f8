package victims

import (
	"slices"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// Unit is what leaves or stays as one.
type Unit struct {
	Job   *cluster.Job
	Tasks []*cluster.Task // one, or all that a gang has left
	Whole bool            // it is all that a gang has left

	held       resources.Vector // by all tasks of a whole gang; nil for one
	top        importance       // of the most important of the tasks
	unbudgeted bool             // no disruption budget covers any of a whole gang's tasks
	gone       []*cluster.Task  // that were evicted for it
}

// OneTask returns the unit of one pod.
func OneTask(t *cluster.Task) Unit { return Unit{Job: t.Job, Tasks: []*cluster.Task{t}} }

// TasksOf are the tasks of units.
func TasksOf(units []Unit) []*cluster.Task {
	var tasks []*cluster.Task
	for i := range units {
		tasks = append(tasks, units[i].Tasks...)
	}
	return tasks
}

// leave evicts a unit. Of a whole gang, with local, it evicts only what stands on that node: the gang may stand on thousands.
func (u *Unit) leave(x framework.Transaction, local *cluster.Node) {
	u.gone = u.Tasks
	if local != nil && u.Whole {
		u.gone = nil
		for _, t := range local.Tasks() {
			if t.Job == u.Job && t.Status.Evictable() {
				u.gone = append(u.gone, t)
			}
		}
	}
	for _, t := range u.gone {
		x.Evict(t)
	}
}

// stay takes that back.
func (u *Unit) stay(x framework.Transaction) {
	for _, t := range u.gone {
		x.Spare(t)
	}
}

// requested is what a unit holds.
func (u *Unit) requested() resources.Vector {
	if u.held != nil {
		return u.held
	}
	return u.Tasks[0].Request()
}

// Selector chooses victims for one preemptor. It keeps what it has found out of gangs until [Selector.Reset].
type Selector struct {
	rules   *rules.Rules
	gangs   map[gangKey]*gang
	version int
	waits   bool
}

// gangKey is a gang, and whether it would leave for a pod that requests nothing: then other pods are protected (rule P3).
type gangKey struct {
	job        *cluster.Job
	bestEffort bool
}

// New returns a selector of victims by some rules.
func New(r *rules.Rules) *Selector { return &Selector{rules: r, gangs: map[gangKey]*gang{}} }

// Version counts changes of the plan. What was found out at an earlier version may not hold any more.
func (s *Selector) Version() int { return s.version }

// PlanChanged notes that units were evicted or pods placed for good, as far as the plan goes.
func (s *Selector) PlanChanged() { s.version++ }

// Reset forgets what was found out, before another plan is tried.
func (s *Selector) Reset() {
	clear(s.gangs)
	s.version++
}

// Waits reports whether a gang was met that cannot leave whole until the plan of another job has sent its evictions.
func (s *Selector) Waits() bool { return s.waits }

// gang is what is known of a job that may leave as a whole.
type gang struct {
	tasks      []*cluster.Task // nil if it may not
	held       resources.Vector
	top        importance
	cost       Cost
	unbudgeted bool // no disruption budget covers any of the tasks

	// answer is why the gang may not leave as the first beside what the plan has evicted, "" if it may. As long as the plan stays as it
	// is, the answer is the same for each node that the gang stands on.
	answer  string
	version int // of the plan
	kind    rules.Kind
}

// known returns what is known of a gang, nil if it was not looked at.
func (s *Selector) known(j *cluster.Job) *gang { return s.gangs[s.gangKey(j)] }

func (s *Selector) gangKey(j *cluster.Job) gangKey {
	pod := s.rules.Pod()
	return gangKey{job: j, bestEffort: pod != nil && pod.BestEffort()}
}

// WholeGang returns the unit of all that a gang has left. ok is false if the gang may not leave as a whole: the action does not allow
// it, or a rule protects one of its pods, or one of them cannot be evicted at the moment.
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
		// What it had beyond its minimum has left before.
		tasks, held = slices.DeleteFunc(slices.Clone(tasks), isEvicting), nil
		for _, t := range tasks {
			held.Add(t.Request())
		}
		if len(tasks) == 0 {
			return Unit{}, false
		}
	}
	u = Unit{Job: j, Tasks: tasks, Whole: true, held: held, top: g.top, unbudgeted: g.unbudgeted}
	u.top.endsJob = endsJob(j, len(tasks))
	return u, true
}

func isEvicting(t *cluster.Task) bool { return t.Status == cluster.Evicting }

func (s *Selector) lookAtGang(j *cluster.Job) *gang {
	g := &gang{unbudgeted: true}
	for _, t := range j.Tasks() {
		switch {
		case t.Status == cluster.Evicting && (t.Evicts == nil || t.Evicts == s.rules.Preemptor.Plan), t.Status.Evictable():
			if s.rules.Protects(t) != "" {
				return &gang{}
			}
			g.tasks = append(g.tasks, t)
			g.held.Add(t.Request())
			g.unbudgeted = g.unbudgeted && len(s.rules.Session.Cluster.Budgets(t)) == 0
			i := s.importanceOf(t)
			if len(g.tasks) == 1 || i.compare(&g.top) > 0 {
				g.top = i
			}
			g.cost.add(&i)
		case t.Status.Counts():
			return &gang{}
		case t.Status == cluster.Evicting:
			// Should the plan end that it is to leave for, it would be all that is left of the gang.
			s.waits = true
			return &gang{}
		}
	}
	slices.SortFunc(g.tasks, func(t, u *cluster.Task) int {
		i, k := s.importanceOf(t), s.importanceOf(u)
		return i.compare(&k)
	})
	return g
}

// Objects says why a unit may not leave as the plan stands, "" if it may.
func (s *Selector) Objects(u *Unit) string { return s.rules.Objects(u.Tasks, u.Whole, u.held) }

// TakesByRight reports whether the preemptor must have a right to what any of some units gives it.
func (s *Selector) TakesByRight(units []Unit) bool {
	return slices.ContainsFunc(units, func(u Unit) bool { return s.rules.NeedsRight(u.Job) })
}

// Sort puts units into the order in which they are evicted, as the model stands.
func (s *Selector) Sort(units []Unit) {
	slices.SortStableFunc(units, func(u, v Unit) int { return s.compare(&u, &v) })
}

// SortAfresh is Sort for all units of a plan, whichever unit of a job was evicted last.
func (s *Selector) SortAfresh(units []Unit) {
	for i := range units {
		units[i].top.endsJob = endsJob(units[i].Job, 0)
	}
	s.Sort(units)
}

// compare is the order in which units are evicted (rule Q8), negative if u is first: the queue of lower priority, then the queue
// further above its share as the plan stands, then the less important unit.
func (s *Selector) compare(u, v *Unit) int {
	if p, q := u.Job.QuotaNode(), v.Job.QuotaNode(); p != q {
		if c := s.rules.Queues.Compare(p, q); c != 0 {
			return c
		}
	}
	return u.top.compare(&v.top)
}
