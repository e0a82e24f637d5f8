package placement

import (
	"hekla.sh/hekla/internal/placement/explained"
	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/internal/placement/objects"
	"hekla.sh/hekla/internal/placement/ranking"
	"hekla.sh/hekla/internal/placement/reason"
	"hekla.sh/hekla/internal/placement/vacancies"
	"hekla.sh/hekla/internal/placement/view"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
)

// Engine finds nodes for tasks: by what is free now, or, as an outlook, by what will be free once evicted pods are gone
// and pipelined tasks are placed. It stores its answers, so it should live as long as its policy.
type Engine struct {
	cluster      *model.Cluster
	filters      []Filter
	vetoers      []Vetoer
	vetoes       vetoes
	scorers      []Scorer
	invalidators []Invalidator // among filters and scorers
	point        int64         // as in [Configuration]
	kube         *kube.Plugins
	later        *kube.Plugins // plugins that see pipelined tasks, which must stay possible; nil in an outlook, where kube does

	domain *cluster.Domain // the domain that is searched, nil for the whole cluster

	view   view.View
	slots  [view.BlockSize]int32 // space to work in
	scores [view.BlockSize]int64 // space to work in

	tableScorers []TableScorer // and all other scorers
	otherScorers []Scorer

	objects   *objects.Table
	taints    int                          // the generation of the taints that the shared answers are for
	kinds     map[*cluster.Class]*kind     // of plain classes
	shared    map[profile]*answers         // of these
	supplied  map[*cluster.Class]*supplied // of those that need volumes or devices
	last      *kind                        // of the last question
	ranked    int                          // how many of the answers are, or were before they were dropped
	questions int                          // how many kinds have one, or had before they were dropped
	sweepAt   int                          // the number of kinds at which those that are not in use are dropped
	asked     uint64                       // counts questions, to know which answers were used last
	reasons   *reason.Refusals             // why nodes refuse
	vacancies *vacancies.Table

	explained explained.Answers
	opened    [16]int32 // slots of nodes that could hold a task if they were empty, the last first

	suppliedBytes   int // what is stored for those that need volumes or devices
	sweepSuppliedAt int // the number of these at which those that are not in use are dropped

	work func(steps int) // nil if the work is not counted
}

// New returns an engine for a model and the filters, vetoers and scores of a configuration. It answers for the model as
// it is now: pods that are leaving still hold their resources. Pipelined tasks are not placed yet, but their resources,
// ports and anti-affinity are kept for them.
func New(c *model.Cluster, configuration Configuration) (*Engine, error) {
	return create(c, configuration, false)
}

// NewOutlook is New for the model as it will be: pods that are leaving are gone, and pipelined tasks are placed.
func NewOutlook(c *model.Cluster, configuration Configuration) (*Engine, error) {
	return create(c, configuration, true)
}

func create(c *model.Cluster, configuration Configuration, ahead bool) (*Engine, error) {
	plugins, err := kube.NewOutlook(c, configuration.KubeFilters, configuration.KubeScores, configuration.Kube)
	if err != nil {
		return nil, err
	}
	e := &Engine{cluster: c, filters: configuration.Filters, vetoers: configuration.Vetoers, scorers: configuration.Scorers,
		point: configuration.Point, kube: plugins, kinds: map[*cluster.Class]*kind{},
		shared: map[profile]*answers{}, view: view.New(c, ahead),
		supplied: map[*cluster.Class]*supplied{}, reasons: reason.New()}
	for _, filter := range e.filters {
		e.invalidators = appendInvalidator(e.invalidators, filter)
	}
	for _, scorer := range e.scorers {
		e.invalidators = appendInvalidator(e.invalidators, scorer)
		if t, ok := scorer.(TableScorer); ok {
			e.tableScorers = append(e.tableScorers, t)
		} else {
			e.otherScorers = append(e.otherScorers, scorer)
		}
	}
	if !ahead {
		e.later = plugins
		if e.kube, err = kube.New(c, configuration.KubeFilters, configuration.KubeScores, configuration.Kube); err != nil {
			return nil, err
		}
	}
	e.vacancies = vacancies.New(c, &e.view)
	e.objects = objects.New(c, e.kube, e.reasons, e.point)
	return e, nil
}

// Meter reports the work for answers to a function, in steps of some microseconds, while it is done: no step takes
// long. The function may panic to end the work. Then the engine must not be asked any more.
func (e *Engine) Meter(work func(steps int)) {
	e.work = work
	e.kube.Meter(work)
	if e.later != nil {
		e.later.Meter(work)
	}
}

func (e *Engine) does(steps int) {
	if e.work != nil {
		e.work(steps)
	}
}

// appendInvalidator adds a plugin if it is an invalidator. A plugin that filters and scores is called twice, the second
// time without effect.
func appendInvalidator(list []Invalidator, plugin any) []Invalidator {
	if o, ok := plugin.(Invalidator); ok {
		list = append(list, o)
	}
	return list
}

// Best returns the best node that a task fits on and no plugin vetoes, nil if there is none.
func (e *Engine) Best(t *cluster.Task) *cluster.Node {
	if t.Class.NeedsSupplies() {
		return e.bestSupplied(t)
	}
	if e.cluster.DependsOnPods(t.Class) {
		x, a := e.current(t.Class)
		return e.bestAround(x, a, t)
	}
	if len(e.vetoers) == 0 {
		if n, isFound := e.of(t.Class).bestListed(e); isFound {
			return n
		}
	}
	_, a := e.current(t.Class)
	return e.best(a, t)
}

// standingsOf returns the standings of the nodes of the current domain. The answers must be up to date.
func (e *Engine) standingsOf(a *answers) *ranking.Heap {
	if e.domain != nil {
		return a.within(e, e.domain)
	}
	return &a.all
}

// Confine limits the search to a domain, until it is called again. Nil is the whole cluster.
func (e *Engine) Confine(d *cluster.Domain) { e.domain = d }

// area returns the nodes of the current domain, by name.
func (e *Engine) area() []*cluster.Node { return e.cluster.NodesIn(e.domain) }

// candidates returns the nodes that pass everything except vetoers and the plugins that look at pods elsewhere, by
// name.
func (e *Engine) candidates(a *answers) []*cluster.Node {
	var candidates []*cluster.Node
	for _, n := range e.area() {
		if a.why[n.Slot] == fits {
			candidates = append(candidates, n)
		}
	}
	return candidates
}

// survey asks the plugins that look at pods elsewhere about candidates.
func (e *Engine) survey(x *kind, candidates []*cluster.Node) (refusals []string, scores []int64) {
	if len(candidates) == 0 {
		return nil, nil
	}
	refusals, scores = x.ask(e).Survey(candidates)
	if e.later == nil || e.cluster.Promised.IsZero() {
		return refusals, scores
	}
	for i, n := range candidates {
		if refusals[i] == "" {
			refusals[i] = x.askLater(e).Around(n)
		}
	}
	return refusals, scores
}

// rank brings answers up to date with the model, and ranks them if they are not yet.
func (e *Engine) rank(a *answers) {
	if !a.ranked {
		e.makeSpace()
		e.ranked++
	}
	a.asked = e.asked
	a.catchUp(e)
}

// invalidate asks plugins which nodes they would answer differently for now.
func invalidate(invalidators []Invalidator) {
	for _, plugin := range invalidators {
		plugin.InvalidateNodes()
	}
}
