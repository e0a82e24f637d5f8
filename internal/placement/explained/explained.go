package explained

import (
	"hekla.sh/hekla/internal/placement/limit"
	"hekla.sh/hekla/internal/placement/reason"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/verdict"
)

const (
	bytesPerNode   = 2
	bytesPerAnswer = 1 << 10 // with a few reasons
)

// Answer says why nodes refuse a class.
type Answer struct {
	// Why is the answer of each node, by slot. Reasons and Shortages are what the caller has made of it.
	Why       []reason.Reason
	Reasons   []verdict.NodeReason
	Shortages []verdict.Shortage

	counts []int32 // by reason: the number of slots in Why
	seen   uint64  // how far Cluster.Changes has been followed
	bytes  int     // about, when it was made
	isKept bool
}

// Answers are those that are kept. The zero value is ready for use.
type Answers struct {
	kept  []*Answer // the oldest first
	bytes int

	follows uint64   // counts calls of Follow
	judged  []uint64 // by slot: the call in which the node was judged last
}

// Keep returns an answer if it is kept, otherwise a new one about so many nodes that is kept from now on. If they take
// too much memory, those that were made first are dropped.
func (k *Answers) Keep(a *Answer, nodes int) *Answer {
	if a != nil && a.isKept {
		return a
	}
	a = &Answer{isKept: true, bytes: bytesPerAnswer + bytesPerNode*nodes}
	for k.bytes += a.bytes; k.bytes > limit.Bytes && len(k.kept) > 0; k.kept = k.kept[1:] {
		k.bytes -= k.kept[0].bytes
		*k.kept[0] = Answer{}
	}
	k.kept = append(k.kept, a)
	return a
}

// Follow judges the nodes again that have changed, after it has called prepare. It reports whether there were any.
// Between two questions about one class a node may have changed a hundred times: it is judged once.
func (k *Answers) Follow(a *Answer, c *model.Cluster, prepare func(), judge func(slot int) reason.Reason) bool {
	changed, next, ok := c.Changes(a.seen)
	slots := len(c.BySlot())
	a.seen = next
	switch isFollowed := ok && len(a.Why) == slots; {
	case isFollowed && len(changed) == 0:
		return false
	case isFollowed:
		prepare()
		k.follows++
		k.judged = append(k.judged, make([]uint64, max(slots-len(k.judged), 0))...)
		for _, slot := range changed {
			if k.judged[slot] == k.follows {
				continue
			}
			k.judged[slot] = k.follows
			a.count(a.Why[slot], -1)
			a.Why[slot] = judge(int(slot))
			a.count(a.Why[slot], +1)
		}
	default:
		prepare()
		a.Why = append(a.Why[:0], make([]reason.Reason, slots)...)
		clear(a.counts)
		for slot := range a.Why {
			a.Why[slot] = judge(slot)
			a.count(a.Why[slot], +1)
		}
	}
	return true
}

// Nodes counts the nodes with a reason. Slots without a node are counted as unknown nodes.
func (a *Answer) Nodes(why reason.Reason) int {
	if int(why) >= len(a.counts) {
		return 0
	}
	return int(a.counts[why])
}

// Count counts the nodes by reason, in the order of the first of each. The nodes are all that there are. It looks at
// them only until it has an example of each reason.
func (a *Answer) Count(nodes []*cluster.Node, refusals *reason.Refusals) []verdict.NodeReason {
	isDone, left := make([]bool, len(a.counts)), 0
	for i, count := range a.counts {
		isDone[i] = count == 0 || i == int(reason.Fits) || i == int(reason.UnknownNode)
		if !isDone[i] {
			left++
		}
	}
	var reasons []verdict.NodeReason
	for _, n := range nodes {
		if left == 0 {
			break
		}
		why := a.Why[n.Slot]
		if isDone[why] {
			continue
		}
		refusal := refusals.Refusal(why)
		reasons = append(reasons, verdict.NodeReason{Kind: refusal.Kind, Reason: refusal.Text, Nodes: a.Nodes(why), Example: n.Name})
		isDone[why] = true
		left--
	}
	return reasons
}

func (a *Answer) count(why reason.Reason, add int32) {
	for int(why) >= len(a.counts) {
		a.counts = append(a.counts, 0)
	}
	a.counts[why] += add
}
