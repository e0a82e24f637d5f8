package explain

import (
	"fmt"
	"slices"
	"time"

	"hekla.sh/hekla/internal/placement"
	"hekla.sh/hekla/internal/placer"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// The bounds of an answer. One that is larger is of no use to a person, and an answer is given between two cycles.
const (
	// MaxListed is how many pods, jobs, nodes or queues a list names.
	MaxListed = 100
	// MaxClasses is for how many kinds of pods it is explained which nodes refuse them: each may cost a pass over all nodes.
	MaxClasses = 4
	// MaxSearched is on how many nodes victims are sought for what is supposed, MaxCandidates among how many pods it is asked who
	// could leave for a job that is there.
	MaxSearched, MaxCandidates = 256, 2000
	// MaxSupposed is how many pods may be supposed to be submitted.
	MaxSupposed = 1000
)

// Model answers questions about a cluster as a policy has it. One goroutine uses it, the one that owns the cluster, between cycles.
type Model struct {
	cluster  *cluster.Cluster
	policy   *framework.Policy
	placer   *placement.Engine
	outlook  *placement.Engine
	notAsked []string
}

// New returns a model with plugins and placement engines of its own.
func New(c *cluster.Cluster, policy *framework.Policy) (*Model, error) {
	twin, notAsked, err := policy.Twin()
	if err != nil {
		return nil, err
	}
	m := &Model{cluster: c, policy: twin, notAsked: notAsked}
	if m.placer, err = placer.New(c, twin); err != nil {
		return nil, err
	}
	m.outlook, err = placer.NewOutlook(c, twin)
	return m, err
}

// NotFound says that the model does not hold what is asked about.
type NotFound struct{ Kind, Name string }

func (e NotFound) Error() string {
	return fmt.Sprintf("%s %q is not known to the scheduler", e.Kind, e.Name)
}

// try answers in a session of its own, and leaves the model as it was.
func (m *Model) try(now time.Time, answer func(s *framework.Session)) {
	m.cluster.Try(func() { answer(m.open(now)) })
}

// open returns a session in a trial that is under way.
func (m *Model) open(now time.Time) *framework.Session {
	s := framework.NewTrial(m.cluster, m.policy, m.placer, m.outlook, now)
	s.OpenPlugins()
	return s
}

func (m *Model) amounts(v resources.Vector) Amounts {
	a := Amounts{}
	for d, value := range v {
		if name := m.cluster.Resources.Name(resources.Dim(d)); value != 0 {
			a[string(name)] = resources.Format(name, value)
		}
	}
	return a
}

// limits are amounts where zero is a limit, too.
func (m *Model) limits(l resources.Limits) Amounts {
	a := Amounts{}
	for i := range l.Len() {
		d := resources.Dim(i)
		if value, ok := l.At(d); ok && value != resources.Unlimited {
			name := m.cluster.Resources.Name(d)
			a[string(name)] = resources.Format(name, value)
		}
	}
	return a
}

func shortages(short []verdict.Shortage) []Shortage {
	var all []Shortage
	for _, s := range short {
		all = append(all, Shortage{Resource: string(s.Resource), Needed: resources.Format(s.Resource, s.Need),
			Available: resources.Format(s.Resource, s.Have), Missing: resources.Format(s.Resource, s.Need-s.Have)})
	}
	return all
}

func nodeReasons(reasons []verdict.NodeReason) []NodeReason {
	var all []NodeReason
	for _, r := range reasons {
		all = append(all, NodeReason(r))
	}
	return all
}

func protected(spared []verdict.Spared) []Protected {
	var all []Protected
	for _, s := range spared {
		all = append(all, Protected{Rule: s.Reason, Pods: s.Pods})
	}
	return all
}

// helps are the kinds of change in words, in the order of their bits.
var helps = [...]string{"node", "queue", "job", "time", "pod", "volume"}

// VerdictOf is a verdict as plain data, nil for nil.
func VerdictOf(v *verdict.Verdict) *Verdict {
	if v == nil {
		return nil
	}
	answer := &Verdict{Code: string(v.Code), Message: v.Sentence(), Subject: v.Subject, Placed: v.Placed, Wanted: v.Wanted,
		Short: shortages(v.Shortages), Nodes: nodeReasons(v.Nodes), Protected: protected(v.Spared), Vetoed: nodeReasons(v.Vetoed)}
	for i, kind := range helps {
		if v.Help&(1<<i) != 0 {
			answer.Helps = append(answer.Helps, kind)
		}
	}
	return answer
}

// namesOf are the first of some tasks.
func namesOf(tasks []*cluster.Task) []string {
	var names []string
	for _, t := range tasks[:min(len(tasks), MaxListed)] {
		names = append(names, t.Key().String())
	}
	return names
}

// refusals say which nodes refuse some pods that wait.
func (m *Model) refusals(s *framework.Session, tasks []*cluster.Task) []Refusals {
	var all []Refusals
	for _, t := range cluster.OnePerClass(tasks) {
		if len(all) == MaxClasses {
			break
		}
		r := Refusals{Pod: t.Key().String()}
		for _, other := range tasks {
			if other.Class == t.Class {
				r.Pods++
			}
		}
		nodes, short := s.Placer.Explain(t)
		slices.SortStableFunc(nodes, func(a, b verdict.NodeReason) int { return b.Nodes - a.Nodes })
		r.Nodes, r.Short = nodeReasons(nodes), shortages(short)
		all = append(all, r)
	}
	return all
}
