package rows

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hekla.sh/hekla/internal/explain"
	"hekla.sh/hekla/internal/explain/queued"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/resources"
)

// workloadEntry is the row of a Workload with what it was made of.
type workloadEntry struct {
	object *v1beta2.Workload
	row    *Job
	seen   int // the last board for which it was there
}

// workloadRows returns the rows of Workloads, by id, and counts them for their queues.
func (k *Maker) workloadRows(m *explain.Model, c *model.Cluster, quotas []*Quota, locals []*LocalQueue) []*Job {
	if k.workloads == nil {
		k.workloads = map[*workloads.Entry]*workloadEntry{}
	}
	clusterQueues, localQueues := map[string]*Quota{}, make(map[string]*LocalQueue, len(locals))
	for _, q := range quotas {
		if q.Kind == KindClusterQueue {
			clusterQueues[q.Name] = q
		}
	}
	for _, l := range locals {
		localQueues[l.LocalQueue] = l
	}
	var all []*Job
	m.EachWorkload(func(e *workloads.Entry, state string, cause explain.Cause) {
		known := k.workloads[e]
		if known == nil {
			known = &workloadEntry{}
			k.workloads[e] = known
		}
		known.read(c, e, state, &cause)
		known.seen = k.boards
		all = append(all, known.row)
		if q := clusterQueues[known.row.Queue]; q != nil {
			q.count(known.row)
			if known.row.State == StatePending {
				q.wait(known.row.Requests)
			}
		}
		if l := localQueues[e.Namespace+"/"+known.row.LocalQueue]; l != nil {
			l.count(known.row)
		}
	})
	if len(k.workloads) > len(all) {
		for e, known := range k.workloads {
			if known.seen != k.boards {
				delete(k.workloads, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Job) int { return cmp.Compare(a.Job, b.Job) })
	return all
}

// read makes the row again, if it is another.
func (w *workloadEntry) read(c *model.Cluster, e *workloads.Entry, state string, cause *explain.Cause) {
	now := Job{Kind: KindWorkload, Queue: e.ClusterQueue(), LocalQueue: e.Object.Spec.QueueName, State: stateOfWorkload(e, state), Priority: e.Priority,
		Requests: trimmed(requestsOf(e))}
	for i := range e.Object.Spec.PodSets { // those of the entry are there only if it has a queue
		set := &e.Object.Spec.PodSets[i]
		least := set.Count
		if set.MinCount != nil {
			least = *set.MinCount
		}
		now.Pods += int(set.Count)
		now.MinAvailable += int(least)
	}
	if now.State != StateFinished {
		now.Lacks = lacksOf(c, e, now.MinAvailable)
	}
	if cause.Waits {
		now.Reason, now.Message, now.Subject = cause.Code, cut(cause.Message), cause.Where
	}
	if old := w.row; old != nil && w.object == e.Object && old.Queue == now.Queue && old.State == now.State && old.Priority == now.Priority &&
		old.Pods == now.Pods && old.MinAvailable == now.MinAvailable && old.Lacks == now.Lacks && old.Reason == now.Reason &&
		old.Message == now.Message && old.Subject == now.Subject && slices.Equal(old.Requests, now.Requests) {
		return
	}
	now.Job, now.Name, now.Created = cluster.WorkloadID(e.Namespace, e.Name).String(), e.ID().String(), e.Object.CreationTimestamp.Time
	if owner := metav1.GetControllerOfNoCopy(e.Object); owner != nil {
		now.Owner = owner.Kind + "/" + owner.Name
	}
	w.object, w.row = e.Object, &now
}

// stateOfWorkload is the state of a Workload among those of jobs.
func stateOfWorkload(e *workloads.Entry, state string) string {
	switch state {
	case queued.Finished:
		return StateFinished
	case queued.Reserved:
		return StateAdmitted
	case queued.Admitted:
		if e.HasStarted() {
			return StateRunning
		}
		return StateAdmitted
	}
	return StatePending
}

// lacksOf is how many of the pods that must start together have no node.
func lacksOf(c *model.Cluster, e *workloads.Entry, least int) int {
	if e.Held == nil {
		return least
	}
	j := c.Job(cluster.WorkloadID(e.Namespace, e.Name))
	if j == nil {
		return least
	}
	return min(j.Count(cluster.Awaited)+j.Count(cluster.Pending), least)
}

// requestsOf is what all pods of a Workload request.
func requestsOf(e *workloads.Entry) resources.Vector {
	var sum resources.Vector
	for i := range e.PodSets {
		set := &e.PodSets[i]
		for _, r := range set.Requests {
			sum.Set(r.Dim, sum.At(r.Dim)+saturated(r.Value, int64(set.Count)))
		}
	}
	return sum
}

// saturated is a product that does not overflow.
func saturated(value, count int64) int64 {
	if count > 0 && value > resources.MaxQuantity/count {
		return resources.MaxQuantity
	}
	return value * count
}

// merged merges rows that are sorted by id.
func merged(a, b []*Job) []*Job {
	all := make([]*Job, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].Job < b[0].Job {
			all, a = append(all, a[0]), a[1:]
		} else {
			all, b = append(all, b[0]), b[1:]
		}
	}
	return append(append(all, a...), b...)
}
