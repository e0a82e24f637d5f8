package placement

import (
	"hekla.sh/hekla/internal/placement/explained"
	"hekla.sh/hekla/internal/placement/objects"
	"hekla.sh/hekla/internal/placement/ranking"
	"hekla.sh/hekla/internal/placement/reason"
	"hekla.sh/hekla/internal/placement/vacancies"
	"hekla.sh/hekla/internal/placement/view"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

const (
	fits        = reason.Fits
	unknownNode = reason.UnknownNode
)

// answers are the stored answers about every node for the classes of a profile, or for one class with its host ports
// and images. All slices are indexed by node slot. They are worked out for all nodes once they are asked for again and
// again; until then there is a list.
type answers struct {
	profile
	class *cluster.Class // one of the classes
	of    *kind          // the class that has them for itself, nil if they are shared
	kinds int            // how many classes have come to share them

	needs []view.Need
	short []reason.Reason // by need: the refusal of a node that has too little

	asked  uint64
	list   list
	looked int // nodes of domains, since the class was ranked

	vacancies vacancies.Count

	objectScores *objects.Scores // the part of the scores that comes from the node objects
	ownScores    []int64         // this part with all images, of answers for one class that has others than common ones
	ownScoresAt  uint64          // the version of the objects that ownScores are of, counted from 1

	ranked  bool   // what follows is made
	seen    uint64 // how far Cluster.Changes has been followed
	version uint64 // of the objects that the heap is made of
	// rankedBy are the scores by node objects that are in the heap.
	rankedBy []int64

	generation []uint64        // of the node that why and score are for
	why        []reason.Reason // fits, or why not
	score      []int64         // valid where it fits
	all        ranking.Heap    // of all slots
	part       part            // of the nodes of one domain
	rebuilt    uint64          // how often the heap of all was built, which may change any score

	explained *explained.Answer // nil if it was not asked for, or is no longer kept
}

func newAnswers(e *Engine, p profile, k *cluster.Class) *answers {
	a := &answers{profile: p, class: k}
	for d, amount := range k.Request {
		if amount > 0 {
			dim := resources.Dim(d)
			a.needs = append(a.needs, view.Need{Dim: dim, Amount: amount})
			a.short = append(a.short, e.reasons.ShortOf(e.cluster.Resources, dim))
		}
	}
	return a
}

// readObjects updates the answers by node objects.
func (a *answers) readObjects(e *Engine) {
	a.objects.Follow()
	a.readScores(e)
}

// readScores updates the scores by node objects.
func (a *answers) readScores(e *Engine) {
	a.objectScores = a.objects.Scores(a.images, a.class)
	if a.of == nil || a.ownScoresAt == a.objects.Version()+1 {
		return
	}
	a.ownScoresAt, a.ownScores = a.objects.Version()+1, nil
	if len(a.of.points) > 0 {
		a.ownScores = make([]int64, len(e.cluster.BySlot()))
		copy(a.ownScores, a.objectScores.BySlot())
		few, _ := a.objects.Few()
		for _, slot := range few {
			a.ownScores[slot] = a.objectScores.At(slot)
		}
		for _, p := range a.of.points {
			a.ownScores[p.Slot] += p.Points * e.point
		}
	}
}

// scoresByObject are the scores by the objects of all nodes, nil if these do not differ.
func (a *answers) scoresByObject() []int64 {
	if a.ownScores != nil {
		return a.ownScores
	}
	return a.objectScores.BySlot()
}

// catchUp updates the answers about every node that has changed since the last question.
func (a *answers) catchUp(e *Engine) {
	changed, next, ok := e.cluster.Changes(a.seen)
	first := !a.ranked
	a.seen, a.ranked = next, true
	nodes := e.cluster.BySlot()
	for len(a.all.Place) < len(nodes) {
		a.generation = append(a.generation, 0)
		a.why = append(a.why, unknownNode)
		a.score = append(a.score, 0)
		a.all.Place = append(a.all.Place, -1)
	}
	a.objects.FollowAll()
	a.readScores(e)
	scores := a.scoresByObject()
	isPreferredAgain := len(a.rankedBy) != len(scores) || len(scores) > 0 && &a.rankedBy[0] != &scores[0]
	a.rankedBy = scores
	objects := a.version != a.objects.Version()
	a.version = a.objects.Version()
	switch {
	case first || !ok || isPreferredAgain:
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
				a.move(e, &a.all, slot)
			}
		}
	}
}

// unrank drops everything that is stored by slot.
func (a *answers) unrank() {
	*a = answers{profile: a.profile, class: a.class, of: a.of, kinds: a.kinds, needs: a.needs, short: a.short, asked: a.asked, list: a.list,
		vacancies: a.vacancies}
}

// nodesInStep is how many nodes are looked at in a step. Filters and scorers that look at nodes one by one take a step
// for each.
const nodesInStep = 16

// lookAtAll works out all answers and builds the heap.
func (a *answers) lookAtAll(e *Engine) {
	e.view.Follow()
	nodes := e.cluster.BySlot()
	for first := 0; first < len(nodes); first += view.BlockSize {
		e.does(view.BlockSize / nodesInStep)
		slots := e.slots[:0]
		for slot := first; slot < min(first+view.BlockSize, len(nodes)); slot++ {
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
func (a *answers) judgeShown(e *Engine, slot int, n *cluster.Node) reason.Reason {
	if why := a.objects.At(slot); why != fits {
		return why
	}
	if i := e.view.Lacking(slot, a.needs); i >= 0 {
		return a.short[i]
	}
	return a.judgeRest(e, n)
}

// rateAll sets Engine.scores to the scores of the nodes in some slots, at most a block of them. The table shows them as
// they are.
func (a *answers) rateAll(e *Engine, slots []int32) {
	scores := e.scores[:len(slots)]
	clear(scores)
	if a.ownScores == nil {
		a.objectScores.AddTo(scores, slots)
	} else {
		for i, slot := range slots {
			scores[i] = a.ownScores[slot]
		}
	}
	e.view.Amounts.Look(slots)
	for _, scorer := range e.tableScorers {
		scorer.AddScores(a.class, &e.view.Amounts, slots, scores)
	}
	if len(e.otherScorers) == 0 {
		return
	}
	for i, slot := range slots {
		seen := e.view.Node(e.cluster.BySlot()[slot])
		for _, scorer := range e.otherScorers {
			scores[i] += scorer.ScoreNode(a.class, seen)
		}
	}
}

// build builds the heap of all nodes that fit.
func (a *answers) build(e *Engine) {
	a.rebuilt++
	r := &a.all
	r.Slots = r.Slots[:0]
	for slot := range r.Place {
		r.Place[slot] = -1
		if a.why[slot] == fits {
			r.Add(int32(slot))
		}
	}
	r.Restore(a.order(e))
}

// look works out the answer for one node, and reports whether it may have changed: a node that changed more than once
// is looked at once.
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

func (a *answers) judge(e *Engine, slot int32, n *cluster.Node) reason.Reason {
	if why := a.objects.At(int(slot)); why != fits {
		return why
	}
	return a.judgePods(e, n)
}

// judgePods returns the answer by the pods on a node, not by those elsewhere.
func (a *answers) judgePods(e *Engine, n *cluster.Node) reason.Reason {
	for i := range a.needs {
		if a.needs[i].Amount > e.view.Room(n, a.needs[i].Dim) {
			return a.short[i]
		}
	}
	return a.judgeRest(e, n)
}

// judgeRest is judgePods of a node that has the room.
func (a *answers) judgeRest(e *Engine, n *cluster.Node) reason.Reason {
	if len(e.filters) > 0 {
		e.does(1)
	}
	for _, filter := range e.filters {
		if text := filter.RefuseNode(a.class, e.view.Node(n)); text != "" {
			return e.reasons.Of(verdict.NodePlugin.Refuses(text))
		}
	}
	if a.of != nil {
		return a.of.refusalByPorts(e, n)
	}
	return fits
}

func (a *answers) rate(e *Engine, n *cluster.Node) int64 {
	var score int64
	if scores := a.scoresByObject(); scores != nil {
		score = scores[n.Slot]
	}
	for _, scorer := range e.scorers {
		score += scorer.ScoreNode(a.class, e.view.Node(n))
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
