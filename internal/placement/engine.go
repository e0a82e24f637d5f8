package placement

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/internal/placement/ranking"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
)

// Engine finds nodes for tasks: by what is free now, or, as an outlook, by what will be free once evicted pods are gone and
// pipelined tasks are placed. It stores its answers, so it should live as long as its policy.
type Engine struct {
	vacated      uint64 // how often a node had room for more, see Room
	cluster      *model.Cluster
	ahead        bool // it is an outlook
	filters      []Filter
	vetoers      []Vetoer
	vetoes       vetoes
	scorers      []Scorer
	invalidators []Invalidator // among filters and scorers
	point        int64         // as in [Configuration]
	kube         *kube.Plugins
	later        *kube.Plugins // plugins that see pipelined tasks, which must stay possible; nil in an outlook, where kube does

	domain *cluster.Domain // the domain that is searched, nil for the whole cluster

	futures []*future // by slot of the node, nil if not needed yet
	table   table
	slots   [blockSize]int32 // space to work in
	passing []*cluster.Node  // space to work in
	scores  [blockSize]int64 // space to work in

	tableScorers []TableScorer // and all other scorers
	otherScorers []Scorer

	objects     map[string]*objects          // by the constraints of classes
	objectsRead int                          // how many of them are of all nodes
	taints      int                          // the generation of the taints that they are for
	answers     map[*cluster.Class]*answers  // of plain classes
	supplied    map[*cluster.Class]*supplied // of those that need volumes or devices
	last        *answers                     // the answers of the last question
	ranked      int                          // how many of the answers are, or were before they were dropped
	asked       uint64                       // counts questions, to know which answers were used last
	reasons     reasons                      // why nodes refuse
}

// New returns an engine for a model and the filters, vetoers and scores of a configuration. It answers for the model as it
// is now: pods that are leaving still hold their resources. Pipelined tasks are not placed yet, but their resources, ports
// and anti-affinity are kept for them.
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
	e := &Engine{cluster: c, ahead: ahead, filters: configuration.Filters, vetoers: configuration.Vetoers, scorers: configuration.Scorers,
		point: configuration.Point, kube: plugins, objects: map[string]*objects{}, answers: map[*cluster.Class]*answers{},
		supplied: map[*cluster.Class]*supplied{}, reasons: reasons{byText: map[string]reason{}}}
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
	for _, text := range []string{"", "node(s) are unknown", "node(s) were not ready", "node(s) were refused for a reason of their own"} {
		e.reasons.of(text)
	}
	return e, nil
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
		return e.bestAround(e.current(t.Class), t)
	}
	if len(e.vetoers) == 0 {
		if n, isFound := e.of(t.Class).bestListed(e); isFound {
			return n
		}
	}
	return e.best(e.current(t.Class), t)
}

// standingsOf returns the standings of the nodes of the current domain. The answers must be up to date.
func (e *Engine) standingsOf(a *answers) *ranking.Heap {
	if e.domain != nil {
		return a.within(e, e.domain)
	}
	return &a.whole
}

// Confine limits the search to a domain, until it is called again. Nil is the whole cluster.
func (e *Engine) Confine(d *cluster.Domain) { e.domain = d }

// area returns the nodes of the current domain, by name.
func (e *Engine) area() []*cluster.Node { return e.cluster.NodesIn(e.domain) }

// candidates returns the nodes that pass everything except vetoers and the plugins that look at pods elsewhere, by name.
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
func (e *Engine) survey(a *answers, candidates []*cluster.Node) (refusals []string, scores []int64) {
	if len(candidates) == 0 {
		return nil, nil
	}
	refusals, scores = a.ask(e).Survey(candidates)
	if e.later == nil || e.cluster.Promised.IsZero() {
		return refusals, scores
	}
	for i, n := range candidates {
		if refusals[i] == "" {
			refusals[i] = a.laterQuestion(e).Around(n)
		}
	}
	return refusals, scores
}

// What is kept is bounded by the memory that it takes, cacheBytes of each kind of answer. Per node, the ranked answers of a class take
// answersBytes, what node objects say objectsBytes, and each kind of preference preferencesBytes. What was used least recently is worked
// out again when it is asked for.
const (
	cacheBytes       = 64 << 20
	answersBytes     = 34
	objectsBytes     = 10
	preferencesBytes = 8
	// maxClasses limits the number of stored classes, some 300 bytes each without their ranked answers.
	maxClasses = 1 << 16
	// maxSupplied limits the number of classes with stored volumes and devices.
	maxSupplied = 256
)

// most is how many entries are kept that take so many bytes per node.
func most(c *model.Cluster, bytes int) int {
	return max(16, cacheBytes/(bytes*max(1, len(c.BySlot()))))
}

// dropOldest drops the half of some entries that was used least recently.
func dropOldest[K comparable, V any](entries map[K]V, asked func(V) uint64) {
	times := make([]uint64, 0, len(entries))
	for _, entry := range entries {
		times = append(times, asked(entry))
	}
	slices.Sort(times)
	for key, entry := range entries {
		if asked(entry) < times[len(times)/2] {
			delete(entries, key)
		}
	}
}

// current returns the answers for a class, ranked and up to date with the model.
func (e *Engine) current(k *cluster.Class) *answers {
	a := e.of(k)
	invalidate(e.invalidators)
	a.followTaints(e)
	if !a.ranked {
		makeSpace(e)
		e.ranked++
	}
	a.catchUp(e)
	return a
}

// invalidate has plugins say of which nodes they would say something else now.
func invalidate(invalidators []Invalidator) {
	for _, plugin := range invalidators {
		plugin.InvalidateNodes()
	}
}

// of returns the stored answers for a class, which may be out of date.
func (e *Engine) of(k *cluster.Class) *answers {
	a := e.last
	if a == nil || a.class != k {
		if a = e.answers[k]; a == nil {
			if len(e.answers) >= maxClasses {
				forgetUnused(e)
				if len(e.answers) >= maxClasses {
					dropOldest(e.answers, func(a *answers) uint64 { return a.asked })
				}
			}
			a = newAnswers(e, k)
			e.answers[k] = a
		}
		e.last = a
	}
	e.asked++
	a.asked = e.asked
	return a
}

// makeSpace drops the answers for classes that are no longer in use and, if that is not enough, the ranked answers of the half that
// was not asked for longest.
func makeSpace(e *Engine) {
	if e.ranked < most(e.cluster, answersBytes) {
		return
	}
	forgetUnused(e)
	var ranked []*answers
	for _, a := range e.answers {
		if a.ranked {
			ranked = append(ranked, a)
		}
	}
	if e.ranked = len(ranked); e.ranked < most(e.cluster, answersBytes) {
		return
	}
	for _, a := range olderHalf(ranked, func(a *answers) uint64 { return a.asked }) {
		a.unrank()
		e.ranked--
	}
}

// olderHalf sorts stored answers, and returns the half that was not asked for longest. asked counts the questions.
func olderHalf[T any](stored []T, asked func(T) uint64) []T {
	slices.SortFunc(stored, func(a, b T) int { return cmp.Compare(asked(a), asked(b)) })
	return stored[:len(stored)/2]
}

// forgetUnused drops the answers for classes that are no longer in use.
func forgetUnused(e *Engine) {
	for k, a := range e.answers {
		if !k.InUse() && a != e.last {
			delete(e.answers, k)
		}
	}
}
