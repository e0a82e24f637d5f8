package board

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"hekla.sh/hekla/internal/explain/rows"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/pkg/scheduler"
)

// maxCycles is of how many cycles decisions are stored, maxDecisions how many of one cycle, maxEvictions how many
// evictions, and maxMinutes for how many minutes decisions are counted.
const maxCycles, maxDecisions, maxEvictions, maxMinutes = 300, 100, 1000, 60

// Store is the latest overview. See [New].
type Store struct {
	mutex     sync.RWMutex
	process   uint64
	version   uint64 // of the last change
	cycle     uint64
	resources []string
	jobs      table[rows.Job]
	queues    table[rows.Queue]
	nodes     table[rows.Node]
	quotas    table[rows.Quota]
	locals    table[rows.LocalQueue]
	evictions []journal.Entry // the oldest first
	cycles    []Cycle         // the oldest first
	minutes   []Minute        // the oldest first

	complete time.Time // from when on all decisions are known
}

// New returns an empty store. The number tells its tokens from those of other processes.
func New(process uint64) *Store {
	return &Store{
		process: process,
		jobs:    newTable(func(r *rows.Job) string { return r.Job }),
		queues:  newTable(func(r *rows.Queue) string { return r.Queue }),
		nodes:   newTable(func(r *rows.Node) string { return r.Node }),
		quotas:  newTable((*rows.Quota).Key),
		locals:  newTable(func(r *rows.LocalQueue) string { return r.LocalQueue }),
	}
}

// Cycle says what one cycle has decided.
type Cycle struct {
	Cycle uint64    `json:"cycle"`
	Time  time.Time `json:"time"`
	Counts
	// Decisions are the first ones, and More is how many follow.
	Decisions []journal.Entry `json:"decisions,omitempty"`
	More      int             `json:"more,omitempty"`
}

// Counts are numbers of decisions.
type Counts struct {
	Bound     int `json:"bound"`
	Evicted   int `json:"evicted"`
	Plans     int `json:"plans"`     // that came into force
	Cancelled int `json:"cancelled"` // plans
	Fulfilled int `json:"fulfilled"` // plans
	Admitted  int `json:"admitted"`
	SentBack  int `json:"sentBack"`
	Verdicts  int `json:"verdicts"` // that have changed
}

// Minute counts the decisions of one minute.
type Minute struct {
	Minute time.Time `json:"minute"` // its beginning
	Counts
}

func (c *Counts) add(kind journal.Kind) {
	switch kind {
	case journal.Bound:
		c.Bound++
	case journal.Evicted:
		c.Evicted++
	case journal.PlanBegun:
		c.Plans++
	case journal.PlanCancelled:
		c.Cancelled++
	case journal.PlanFulfilled:
		c.Fulfilled++
	case journal.Admitted:
		c.Admitted++
	case journal.SentBack:
		c.SentBack++
	default:
		c.Verdicts++
	}
}

// Lead says since when the process leads that decides. What others decided before is not known.
func (s *Store) Lead(since time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if since.After(s.complete) {
		s.complete = since
	}
}

// Known returns the last cycle that the store knows.
func (s *Store) Known() uint64 {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	return s.cycle
}

// Version grows when something changes that a reader could see.
func (s *Store) Version() uint64 {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	return s.version
}

// Update takes what the scheduler says. An overview that is older than what is known is ignored.
func (s *Store) Update(o scheduler.Overview) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if o.Board == nil || o.Cycle < s.cycle {
		return
	}
	next := s.version + 1
	changed := s.version == 0 || len(o.Entries) > 0
	for _, table := range []bool{s.jobs.update(next, o.Board.Jobs), s.queues.update(next, o.Board.Queues), s.nodes.update(next, o.Board.Nodes),
		s.quotas.update(next, o.Board.Quotas), s.locals.update(next, o.Board.LocalQueues)} {
		changed = changed || table
	}
	s.cycle, s.resources = o.Cycle, o.Board.Resources
	if changed {
		s.version = next
	}
	if len(o.Entries) >= scheduler.MaxOverviewEntries && o.Entries[0].Time.After(s.complete) {
		s.complete = o.Entries[0].Time
	}
	for _, e := range o.Entries {
		s.enter(e)
	}
}

// enter stores one decision.
func (s *Store) enter(e journal.Entry) {
	if e.Kind == journal.Evicted || e.Kind == journal.SentBack && strings.Contains(e.Job, "/workload/") {
		s.evictions = keepLast(append(s.evictions, e), maxEvictions)
	}
	if last := len(s.cycles) - 1; last < 0 || s.cycles[last].Cycle != e.Cycle {
		s.cycles = keepLast(append(s.cycles, Cycle{Cycle: e.Cycle, Time: e.Time}), maxCycles)
	}
	cycle := &s.cycles[len(s.cycles)-1]
	cycle.add(e.Kind)
	if len(cycle.Decisions) < maxDecisions {
		cycle.Decisions = append(cycle.Decisions, e)
	} else {
		cycle.More++
	}
	minute := e.Time.Truncate(time.Minute)
	if last := len(s.minutes) - 1; last < 0 || s.minutes[last].Minute.Before(minute) {
		s.minutes = keepLast(append(s.minutes, Minute{Minute: minute}), maxMinutes)
	}
	s.minutes[len(s.minutes)-1].add(e.Kind)
}

// keepLast drops the first entries of a list that is too long. It moves the others seldom.
func keepLast[T any](list []T, most int) []T {
	if len(list) < 2*most {
		return list
	}
	return append(make([]T, 0, 2*most), list[len(list)-most:]...)
}

// last returns the last entries of a list, the newest first.
func last[T any](list []T, most int) []T {
	reversed := make([]T, 0, min(len(list), most))
	for i := len(list) - 1; i >= 0 && len(reversed) < most; i-- {
		reversed = append(reversed, list[i])
	}
	return reversed
}

// Namespaces returns the namespaces of all jobs and LocalQueues, in no particular order.
func (s *Store) Namespaces() []string {
	s.mutex.RLock()
	defer s.mutex.RUnlock()
	seen := map[string]bool{}
	see := func(name string) {
		namespace, _, _ := strings.Cut(name, "/")
		seen[namespace] = true
	}
	for _, r := range s.jobs.rows {
		see(r.value.Job)
	}
	for _, r := range s.locals.rows {
		see(r.value.LocalQueue)
	}
	return slices.Collect(maps.Keys(seen))
}
