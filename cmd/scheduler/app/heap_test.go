package app

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestASmallHeapMayGrowByMore(t *testing.T) {
	for live, want := range map[uint64]int{0: 3200, 4 << 20: 3200, 32 << 20: 400, 128 << 20: 100, 1 << 30: 100} {
		if got := percentFor(live); got != want {
			t.Errorf("of a heap of %d MiB: %d %%, want %d %%", live>>20, got, want)
		}
	}
}

// When much has come into the heap, the next collection sets what is right for it. GOGC counts before that.
func TestThePercentFollowsTheHeap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(defaultPercent))
	percent := func() uint64 {
		inForce := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(inForce)
		return inForce[0].Value.Uint64()
	}
	t.Setenv("GOGC", "70")
	if collectLater() {
		t.Error("GOGC is 70, and the heap grows by another percent")
	}
	t.Setenv("GOGC", "")
	runtime.GC() // what counts is the heap that the last collection has left
	collectLater()
	if p := percent(); p <= 2*defaultPercent {
		t.Fatalf("a heap of a few MiB may grow by %d %%", p)
	}
	filled := make([]byte, 4*heapGrowth)
	for range 100 {
		runtime.GC()
		if percent() == defaultPercent {
			runtime.KeepAlive(filled)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("a heap of %d MiB may grow by %d %%", len(filled)>>20, percent())
}
