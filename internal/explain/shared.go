package explain

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// shared is what answers about the same state of the model share. Events and cycles change the model, and what was shared is dropped; until
// then many questions may come.
type shared struct {
	version uint64             // of the model
	session *framework.Session // with open plugins, nil if there is none
	// suitable counts the nodes that could hold a task of a class if they were empty.
	suitable map[*cluster.Class]int
	largest  []int64 // by resource: the most that a node has, nil until it is asked for
}

// sessionLife is how long a session answers questions about the same state of the model. Plugins for which time counts see the time at
// which it was opened.
const sessionLife = time.Second

// known returns what is shared about the model as it is.
func known(m *Model) *shared {
	if version := m.cache.Version(); m.shared == nil || m.shared.version != version {
		m.shared = &shared{version: version, suitable: map[*cluster.Class]int{}}
	}
	return m.shared
}

// session returns a session about the model as it is, in the open trial.
func (m *Model) session(now time.Time) *framework.Session {
	k := known(m)
	if s := k.session; s != nil && !now.Before(s.Now) && now.Sub(s.Now) < sessionLife {
		return s
	}
	s := m.open(now)
	k.session = s
	return s
}

// suitable counts the nodes that could hold a task if they were empty.
func suitable(m *Model, t *cluster.Task) int {
	if isLocal := !m.cluster.DependsOnPods(t.Class) && !t.Class.NeedsSupplies() && len(m.policy.Filters) == 0; isLocal {
		return suitableOf(m, t)
	}
	counts := known(m).suitable
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

// suitability is which nodes could hold a task of a class if they were empty, where each node says so by itself. It follows the changes of
// nodes.
type suitability struct {
	isMade bool
	seen   uint64 // how far Cluster.Changes has been followed
	fits   []bool // by slot
	count  int
}

// maxSuitableBytes limits the memory for which it is kept, a byte for each node and class.
const maxSuitableBytes = 32 << 20

func suitableOf(m *Model, t *cluster.Task) int {
	known := m.suitable[t.Class]
	if known == nil {
		if m.suitable == nil || len(m.suitable)*(len(m.cluster.BySlot())+100) >= maxSuitableBytes {
			m.suitable = map[*cluster.Class]*suitability{}
		}
		known = &suitability{}
		m.suitable[t.Class] = known
	}
	nodes := m.cluster.BySlot()
	known.fits = append(known.fits, make([]bool, len(nodes)-len(known.fits))...)
	look := func(slot int) {
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
	changed, next, ok := m.cluster.Changes(known.seen)
	if known.isMade && ok {
		for _, slot := range changed {
			look(int(slot))
		}
	} else {
		for slot := range nodes {
			look(slot)
		}
	}
	known.isMade, known.seen = true, next
	return known.count
}

// place finds the place of a job among the waiting jobs, and the first of those before it, in order.
func place(m *Model, s *framework.Session, j *cluster.Job) (*Order, []*cluster.Job) {
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
