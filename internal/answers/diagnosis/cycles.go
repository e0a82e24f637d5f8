package diagnosis

import (
	"slices"
	"sync"
	"time"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/pkg/scheduler"
)

// Kept is the number of cycles that a [Recorder] keeps, and of those that decided something.
const Kept = 100

// Cycle is what a cycle decided, and how long it took.
type Cycle struct {
	Cycle    uint64        `json:"cycle"`
	End      time.Time     `json:"end"`
	Millis   float64       `json:"millis"`
	Parts    []Part        `json:"parts,omitempty"` // in the order in which they ran
	Tally    journal.Tally `json:"tally"`
	Unplaced int           `json:"unplaced"` // pods of admitted jobs that were tried and have no node
	// Panic is the first line of why the cycle broke, "" if it did not.
	Panic string `json:"panic,omitempty"`
}

// Part is a part of a cycle: opening, closing, or an action by its name.
type Part struct {
	Name   string  `json:"name"`
	Millis float64 `json:"millis"`
}

// Cycles are the latest cycles, and numbers of them.
type Cycles struct {
	// Count is the number of all cycles of this process, Deciding of those that decided something, Broken of those that
	// panicked.
	Count    uint64 `json:"count"`
	Deciding uint64 `json:"deciding"`
	Broken   uint64 `json:"broken"`
	// The times, in milliseconds, are of Recent, and DecidingMedian is of Decided.
	Median         float64 `json:"medianMillis"`
	P99            float64 `json:"p99Millis"`
	Longest        float64 `json:"longestMillis"`
	DecidingMedian float64 `json:"decidingMedianMillis"`
	// LastDecision is when a cycle last decided something, absent if none has.
	LastDecision *time.Time `json:"lastDecision,omitempty"`
	// Recent are the latest cycles, Decided the latest that decided something; the oldest first.
	Recent  []Cycle `json:"recent"`
	Decided []Cycle `json:"decided"`
}

// Recorder keeps the latest cycles. One goroutine runs cycles, and any may read.
type Recorder struct {
	running []Part // of the cycle that runs; only for the goroutine that runs cycles
	millis  float64

	mutex                   sync.Mutex
	count, deciding, broken uint64
	recent, decided         ring
}

// ring holds the latest cycles.
type ring struct {
	cycles [Kept]Cycle
	next   int
	full   bool
}

func (r *ring) add(c Cycle) {
	r.cycles[r.next] = c
	if r.next++; r.next == Kept {
		r.next, r.full = 0, true
	}
}

func (r *ring) all() []Cycle {
	all := []Cycle{}
	if r.full {
		all = append(all, r.cycles[r.next:]...)
	}
	return append(all, r.cycles[:r.next]...)
}

// NewRecorder returns a recorder of no cycles.
func NewRecorder() *Recorder { return &Recorder{} }

// Observe times a part of a cycle; it is for scheduler.Options.Observe.
func (r *Recorder) Observe(part, name string) (end func()) {
	switch part {
	case "open", "close":
		name = part
	case "action":
	case "cycle":
		r.running = nil
		begin := time.Now()
		return func() { r.millis = inMillis(time.Since(begin)) }
	default:
		return func() {}
	}
	begin := time.Now()
	return func() { r.running = append(r.running, Part{Name: name, Millis: inMillis(time.Since(begin))}) }
}

func inMillis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Cycle records a cycle that has ended.
func (r *Recorder) Cycle(result *scheduler.Result, now time.Time) {
	c := Cycle{Cycle: result.Cycle, End: now, Millis: r.millis, Parts: r.running, Tally: result.Tally, Unplaced: result.Unplaced, Panic: firstLine(result.Panic)}
	r.running = nil
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.count++
	r.recent.add(c)
	if c.Panic != "" {
		r.broken++
	}
	if c.Tally.Decided() {
		r.deciding++
		r.decided.add(c)
	}
}

func firstLine(text string) string {
	for i := range text {
		if text[i] == '\n' {
			return text[:i]
		}
	}
	return text
}

// Cycles returns what is recorded.
func (r *Recorder) Cycles() Cycles {
	r.mutex.Lock()
	answer := Cycles{Count: r.count, Deciding: r.deciding, Broken: r.broken, Recent: r.recent.all(), Decided: r.decided.all()}
	r.mutex.Unlock()
	times := sortedMillis(answer.Recent)
	answer.Median, answer.P99 = apiserver.Percentile(times, 50), apiserver.Percentile(times, 99)
	if len(times) > 0 {
		answer.Longest = times[len(times)-1]
	}
	answer.DecidingMedian = apiserver.Percentile(sortedMillis(answer.Decided), 50)
	if last := len(answer.Decided) - 1; last >= 0 {
		answer.LastDecision = &answer.Decided[last].End
	}
	return answer
}

func sortedMillis(cycles []Cycle) []float64 {
	times := make([]float64, len(cycles))
	for i := range cycles {
		times[i] = cycles[i].Millis
	}
	slices.Sort(times)
	return times
}
