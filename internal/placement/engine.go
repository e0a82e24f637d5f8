package placement

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/pkg/cluster"
)

// Engine answers where a task can go: now, or as an outlook once what leaves has left and what is promised has come. It
// keeps what it has found out, so it lives as long as its policy.
type Engine struct {
	cluster      *cluster.Cluster
	ahead        bool // it is an outlook
	filters      []Filter
	vetoers      []Vetoer
	vetoes       vetoes
	scorers      []Scorer
	invalidators []Invalidator // among filters and scorers
	point        int64         // as in [Configuration]
	kube         *kube.Plugins
	later        *kube.Plugins // that see what is promised, which nothing may make impossible; nil in an outlook, where kube does

	domain *cluster.Domain // where nodes are found, nil where any node will do

	futures []*future // of the nodes, by slot, where they were asked for

	answers  map[*cluster.Class]*answers  // of plain classes
	supplied map[*cluster.Class]*supplied // of those that need volumes or devices
	last     *answers                     // that were asked for last
	asked    uint64                       // counts questions, to tell which answers were used last
	reasons  reasons                      // why nodes refuse
}

// New returns an engine for a model and the filters, vetoers and scores of a configuration. It answers for the model as it
// stands: what leaves is still there. What is promised is not, but its room, its ports and its distance to others are kept
// for it.
func New(c *cluster.Cluster, configuration Configuration) (*Engine, error) {
	return create(c, configuration, false)
}

// NewOutlook is New for the model as it will be: what leaves is gone, and what is promised is there.
func NewOutlook(c *cluster.Cluster, configuration Configuration) (*Engine, error) {
	return create(c, configuration, true)
}

func create(c *cluster.Cluster, configuration Configuration, ahead bool) (*Engine, error) {
	plugins, err := kube.NewOutlook(c, configuration.KubeFilters, configuration.KubeScores, configuration.Kube)
	if err != nil {
		return nil, err
	}
	e := &Engine{cluster: c, ahead: ahead, filters: configuration.Filters, vetoers: configuration.Vetoers, scorers: configuration.Scorers,
		point: configuration.Point, kube: plugins, answers: map[*cluster.Class]*answers{}, supplied: map[*cluster.Class]*supplied{},
		reasons: reasons{byText: map[string]reason{}}}
	for _, filter := range e.filters {
		e.invalidators = appendInvalidator(e.invalidators, filter)
	}
	for _, scorer := range e.scorers {
		e.invalidators = appendInvalidator(e.invalidators, scorer)
	}
	if !ahead {
		e.later = plugins
		if e.kube, err = kube.New(c, configuration.KubeFilters, configuration.KubeScores, configuration.Kube); err != nil {
			return nil, err
		}
	}
	for _, text := range []string{"", "node(s) are unknown", "node(s) were not ready", "node(s) were refused for a reason of their own"} {
		e.reasons.of(text)
	}
	return e, nil
}

// appendInvalidator adds a plugin whose answers rest on more than the node asked about. One that filters and scores is called twice,
// the second time for nothing.
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
	a := e.current(t.Class)
	if e.cluster.DependsOnPods(t.Class) {
		return e.bestAround(a, t)
	}
	return e.best(a, t)
}

// standingsOf returns the standings of the nodes that are asked about. The answers are current.
func (e *Engine) standingsOf(a *answers) *standings {
	if e.domain != nil {
		return a.within(e, e.domain)
	}
	return &a.whole
}

// Confine has the engine find nodes of a set only, until it is told otherwise; nil is the whole cluster.
func (e *Engine) Confine(d *cluster.Domain) { e.domain = d }

// area returns the nodes that are asked about, by name.
func (e *Engine) area() []*cluster.Node { return e.cluster.NodesIn(e.domain) }

// bestAround is Best for a class that depends on pods elsewhere. Nodes that are vetoed have their part in the survey, so
// that scores do not depend on which were asked about before.
func (e *Engine) bestAround(a *answers, t *cluster.Task) *cluster.Node {
	candidates := e.candidates(a)
	refusals, around := e.survey(a, candidates)
	for {
		best := -1
		var bestScore int64
		for i, n := range candidates {
			if refusals[i] != "" || e.vetoed(t, n) != fits {
				continue
			}
			if score := a.score[n.Slot] + around[i]*e.point; best < 0 || score > bestScore {
				best, bestScore = i, score
			}
		}
		if best < 0 {
			return nil
		}
		if e.vetoOf(t, candidates[best]) == fits {
			return candidates[best]
		}
	}
}

// candidates returns the nodes that pass everything but the plugins that look at pods elsewhere and the vetoers, by name.
func (e *Engine) candidates(a *answers) []*cluster.Node {
	var candidates []*cluster.Node
	for _, n := range e.area() {
		if a.why[n.Slot] == fits {
			candidates = append(candidates, n)
		}
	}
	return candidates
}

// survey puts candidates to the plugins that look at pods elsewhere.
func (e *Engine) survey(a *answers, candidates []*cluster.Node) (refusals []string, scores []int64) {
	if len(candidates) == 0 {
		return nil, nil
	}
	refusals, scores = a.question.Survey(candidates)
	if e.later == nil || e.cluster.Promised.IsZero() {
		return refusals, scores
	}
	refusals = slices.Clone(refusals)
	for i, n := range candidates {
		if refusals[i] == "" {
			refusals[i] = a.laterQuestion(e).Around(n)
		}
	}
	return refusals, scores
}

// maxAnswers bounds the classes whose answers are kept: each costs some 30 bytes a node, so 256 classes on 5,000 nodes
// are 40 MB. With more shapes than that in one cycle the answers used least recently are worked out again.
const maxAnswers = 256

// current returns the answers for a class, up to date with the model.
func (e *Engine) current(k *cluster.Class) *answers {
	a := e.of(k)
	for _, plugin := range e.invalidators {
		plugin.InvalidateNodes()
	}
	a.catchUp(e)
	return a
}

// of returns the answers for a class as they were when it was asked last.
func (e *Engine) of(k *cluster.Class) *answers {
	a := e.last
	if a == nil || a.class != k {
		if a = e.answers[k]; a == nil {
			e.makeSpace()
			a = newAnswers(e, k)
			e.answers[k] = a
		}
		e.last = a
	}
	e.asked++
	a.asked = e.asked
	return a
}

// makeSpace drops the answers for classes that are no longer in use and, if that is not enough, the half that was not
// asked for longest.
func (e *Engine) makeSpace() {
	if len(e.answers) < maxAnswers {
		return
	}
	var kept []*answers
	for k, a := range e.answers {
		if k.InUse() {
			kept = append(kept, a)
		} else {
			delete(e.answers, k)
		}
	}
	if len(kept) < maxAnswers {
		return
	}
	slices.SortFunc(kept, func(a, b *answers) int { return cmp.Compare(a.asked, b.asked) })
	for _, a := range kept[:len(kept)/2] {
		delete(e.answers, a.class)
	}
}
