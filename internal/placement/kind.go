package placement

import (
	"strconv"

	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/internal/placement/objects"
	"hekla.sh/hekla/internal/placement/reason"
	"hekla.sh/hekla/internal/placement/vacancies"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

// kind is what is stored for one class. Most of what is known about the nodes it shares with the classes of the same
// profile. What is left are its host ports, its images that few nodes have, and the pods elsewhere that matter to it.
type kind struct {
	class   *cluster.Class
	amounts string
	answers *answers         // of the profile, without host ports and such images
	own     *answers         // with these, nil until it is needed
	bound   *vacancies.Bound // of the answers, nil until it is needed
	isApart bool             // the shared answers are of little use

	objectsAt uint64 // the generation of node objects that answers and points are for, 0 before the first
	points    []kube.ImagePoints

	question *kube.Question // nil until it matters
	later    *kube.Question // to Engine.later, nil until it matters
	groups   groups         // of a class that depends on pods elsewhere

	asked uint64
}

// profile is what classes with shared answers have in common.
type profile struct {
	objects *objects.Answers // by their constraints
	images  string           // that many nodes have
	amounts string           // that they request
	class   *cluster.Class   // nil unless plugins may read more of a class
}

// amountsOf returns what a class requests, as a key.
func amountsOf(k *cluster.Class) string {
	key := strconv.AppendInt(nil, k.NonZero[0], 10)
	key = strconv.AppendInt(append(key, ' '), k.NonZero[1], 10)
	for d, amount := range k.Request {
		if amount != 0 { // resources that are added later do not change the key
			key = strconv.AppendInt(append(key, ' '), int64(d), 10)
			key = strconv.AppendInt(append(key, '='), amount, 10)
		}
	}
	return string(key)
}

// of returns what is stored for a class, which may be out of date.
func (e *Engine) of(k *cluster.Class) *kind {
	x := e.last
	if x == nil || x.class != k {
		if x = e.kinds[k]; x == nil {
			e.sweep()
			x = &kind{class: k, amounts: amountsOf(k)}
			x.follow(e)
			e.kinds[k] = x
		}
		e.last = x
	}
	e.asked++
	x.asked = e.asked
	return x
}

// follow finds the shared answers again after a change of node objects: other taints or images may matter.
func (x *kind) follow(e *Engine) {
	generation := e.kube.ObjectsGeneration()
	if x.objectsAt == generation {
		return
	}
	x.objectsAt = generation
	p := profile{images: e.kube.CommonImages(x.class), amounts: x.amounts}
	if len(e.filters)+len(e.otherScorers) > 0 {
		p.class = x.class
	}
	if taints := e.kube.TaintsGeneration(); e.taints != taints {
		e.taints = taints
		clear(e.shared)
	}
	if x.answers != nil && x.answers.objects.AreCurrent() {
		p.objects = x.answers.objects
	} else {
		p.objects = e.objects.For(x.class)
	}
	a := e.shared[p]
	if a == nil {
		a = newAnswers(e, p, x.class)
		e.shared[p] = a
	}
	if x.answers != a {
		a.kinds++
		x.answers, x.own, x.bound, x.isApart, x.groups = a, nil, nil, false, groups{}
	}
	x.points = e.kube.ImagePoints(x.class)
}

// Room returns for how many pods of a class the nodes have room, each node by itself, and a version that grows when a
// node has room for more. It is an upper bound of the pods that can be placed, see package vacancies. The domain does
// not matter.
func (e *Engine) Room(k *cluster.Class) (pods int64, version uint64) {
	invalidate(e.invalidators)
	x := e.of(k)
	x.follow(e)
	a := x.whole(e)
	a.readObjects(e)
	q := vacancies.Question{Objects: a.objects, Needs: a.needs}
	if len(e.filters) > 0 || a.of != nil {
		q.Suits = func(n *cluster.Node) bool { return a.judgeRest(e, n) == fits }
	}
	return a.vacancies.Follow(e.vacancies, &q)
}

// RoomBound returns an upper bound of the room for a class, which it shares with others.
func (e *Engine) RoomBound(k *cluster.Class) verdict.Stock {
	x := e.of(k)
	x.follow(e)
	if x.bound == nil {
		bound := e.vacancies.BoundOf(x.answers.objects, x.answers.needs)
		x.bound = &bound
	}
	return *x.bound
}

// hasMore reports whether the shared answers leave anything out that matters.
func (x *kind) hasMore() bool { return x.class.HasPorts || len(x.points) > 0 }

// whole returns answers that leave nothing out but pods elsewhere.
func (x *kind) whole(e *Engine) *answers {
	if !x.hasMore() {
		return x.answers
	}
	if x.own == nil {
		x.own = newAnswers(e, x.answers.profile, x.class)
		x.own.of = x
	}
	return x.own
}

// current returns what is stored for a class, and its whole answers, ranked and up to date with the model.
func (e *Engine) current(k *cluster.Class) (*kind, *answers) {
	x := e.of(k)
	invalidate(e.invalidators)
	x.follow(e)
	a := x.whole(e)
	e.rank(a)
	return x, a
}

// ask returns the question of the class.
func (x *kind) ask(e *Engine) *kube.Question {
	if x.question == nil {
		e.makeSpaceForQuestions()
		x.question = e.kube.Ask(x.class)
	}
	return x.question
}

func (x *kind) askLater(e *Engine) *kube.Question {
	if x.later == nil {
		x.later = e.later.Ask(x.class)
	}
	return x.later
}

// refusalByPorts returns why a node refuses the class by its host ports, fits if it does not.
func (x *kind) refusalByPorts(e *Engine, n *cluster.Node) reason.Reason {
	if !x.class.HasPorts {
		return fits
	}
	text := x.ask(e).Ports(n)
	if text == "" && e.later != nil && !n.Promised.IsZero() {
		text = x.askLater(e).Ports(n)
	}
	return e.reasons.Of(verdict.NodePorts.Refuses(text))
}

// refusedAround reports whether a node is refused on account of pods elsewhere, those that are there or those that are
// promised.
func (x *kind) refusedAround(e *Engine, n *cluster.Node) bool {
	return x.ask(e).Around(n) != "" || x.refusedLater(e, n)
}

// refusedLater reports whether a node is refused on account of pods that are promised elsewhere.
func (x *kind) refusedLater(e *Engine, n *cluster.Node) bool {
	return e.later != nil && !e.cluster.Promised.IsZero() && x.askLater(e).Around(n) != ""
}

// byObject returns the answer by the object of a node.
func (x *kind) byObject(e *Engine, n *cluster.Node) reason.Reason {
	if why, isKnown := x.answers.objects.Known(n); isKnown {
		return why
	}
	why, isKnown := x.answers.objects.OfNode(n)
	if !isKnown {
		x.follow(e)
		why, _ = x.answers.objects.OfNode(n)
	}
	return why
}
