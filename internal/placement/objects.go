package placement

import (
	"slices"

	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/pkg/cluster"
)

// objects are the stored answers by node objects for the classes with the same constraints. All slices are indexed by node
// slot.
type objects struct {
	question *kube.Question // of one of the classes
	seen     uint64         // how far Cluster.Changes has been followed
	asked    uint64
	version  uint64 // grows when a node object is read again
	isRead   bool   // all nodes were read once
	taints   int    // the generation of the taints that they are for

	specGeneration []uint64
	static         []reason
	refusing       []int32 // by block: the number of slots that do not fit

	preferences map[string]*preferences // by the images that matter, "" if none do
}

// preferences is the part of the scores that comes from the node objects.
type preferences struct {
	question *kube.Question // of a class with these images
	version  uint64         // of the objects that scores are of, counted from 1; 0 before the first
	scores   []int64        // by slot; nil if the nodes do not differ
}

// objectsFor returns the stored answers for a class, which may be out of date.
func objectsFor(e *Engine, k *cluster.Class) *objects {
	if generation := e.kube.TaintsGeneration(); generation != e.taints {
		// Classes with the same answers may be answered differently now.
		e.taints, e.objectsRead = generation, 0
		clear(e.objects)
	}
	key := e.kube.ConstraintsThatMatter(k)
	o := e.objects[key]
	if o == nil {
		if len(e.objects) >= maxClasses {
			dropOldest(e.objects, func(o *objects) uint64 { return o.asked })
		}
		o = &objects{question: e.kube.AskObjects(k), taints: e.taints, preferences: map[string]*preferences{}}
		e.objects[key] = o
	}
	return o
}

// followTaints finds other answers by node objects for the class, if there are other taints.
func (a *answers) followTaints(e *Engine) {
	if a.objects.taints == e.kube.TaintsGeneration() {
		return
	}
	a.objects = objectsFor(e, a.class)
	if a.ranked {
		e.ranked--
	}
	a.unrank()
	a.list.isMade = false
}

// makeSpaceForObjects drops the half of the answers that were used least recently, if too many are stored.
func makeSpaceForObjects(e *Engine) {
	var kept []*objects
	for _, o := range e.objects {
		if o.isRead {
			kept = append(kept, o)
		}
	}
	if e.objectsRead = len(kept); e.objectsRead < most(e.cluster, objectsBytes) {
		return
	}
	for _, o := range olderHalf(kept, func(o *objects) uint64 { return o.asked }) {
		*o = objects{question: o.question, taints: o.taints, version: o.version + 1, preferences: map[string]*preferences{}}
		e.objectsRead--
	}
}

// follow reads the objects of nodes that have changed.
func (o *objects) follow(e *Engine) {
	changed, next, ok := e.cluster.Changes(o.seen)
	o.seen = next
	e.asked++
	o.asked = e.asked
	nodes := e.cluster.BySlot()
	if !o.isRead {
		if e.objectsRead >= most(e.cluster, objectsBytes) {
			makeSpaceForObjects(e)
		}
		e.objectsRead++
	}
	o.growTo(len(nodes))
	if !ok || !o.isRead {
		o.isRead = true
		for slot, n := range nodes {
			o.read(e, slot, n)
		}
		return
	}
	for _, slot := range changed {
		o.read(e, int(slot), nodes[slot])
	}
}

func (o *objects) growTo(slots int) {
	if missing := slots - len(o.static); missing > 0 {
		o.specGeneration = slices.Grow(o.specGeneration, missing)
		o.static = slices.Grow(o.static, missing)
	}
	for len(o.static) < slots {
		if len(o.static)%blockSize == 0 {
			o.refusing = append(o.refusing, 0)
		}
		o.refusing[len(o.refusing)-1]++
		o.specGeneration = append(o.specGeneration, 0)
		o.static = append(o.static, unknownNode)
	}
}

// read updates the answer by the object of one node.
func (o *objects) read(e *Engine, slot int, n *cluster.Node) {
	var generation uint64
	if n != nil {
		generation = n.SpecGeneration
	}
	if o.specGeneration[slot] == generation {
		return
	}
	o.specGeneration[slot] = generation
	o.version++
	was := o.static[slot]
	switch {
	case n == nil || n.Object == nil:
		o.static[slot] = unknownNode
	case !n.Ready():
		o.static[slot] = notReady
	default:
		o.static[slot] = e.reasons.of(o.question.Refusal(n))
	}
	if was != fits {
		o.refusing[slot/blockSize]--
	}
	if o.static[slot] != fits {
		o.refusing[slot/blockSize]++
	}
}

// byObject returns the answer by the object of a node.
func (a *answers) byObject(e *Engine, n *cluster.Node) reason {
	if o := a.objects; n.Slot < len(o.static) && o.specGeneration[n.Slot] == n.SpecGeneration {
		return o.static[n.Slot]
	}
	a.followTaints(e)
	o := a.objects
	o.growTo(n.Slot + 1)
	o.read(e, n.Slot, n)
	return o.static[n.Slot]
}

// preferencesOf returns the scores that node objects give to a class. They are normalised over the nodes whose objects
// pass, not over those with free resources. Otherwise every placement could change the scores of all nodes. The objects are
// up to date.
func (o *objects) preferencesOf(e *Engine, k *cluster.Class) *preferences {
	images := e.kube.ImagesThatMatter(k)
	p := o.preferences[images]
	if p == nil {
		if len(o.preferences) >= most(e.cluster, preferencesBytes) {
			clear(o.preferences)
		}
		p = &preferences{question: o.question}
		if images != "" {
			p.question = e.kube.Ask(k)
		}
		o.preferences[images] = p
	}
	if p.version == o.version+1 {
		return p
	}
	p.version = o.version + 1
	passing := e.passing[:0]
	for slot, n := range e.cluster.BySlot() {
		if o.static[slot] == fits {
			passing = append(passing, n)
		}
	}
	e.passing = passing
	scores := p.question.Preferences(passing)
	if scores == nil {
		p.scores = nil
		return p
	}
	p.scores = make([]int64, len(o.static))
	for i, n := range passing {
		p.scores[n.Slot] = scores[i] * e.point
	}
	return p
}
