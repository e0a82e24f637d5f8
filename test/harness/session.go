package harness

import (
	"strings"
	"time"

	"hekla.sh/hekla/pkg/framework"
)

// Open opens a session at [Model.Now].
func (m *Model) Open() *framework.Session { return m.OpenAt(m.Now) }

// OpenAt opens a session at a time, with placement if there is any.
func (m *Model) OpenAt(now time.Time) *framework.Session {
	m.Refresh(&m.Policy.Keys, now)
	var s *framework.Session
	if m.Engine == nil {
		s = framework.NewSession(m.Cluster, m.Policy, nil, now)
	} else {
		s = framework.NewSession(m.Cluster, m.Policy, m.Engine, now)
		s.Outlook, s.Workloads = m.Outlook, m.Workloads
	}
	s.Open()
	return s
}

// Run runs actions in a session of their own and returns the names of the pods that they bind, in order.
func (m *Model) Run(names ...string) []string {
	m.tb.Helper()
	session := m.Open()
	m.Planned = nil
	for _, name := range names {
		session.Run(m.action(name))
	}
	if m.Mark() != 0 || session.Begin().Placed() != 0 {
		m.tb.Errorf("a transaction is left open")
	}
	m.Check()
	for _, planned := range session.Plans {
		m.Planned = append(m.Planned, describePlan(planned))
	}
	var bound []string
	for _, b := range session.Binds {
		bound = append(bound, b.Pod.Name)
	}
	return bound
}

func (m *Model) action(name string) framework.Action {
	m.tb.Helper()
	for _, action := range m.Policy.Actions {
		if action.Name() == name {
			return action
		}
	}
	m.tb.Fatalf("there is no action %s", name)
	return nil
}

func describePlan(planned *framework.Planned) string {
	var words []string
	for _, e := range planned.Evictions {
		words = append(words, e.Pod.Name)
	}
	if j := planned.Plan.Job; j != nil {
		words = append(words, "for", j.ID.Name)
	}
	return strings.Join(words, " ")
}

// Question is whether pods may be evicted.
type Question struct {
	Session   *framework.Session
	Reclaim   bool   // for a job of another queue
	Preemptor string // the job that needs room
	For       string // its pod that needs room, "" if the job is pending admission
	Victims   string // pods, separated by spaces
	Whole     bool   // they are all pods of their gang
}

// Vote asks the plugins: "yes", "" if none has a say, else why not.
func (m *Model) Vote(q Question) string {
	m.tb.Helper()
	d := &framework.VictimProposal{Preemptor: m.JobNamed(q.Preemptor), Whole: q.Whole}
	if q.For != "" {
		d.For = m.TaskNamed(q.For)
	}
	for _, name := range strings.Fields(q.Victims) {
		d.Victims = append(d.Victims, m.TaskNamed(name))
	}
	poll := q.Session.PollPreempt()
	if q.Reclaim {
		poll = q.Session.PollReclaim()
	}
	why, by := poll.Ask(d)
	switch {
	case why.Exists():
		return why.String()
	case by == poll.Tiers():
		return ""
	}
	return "yes"
}

// EvictPods counts pods as leaving, as an earlier part of a plan would.
func (m *Model) EvictPods(x framework.Transaction, names string) {
	m.tb.Helper()
	for _, name := range strings.Fields(names) {
		x.Evict(m.TaskNamed(name))
	}
}

// Nominate makes a pod wait for room on a node, as an earlier part of a plan would.
func (m *Model) Nominate(x framework.Transaction, name, node string) {
	m.tb.Helper()
	x.Pipeline(m.TaskNamed(name), m.NodeNamed(node))
}
