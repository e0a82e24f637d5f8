package cache

import (
	"slices"
	"time"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"k8s.io/apimachinery/pkg/types"
)

// WorkloadWritten says that a decision about a Workload was written. Version is the resourceVersion of the object after
// it, "" if Set has told of it already.
type WorkloadWritten struct {
	Workload types.NamespacedName
	UID      types.UID
	Number   int64 // that of the decision
	Version  string
}

func (e WorkloadWritten) apply(k *Cache) { k.Workloads.Written(e.Workload, e.UID, e.Number, e.Version) }

// WorkloadFailed says that a decision about a Workload, or its plan, cannot be written: the Workload has changed, or
// the API server refuses it. The Workload is tried again as it is then, if nothing else was decided about it meanwhile.
type WorkloadFailed struct {
	Workload types.NamespacedName
	UID      types.UID
	Number   int64 // that of the decision, 0 of a plan
	At       time.Time
}

func (e WorkloadFailed) apply(k *Cache) { k.Workloads.Failed(e.Workload, e.UID, e.Number, e.At) }

// ServeWorkloads says whether Workloads are admitted, as they are at first. While they are not, pods that name one
// belong to none, and are placed as all others are. What Workloads hold must be given up then.
func (k *Cache) ServeWorkloads(serves bool) {
	if k.ignoresWorkloads == !serves {
		return
	}
	k.writer.RequireNoTransaction("pods change their jobs")
	k.ignoresWorkloads = !serves
	var tasks []*cluster.Task
	k.EachTask(func(t *cluster.Task) {
		if !t.IsStandIn && t.Pod.Annotations[v1beta2.WorkloadAnnotation] != "" {
			tasks = append(tasks, t)
		}
	})
	slices.SortFunc(tasks, func(a, b *cluster.Task) int { return cluster.CompareNames(a.Key(), b.Key()) })
	for _, t := range tasks {
		k.updateTask(t, t.Pod)
	}
	k.Workloads.AreKept, k.Workloads.IsIdle = false, !serves
	if serves {
		k.Workloads.MoveAll()
	}
}
