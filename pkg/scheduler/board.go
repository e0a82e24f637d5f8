package scheduler

import (
	"context"
	"time"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/rows"
	"hekla.sh/hekla/internal/journal"
)

// Overview is the cluster at a glance, and what was decided lately.
type Overview struct {
	// Cycle is the number of the last cycle, Time when it was asked.
	Cycle uint64
	Time  time.Time
	// Board is nil if there was no cycle since the one that the asker knows: nothing has changed.
	Board *rows.Board
	// Entries are those of the cycles since, the oldest first. If there are as many as [MaxOverviewEntries], older ones
	// were left out.
	Entries []journal.Entry
}

// Overview returns the board, unless no cycle came after one that is known, and the decisions since.
func (q *Questions) Overview(ctx context.Context, since uint64) (Overview, error) {
	return ask(ctx, q, func(s *Scheduler, m *explain.Model, now time.Time) (Overview, error) {
		answer := Overview{Cycle: s.cycles, Time: now}
		if s.cycles == since {
			return answer, nil
		}
		board := s.rows.Board(m, now)
		answer.Board, answer.Entries = &board, s.journal.Since(since, MaxOverviewEntries)
		return answer, nil
	})
}

// MaxOverviewEntries is the largest number of journal entries in an overview. Between two of one reader there are
// fewer, but for storms.
const MaxOverviewEntries = 5000

// Namespaces returns the namespaces that the scheduler knows. The map is never changed again, and the caller must not
// change it.
func (q *Questions) Namespaces(ctx context.Context) (map[string]bool, error) {
	return ask(ctx, q, func(s *Scheduler, _ *explain.Model, _ time.Time) (map[string]bool, error) {
		if at := s.cache.NamespacesGeneration(); s.namespaces == nil || s.namespacesAt != at {
			s.namespaces, s.namespacesAt = map[string]bool{}, at
			for _, namespace := range s.cache.Namespaces() {
				s.namespaces[namespace.Name] = true
			}
		}
		return s.namespaces, nil
	})
}
