package framework

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Placer finds nodes. The placement engine implements it; actions and tests see only this.
type Placer interface {
	// Best returns the best node that a task fits on now, nil if there is none.
	Best(t *cluster.Task) *cluster.Node
	// Fits reports whether a task fits on a node now.
	Fits(t *cluster.Task, n *cluster.Node) bool
	// Veto puts a node that is to be chosen for a task to the vetoers: why one of them refuses it, "" if all agree.
	Veto(t *cluster.Task, n *cluster.Node) string
	// Explain says why Best found none: the reasons of the nodes, and what is short.
	Explain(t *cluster.Task) ([]verdict.NodeReason, []verdict.Shortage)
	// Confine has all of these speak of the nodes of a set only, until it is called again: no other fits or can be opened. Nil is
	// the whole cluster. Callers use [Session.Within], which sees to the end of it.
	Confine(d *cluster.Domain)
}

// Outlook finds nodes as they will be once what leaves has left and what is promised has come. The placement engine
// implements it too.
type Outlook interface {
	Placer
	// CanOpen reports whether a task could be on a node if no pod were there: no eviction opens a node that says no (rule
	// K1).
	CanOpen(t *cluster.Task, n *cluster.Node) bool
}

// Supplier knows which volumes and devices tasks take. The placement engine implements it.
type Supplier interface {
	// Reserve returns what a task takes on a node besides room, nil if nothing. ok is false if the node does not have it.
	Reserve(t *cluster.Task, n *cluster.Node) (r *supplies.Reservation, ok bool)
	// Lacking says which volumes or devices keep a task from its place, a clause; empty if none do.
	Lacking(t *cluster.Task) string
}

// Share is what a queue may hold by right.
type Share struct {
	// Ceiling is what the queue may hold at most, in a cluster of this size and beside what is kept for others; empty if the
	// plugin knows none.
	Ceiling resources.Limits
	// Deserved has no limit where the share does not speak of a resource.
	Deserved resources.Limits
	Share    resources.Ratio // the largest ratio of allocated to deserved
}

// Session is the model held still for one cycle, and what is decided in it. Its embedded [Questions] ask the plugins.
type Session struct {
	Questions
	Cluster *cluster.Cluster
	Placer  Placer
	Outlook Outlook // nil where no pod is ever evicted
	Now     time.Time

	// Binds are the decisions of the session in the order in which they were made, gangs together.
	Binds []decision.Bind

	// Subject is the job that is being looked at, nil if none is, for telling whose fault a panic is; see LookAt.
	Subject *cluster.Job

	// Observe is told when opening a plugin begins, and what it returns when that ends; nil observes nothing.
	Observe func(part, name string) (end func())

	// Plans are the plans decided in the session, in the order in which they were made.
	Plans []*Planned

	ran      []string // the actions that have had their turn
	admitted int      // how many jobs were admitted
	heads    map[place]head
	kept     map[string]any
	queues   []*cluster.Queue
	jobs     map[*cluster.Queue][]*cluster.Job
	judged   map[*cluster.Job]bool
	domain   *cluster.Domain
	trial    bool
	placed   []*cluster.Task // by open transactions
	moved    []*cluster.Task // by open transactions, in whatever way
}

// Within has nodes found in a set only while a function runs: of the set, those where they are found already. Nil bounds nothing.
func (s *Session) Within(d *cluster.Domain, f func()) {
	before := s.domain
	defer s.confine(before) // a panic is contained, and must not leave others confined
	s.confine(d.Intersect(before))
	f()
}

// Domain is the set in which nodes are found at the moment, nil if it is the whole cluster.
func (s *Session) Domain() *cluster.Domain { return s.domain }

func (s *Session) confine(d *cluster.Domain) {
	s.domain = d
	s.Placer.Confine(d)
	if s.Outlook != nil {
		s.Outlook.Confine(d)
	}
}

// Keep returns what was kept under a key in a session; the first time it is made. It is for what an action finds out that
// others of the same session can use.
func Keep[T any](s *Session, key string, makeIt func() T) T {
	if kept, ok := s.kept[key].(T); ok {
		return kept
	}
	if s.kept == nil {
		s.kept = map[string]any{}
	}
	made := makeIt()
	s.kept[key] = made
	return made
}

// Open returns an open session.
func Open(c *cluster.Cluster, policy *Policy, placer Placer, now time.Time) *Session {
	s := NewSession(c, policy, placer, now)
	s.Open()
	return s
}

// NewSession returns a session that is not open yet.
func NewSession(c *cluster.Cluster, policy *Policy, placer Placer, now time.Time) *Session {
	return &Session{Questions: Questions{Policy: policy}, Cluster: c, Placer: placer, Now: now, jobs: map[*cluster.Queue][]*cluster.Job{},
		judged: map[*cluster.Job]bool{}, heads: map[place]head{}}
}

// NewTrial returns a session in which nothing is decided: binds and plans are listed, and what they rest on stays in the undo log.
// It is for finding out inside [cluster.Cluster.Try] what would be decided, by the code that decides. It is not opened.
func NewTrial(c *cluster.Cluster, policy *Policy, placer Placer, outlook Outlook, now time.Time) *Session {
	s := NewSession(c, policy, placer, now)
	s.Outlook, s.trial = outlook, true
	return s
}

// IsTrial reports whether nothing is decided in the session.
func (s *Session) IsTrial() bool { return s.trial }

// Open holds the model still: it settles it by the keys that the policy's plugins have declared, opens the plugins, and sorts out
// which jobs are to be looked at. A job that is wrong is judged here and left out; so is one for which nothing has changed since it
// was judged.
func (s *Session) Open() {
	c, now := s.Cluster, s.Now
	c.UseKeys(&s.Policy.Keys)
	c.Settle()
	c.Expire(now)
	s.OpenPlugins()
	for _, j := range c.Waiting() {
		s.join(j)
	}
	slices.SortFunc(s.queues, cluster.CompareQueues)
	for _, jobs := range s.jobs {
		slices.SortFunc(jobs, cluster.CompareJobs)
	}
}

// OpenPlugins tells the plugins that the session begins. Once more it is called in the first session of a process, when the plans of
// the process before are in force: what is promised on nodes that no other pod may use belongs to what queues share (rule Q6).
func (s *Session) OpenPlugins() {
	for _, plugin := range s.Policy.openers {
		if s.Observe == nil {
			plugin.OpenSession(s)
			continue
		}
		end := s.Observe("plugin", plugin.name)
		plugin.OpenSession(s)
		end()
	}
}

// join has a job looked at in the session, if anything has happened that could help it.
func (s *Session) join(j *cluster.Job) bool {
	c := s.Cluster
	// While the victims of its plan leave, a job plans nothing new (rule K6).
	if j.Plan != nil || !c.Hopeful(j, s.Now) {
		return false
	}
	if v := s.Validate(j); v != nil {
		c.SetVerdict(j, v)
		return false
	}
	if !j.IsPendingAdmission() && j.Count(cluster.Pending) == 0 {
		c.SetVerdict(j, nil) // what was said of it was said of pods that are no more
		return false
	}
	if s.jobs[j.Queue] == nil {
		s.queues = append(s.queues, j.Queue)
	}
	s.jobs[j.Queue] = append(s.jobs[j.Queue], j)
	return true
}

// Rejoin has a job looked at in an open session whose plan has just ended, by the actions that have not begun yet.
func (s *Session) Rejoin(j *cluster.Job) {
	if !slices.Contains(s.jobs[j.Queue], j) && s.join(j) {
		slices.SortFunc(s.queues, cluster.CompareQueues)
		slices.SortFunc(s.jobs[j.Queue], cluster.CompareJobs)
	}
}

// Run gives an action its turn.
func (s *Session) Run(action Action) {
	action.Execute(s)
	s.ran = append(s.ran, action.Name())
}

// WillAllocate reports whether an action that hands out free room has its turn still to come.
func (s *Session) WillAllocate() bool {
	return slices.ContainsFunc(s.Policy.Actions, func(a Action) bool {
		_, allocates := a.(AllocatingAction)
		return allocates && !slices.Contains(s.ran, a.Name())
	})
}

// Validate says what is wrong with a job or its queue; nil means nothing.
func (s *Session) Validate(j *cluster.Job) (v *verdict.Verdict) {
	s.LookAt(j, func() { v = s.validate(j) })
	return v
}

// LookAt notes that a job is being looked at while a function runs. If that panics, the job comes under suspicion.
func (s *Session) LookAt(j *cluster.Job, look func()) {
	before := s.Subject
	s.Subject = j
	look()
	s.Subject = before
}

func (s *Session) validate(j *cluster.Job) *verdict.Verdict {
	q := j.Queue
	refusal := func(code verdict.Code, detail string) *verdict.Verdict {
		return &verdict.Verdict{Code: code, Subject: j.QueueName, Help: verdict.HelpQueue, Detail: detail}
	}
	switch {
	case q == nil:
		return refusal(verdict.QueueNotFound, "")
	case q.Problem != "":
		return refusal(verdict.QueueInvalid, q.Problem)
	case !q.Open():
		return refusal(verdict.QueueClosed, "its state is "+string(q.Object.Status.State))
	}
	for _, plugin := range s.Policy.validators {
		if v := plugin.ValidateJob(j); v != nil {
			return v
		}
	}
	return nil
}

// Queues returns the queues that have jobs to look at, in no order of precedence.
func (s *Session) Queues() []*cluster.Queue { return s.queues }

// Jobs returns the jobs of a queue that are to be looked at, in no order of precedence.
func (s *Session) Jobs(q *cluster.Queue) []*cluster.Job { return s.jobs[q] }

// AddVerdict notes why a job waits. Refusals that are given in one session, by one action after another, are of different tasks of
// the job: they are held together. The first of a session replaces what the sessions before have said. Nil says that nothing
// stands in the job's way any more, whatever was said in this session. [cluster.Cluster.SetVerdict] replaces everything.
func (s *Session) AddVerdict(j *cluster.Job, v *verdict.Verdict) {
	if s.judged[j] {
		s.Cluster.AddVerdict(j, v)
		return
	}
	s.judged[j] = true
	s.Cluster.SetVerdict(j, v)
}

// Tally notes on each job that was looked at and still waits that it was looked at in vain once more. It returns how many pods
// the jobs among them have without a node that were admitted. It is called once, when all actions have had their turn.
func (s *Session) Tally() (unplaced int) {
	for j := range s.judged {
		if j.Verdict == nil {
			continue
		}
		j.Refusals++
		if !j.IsPendingAdmission() {
			unplaced += j.Count(cluster.Pending)
		}
	}
	return unplaced
}

// HasJudged reports whether any job was looked at in this session.
func (s *Session) HasJudged() bool { return len(s.judged) > 0 }

// Judged reports whether anything was said of a job in this session.
func (s *Session) Judged(j *cluster.Job) bool { return s.judged[j] }
