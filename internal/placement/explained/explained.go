package explained

import (
	"hekla.sh/hekla/internal/placement/reason"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/verdict"
)

// Most is how many answers are kept.
const Most = 64

// Answer says why nodes refuse a class.
type Answer struct {
	// Why is the answer of each node, by slot. Reasons and Shortages are what the caller has made of it.
	Why       []reason.Reason
	Reasons   []verdict.NodeReason
	Shortages []verdict.Shortage

	seen   uint64 // how far Cluster.Changes has been followed
	isKept bool
}

// Answers are those that are kept. The zero value is ready for use.
type Answers struct {
	kept []*Answer
	next int // which is dropped next
}

// Keep returns an answer if it is kept, otherwise a new one that is kept from now on. Of too many, the one that was made first is dropped.
func (k *Answers) Keep(a *Answer) *Answer {
	if a != nil && a.isKept {
		return a
	}
	a = &Answer{isKept: true}
	if len(k.kept) < Most {
		k.kept = append(k.kept, a)
		return a
	}
	*k.kept[k.next] = Answer{}
	k.kept[k.next] = a
	k.next = (k.next + 1) % Most
	return a
}

// Follow judges the nodes again that have changed, after it has called prepare. It reports whether there were any.
func (a *Answer) Follow(c *model.Cluster, prepare func(), judge func(slot int) reason.Reason) bool {
	changed, next, ok := c.Changes(a.seen)
	slots := len(c.BySlot())
	a.seen = next
	switch isFollowed := ok && len(a.Why) == slots; {
	case isFollowed && len(changed) == 0:
		return false
	case isFollowed:
		prepare()
		for _, slot := range changed {
			a.Why[slot] = judge(int(slot))
		}
	default:
		prepare()
		a.Why = append(a.Why[:0], make([]reason.Reason, slots)...)
		for slot := range a.Why {
			a.Why[slot] = judge(slot)
		}
	}
	return true
}
