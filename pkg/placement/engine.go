package placement

import (
	"cmp"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/placement/kube"
)

// Engine answers where a task can go. It keeps what it has found out, so it lives as long as its policy.
type Engine struct {
	cluster *cluster.Cluster
	filters []framework.NodeFilter
	scorers []framework.NodeScorer
	kube    *kube.Plugins

	answers map[*cluster.Class]*answers
	asked   uint64   // counts questions, to tell which answers were used last
	reasons []string // why a node refuses; the index is what answers hold
	byText  map[string]reason
}

// New returns an engine for a model and the filters and scores of a policy.
func New(c *cluster.Cluster, policy *framework.Policy) (*Engine, error) {
	scores := make([]kube.Weighted, len(policy.KubeScores))
	for i, s := range policy.KubeScores {
		scores[i] = kube.Weighted{Name: s.Name, Weight: s.Weight}
	}
	plugins, err := kube.New(c, policy.KubeFilters, scores)
	if err != nil {
		return nil, err
	}
	e := &Engine{cluster: c, filters: policy.Filters, scorers: policy.Scorers, kube: plugins,
		answers: map[*cluster.Class]*answers{}, byText: map[string]reason{}}
	for _, text := range []string{"", "node(s) are unknown", "node(s) were not ready", "node(s) were refused for a reason of their own"} {
		e.reason(text)
	}
	return e, nil
}

// reason is why a node refuses a class.
type reason uint16

// The reasons that every engine has.
const (
	fits reason = iota
	unknownNode
	notReady
	manyReasons
)

// maxReasons bounds the texts that are kept. There are a few dozen, unless a plugin puts numbers or names into its own:
// then what is beyond is not told apart.
const maxReasons = 1 << 12

func (e *Engine) reason(text string) reason {
	r, ok := e.byText[text]
	if !ok {
		if len(e.reasons) >= maxReasons {
			return manyReasons
		}
		r = reason(len(e.reasons))
		e.reasons = append(e.reasons, text)
		e.byText[text] = r
	}
	return r
}

// Best returns the best node that a task fits on now, nil if there is none.
func (e *Engine) Best(t *cluster.Task) *cluster.Node {
	a := e.current(t.Class)
	if len(a.heap) == 0 {
		return nil
	}
	if !e.cluster.DependsOnPods(t.Class) {
		return e.cluster.BySlot()[a.heap[0]]
	}
	candidates, refusals, scores := e.survey(a)
	best := -1
	var bestScore int64
	for i, n := range candidates {
		if refusals[i] != "" {
			continue
		}
		if score := a.score[n.Slot] + scores[i]*framework.Point; best < 0 || score > bestScore {
			best, bestScore = i, score
		}
	}
	if best < 0 {
		return nil
	}
	return candidates[best]
}

// survey puts the nodes that pass everything else to the plugins that look at pods elsewhere.
func (e *Engine) survey(a *answers) (candidates []*cluster.Node, refusals []string, scores []int64) {
	candidates = make([]*cluster.Node, len(a.heap))
	for i, slot := range a.heap {
		candidates[i] = e.cluster.BySlot()[slot]
	}
	slices.SortFunc(candidates, func(m, n *cluster.Node) int { return cmp.Compare(m.Rank, n.Rank) })
	refusals, scores = a.question.Survey(candidates)
	return candidates, refusals, scores
}

// maxAnswers bounds the classes whose answers are kept: each costs some 30 bytes a node, so 256 classes on 5,000 nodes
// are 40 MB. With more shapes than that in one cycle the answers used least recently are worked out again.
const maxAnswers = 256

// current returns the answers for a class, up to date with the model.
func (e *Engine) current(k *cluster.Class) *answers {
	a := e.answers[k]
	if a == nil {
		e.makeSpace()
		a = newAnswers(e, k)
		e.answers[k] = a
	}
	e.asked++
	a.asked = e.asked
	a.catchUp(e)
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
