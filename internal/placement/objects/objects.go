package objects

import (
	"slices"

	"hekla.sh/hekla/internal/placement/kube"
	"hekla.sh/hekla/internal/placement/limit"
	"hekla.sh/hekla/internal/placement/reason"
	"hekla.sh/hekla/internal/placement/view"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
)

// Table has the answers for all sets of constraints.
type Table struct {
	cluster *model.Cluster
	kube    *kube.Plugins
	reasons *reason.Refusals
	point   int64 // one point of a kube-scheduler score, in the unit of scores

	answers map[string]*Answers // by constraints
	read    int                 // how many of them are about all nodes
	scored  int                 // how many sets of scores of all nodes are stored
	taints  int                 // the generation of the taints that they are for
	asked   uint64              // counts what is followed
	passing []*cluster.Node     // space to work in
}

// The bytes that are stored for each node: in answers about all nodes, and in a set of scores.
const (
	answersBytes = 10
	scoresBytes  = 8
	// maxAnswers limits the sets of constraints, some three KiB each without what is stored by node.
	maxAnswers = limit.Bytes / (3 << 10)
)

// New returns an empty table.
func New(c *model.Cluster, plugins *kube.Plugins, reasons *reason.Refusals, point int64) *Table {
	return &Table{cluster: c, kube: plugins, reasons: reasons, point: point, answers: map[string]*Answers{}}
}

// Answers are about every node, by node slot, for the classes with the same constraints.
type Answers struct {
	table    *Table
	question *kube.Question // of one of the classes
	asked    uint64
	version  uint64             // grows when a node object is read again
	fitting  uint64             // grows when an answer is another
	taints   int                // the generation of the taints that they are for
	scores   map[string]*Scores // by common images

	few *few // of few nodes, nil if they are about all

	// Of all nodes.
	seen           uint64 // how far Cluster.Changes has been followed
	isRead         bool   // all nodes were read once
	specGeneration []uint64
	static         []reason.Reason
	refusing       []int32 // by block: the number of slots that do not fit
}

// For returns the answers for a class, which may be out of date.
func (t *Table) For(k *cluster.Class) *Answers {
	if generation := t.kube.TaintsGeneration(); generation != t.taints {
		// Classes with the same answers may be answered differently now.
		t.taints, t.read, t.scored = generation, 0, 0
		clear(t.answers)
	}
	key := t.kube.ConstraintsThatMatter(k)
	o := t.answers[key]
	if o == nil {
		if len(t.answers) >= maxAnswers {
			limit.DropOldest(t.answers, func(o *Answers) uint64 { return o.asked })
		}
		o = &Answers{table: t, question: t.kube.AskObjects(k), taints: t.taints, scores: map[string]*Scores{}, few: &few{}}
		t.answers[key] = o
	}
	return o
}

// AreCurrent reports whether the answers are still those for their classes: after a change of taints others may be.
func (o *Answers) AreCurrent() bool { return o.taints == o.table.kube.TaintsGeneration() }

// Version grows when an answer may have changed.
func (o *Answers) Version() uint64 { return o.version }

// FittingVersion grows when an answer is another. Unlike Version it stays if only scores may have changed.
func (o *Answers) FittingVersion() uint64 { return o.fitting }

// Follow brings the answers up to date.
func (o *Answers) Follow() {
	t := o.table
	t.asked++
	o.asked = t.asked
	if o.few != nil && o.followFew() {
		return
	}
	o.FollowAll()
}

// FollowAll brings the answers up to date, and has them about all nodes from now on.
func (o *Answers) FollowAll() {
	t := o.table
	if o.few != nil {
		o.few = nil
		o.version++
		o.fitting++
	}
	changed, next, ok := t.cluster.Changes(o.seen)
	o.seen = next
	nodes := t.cluster.BySlot()
	if !o.isRead {
		if t.read >= limit.Entries(len(nodes), answersBytes) {
			t.makeSpace()
		}
		t.read++
	}
	o.growTo(len(nodes))
	if !ok || !o.isRead {
		o.isRead = true
		for slot, n := range nodes {
			o.read(slot, n)
		}
		return
	}
	for _, slot := range changed {
		o.read(int(slot), nodes[slot])
	}
}

// makeSpace drops the half of the answers about all nodes that were used least recently, if too many are stored.
func (t *Table) makeSpace() {
	most := limit.Entries(len(t.cluster.BySlot()), answersBytes)
	var kept []*Answers
	for _, o := range t.answers {
		if o.isRead {
			kept = append(kept, o)
		}
	}
	if t.read = len(kept); t.read < most {
		return
	}
	for _, o := range limit.OlderHalf(kept, func(o *Answers) uint64 { return o.asked }) {
		t.scored -= o.dropScores()
		*o = Answers{table: t, question: o.question, asked: o.asked, taints: o.taints, version: o.version + 1, fitting: o.fitting + 1, scores: o.scores, few: &few{}}
		t.read--
	}
}

func (o *Answers) growTo(slots int) {
	if missing := slots - len(o.static); missing > 0 {
		o.specGeneration = slices.Grow(o.specGeneration, missing)
		o.static = slices.Grow(o.static, missing)
	}
	for len(o.static) < slots {
		if len(o.static)%view.BlockSize == 0 {
			o.refusing = append(o.refusing, 0)
		}
		o.refusing[len(o.refusing)-1]++
		o.specGeneration = append(o.specGeneration, 0)
		o.static = append(o.static, reason.UnknownNode)
	}
}

// read updates the answer by the object of one node.
func (o *Answers) read(slot int, n *cluster.Node) {
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
	if o.static[slot] = o.refusal(n); o.static[slot] != was {
		o.fitting++
	}
	if was != reason.Fits {
		o.refusing[slot/view.BlockSize]--
	}
	if o.static[slot] != reason.Fits {
		o.refusing[slot/view.BlockSize]++
	}
}

// refusal asks the plugins about a node.
func (o *Answers) refusal(n *cluster.Node) reason.Reason {
	switch {
	case n == nil || n.Object == nil:
		return reason.UnknownNode
	case !n.Ready():
		return reason.NotReady
	}
	return o.table.reasons.Of(o.question.Refusal(n))
}

// At returns the answer about the node in a slot. The answers must be up to date.
func (o *Answers) At(slot int) reason.Reason {
	if o.few != nil {
		return o.few.at(slot)
	}
	return o.static[slot]
}

// All returns the answers about all nodes, up to date after FollowAll. The caller must not change them.
func (o *Answers) All() []reason.Reason { return o.static }

// Known returns the answer about a node if it is up to date, which is quick to see.
func (o *Answers) Known(n *cluster.Node) (why reason.Reason, isKnown bool) {
	if n.Slot < len(o.static) && o.specGeneration[n.Slot] == n.SpecGeneration {
		return o.static[n.Slot], true
	}
	return 0, false
}

// OfNode returns the answer about a node, which it brings up to date. isKnown is false if taints have changed: then
// other answers may be those for the class.
func (o *Answers) OfNode(n *cluster.Node) (why reason.Reason, isKnown bool) {
	if why, isKnown = o.Known(n); isKnown {
		return why, true
	}
	if o.taints != o.table.kube.TaintsGeneration() {
		return 0, false
	}
	if o.few != nil && o.followFew() {
		return o.few.at(n.Slot), true
	}
	if o.few != nil {
		o.Follow()
	}
	o.growTo(n.Slot + 1)
	o.read(n.Slot, n)
	return o.static[n.Slot], true
}

// Few returns the slots of the only nodes that may fit, if the answers are about few. The caller must not change them.
func (o *Answers) Few() (slots []int32, areFew bool) {
	if o.few == nil {
		return nil, false
	}
	return o.few.slots, true
}

// Fitting returns those of the slots of a block whose nodes fit, and may use space. The answers must be about all
// nodes.
func (o *Answers) Fitting(block int, slots []int32, space []int32) []int32 {
	if o.refusing[block] == 0 {
		return slots
	}
	fitting := space[:0]
	for _, slot := range slots {
		if o.static[slot] == reason.Fits {
			fitting = append(fitting, slot)
		}
	}
	return fitting
}
