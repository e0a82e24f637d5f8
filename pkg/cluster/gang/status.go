package gang

// Status is the state of a task.
type Status uint8

// The statuses of a task.
const (
	Pending   Status = iota // waits for a node
	Gated                   // has scheduling gates of other controllers, and must not be placed
	Pipelined               // has a nominated node, and waits for victims to leave it
	Allocated               // placed in this cycle, in a transaction that may be undone
	Binding                 // passed to the edge, not confirmed by the API server yet
	Awaited                 // a stand-in that holds a node until its pod exists
	Bound                   // has a node, does not run yet
	Running
	Evicting  // its eviction was decided and does not show in the API yet; it still holds its resources
	Releasing // is being deleted; it still holds its resources
	Lingering // is being deleted and overdue; its resources are not counted on
	Succeeded
	Failed
	Unknown // its node has lost contact; it holds its resources

	NumStatuses // the number of statuses
)

var statusNames = [NumStatuses]string{"Pending", "Gated", "Pipelined", "Allocated", "Binding", "Awaited", "Bound", "Running", "Evicting",
	"Releasing", "Lingering", "Succeeded", "Failed", "Unknown"}

// String returns the status in Volcano's spelling.
func (s Status) String() string { return statusNames[s] }

// Holds reports whether a task in this status holds resources on its node now.
func (s Status) Holds() bool { return s >= Allocated && s <= Lingering || s == Unknown }

// Counts reports whether a task in this status counts as allocated for its job and queue. A task that is leaving does
// not count, although it still holds its resources. A pipelined task counts. So the totals are those after all
// decisions are carried out.
func (s Status) Counts() bool { return s >= Pipelined && s <= Running || s == Unknown }

// Evictable reports whether a task in this status may be evicted (rule P4): it has its node, and is not leaving it.
func (s Status) Evictable() bool { return s == Bound || s == Running }

// Yields reports whether a task in this status may leave its node for another job: a pod that may be evicted, or a
// stand-in, which leaves only with all pods of its gang.
func (s Status) Yields() bool { return s == Awaited || s.Evictable() }

// Leaves reports whether a task in this status is leaving, and its resources can be counted on.
func (s Status) Leaves() bool { return s == Evicting || s == Releasing }

// Asks reports whether the request of a task in this status counts for its job and queue, with a node or without. A
// gated task does not count.
func (s Status) Asks() bool { return !s.Finished() && s != Gated && (s < Evicting || s > Lingering) }

// Finished reports whether a task in this status has ended.
func (s Status) Finished() bool { return s == Succeeded || s == Failed }

// Weighs reports whether two statuses count the same in every total.
func (s Status) Weighs(r Status) bool {
	return s.Holds() == r.Holds() && s.Counts() == r.Counts() && s.Finished() == r.Finished() &&
		s.Leaves() == r.Leaves() && (s == Evicting) == (r == Evicting) && (s == Pipelined) == (r == Pipelined) &&
		(s == Gated) == (r == Gated)
}

// Assumed reports whether the scheduler has decided this status and the API does not show it yet.
func (s Status) Assumed() bool { return s == Pipelined || s == Allocated || s == Binding }
