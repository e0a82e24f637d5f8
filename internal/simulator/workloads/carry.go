package workloads

import (
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// Carry writes what was decided about Workloads, and returns what the scheduler learns of that. mayWrite is asked
// before each write.
func (c *Controllers) Carry(d *decision.Decisions, mayWrite func(forPlan bool) bool) (events []cache.Event) {
	for i := range d.WorkloadPlans {
		p := &d.WorkloadPlans[i]
		w := c.workloads[p.Workload]
		if w == nil || w.UID != p.UID || !mayWrite(true) {
			continue
		}
		w = w.DeepCopy()
		if w.Annotations == nil {
			w.Annotations = map[string]string{}
		}
		if w.Annotations[v1beta2.PlanAnnotation] = p.Record; p.Record == "" {
			delete(w.Annotations, v1beta2.PlanAnnotation)
		}
		c.Update(w)
	}
	for i := range d.Workloads {
		s := &d.Workloads[i]
		w := c.workloads[s.Workload]
		if w == nil || !mayWrite(false) {
			continue
		}
		w = w.DeepCopy()
		if !s.Apply(w) {
			events = append(events, cache.WorkloadFailed{Workload: s.Workload, UID: s.UID, Number: s.Number, At: c.Cluster.Now()})
			continue
		}
		c.Update(w)
		events = append(events, cache.WorkloadWritten{Workload: s.Workload, UID: s.UID, Number: s.Number, Version: w.ResourceVersion})
		if s.Evict != nil && c.Evicted != nil {
			c.Evicted(w, s.Evict.By)
		}
	}
	return events
}
