package explain

import (
	"slices"
	"time"

	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// shared is what answers about the same state of the model share. Events and cycles change the model, and what was
// shared is dropped; until then many questions may come.
type shared struct {
	version uint64             // of the model
	session *framework.Session // with open plugins, nil if there is none
	// suitable counts the nodes that could hold a task of a class if they were empty.
	suitable map[*cluster.Class]int
	proposed map[cluster.JobID]proposed
	largest  []int64 // by resource: the most that a node has, nil until it is asked for
	// tooLarge says of shapes of Workloads why no node can hold a pod of them, nil if one can.
	tooLarge map[string]*Cause
	briefs   *queued.Briefs // of Workloads
}

// sessionLife is how long a session answers questions about the same state of the model. Plugins for which time counts
// see the time at which it was opened.
const sessionLife = time.Second

// known returns what is shared about the model as it is.
func (m *Model) known() *shared {
	if version := m.cache.Version(); m.shared == nil || m.shared.version != version {
		m.shared = &shared{version: version, suitable: map[*cluster.Class]int{}, proposed: map[cluster.JobID]proposed{}, tooLarge: map[string]*Cause{},
			briefs: queued.NewBriefs(m.cluster.Resources, m.cache.Workloads.Reader)}
	}
	return m.shared
}

// isFresh reports whether what was found at a time may still answer a question.
func isFresh(at, now time.Time) bool { return !now.Before(at) && now.Sub(at) < sessionLife }

// session returns a session about the model as it is, in the open trial.
func (m *Model) session(now time.Time) *framework.Session {
	k := m.known()
	if s := k.session; s != nil && isFresh(s.Now, now) {
		return s
	}
	s := m.open(now)
	k.session = s
	return s
}

// countSuitable counts the nodes that could hold a task if they were empty.
func (m *Model) countSuitable(t *cluster.Task) int {
	if isLocal := !m.cluster.DependsOnPods(t.Class) && !t.Class.NeedsSupplies() && len(m.policy.Filters) == 0; isLocal {
		return m.suitableOf(t)
	}
	counts := m.known().suitable
	count, ok := counts[t.Class]
	if !ok {
		for _, n := range m.cluster.Nodes() {
			if n.Object != nil && m.outlook.CanOpen(t, n) {
				count++
			}
		}
		counts[t.Class] = count
	}
	return count
}

// nodeObjects knows which Node objects have changed, for all classes together: pods change nodes far more often.
type nodeObjects struct {
	seen    uint64   // how far Cluster.Changes has been followed
	isMade  bool     // all nodes were read once
	specs   []uint64 // by slot: the SpecGeneration of the node, 0 without one
	version uint64   // grows when an object has changed
	changed []uint64 // by slot: the version with which it changed last
}

// follow brings it up to date.
func (o *nodeObjects) follow(m *Model) {
	nodes := m.cluster.BySlot()
	missing := len(nodes) - len(o.specs)
	o.specs, o.changed = append(o.specs, make([]uint64, missing)...), append(o.changed, make([]uint64, missing)...)
	next := o.version + 1
	read := func(slot int) {
		var spec uint64
		if n := nodes[slot]; n != nil {
			spec = n.SpecGeneration
		}
		if o.specs[slot] != spec {
			o.specs[slot], o.changed[slot], o.version = spec, next, next
		}
	}
	changed, seen, ok := m.cluster.Changes(o.seen)
	if o.isMade && ok {
		for _, slot := range changed {
			read(int(slot))
		}
	} else {
		for slot := range nodes {
			read(slot)
		}
	}
	o.isMade, o.seen = true, seen
}

// suitability is which nodes could hold a task of a class if they were empty, where each node says so by itself.
type suitability struct {
	version uint64 // of nodeObjects
	fits    []bool // by slot
	count   int
}

// maxSuitableBytes limits the memory for which it is kept, a byte for each node and class.
const maxSuitableBytes = 32 << 20

func (m *Model) suitableOf(t *cluster.Task) int {
	known := m.suitable[t.Class]
	nodes := m.cluster.BySlot()
	if known == nil {
		if m.suitable == nil || len(m.suitable)*(len(nodes)+100) >= maxSuitableBytes {
			m.suitable = map[*cluster.Class]*suitability{}
		}
		known = &suitability{}
		m.suitable[t.Class] = known
	}
	m.objects.follow(m)
	if known.version == m.objects.version {
		return known.count
	}
	known.fits = append(known.fits, make([]bool, len(nodes)-len(known.fits))...)
	for slot, version := range m.objects.changed {
		if version <= known.version {
			continue
		}
		n := nodes[slot]
		fits := n != nil && n.Object != nil && m.outlook.CanOpen(t, n)
		switch was := known.fits[slot]; {
		case fits && !was:
			known.count++
		case was && !fits:
			known.count--
		}
		known.fits[slot] = fits
	}
	known.version = m.objects.version
	return known.count
}

// place finds the place of a job among the waiting jobs, and the first of those before it, in order.
func (m *Model) place(s *framework.Session, j *cluster.Job) (*Order, []*cluster.Job) {
	line, queues := m.backlog.Around(j, s, m.cache.Version())
	at := max(slices.Index(line, j), 0)
	answer := &Order{Place: at + 1, Of: max(len(line), 1), QueuePlace: 1, Queues: len(queues)}
	if at > 0 {
		answer.Next = line[at-1].Name()
	}
	if !slices.Contains(queues, j.Queue) {
		answer.Queues++
	}
	for _, q := range queues {
		if q != j.Queue && s.CompareQueues(q, j.Queue) < 0 {
			answer.QueuePlace++
		}
	}
	return answer, line[:min(at, maxAhead)]
}
