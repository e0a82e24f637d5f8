package victims

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
)

// EvictableQueues returns, for each queue with evictable pods, the lowest priority of a job that has any.
func EvictableQueues(s *framework.Session) map[*quota.Node]int32 {
	queues := map[*quota.Node]int32{}
	s.Cluster.EachJob(func(j *cluster.Job) {
		if j.Queue == nil || j.IsForeign || j.Evictable() == 0 {
			return
		}
		if lowest, ok := queues[j.QuotaNode()]; !ok || j.Priority < lowest {
			queues[j.QuotaNode()] = j.Priority
		}
	})
	return queues
}

// FloorsByRules are the lower bounds of one search. Preemptors share them if the same rules protect pods from them.
type FloorsByRules struct {
	floors map[floorsKey]*Floors
	spared map[sparedKey]string
	number map[*quota.Node]int // a number for each queue
}

// floorsKey holds the properties that preemptors share if the same lower bounds hold for them.
type floorsKey struct {
	scope    decision.Scope
	spared   string // the numbers of the queues from which they may not evict pods
	priority int32
	// queue and application count by the rules of guaranteed shares only.
	queue       *quota.Node
	application types.NamespacedName
	variant     uint8
}

// sparedKey holds the properties that decide from which queues a preemptor may not evict pods.
type sparedKey struct {
	scope   decision.Scope
	queue   *quota.Node
	variant uint8
}

// For returns the lower bounds for a preemptor. The keys of evictable are the queues with evictable pods.
func (f *FloorsByRules) For(r *rules.Rules, evictable map[*quota.Node]int32) *Floors {
	if f.floors == nil {
		f.floors, f.spared, f.number = map[floorsKey]*Floors{}, map[sparedKey]string{}, map[*quota.Node]int{}
	}
	of := sparedKey{scope: r.Scope, queue: r.Preemptor.QuotaNode(), variant: r.Variant()}
	spared, ok := f.spared[of]
	if !ok {
		var numbers []int
		for q := range evictable {
			if _, isNumbered := f.number[q]; !isNumbered {
				f.number[q] = len(f.number)
			}
			if !r.MayEvictFrom(q) {
				numbers = append(numbers, f.number[q])
			}
		}
		slices.Sort(numbers)
		spared = fmt.Sprint(numbers)
		f.spared[of] = spared
	}
	key := floorsKey{scope: r.Scope, spared: spared, priority: r.Preemptor.Priority, variant: of.variant}
	if r.RanksJobs() {
		key.queue, key.application = of.queue, r.Guarantees.Application()
	}
	known := f.floors[key]
	if known == nil {
		known = &Floors{}
		f.floors[key] = known
	}
	return known
}

// Planned takes note of a plan that came into force. The last pods of a job cost more than those before, on nodes that the plan
// has not touched.
func (f *FloorsByRules) Planned(p *cluster.Plan) {
	var last *cluster.Job
	for _, v := range p.Victims {
		if v.Job == last || v.Job.Evictable() == 0 || !isScarce(v.Job) {
			continue
		}
		last = v.Job
		for _, t := range last.Tasks() {
			if t.Status.Yields() {
				for _, floors := range f.floors {
					floors.outdated = append(floors.outdated, int32(t.Node.Slot))
				}
			}
		}
	}
}

// isScarce reports whether one more pod of a job cannot leave alone, or ends it.
func isScarce(j *cluster.Job) bool {
	return endsJob(j, 1) || slices.ContainsFunc(j.Tasks(), func(t *cluster.Task) bool { return t.Status.Evictable() && !mayLeaveAlone(t) })
}
