package explained

import (
	"testing"

	"hekla.sh/hekla/internal/placement/limit"
)

// A burst of pods of many kinds asks about each kind again and again.
func TestTheAnswersOfManyClassesAreKept(t *testing.T) {
	var kept Answers
	first := make([]*Answer, 1000)
	for i := range first {
		first[i] = kept.Keep(nil, 5000)
	}
	for i, a := range first {
		if kept.Keep(a, 5000) != a {
			t.Fatalf("answer %d of %d was dropped", i, len(first))
		}
	}
}

func TestWhatIsKeptIsLimitedByMemory(t *testing.T) {
	const nodes = 1_000_000
	var kept Answers
	first := kept.Keep(nil, nodes)
	for kept.Keep(first, nodes) == first && len(kept.kept) < 1000 {
		kept.Keep(nil, nodes)
	}
	if bytes := len(kept.kept) * bytesPerNode * nodes; bytes > limit.Bytes || bytes < limit.Bytes/2 {
		t.Errorf("%d answers of %d nodes are kept, which take %d bytes", len(kept.kept), nodes, bytes)
	}
	if a := kept.Keep(first, nodes); a == first || !a.isKept {
		t.Error("the answer that was made first is still kept, or no other is in its place")
	}
}
