package placement

import (
	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// need is how much of one resource a class takes.
type need struct {
	dim    resources.Dim
	amount int64
	short  reason // what a node says that has too little of it
}

// answers are what is known of every node for one class. All slices are indexed by node slot.
type answers struct {
	class    *cluster.Class
	question *kube.Question
	later    *kube.Question // to Engine.later, nil until it matters
	needs    []need

	seen  uint64 // how far Cluster.Changes has been followed
	asked uint64

	specGeneration []uint64 // of the node object that static and preference speak of
	static         []reason // what the node object alone says
	objects        bool     // static has changed since the heap was made
	preference     []int64  // the part of the score that comes from the node objects
	preferring     bool     // preference is not zero everywhere

	generation []uint64  // of the node that why and score speak of
	why        []reason  // fits, or why not
	score      []int64   // valid where it fits
	whole      standings // of all slots
	part       part      // of those in one set
	rebuilt    uint64    // how often whole was built: then any score may have changed

	explained bool // reasons and short are of the answers as they are now
	reasons   []verdict.NodeReason
	short     []verdict.Shortage
}

func newAnswers(e *Engine, k *cluster.Class) *answers {
	a := &answers{class: k, question: e.kube.Ask(k)}
	for d, amount := range k.Request {
		if amount > 0 {
			dim := resources.Dim(d)
			text := "Insufficient " + string(e.cluster.Resources.Name(dim))
			if dim == resources.Pods {
				text = "Too many pods"
			}
			a.needs = append(a.needs, need{dim: dim, amount: amount, short: e.reasons.of(text)})
		}
	}
	return a
}

// catchUp looks again at every node that has changed since the class was asked last.
func (a *answers) catchUp(e *Engine) {
	changed, next, ok := e.cluster.Changes(a.seen)
	first := a.whole.place == nil
	a.explained = a.explained && ok && len(changed) == 0
	a.seen = next
	nodes := e.cluster.BySlot()
	a.growTo(len(nodes))
	for len(a.whole.place) < len(nodes) {
		a.preference = append(a.preference, 0)
		a.generation = append(a.generation, 0)
		a.why = append(a.why, unknownNode)
		a.score = append(a.score, 0)
		a.whole.place = append(a.whole.place, -1)
	}
	if first || !ok {
		for slot, n := range nodes {
			a.readObject(e, slot, n)
		}
		a.objects = false
		a.prefer(e)
		a.lookAtAll(e)
		return
	}
	for _, slot := range changed {
		a.readObject(e, int(slot), nodes[slot])
	}
	objects := a.objects
	a.objects = false
	switch {
	case objects && a.prefer(e):
		a.lookAtAll(e)
	case objects:
		// A slot may be empty now, or be another node's with another rank: entries cannot be moved one by one in a heap
		// where several are out of place at once.
		for _, slot := range changed {
			a.look(e, slot)
		}
		a.build(e)
	default:
		for _, slot := range changed {
			if a.look(e, slot) {
				a.whole.move(a, e, slot)
			}
		}
	}
}

// growTo makes space for what the objects of so many nodes say.
func (a *answers) growTo(slots int) {
	for len(a.static) < slots {
		a.specGeneration = append(a.specGeneration, 0)
		a.static = append(a.static, unknownNode)
	}
}

// readObject brings up to date what the node object alone says. That may happen long before the heap is looked at again,
// so it is noted for then.
func (a *answers) readObject(e *Engine, slot int, n *cluster.Node) {
	var generation uint64
	if n != nil {
		generation = n.SpecGeneration
	}
	if a.specGeneration[slot] == generation {
		return
	}
	a.specGeneration[slot], a.objects = generation, true
	switch {
	case n == nil || n.Object == nil:
		a.static[slot] = unknownNode
	case !n.Ready():
		a.static[slot] = notReady
	default:
		a.static[slot] = e.reasons.of(a.question.Refusal(n))
	}
}

// prefer brings up to date the part of the score that comes from the node objects. It is normalised over the nodes whose
// objects pass, not over those that have room at the moment: else every placement could change the score of all nodes. It
// reports whether any score may have changed.
func (a *answers) prefer(e *Engine) bool {
	var passing []*cluster.Node
	for slot, n := range e.cluster.BySlot() {
		if a.static[slot] == fits {
			passing = append(passing, n)
		}
	}
	scores := a.question.Preferences(passing)
	if scores == nil {
		if !a.preferring {
			return false
		}
		clear(a.preference)
		a.preferring = false
		return true
	}
	a.preferring = true
	for i, n := range passing {
		a.preference[n.Slot] = scores[i] * e.point
	}
	return true
}

// lookAtAll works out every answer and builds the heap in one go.
func (a *answers) lookAtAll(e *Engine) {
	for slot, n := range e.cluster.BySlot() {
		a.work(e, int32(slot), n)
	}
	a.build(e)
}

// build makes the heap of all that fits.
func (a *answers) build(e *Engine) {
	a.rebuilt++
	r := &a.whole
	r.heap = r.heap[:0]
	for slot := range r.place {
		r.place[slot] = -1
		if a.why[slot] == fits {
			r.add(int32(slot))
		}
	}
	r.heapify(a, e)
}

// look works out the answer for one node, and reports whether it may have changed: a node that changed more than once is
// looked at once.
func (a *answers) look(e *Engine, slot int32) bool {
	n := e.cluster.BySlot()[slot]
	if n != nil && a.generation[slot] == n.Generation {
		return false
	}
	a.work(e, slot, n)
	return true
}

func (a *answers) work(e *Engine, slot int32, n *cluster.Node) {
	if n != nil {
		a.generation[slot] = n.Generation
	}
	if a.why[slot] = a.judge(e, slot, n); a.why[slot] == fits {
		a.score[slot] = a.rate(e, n)
	}
}

func (a *answers) judge(e *Engine, slot int32, n *cluster.Node) reason {
	if why := a.static[slot]; why != fits {
		return why
	}
	return a.judgePods(e, n)
}

// judgePods says what the pods on a node leave of it, those elsewhere left out.
func (a *answers) judgePods(e *Engine, n *cluster.Node) reason {
	for i := range a.needs {
		if a.needs[i].amount > e.room(n, a.needs[i].dim) {
			return a.needs[i].short
		}
	}
	for _, filter := range e.filters {
		if text := filter.RefuseNode(a.class, e.seen(n)); text != "" {
			return e.reasons.of(text)
		}
	}
	if !a.class.HasPorts {
		return fits
	}
	text := a.question.Ports(n)
	if text == "" && e.later != nil && !n.Promised.IsZero() {
		text = a.laterQuestion(e).Ports(n)
	}
	return e.reasons.of(text)
}

func (a *answers) laterQuestion(e *Engine) *kube.Question {
	if a.later == nil {
		a.later = e.later.Ask(a.class)
	}
	return a.later
}

func (a *answers) rate(e *Engine, n *cluster.Node) int64 {
	score := a.preference[n.Slot]
	for _, scorer := range e.scorers {
		score += scorer.ScoreNode(a.class, e.seen(n))
	}
	return score
}

// before reports whether one slot is better than another.
func (a *answers) before(e *Engine, s, t int32) bool {
	if a.score[s] != a.score[t] {
		return a.score[s] > a.score[t]
	}
	nodes := e.cluster.BySlot()
	return nodes[s].Rank < nodes[t].Rank
}
