package scheduler

import "hekla.sh/hekla/internal/statuses"

// MaxPanics is what the tests outside of the package hold the scheduler to.
const MaxPanics = maxPanics

// Reporter is what decides statuses.
func (s *Scheduler) Reporter() *statuses.Reporter { return s.reporter }
