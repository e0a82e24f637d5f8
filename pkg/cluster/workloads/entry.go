package workloads

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads/queues"
	"hekla.sh/hekla/pkg/cluster/workloads/shapes"
)

// Entry is one Workload of the API.
type Entry struct {
	// Workload is what decisions are made about. Its Queue is nil while it neither waits nor is charged.
	workload.Workload
	// Object is the Workload as it was read last. It is not changed.
	Object *v1beta2.Workload
	// Held is what the Workload holds or is promised, nil if nothing.
	Held *Held

	local    *queues.LocalQueue // its LocalQueue
	shape    *shapes.Shape
	isQueued bool      // it is to be placed
	until    time.Time // when it is tried again

	given     *v1beta2.Admission // what was decided that it holds, nil if the object says so
	moved     *v1beta2.Admission // its admission with other nodes than the object says, nil if it has those
	isAssumed bool               // it was decided that it holds given, and the object does not say so yet
	plan      *plan
	evict     *eviction // decided, and the object does not say so yet
	why       condition // why it neither holds nor waits, or was refused; empty if there is nothing to say
	failures  int       // how many writes in a row were refused
	vacant    map[string]int
	reclaimed []v1beta2.ReclaimablePod // when its nodes were brought up to date
	misfits   int                      // how often in a row its pods found no nodes with what checks add to them
	notBefore time.Time                // when it is tried again after a failure
	started   time.Time                // since when the admission lasts of which all pods have come

	// isKnown says that the object was placed before: what an earlier process has decided is taken up.
	isKnown    bool
	unrecorded string    // the record of a plan that is being taken away
	refresh    time.Time // when a message may be written again in which only numbers differ

	write   write
	isDirty bool
	isMoved bool
	// isOutdated says that its stand-ins are to be placed again: checks have added to its pods.
	isOutdated bool
}

// Held is what a Workload holds.
type Held struct {
	ClusterQueue string
	PodSets      []HeldPodSet // in the order of the Workload's
}

// HeldPodSet is what one pod set holds.
type HeldPodSet struct {
	Name    string
	Count   int32
	Flavors []*workload.Flavor // each once
	// Nodes say how many of the pods stand on which nodes. They are empty if the admission names none, as that of a
	// Workload which Kueue has admitted.
	Nodes []settings.NodeCount
	// Added is what checks add to the pods, nil if nothing.
	Added *workload.Addition
}

// Vacate notes of a pod set how many places have no node: a pod has ended there, no other is made yet, and other pods
// have taken the room.
func (e *Entry) Vacate(set string, places int) {
	if e.vacant == nil {
		e.vacant = map[string]int{}
	}
	e.vacant[set] = places
}

// Vacant is how many places of a pod set have no node.
func (e *Entry) Vacant(set string) int { return e.vacant[set] }

// Ended is how many places of a pod set that is held are not needed any more, as status.reclaimablePods says. A pod
// that has ended does not say that: another may be made in its place.
func (e *Entry) Ended(set *HeldPodSet) int {
	all, left := settings.PodsLeft(e.Object, &v1beta2.PodSetAssignment{Name: set.Name, Count: &set.Count})
	return int(all - left)
}

// IsStarting reports whether it was decided that the Workload is admitted, and that is not on its way to the API
// server.
func (e *Entry) IsStarting() bool { return e.isAssumed && e.write.wanted.reserve != e.given }

// Start notes that all pods of the present admission have come.
func (e *Entry) Start() { e.started = since(e.Object, v1beta2.Admitted) }

// HasStarted reports whether all pods of the present admission had come.
func (e *Entry) HasStarted() bool {
	return !e.started.IsZero() && e.started.Equal(since(e.Object, v1beta2.Admitted))
}

// IsOfAdmission reports whether a pod that was made at a time was made by the present admission, as far as that can be
// told.
func (e *Entry) IsOfAdmission(created time.Time) bool {
	return conditions.Of(e.Object, v1beta2.Evicted) == nil || !created.Before(since(e.Object, v1beta2.QuotaReserved))
}

// stay lets a Workload keep what it holds: it is not to leave, or not any more.
func (e *Entry) stay() {
	if e.Phase = workload.PhaseReserved; conditions.Is(e.Object, v1beta2.Admitted) {
		e.Phase = workload.PhaseAdmitted
	}
}

// ClusterQueue is the one whose quota the Workload holds, in which it waits, or which it wants; "" if there is none.
func (e *Entry) ClusterQueue() string {
	switch {
	case e.Held != nil:
		return e.Held.ClusterQueue
	case e.Queue != nil:
		return e.Queue.Name
	}
	return e.Wants()
}

// ID is the namespace and name of the Workload.
func (e *Entry) ID() types.NamespacedName {
	return types.NamespacedName{Namespace: e.Namespace, Name: e.Name}
}

// Why is why the Workload neither holds quota nor is in a queue, or was refused, and empty if nothing was said: the
// reason and the message of its condition QuotaReserved.
func (e *Entry) Why() (reason, message string) {
	why := e.why
	if why == (condition{}) {
		why = shown(e.Object)
	}
	return why.reason, why.message
}

// Wants is the ClusterQueue that its LocalQueue names, whether it exists or not, "" without a LocalQueue.
func (e *Entry) Wants() string {
	if e.local == nil || e.local.Settings == nil {
		return ""
	}
	return e.local.Settings.ClusterQueue
}

// Inactive says why the ClusterQueue that a Workload wants, or its LocalQueue, admits nothing, as clauses without a
// subject. It is empty if nothing is wrong, or if a user has stopped them.
func (r *Reader) Inactive(e *Entry) (causes []string) {
	if e.Wants() == "" {
		return nil
	}
	for _, c := range r.registry.ClusterQueue(e.Wants()).Causes {
		if c.Reason != v1beta2.ReasonStopped {
			causes = append(causes, c.Text)
		}
	}
	if problem := e.local.Settings.Problem; problem != "" {
		causes = append(causes, problem)
	}
	return causes
}

// Stopped is the ClusterQueue or LocalQueue of a Workload that a user has stopped, by kind and name, "" if neither is.
func (r *Reader) Stopped(e *Entry) string {
	if e.Wants() == "" {
		return ""
	}
	switch c := r.registry.ClusterQueue(e.Wants()).Settings; {
	case c != nil && c.Stop != v1beta2.StopNone:
		return "ClusterQueue " + e.Wants()
	case e.local.Settings.Stop != v1beta2.StopNone:
		return "LocalQueue " + e.local.Key.Name
	}
	return ""
}

// WaitsFor are the Workloads that must leave before it starts, by name; none if it has no plan.
func (e *Entry) WaitsFor() []*Entry {
	if e.plan == nil {
		return nil
	}
	all := slices.Clone(e.plan.waitsFor)
	sortEntries(all)
	return all
}
