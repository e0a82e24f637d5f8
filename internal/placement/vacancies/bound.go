package vacancies

import (
	"encoding/binary"
	"math"
	"math/bits"

	"hekla.sh/hekla/internal/placement/limit"
	"hekla.sh/hekla/internal/placement/objects"
	"hekla.sh/hekla/internal/placement/view"
	"hekla.sh/hekla/pkg/resources"
	"hekla.sh/hekla/pkg/verdict"
)

// Bound is for how many pods nodes have room at most. It is a [verdict.Stock]. Two that are equal are the same.
type Bound struct {
	table *Table
	key   boundKey
}

// boundKey is what requests have in common that share a bound.
type boundKey struct {
	objects *objects.Answers // of the nodes that suit
	needs   string           // rounded down
}

// bound is what is stored of a bound.
type bound struct {
	count    Count
	question Question
	asked    uint64
}

const (
	// significant is how many binary digits of an amount count. The others are rounded down, so that the bound is less
	// than an eighth too high for one resource.
	significant = 4
	// maxBounds and boundBytes limit how many bounds are stored: by number, and by what they and the answers about node
	// objects take for each node.
	maxBounds  = 512
	boundBytes = 24
)

// BoundOf returns the bound for pods that need so much and suit the nodes of these answers.
func (t *Table) BoundOf(o *objects.Answers, needs []view.Need) Bound {
	return Bound{table: t, key: boundKey{objects: o, needs: encode(needs)}}
}

// Source is the nodes.
func (Bound) Source() verdict.Help { return verdict.HelpNode }

// Left returns for how many pods there is room now. It has no limit once the answers are no longer those of the pods.
func (b Bound) Left() int64 {
	if !b.key.objects.AreCurrent() {
		return math.MaxInt64
	}
	t := b.table
	stored := t.bounds[b.key]
	if stored == nil {
		if len(t.bounds) >= min(maxBounds, limit.Entries(len(t.cluster.BySlot()), boundBytes)) {
			limit.DropOldest(t.bounds, func(b *bound) uint64 { return b.asked })
		}
		stored = &bound{question: Question{Objects: b.key.objects, Needs: decode(b.key.needs)}}
		t.bounds[b.key] = stored
	}
	t.asked++
	stored.asked = t.asked
	b.key.objects.Follow()
	pods, _ := stored.count.Follow(t, &stored.question)
	return pods
}

// encode returns needs as a key, with their amounts rounded down.
func encode(needs []view.Need) string {
	var key []byte
	for _, need := range needs {
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(need.Dim)), uint64(roundDown(need.Amount)))
	}
	return string(key)
}

// decode returns the needs of a key.
func decode(key string) (needs []view.Need) {
	for rest := []byte(key); len(rest) > 0; {
		d, n := binary.Uvarint(rest)
		amount, m := binary.Uvarint(rest[n:])
		needs = append(needs, view.Need{Dim: resources.Dim(d), Amount: int64(amount)})
		rest = rest[n+m:]
	}
	return needs
}

// roundDown keeps the first binary digits of a positive amount.
func roundDown(amount int64) int64 {
	cut := max(bits.Len64(uint64(amount))-significant, 0)
	return amount >> cut << cut
}
