package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// WorkloadWritten says that the last decision about a Workload was written. Version is the resourceVersion of the object after it,
// "" if Set has told of it already.
type WorkloadWritten struct {
	Workload types.NamespacedName
	UID      types.UID
	Version  string
}

func (e WorkloadWritten) apply(k *Cache) { k.Workloads.Written(e.Workload, e.UID, e.Version) }

// WorkloadFailed says that the last decision about a Workload cannot be written: the Workload has changed, or the API server
// refuses it. The Workload is tried again as it is then.
type WorkloadFailed struct {
	Workload types.NamespacedName
	UID      types.UID
	At       time.Time
}

func (e WorkloadFailed) apply(k *Cache) { k.Workloads.Failed(e.Workload, e.UID, e.At) }
