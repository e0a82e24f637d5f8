package placement

import (
	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/internal/placement/ranking"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// need is the request of a class for one resource.
type need struct {
	dim    resources.Dim
	amount int64
	short  reason // the refusal of a node that has too little
}

// answers are the stored answers about every node for one class. All slices are indexed by node slot. They are worked out
// for all nodes once the class is asked for again and again; until then there is a list.
type answers struct {
	class    *cluster.Class
	objects  *objects
	question *kube.Question // nil until it matters
	later    *kube.Question // to Engine.later, nil until it matters
	needs    []need

	asked  uint64
	list   list
	looked int // nodes of domains, since the class was ranked

	vacancies vacancies

	preferences *preferences // of the objects
	preferredAt uint64       // the version of the objects that they are of, counted from 1

	ranked  bool   // what follows is made
	seen    uint64 // how far Cluster.Changes has been followed
	version uint64 // of the objects that the heap is made of
	// rankedBy are the scores of preferences that are in the heap.
	rankedBy []int64

	generation []uint64     // of the node that why and score are for
	why        []reason     // fits, or why not
	score      []int64      // valid where it fits
	whole      ranking.Heap // of all slots
	part       part         // of the nodes of one domain
	rebuilt    uint64       // how often whole was built, which may change any score
	groups     groups       // of a class that depends on pods elsewhere

	explained bool // reasons and short are up to date
	reasons   []verdict.NodeReason
	short     []verdict.Shortage
}

func newAnswers(e *Engine, k *cluster.Class) *answers {
	a := &answers{class: k, objects: objectsFor(e, k)}
	for d, amount := range k.Request {
		if amount > 0 {
			dim := resources.Dim(d)
			a.needs = append(a.needs, need{dim: dim, amount: amount, short: e.reasons.shortOf(e.cluster.Resources, dim)})
		}
	}
	return a
}

// ask returns the question of the class.
func (a *answers) ask(e *Engine) *kube.Question {
	if a.question == nil {
		a.question = e.kube.Ask(a.class)
	}
	return a.question
}

// readObjects updates the answers by node objects for the class.
func (a *answers) readObjects(e *Engine) {
	a.followTaints(e)
	a.objects.follow(e)
	if a.preferredAt != a.objects.version+1 {
		a.preferredAt = a.objects.version + 1
		a.preferences = a.objects.preferencesOf(e, a.class)
	}
}

// preferenceFor is the part of the score of a node that comes from the node objects.
func (a *answers) preferenceFor(slot int) int64 {
	if a.preferences.scores == nil {
		return 0
	}
	return a.preferences.scores[slot]
}

// catchUp updates the answers about every node that has changed since the last question.
func (a *answers) catchUp(e *Engine) {
	changed, next, ok := e.cluster.Changes(a.seen)
	first := !a.ranked
	a.explained = a.explained && ok && len(changed) == 0
	a.seen, a.ranked = next, true
	nodes := e.cluster.BySlot()
	for len(a.whole.Place) < len(nodes) {
		a.generation = append(a.generation, 0)
		a.why = append(a.why, unknownNode)
		a.score = append(a.score, 0)
		a.whole.Place = append(a.whole.Place, -1)
	}
	a.readObjects(e)
	isPreferredAnew := len(a.rankedBy) != len(a.preferences.scores) || len(a.rankedBy) > 0 && &a.rankedBy[0] != &a.preferences.scores[0]
	a.rankedBy = a.preferences.scores
	objects := a.version != a.objects.version
	a.version = a.objects.version
	switch {
	case first || !ok || isPreferredAnew:
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
				a.move(e, &a.whole, slot)
			}
		}
	}
}

// unrank drops everything that is stored by slot, and the questions, which may count pods by topology domain.
func (a *answers) unrank() {
	*a = answers{class: a.class, objects: a.objects, needs: a.needs, asked: a.asked, list: a.list, vacancies: a.vacancies}
}

// lookAtAll works out all answers and builds the heap.
func (a *answers) lookAtAll(e *Engine) {
	e.table.follow(e)
	nodes := e.cluster.BySlot()
	for first := 0; first < len(nodes); first += blockSize {
		slots := e.slots[:0]
		for slot := first; slot < min(first+blockSize, len(nodes)); slot++ {
			n := nodes[slot]
			if n != nil {
				a.generation[slot] = n.Generation
			}
			if a.why[slot] = a.judgeShown(e, slot, n); a.why[slot] == fits {
				slots = append(slots, int32(slot))
			}
		}
		a.rateAll(e, slots)
		for i, slot := range slots {
			a.score[slot] = e.scores[i]
		}
	}
	a.build(e)
}

// judgeShown is judge of a node that the table shows as it is.
func (a *answers) judgeShown(e *Engine, slot int, n *cluster.Node) reason {
	if why := a.objects.static[slot]; why != fits {
		return why
	}
	if why := e.table.roomFor(slot, a.needs); why != fits {
		return why
	}
	return a.judgeRest(e, n)
}

// rateAll sets Engine.scores to the scores of the nodes in some slots, at most a block of them. The table shows them as they are.
func (a *answers) rateAll(e *Engine, slots []int32) {
	scores := e.scores[:len(slots)]
	for i, slot := range slots {
		scores[i] = a.preferenceFor(int(slot))
	}
	e.table.amounts.Look(slots)
	for _, scorer := range e.tableScorers {
		scorer.AddScores(a.class, &e.table.amounts, slots, scores)
	}
	if len(e.otherScorers) == 0 {
		return
	}
	for i, slot := range slots {
		seen := e.seen(e.cluster.BySlot()[slot])
		for _, scorer := range e.otherScorers {
			scores[i] += scorer.ScoreNode(a.class, seen)
		}
	}
}

// build builds the heap of all nodes that fit.
func (a *answers) build(e *Engine) {
	a.rebuilt++
	r := &a.whole
	r.Slots = r.Slots[:0]
	for slot := range r.Place {
		r.Place[slot] = -1
		if a.why[slot] == fits {
			r.Add(int32(slot))
		}
	}
	r.Restore(a.order(e))
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
	if why := a.objects.static[slot]; why != fits {
		return why
	}
	return a.judgePods(e, n)
}

// judgePods returns the answer by the pods on a node, not by those elsewhere.
func (a *answers) judgePods(e *Engine, n *cluster.Node) reason {
	for i := range a.needs {
		if a.needs[i].amount > e.room(n, a.needs[i].dim) {
			return a.needs[i].short
		}
	}
	return a.judgeRest(e, n)
}

// judgeRest is judgePods of a node that has the room.
func (a *answers) judgeRest(e *Engine, n *cluster.Node) reason {
	for _, filter := range e.filters {
		if text := filter.RefuseNode(a.class, e.seen(n)); text != "" {
			return e.reasons.of(text)
		}
	}
	if !a.class.HasPorts {
		return fits
	}
	text := a.ask(e).Ports(n)
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
	score := a.preferenceFor(n.Slot)
	for _, scorer := range e.scorers {
		score += scorer.ScoreNode(a.class, e.seen(n))
	}
	return score
}

// order is the order of the nodes by their scores.
func (a *answers) order(e *Engine) ranking.Order {
	return ranking.Order{Scores: a.score, Nodes: e.cluster.BySlot()}
}

// move restores a heap after the answer about a node has changed.
func (a *answers) move(e *Engine, h *ranking.Heap, slot int32) {
	if a.why[slot] == fits {
		h.Move(a.order(e), slot)
	} else {
		h.Remove(a.order(e), slot)
	}
}
