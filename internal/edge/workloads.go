package edge

import (
	"errors"
	"time"

	"hekla.sh/hekla/internal/edge/apiserver"
	"hekla.sh/hekla/internal/edge/status"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/cache"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// writeWorkload writes what was decided about a Workload. The loop learns whether it was written: until then it counts
// on it. A decision that does not hold any more, or that the API server refuses, is not repeated, because the loop
// decides again.
func (o *Outbox) writeWorkload(d *decision.WorkloadStatus) {
	change := status.Workload{WorkloadStatus: *d}
	change.Done = func(version string, err error) {
		if err != nil {
			o.failWorkload(d.Workload.String(), err)
			o.options.Workload(cache.WorkloadFailed{Workload: d.Workload, UID: d.UID, Number: d.Number, At: time.Now()})
			return
		}
		o.options.Workload(cache.WorkloadWritten{Workload: d.Workload, UID: d.UID, Number: d.Number, Version: version})
		for _, n := range d.Events {
			o.diary.workload(&n)
			if n.Reason == v1beta2.ReasonQuotaReserved || n.Reason == v1beta2.ReasonAdmitted {
				o.events.tellAdmission(n)
			} else {
				o.Show(n)
			}
		}
	}
	o.workloads.Put(change)
}

// recordPlan records for which Workloads others are about to be evicted. That it was recorded the loop sees by the
// annotation.
func (o *Outbox) recordPlan(d *decision.WorkloadPlan) {
	change := status.Plan{WorkloadPlan: *d}
	change.Done = func(err error) {
		o.failWorkload(d.Workload.String(), err)
		if d.Record != "" {
			o.options.Workload(cache.WorkloadFailed{Workload: d.Workload, UID: d.UID, At: time.Now()})
		}
	}
	o.workloads.Put(change)
}

// failWorkload logs what the API server refuses, which another permission or setting may mend. That Workloads change is
// no error.
func (o *Outbox) failWorkload(name string, err error) {
	if !errors.Is(err, status.ErrOutdated) && !errors.Is(err, apiserver.ErrObjectGone) {
		o.options.Logger.Error(err, "A decision about a Workload was refused", "workload", name)
	}
}
