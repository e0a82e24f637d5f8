package queued

import (
	"cmp"
	"slices"
	"time"

	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/resources"
)

// ClusterQueue is what waits in a ClusterQueue, and what it holds.
type ClusterQueue struct {
	ClusterQueue string `json:"clusterQueue"`
	// Path is its place in the tree of Cohorts. Inactive says why it admits nothing, "" if it is active: it is stopped,
	// or something is missing.
	Path     string `json:"path"`
	Inactive string `json:"inactive,omitempty"`
	// Pending counts the Workloads that wait in it, or would but for what makes it or their LocalQueue inactive;
	// Holding those that hold quota, of which Admitted run.
	Pending  int `json:"pending"`
	Holding  int `json:"holding"`
	Admitted int `json:"admitted"`
	// Oldest is the one that waits longest, absent if none does.
	Oldest *Oldest `json:"oldest,omitempty"`
	// Quotas are those of its flavors.
	Quotas []Quota `json:"quotas,omitempty"`
}

// Oldest is a Workload that waits longest.
type Oldest struct {
	Workload string    `json:"workload"`
	Since    time.Time `json:"since"`
	Reason   string    `json:"reason,omitempty"`
}

// Quota is one resource of a flavor. Borrowed is how much more is used than the own quota.
type Quota struct {
	Flavor   string `json:"flavor"`
	Resource string `json:"resource"`
	Nominal  string `json:"nominal"`
	Used     string `json:"used"`
	Borrowed string `json:"borrowed,omitempty"`
}

// Queues surveys the ClusterQueues of a reader, by name.
func Queues(index *resources.Index, reader *workloads.Reader) []ClusterQueue {
	var all []ClusterQueue
	for _, q := range reader.Queues().All() {
		c := ClusterQueue{ClusterQueue: q.Name, Path: q.Path(), Inactive: q.Inactive}
		for g := range q.Groups {
			for _, flavor := range q.Groups[g].Flavors {
				for _, fr := range flavor.FRs {
					name := index.ResourceOf(fr)
					text := func(value int64) string { quantity := resources.Quantity(name, value); return quantity.String() }
					quota := Quota{Flavor: flavor.Name, Resource: string(name), Nominal: text(q.Nominal(fr)), Used: text(q.Usage(fr))}
					if more := q.Usage(fr) - q.Nominal(fr); more > 0 {
						quota.Borrowed = text(more)
					}
					c.Quotas = append(c.Quotas, quota)
				}
			}
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b ClusterQueue) int { return cmp.Compare(a.ClusterQueue, b.ClusterQueue) })
	for _, e := range reader.All() { // by name, so that of two that are equally old the first stays
		name := e.Wants()
		if e.Held != nil {
			name = e.Held.ClusterQueue
		}
		at, is := slices.BinarySearchFunc(all, name, func(c ClusterQueue, name string) int { return cmp.Compare(c.ClusterQueue, name) })
		if is {
			all[at].count(e)
		}
	}
	return all
}

func (c *ClusterQueue) count(e *workloads.Entry) {
	switch state(e) {
	case Finished:
	case Waiting, NotQueued:
		c.Pending++
		if since := e.Object.CreationTimestamp.Time; c.Oldest == nil || since.Before(c.Oldest.Since) {
			reason, _ := e.Why()
			c.Oldest = &Oldest{Workload: e.ID().String(), Since: since, Reason: reason}
		}
	case Admitted:
		c.Holding++
		c.Admitted++
	default:
		c.Holding++
	}
}
