package workloads

import (
	"time"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workload"
)

// Repair brings the queues back to what was decided, after rounds that did not come to their end. Quota that was
// charged or withheld without a decision is free again. Workloads that were taken out of a line wait again. Plans that
// are not recorded yet end, since their nodes are not promised any more.
func (r *Reader) Repair() {
	for e := range r.held.planned {
		if !e.plan.isRecorded {
			r.plans.end(e)
		}
	}
	for _, e := range r.entries {
		if e.Held == nil && e.IsCharged() {
			r.queues.Release(&e.Workload)
			e.Phase, e.Reserved = workload.PhaseWaiting, time.Time{}
		}
		if e.Held == nil && e.Queue != nil && !e.IsWaiting() {
			e.Phase, e.Queue, e.Cursor = workload.PhaseOutside, nil, nil
			r.later(e)
		}
		if e.Phase == workload.PhaseEvicting && e.evict == nil && !conditions.Is(e.Object, v1beta2.Evicted) {
			e.stay()
		}
	}
	r.queues.Rebook()
	r.registry.Rebuild()
}
