package queued

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
)

// Pending is a Workload that waits, and its places.
type Pending struct {
	Namespace, Name string
	UID             types.UID
	Created         time.Time
	Owners          []metav1.OwnerReference
	LocalQueue      string
	Priority        int32
	// InClusterQueue is its place among those that wait for the ClusterQueue, and InLocalQueue among those of them that
	// name its LocalQueue. The first is 0.
	InClusterQueue, InLocalQueue int
}

// Page is a part of a list: at most Limit entries, without the first Offset.
type Page struct{ Offset, Limit int }

// PendingIn lists the Workloads that wait for a ClusterQueue in the order in which they are tried, or those of them
// that name a LocalQueue if its name is not empty. Those that wait only because the ClusterQueue or their LocalQueue is
// not active are among them, and those that a user has deactivated are not.
func PendingIn(reader *workloads.Reader, clusterQueue string, local types.NamespacedName, page Page) []Pending {
	var line []*workload.Workload
	for e := range reader.Entries() {
		if e.Wants() != clusterQueue {
			continue
		}
		switch state(e) {
		case Waiting:
			line = append(line, &e.Workload)
		case NotQueued: // what counts in the order is read once it has a queue
			if read := settings.OfWorkload(e.Object); read.IsActive {
				line = append(line, &workload.Workload{UID: e.UID, Namespace: e.Namespace, Name: e.Name, Priority: read.Priority, Timestamp: e.Object.CreationTimestamp.Time})
			}
		}
	}
	slices.SortFunc(line, workload.Compare)
	places, skipped := map[types.NamespacedName]int{}, 0
	list := []Pending{}
	for i, w := range line {
		e := reader.Of(w)
		key := types.NamespacedName{Namespace: e.Namespace, Name: e.Object.Spec.QueueName}
		place := places[key]
		places[key]++
		if local.Name != "" && key != local {
			continue
		}
		if skipped < page.Offset {
			skipped++
			continue
		}
		if len(list) == page.Limit {
			break
		}
		list = append(list, Pending{Namespace: e.Namespace, Name: e.Name, UID: e.Object.UID, Created: e.Object.CreationTimestamp.Time,
			Owners: slices.Clone(e.Object.OwnerReferences), LocalQueue: key.Name, Priority: w.Priority, InClusterQueue: i, InLocalQueue: place})
	}
	return list
}
