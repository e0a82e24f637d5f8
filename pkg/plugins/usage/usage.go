package usage

import (
	"time"

	resourcehelper "k8s.io/component-helpers/resource"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

const (
	// maxAge is the age from which a load does not count (source: Volcano).
	maxAge = 5 * time.Minute
	// defaultInterval is the interval of measurements if the configuration sets none (source: Volcano).
	defaultInterval = 30 * time.Second
)

// Why nodes refuse pods.
const (
	busyCPU    = "node(s) had a CPU load above the threshold of usage"
	busyMemory = "node(s) had a memory load above the threshold of usage"
)

type plugin struct {
	weight, cpuWeight, memoryWeight int64
	limits                          thresholds
	estimate                        estimator

	session  *framework.Session
	interval time.Duration
	said     []answer // the last answers, by slot of the node
}

// answer is the answer about a node.
type answer struct {
	name    string
	refusal string
	score   int64
}

func newPlugin(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	p := &plugin{weight: int64(arguments.Int(weightKey)), cpuWeight: int64(arguments.Int(cpuWeightKey)),
		memoryWeight: int64(arguments.Int(memoryWeightKey))}
	var err error
	if p.limits, err = readThresholds(arguments.StringMap(thresholdsKey)); err != nil {
		return nil, err
	}
	p.estimate, err = readEstimator(arguments.StringMap(estimatorKey))
	return p, err
}

func (*plugin) Name() string { return Name }

// OpenSession invalidates every node whose answer has changed.
func (p *plugin) OpenSession(s *framework.Session) {
	p.session, p.interval = s, defaultInterval
	if given, err := time.ParseDuration(s.Policy.Configuration.Metrics["interval"]); err == nil && given > 0 {
		p.interval = given
	}
	for slot, n := range s.Cluster.BySlot() {
		for len(p.said) <= slot {
			p.said = append(p.said, answer{})
		}
		if n == nil {
			p.said[slot] = answer{}
			continue
		}
		before, now := p.said[slot], answer{name: n.Name, refusal: p.refuse(n), score: p.score(n)}
		p.said[slot] = now
		switch {
		case before == now:
		case before.name == now.name && before.refusal != "" && now.refusal == "":
			s.Cluster.Touch(n)
		default:
			s.Cluster.Outdate(n)
		}
	}
}

// WakeAt is when the first load becomes too old to refuse pods.
func (p *plugin) WakeAt() time.Time {
	var next time.Time
	if p.session == nil {
		return next
	}
	for _, n := range p.session.Cluster.Nodes() {
		if p.refuse(n) == "" {
			continue
		}
		if end := n.Load.At.Add(maxAge).Add(1); next.IsZero() || end.Before(next) {
			next = end
		}
	}
	return next
}

// isKnown reports whether the load of a node counts.
func (p *plugin) isKnown(n *cluster.Node) bool {
	return !n.Load.At.IsZero() && p.session.Now.Sub(n.Load.At) <= maxAge
}

// RefuseNode refuses nodes whose load is above a threshold.
func (p *plugin) RefuseNode(_ *cluster.Class, n *cluster.Node) string { return p.refuse(n) }

func (p *plugin) refuse(n *cluster.Node) string {
	switch {
	case !p.isKnown(n):
	case n.Load.CPU > p.limits.cpu:
		return busyCPU
	case n.Load.Memory > p.limits.memory:
		return busyMemory
	}
	return ""
}

// DeclareNodeKeys declares that nothing of the object of a node matters.
func (*plugin) DeclareNodeKeys() (annotations, labels []string) { return nil, nil }

// ScoreNode prefers nodes that are idle.
func (p *plugin) ScoreNode(_ *cluster.Class, n *cluster.Node) int64 { return p.score(n) }

func (p *plugin) score(n *cluster.Node) int64 {
	if !p.isKnown(n) {
		return 0
	}
	cpu, memory := p.load(n)
	left := p.weigh(resources.Million-cpu, resources.Million-memory)
	return left * p.weight * (100 * framework.Point) / resources.Million
}

// weigh is the mean of a value for CPU and one for memory, by their weights.
func (p *plugin) weigh(cpu, memory int64) int64 {
	if p.cpuWeight+p.memoryWeight == 0 {
		return 0
	}
	return (cpu*p.cpuWeight + memory*p.memoryWeight) / (p.cpuWeight + p.memoryWeight)
}

// load is the load of a node with the estimates, in millionths.
func (p *plugin) load(n *cluster.Node) (cpu, memory int64) {
	var plain, risky [2]int64
	for _, t := range n.Tasks() {
		if !p.isHidden(t) {
			continue
		}
		for d, takes := range p.estimatePod(t) {
			plain[d] += min(takes.amount, takes.most)
			risky[d] += min(takes.amount*p.estimate.factor/1000, takes.most)
		}
	}
	cpu, memory = busy(n, n.Load.CPU, plain[0], resources.CPU), busy(n, n.Load.Memory, plain[1], resources.Memory)
	if p.weigh(cpu, memory) >= p.estimate.risk {
		cpu, memory = busy(n, n.Load.CPU, risky[0], resources.CPU), busy(n, n.Load.Memory, risky[1], resources.Memory)
	}
	return cpu, memory
}

// busy adds an amount to the load of a resource.
func busy(n *cluster.Node, measured, amount int64, d resources.Dim) int64 {
	return min(measured+resources.Millionths(amount, max(n.Allocatable.At(d), 1)), resources.Million)
}

// isHidden reports whether a task does not show in the load yet.
func (p *plugin) isHidden(t *cluster.Task) bool {
	switch t.Status {
	case cluster.Allocated, cluster.Binding, cluster.Awaited, cluster.Bound:
		return true
	case cluster.Running:
		return p.session.Now.Sub(t.Started()) < p.interval
	}
	return false
}

// takes is an estimate, and the most that a pod may use.
type takes struct{ amount, most int64 }

// estimatePod estimates what a pod will use of CPU and memory.
func (p *plugin) estimatePod(t *cluster.Task) [2]takes {
	e := &p.estimate
	if t.BestEffort() {
		return [2]takes{{e.bestCPU, resources.MaxQuantity}, {e.bestMem, resources.MaxQuantity}}
	}
	limits := resourcehelper.PodLimits(t.Pod.Object(), resourcehelper.PodResourcesOptions{})
	return [2]takes{
		e.of(t.Request().At(resources.CPU), limits.Cpu().MilliValue()),
		e.of(t.Request().At(resources.Memory), limits.Memory().Value()),
	}
}

// of estimates what a pod with this request and limit will use. A limit of 0 is none.
func (e *estimator) of(request, limit int64) takes {
	most := min(max(request, limit), resources.MaxQuantity)
	return takes{amount: (request*e.request + (most-request)*e.burst) / 1000, most: most}
}
