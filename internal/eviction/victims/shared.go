package victims

import (
	"math"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/quota"
)

// FloorsByRules are the lower bounds of one search. Preemptors share them if the same rules protect pods from them.
type FloorsByRules struct {
	floors map[floorsKey]*Floors
	spared rules.SparedQueues
	own    map[floorsKey]int // how many floors are not shared, by the properties that do not tell queues apart
}

// floorsKey holds the properties that preemptors share if the same lower bounds hold for them.
type floorsKey struct {
	scope    decision.Scope
	spared   string // the numbers of the queues from which they may not evict pods, if isShared is not set
	priority int32  // unless it protects no pods
	isShared bool   // the offers are those of all queues, see [Floors]
	// queue and application count by the rules of guaranteed shares only.
	queue       *quota.Node
	application types.NamespacedName
	variant     uint8
}

// maxOwn is for how many sets of queues preemptors inside their queues have bounds of their own: those of one queue are
// worked out sooner than those of all.
const maxOwn = 4

// For returns the lower bounds for the preemptor of a selector. The keys of evictable are the queues with evictable
// pods. Where victims are compared by rule G8 the bounds are those of one queue, which says as much.
func (f *FloorsByRules) For(s *Selector, evictable func() map[*quota.Node]int32) *Floors {
	if f.floors == nil {
		f.floors, f.own = map[floorsKey]*Floors{}, map[floorsKey]int{}
	}
	r := s.rules
	if !r.RanksJobs() {
		s.spared = f.spared.Of(r, evictable)
	}
	key := floorsKey{scope: r.Scope, variant: r.Variant()}
	if r.Guarantees != nil || r.Scope != decision.BetweenQueues {
		key.priority = r.Preemptor.Priority
	}
	own := key
	own.spared = s.spared
	if r.RanksJobs() {
		own.queue, own.application = r.Preemptor.QuotaNode(), r.Guarantees.Application()
	}
	known := f.floors[own]
	switch {
	case known != nil:
		return known
	case r.Guarantees != nil || r.Scope == decision.BetweenJobs && f.own[key] < maxOwn:
		f.own[key]++
		key = own
	default:
		key.isShared = true
	}
	if known = f.floors[key]; known == nil {
		known = &Floors{isShared: key.isShared, least: [3]int64{math.MaxInt64, math.MaxInt64, math.MaxInt64}}
		f.floors[key] = known
	}
	return known
}

// Planned takes note of a plan that came into force. The last pods of a job cost more than those before, on nodes that
// the plan has not touched.
func (f *FloorsByRules) Planned(p *cluster.Plan) {
	var last *cluster.Job
	for _, v := range p.Victims {
		if v.Job == last || v.Job.Evictable() == 0 || !rules.IsScarce(v.Job) {
			continue
		}
		last = v.Job
		for _, t := range last.Tasks() {
			if t.Status.Yields() {
				for _, floors := range f.floors {
					floors.outdate(int32(t.Node.Slot))
				}
			}
		}
	}
}
