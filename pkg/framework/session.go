package framework

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/cache/held"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/cluster/wake"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Placer finds nodes by what is free now. The placement engine implements it.
type Placer interface {
	// Best returns the best node on which a task fits now, nil if there is none.
	Best(t *cluster.Task) *cluster.Node
	// Fits reports whether a task fits on a node now.
	Fits(t *cluster.Task, n *cluster.Node) bool
	// Veto asks the plugins that may veto a node for a task. It returns why the first one refuses, "" if none does.
	Veto(t *cluster.Task, n *cluster.Node) string
	// Explain says why Best found no node: the reasons by number of nodes, and which resources are short.
	Explain(t *cluster.Task) ([]verdict.NodeReason, []verdict.Shortage)
	// Confine limits all answers to the nodes of a domain, until it is called again. Nil is the whole cluster. Callers
	// use [Session.Within], which lifts the limit again.
	Confine(d *cluster.Domain)
}

// Outlook finds nodes by what will be free once evicted pods are gone and pipelined tasks are placed. The placement
// engine implements it.
type Outlook interface {
	Placer
	// CanOpen reports whether a task would fit on a node without any pods. If not, evictions on the node are of no use
	// to the task (rule K1).
	CanOpen(t *cluster.Task, n *cluster.Node) bool
}

// RoomCounter counts the room on nodes. The placement engine implements it.
type RoomCounter interface {
	// Room returns for how many pods of a class the nodes have room at most, and a version that grows when a node has
	// room for more.
	Room(k *cluster.Class) (pods int64, version uint64)
	// RoomBound returns a stock of which at least as many pods are left. It is shared by classes that request nearly
	// the same.
	RoomBound(k *cluster.Class) verdict.Stock
}

// Supplier knows which volumes and devices tasks need. The placement engine implements it.
type Supplier interface {
	// Reserve returns the volumes and devices that a task takes on a node, nil if none. ok is false if the node lacks
	// some.
	Reserve(t *cluster.Task, n *cluster.Node) (r *supplies.Reservation, ok bool)
	// Lacking says which volumes or devices prevent the placement of a task, as a clause of a sentence. It is "" if
	// none do.
	Lacking(t *cluster.Task) string
	// Alternatives is the length of the longest list of alternative devices (firstAvailable) in a task's ResourceClaims
	// that have no devices yet.
	Alternatives(t *cluster.Task) int
	// PassAlternatives calls f, for which the first n alternatives of each such list are passed over. The last is
	// always left.
	PassAlternatives(n int, f func())
}

// Share is what a queue may hold by right.
type Share struct {
	// Ceiling is what the queue may hold at most, given the size of the cluster and the guarantees of other queues. It
	// is empty if the plugin sets no limit.
	Ceiling resources.Limits
	// Deserved has no limit for a resource that the share does not name.
	Deserved resources.Limits
	Share    resources.Ratio // the largest ratio of allocated to deserved, of all resources
}

// Session is the model during one cycle, with the decisions made so far. Its embedded [Questions] ask the plugins.
type Session struct {
	Questions
	Cluster *model.Cluster
	Placer  Placer
	Outlook Outlook // nil in a session without evictions
	Now     time.Time
	// Workloads are the Workloads with their pods, nil in a session that decides nothing about them.
	Workloads *held.Workloads

	// Binds are the binds of the session in the order of the decisions. Those of a gang stand together.
	Binds []decision.Bind

	// Subject is the job that is being scheduled, nil if there is none. A panic is put down to it; see LookAt.
	Subject *cluster.Job

	// Resumed is the plan that has ended and whose job is served again now, before others; nil if there is none.
	Resumed *cluster.Plan

	// Observe is called when a plugin begins to open, and the function that it returns when that ends. It may be nil.
	Observe func(part, name string) (end func())

	// IsOver reports whether the cycle has lasted so long that what can wait for the next one must; nil is never.
	IsOver func() bool

	// Plans are the plans of the session, in the order of the decisions.
	Plans []*Planned

	ran      []string // names of the actions that have run
	admitted int      // the number of jobs admitted
	heads    map[place]head
	kept     map[string]any
	queues   []*cluster.Queue
	jobs     map[*cluster.Queue][]*cluster.Job
	judged   map[*cluster.Job]bool
	rooms    rooms
	domain   *cluster.Domain
	trial    bool
	placed   []*cluster.Task // in open transactions
	moved    []*cluster.Task // tasks placed, pipelined, evicted and so on in open transactions
}

// Within limits the search for nodes to a domain while f runs, inside the limit that is in force already. Nil adds no
// limit.
func (s *Session) Within(d *cluster.Domain, f func()) {
	before := s.domain
	defer s.confine(before) // a panic is recovered later, and the limit must not outlive it
	s.confine(d.Intersect(before))
	f()
}

// Domain returns the domain to which the search for nodes is limited, nil for the whole cluster.
func (s *Session) Domain() *cluster.Domain { return s.domain }

func (s *Session) confine(d *cluster.Domain) {
	s.domain = d
	s.Placer.Confine(d)
	if s.Outlook != nil {
		s.Outlook.Confine(d)
	}
}

// Keep returns the value stored under a key in a session, and makes it when it is first asked for. With it an action
// shares what it has worked out with later actions of the session.
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

// Open brings the model up to date and returns an open session.
func Open(c *cache.Cache, policy *Policy, placer Placer, now time.Time) *Session {
	c.Refresh(&policy.Keys, now)
	s := NewSession(c.Cluster, policy, placer, now)
	s.Open()
	return s
}

// NewSession returns a session that is not open yet.
func NewSession(c *model.Cluster, policy *Policy, placer Placer, now time.Time) *Session {
	s := &Session{Questions: Questions{Policy: policy}, Cluster: c, Placer: placer, Now: now, jobs: map[*cluster.Queue][]*cluster.Job{},
		judged: map[*cluster.Job]bool{}, heads: map[place]head{}}
	s.rooms = newRooms(s)
	return s
}

// NewTrial returns a session for a question inside [model.Cluster.Try]: what the same code would decide. It lists
// binds and plans, but none comes into force, and every change stays in the undo log. The session is not open.
func NewTrial(c *model.Cluster, policy *Policy, placer Placer, outlook Outlook, now time.Time) *Session {
	s := NewSession(c, policy, placer, now)
	s.Outlook, s.trial = outlook, true
	return s
}

// IsTrial reports whether the session comes from NewTrial.
func (s *Session) IsTrial() bool { return s.trial }

// Open opens the plugins and collects the jobs to look at. The model must be up to date ([cache.Cache.Refresh]). A job
// with a problem gets its verdict here and is left out. So is a job for which nothing has changed since its last
// verdict.
func (s *Session) Open() {
	s.OpenPlugins()
	var room cluster.RoomCounter
	if _, ok := s.Placer.(RoomCounter); ok {
		room = s.rooms.onNodes
	}
	helped, roomed := s.Cluster.Retry(s.Now, room)
	for _, j := range helped {
		s.join(j)
	}
	for key, jobs := range roomed {
		s.rooms.join(key, jobs)
	}
	slices.SortFunc(s.queues, cluster.CompareQueues)
	for _, jobs := range s.jobs {
		slices.SortFunc(jobs, cluster.CompareJobs)
	}
}

// OpenPlugins tells the plugins that the session begins. It is called again when what the queues share (rule Q6) has
// changed before any action: after recovered plans are in force, since tasks are then pipelined on exclusive nodes, and
// after plans have ended that promised room on nodes that are lost.
func (s *Session) OpenPlugins() {
	before := s.Policy.bounds()
	defer func() { s.noteMoved(before) }()
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

// noteMoved notes how the bounds of queues have changed since the session before, of which they are passed. Nothing
// else says so: they follow from the size of the cluster, and from what other queues request.
func (s *Session) noteMoved(before []*quota.View) {
	for i, now := range s.Policy.bounds() {
		if now == nil {
			continue
		}
		moved := now.Since(before[i], s.Cluster.Quota())
		for _, q := range moved.Grown {
			s.Cluster.NoteGrown(q)
		}
		if moved.Exposes {
			s.Cluster.Note(wake.ShareFallen)
		}
	}
}

// join adds a job to the session.
func (s *Session) join(j *cluster.Job) bool {
	c := s.Cluster
	if v := s.Validate(j); v != nil {
		c.SetVerdict(j, v)
		return false
	}
	if !j.IsPendingAdmission() && j.Count(cluster.Pending) == 0 {
		c.SetVerdict(j, nil) // the verdict was about pods that no longer exist
		return false
	}
	if s.jobs[j.Queue] == nil {
		s.queues = append(s.queues, j.Queue)
	}
	s.jobs[j.Queue] = append(s.jobs[j.Queue], j)
	return true
}

// Rejoin adds a job to the open session, for the actions that have not begun. Its plan has just ended.
func (s *Session) Rejoin(j *cluster.Job) {
	if j.Plan == nil && !slices.Contains(s.jobs[j.Queue], j) && s.Cluster.ShouldRetry(j, s.Now) && s.join(j) {
		slices.SortFunc(s.queues, cluster.CompareQueues)
		slices.SortFunc(s.jobs[j.Queue], cluster.CompareJobs)
	}
}

// Run runs an action.
func (s *Session) Run(action Action) {
	action.Execute(s)
	s.ran = append(s.ran, action.Name())
}

// WillAllocate reports whether an action that places pods on free nodes is still to run.
func (s *Session) WillAllocate() bool {
	return slices.ContainsFunc(s.Policy.Actions, func(a Action) bool {
		_, allocates := a.(AllocatingAction)
		return allocates && !slices.Contains(s.ran, a.Name())
	})
}

// Validate says what is wrong with a job or its queue. Nil means nothing is.
func (s *Session) Validate(j *cluster.Job) (v *verdict.Verdict) {
	s.LookAt(j, func() { v = s.validate(j) })
	return v
}

// LookAt runs a function for a job. A panic of the function is put down to this job.
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
	case j.IsFailing():
		return &verdict.Verdict{Code: verdict.ResourceReservationTimeout, Help: verdict.HelpJob}
	}
	for _, plugin := range s.Policy.validators {
		if v := plugin.ValidateJob(j); v != nil {
			return v
		}
	}
	return nil
}

// Queues returns the queues with jobs to look at. The order does not say which is served first.
func (s *Session) Queues() []*cluster.Queue { return s.queues }

// Jobs returns the jobs of a queue to look at. The order does not say which is served first.
func (s *Session) Jobs(q *cluster.Queue) []*cluster.Job {
	for _, first := range s.FirstJobs(q) {
		s.JoinBehind(first)
	}
	return s.jobs[q]
}

// AddVerdict notes why a job waits. The first verdict in a session replaces those of earlier sessions. Further ones are
// about other tasks of the job, and are added to it. Nil withdraws what was said in this session. See
// [model.Cluster.SetVerdict], which replaces every verdict.
func (s *Session) AddVerdict(j *cluster.Job, v *verdict.Verdict) {
	v = s.withNewNodes(j, s.withImpossible(j, v))
	if s.judged[j] {
		s.Cluster.AddVerdict(j, v)
		return
	}
	s.judged[j] = true
	s.Cluster.SetVerdict(j, v)
}

// Tally counts one more refusal on each job that still waits after this session. It returns how many pods of admitted
// jobs among them have no node. It is called once, after all actions.
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

// HasJudged reports whether the session has noted a verdict, or its withdrawal, on any job.
func (s *Session) HasJudged() bool { return len(s.judged) > 0 }

// Judged reports whether the session has noted a verdict, or its withdrawal, on a job.
func (s *Session) Judged(j *cluster.Job) bool { return s.judged[j] }
