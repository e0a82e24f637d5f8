package placement

import (
	"container/heap"
	"maps"

	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/internal/placement/limit"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/supplies"
	"hekla.sh/hekla/pkg/verdict"
)

// supplied answers for a class that needs volumes or devices, in addition to the answers for its plain class.
type supplied struct {
	class    *cluster.Class
	question *kube.Supplies
	later    *kube.Supplies // to Engine.later, nil until it matters
	asked    uint64
	bytes    int // as counted in Engine.suppliedBytes
}

// What the plugins for volumes and devices keep takes about suppliedBytes for each class, and suppliedNodeBytes for
// each node that the class was asked about.
const (
	suppliedBytes     = 4 << 10
	suppliedNodeBytes = 512
)

func (e *Engine) suppliedOf(k *cluster.Class) *supplied {
	s := e.supplied[k]
	if s == nil {
		e.makeSpaceForSupplied()
		s = &supplied{class: k, question: e.kube.AskSupplies(k)}
		e.supplied[k] = s
		s.count(e)
	}
	e.asked++
	s.asked = e.asked
	return s
}

// count counts the memory that is used for a class.
func (s *supplied) count(e *Engine) {
	nodes := s.question.Nodes()
	if s.later != nil {
		nodes += s.later.Nodes()
	}
	e.suppliedBytes -= s.bytes
	s.bytes = suppliedBytes + nodes*suppliedNodeBytes
	e.suppliedBytes += s.bytes
}

// makeSpaceForSupplied drops what is stored for classes that are no longer in use when their number has doubled, as
// sweep does. If what is left takes too much memory, it drops the half that was not asked for longest.
func (e *Engine) makeSpaceForSupplied() {
	if len(e.supplied) < max(e.sweepSuppliedAt, firstSweep) && e.suppliedBytes < limit.Bytes {
		return
	}
	maps.DeleteFunc(e.supplied, func(k *cluster.Class, _ *supplied) bool { return !k.InUse() })
	for i := range 2 {
		e.suppliedBytes = 0
		for _, s := range e.supplied {
			e.suppliedBytes += s.bytes
		}
		if i == 0 && e.suppliedBytes >= limit.Bytes {
			limit.DropOldest(e.supplied, func(s *supplied) uint64 { return s.asked })
		}
	}
	e.sweepSuppliedAt = 2 * len(e.supplied)
}

// refuses returns which volumes or devices the node lacks for the class, if any. Those of pipelined tasks are kept.
func (s *supplied) refuses(e *Engine, n *cluster.Node) verdict.NodeRefusal {
	why := s.question.Refusal(n)
	if why.IsNone() && e.later != nil && !e.cluster.Promised.IsZero() {
		if s.later == nil {
			s.later = e.later.AskSupplies(s.class)
		}
		why = s.later.Refusal(n)
	}
	s.count(e)
	return why
}

// scored is a heap of nodes, the best first.
type scored struct {
	nodes  []*cluster.Node
	scores []int64
}

func (r *scored) Len() int { return len(r.nodes) }
func (r *scored) Less(i, j int) bool {
	if r.scores[i] != r.scores[j] {
		return r.scores[i] > r.scores[j]
	}
	return r.nodes[i].Rank < r.nodes[j].Rank
}
func (r *scored) Swap(i, j int) {
	r.nodes[i], r.nodes[j] = r.nodes[j], r.nodes[i]
	r.scores[i], r.scores[j] = r.scores[j], r.scores[i]
}
func (r *scored) Push(any) {}
func (r *scored) Pop() any {
	last := len(r.nodes) - 1
	n := r.nodes[last]
	r.nodes, r.scores = r.nodes[:last], r.scores[:last]
	return n
}

// scored returns the nodes that pass everything except volumes, devices and vetoers.
func (e *Engine) scored(x *kind, a *answers) *scored {
	r := &scored{}
	candidates := e.candidates(a)
	var refusals []string
	var around []int64
	if e.cluster.DependsOnPods(x.class) {
		refusals, around = e.survey(x, candidates)
	}
	for i, n := range candidates {
		score := a.score[n.Slot]
		if refusals != nil {
			if refusals[i] != "" {
				continue
			}
			score += around[i] * e.point
		}
		r.nodes, r.scores = append(r.nodes, n), append(r.scores, score)
	}
	return r
}

// bestSupplied is Best for a class that needs volumes or devices. It asks about one node after the other, the best
// first, until one has them. Asking is expensive, and usually the first node has them.
func (e *Engine) bestSupplied(t *cluster.Task) *cluster.Node {
	k := t.Class
	x, a := e.current(k.Plain)
	s := e.suppliedOf(k)
	// The heap does not have all of their score.
	if len(e.vetoers) > 0 || s.question.AreScored() || e.cluster.DependsOnPods(k.Plain) {
		return e.bestRanked(x, a, s, t)
	}
	w := e.standingsOf(a).Walk(a.order(e))
	for n := w.Next(); n != nil; n = w.Next() {
		if s.refuses(e, n).IsNone() {
			return n
		}
	}
	return nil
}

// bestRanked is bestSupplied if the heap does not decide alone.
func (e *Engine) bestRanked(x *kind, a *answers, s *supplied, t *cluster.Task) *cluster.Node {
	r := e.scored(x, a)
	if s.question.AreScored() {
		r.addVolumeScores(e, s)
	}
	for heap.Init(r); r.Len() > 0; {
		n := heap.Pop(r).(*cluster.Node)
		if s.refuses(e, n).IsNone() && e.Veto(t, n) == "" {
			return n
		}
	}
	return nil
}

// addVolumeScores adds the scores by volumes. That needs an answer for every node.
func (r *scored) addVolumeScores(e *Engine, s *supplied) {
	kept := 0
	for i, n := range r.nodes {
		if s.refuses(e, n).IsNone() {
			r.nodes[kept], r.scores[kept] = n, r.scores[i]
			kept++
		}
	}
	r.nodes, r.scores = r.nodes[:kept], r.scores[:kept]
	for i, points := range s.question.Scores(r.nodes) {
		r.scores[i] += points * e.point
	}
}

// Reserve returns the volumes and devices that a task takes on a node, nil if none. ok is false if the node lacks some.
func (e *Engine) Reserve(t *cluster.Task, n *cluster.Node) (r *supplies.Reservation, ok bool) {
	if !t.Class.NeedsSupplies() {
		return nil, true
	}
	r, why := e.suppliedOf(t.Class).question.Reserve(n)
	return r, why == ""
}

// Lacking says which volumes or devices a task lacks, as a clause. It is "" if it lacks none, or fits on no node
// anyway.
func (e *Engine) Lacking(t *cluster.Task) string {
	if !t.Class.NeedsSupplies() || !e.fitsSomewhere(t.Class.Plain) {
		return ""
	}
	return e.suppliedOf(t.Class).question.Lacking()
}

// Alternatives is the length of the longest list of alternative devices (firstAvailable) in a task's ResourceClaims
// that have no devices yet.
func (e *Engine) Alternatives(t *cluster.Task) int {
	if !t.Class.NeedsSupplies() {
		return 0
	}
	return e.suppliedOf(t.Class).question.Alternatives()
}

// PassAlternatives calls f, for which the first n alternatives of each such list are passed over. The last is always
// left.
func (e *Engine) PassAlternatives(n int, f func()) {
	pass := func(n int) {
		e.kube.PassAlternatives(n)
		if e.later != nil {
			e.later.PassAlternatives(n)
		}
	}
	pass(n)
	defer pass(0)
	f()
}

// explainSupplied is Explain for a class that needs volumes or devices.
func (e *Engine) explainSupplied(t *cluster.Task) ([]verdict.NodeReason, []verdict.Shortage) {
	k := t.Class
	x, a := e.current(k.Plain)
	s := e.suppliedOf(k)
	around := e.refusalsAround(x, a)
	return e.count(a, func(n *cluster.Node) verdict.NodeRefusal {
		why := around[n]
		if why.IsNone() {
			why = s.refuses(e, n)
		}
		if why.IsNone() {
			why = e.reasons.Refusal(e.vetoOf(t, n))
		}
		return why
	}), a.shortages(e, a.shortIn(e))
}
