package app

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// heapGrowth is by how many bytes the heap may grow between two garbage collections, at least. By default Go lets the
// heap double. While it is small, as that of a scheduler of a thousand nodes is, a burst of bindings is then collected
// many times a second.
const heapGrowth = 128 << 20

// collectLater lets the heap grow by [heapGrowth] before it is collected. It reports false, and changes nothing, if the
// environment variable GOGC says how often that is.
func collectLater() bool {
	if os.Getenv("GOGC") != "" {
		return false
	}
	p := &pacer{percent: defaultPercent}
	p.adjust()
	p.await()
	return true
}

// defaultPercent is Go's: a collection begins when the heap has grown by as much as was left after the last one.
const defaultPercent = 100

// pacer sets by how much of its size the heap may grow.
type pacer struct{ percent int }

// await calls adjust after each garbage collection. The runtime frees the mark, and calls the cleanup of what it frees.
func (p *pacer) await() {
	mark := new(*byte)
	runtime.AddCleanup(mark, func(p *pacer) {
		p.adjust()
		p.await()
	}, p)
}

func (p *pacer) adjust() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	if live[0].Value.Kind() != metrics.KindUint64 {
		return // a later Go without this number
	}
	wanted := percentFor(live[0].Value.Uint64())
	// To set it stops the program for a moment, so small changes are left.
	if change := math.Abs(float64(wanted - p.percent)); change > float64(p.percent)/10 {
		debug.SetGCPercent(wanted)
		p.percent = wanted
	}
}

// percentFor returns by how many percent of its size a heap may grow.
func percentFor(live uint64) int {
	const least = 4 << 20 // Go itself does not collect smaller heaps
	return int(max(defaultPercent, heapGrowth*100/max(live, least)))
}
