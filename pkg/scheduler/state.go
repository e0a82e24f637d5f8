package scheduler

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
)

// State is what the scheduler knows in addition to the objects of the cluster.
type State struct {
	Cycle         uint64 // the last one
	Now           time.Time
	Configuration *conf.Configuration
	Journal       []journal.Entry // the oldest first
	// Assumed are the nodes of pods whose binding was decided and is not confirmed yet.
	Assumed map[types.UID]string
}

// maxStateEntries is the number of journal entries in a state. Their sentences are formatted between two cycles.
const maxStateEntries = 5000

// State returns the state, and calls a function at the same time between two cycles. That must be quick.
func (q *Questions) State(ctx context.Context, meanwhile func()) (State, error) {
	return ask(ctx, q, func(s *Scheduler, _ *explain.Model, now time.Time) (State, error) {
		answer := State{Cycle: s.cycles, Now: now, Configuration: s.policy.Configuration, Journal: s.journal.All(maxStateEntries), Assumed: map[types.UID]string{}}
		s.cache.EachTask(func(t *cluster.Task) {
			if t.Status == cluster.Binding && t.Node != nil && t.Pod.NodeName == "" {
				answer.Assumed[t.UID()] = t.Node.Name
			}
		})
		meanwhile()
		return answer, nil
	})
}
