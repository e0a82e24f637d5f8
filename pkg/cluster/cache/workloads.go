package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// WorkloadWritten says that a decision about a Workload was written. Version is the resourceVersion of the object after it,
// "" if Set has told of it already.
type WorkloadWritten struct {
	Workload types.NamespacedName
	UID      types.UID
	Number   int64 // that of the decision
	Version  string
}

func (e WorkloadWritten) apply(k *Cache) { k.Workloads.Written(e.Workload, e.UID, e.Number, e.Version) }

// WorkloadFailed says that a decision about a Workload, or its plan, cannot be written: the Workload has changed, or the API server
// refuses it. The Workload is tried again as it is then, if nothing else was decided about it meanwhile.
type WorkloadFailed struct {
	Workload types.NamespacedName
	UID      types.UID
	Number   int64 // that of the decision, 0 of a plan
	At       time.Time
}

func (e WorkloadFailed) apply(k *Cache) { k.Workloads.Failed(e.Workload, e.UID, e.Number, e.At) }
