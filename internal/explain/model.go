package explain

import (
	"fmt"
	"slices"
	"time"

	"hekla.sh/hekla/internal/explain/order"
	"hekla.sh/hekla/internal/placer"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// The limits of an answer. Longer lists would not help the user, and an answer is worked out between two cycles.
const (
	// MaxListed is the number of pods, jobs, nodes or queues that a list names.
	MaxListed = 100
	// MaxClasses is the number of classes of pods for which refusing nodes are explained. Each may cost a pass over all
	// nodes.
	MaxClasses = 4
	// MaxSearched is the number of nodes on which a search looks for victims for a submission. MaxCandidates is the
	// number of pods among which it looks for victims for an existing job.
	MaxSearched, MaxCandidates = 256, 500
	// MaxSupposed is the number of pods in a submission.
	MaxSupposed = 1000
)

// Model answers questions about a cluster under a policy. Only the goroutine that owns the cluster uses it, between
// cycles.
type Model struct {
	cache    *cache.Cache
	cluster  *model.Cluster
	policy   *framework.Policy
	placer   *metered
	outlook  *metered
	notAsked []string
	shared   *shared // nil before the first question
	objects  nodeObjects
	suitable map[*cluster.Class]*suitability
	nodes    inventory
	backlog  order.Backlog

	mustEnd func() error // nil: the work for an answer is not bounded
	steps   int          // of the answer so far
	isSpent bool
}

// New returns a model with its own plugins and placement engines.
func New(c *cache.Cache, policy *framework.Policy) (*Model, error) {
	twin, notAsked, err := policy.Twin()
	if err != nil {
		return nil, err
	}
	m := &Model{cache: c, cluster: c.Cluster, policy: twin, notAsked: notAsked}
	now, err := placer.New(c.Cluster, twin)
	if err != nil {
		return nil, err
	}
	later, err := placer.NewOutlook(c.Cluster, twin)
	if err != nil {
		return nil, err
	}
	now.Meter(m.works)
	later.Meter(m.works)
	m.backlog.Meter(m.works)
	m.placer, m.outlook = &metered{now, m}, &metered{later, m}
	return m, nil
}

// NotFound is the error if the model does not hold the object in question.
type NotFound struct {
	Kind, Name string
	// Schedulers are the names by which pods ask for this scheduler, if a pod or job was asked about: it may name
	// another.
	Schedulers []string
}

func (e NotFound) Error() string {
	return fmt.Sprintf("%s %q is not known to the scheduler", e.Kind, e.Name)
}

// try answers in a session about the model as it is, and leaves the model unchanged.
func (m *Model) try(now time.Time, answer func(s *framework.Session)) {
	m.cache.Try(func() { answer(m.session(now)) })
}

// Session looks at the model in a session, and leaves it unchanged. What is seen must not be kept.
func (m *Model) Session(now time.Time, look func(s *framework.Session)) { m.try(now, look) }

// open returns a session of its own in the open trial, in which the model may have been changed.
func (m *Model) open(now time.Time) *framework.Session {
	m.step(false)
	m.known().session = nil // the plugins see another model now
	s := framework.NewTrial(m.cluster, m.policy, m.placer, m.outlook, now)
	s.OpenPlugins()
	return s
}

// Trial runs a function that may change the model in sessions that it opens, at times that it chooses. The model is
// left unchanged.
func (m *Model) Trial(run func(open func(at time.Time) *framework.Session)) {
	m.cache.Try(func() { run(m.open) })
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

// limits formats limits. A limit of zero is listed too.
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
		all = append(all, NodeReason{Kind: string(r.Kind), Reason: r.Reason, Nodes: r.Nodes, Example: r.Example})
	}
	return all
}

func protected(spared []verdict.Spared) []Protected {
	var all []Protected
	for _, s := range verdict.MostFirst(spared) {
		all = append(all, Protected{Protection: protection(s.Why), Pods: s.Pods})
	}
	return all
}

func protection(p verdict.Protection) Protection {
	return Protection{Rule: p.String(), Kind: string(p.Kind), Number: p.Kind.Rule(), Plugin: p.Plugin}
}

// helps names the kinds of change, in the order of their bits. For users, room is a change of nodes, and a new victim
// one of pods.
var helps = [...]string{"node", "queue", "job", "time", "pod", "volume", "node", "pod", "queue", "pod", "queue", "queue", "node", "node"}

// VerdictOf returns a verdict as plain data, nil for nil.
func VerdictOf(v *verdict.Verdict) *Verdict {
	if v == nil {
		return nil
	}
	answer := &Verdict{Code: string(v.Reason()), Message: v.Sentence(), Subject: v.Subject, Placed: v.Placed, Wanted: v.Wanted,
		Short: shortages(v.Shortages), Nodes: nodeReasons(v.Nodes), Protected: protected(v.Spared), Vetoed: nodeReasons(v.Vetoed)}
	kinds := v.Kinds()
	for i, kind := range helps {
		if kinds&(1<<i) != 0 && !slices.Contains(answer.Helps, kind) {
			answer.Helps = append(answer.Helps, kind)
		}
	}
	return answer
}

// namesOf returns the names of some tasks, at most MaxListed.
func namesOf(tasks []*cluster.Task) []string {
	var names []string
	for _, t := range tasks[:min(len(tasks), MaxListed)] {
		names = append(names, t.Key().String())
	}
	return names
}

// refusals says which nodes refuse some pending pods.
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
		r.Nodes, r.Short = nodeReasons(nodes), shortages(short)
		sortReasons(r.Nodes)
		all = append(all, r)
	}
	return all
}
