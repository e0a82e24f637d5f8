package gang

// Status is where a task stands.
type Status uint8

// The statuses of a task.
const (
	Pending   Status = iota // waits for a node
	Gated                   // has scheduling gates that are not this scheduler's to open: exists, and must not be placed
	Pipelined               // a node is promised to it, once what leaves there has left
	Allocated               // placed in this cycle; undone if its transaction is
	Binding                 // handed to the edge; the API server has not confirmed yet
	Bound                   // has a node, does not run yet
	Running
	Evicting  // its eviction was decided, the API does not show it yet; holds its room until it is gone
	Releasing // is being deleted; holds its room until it is gone
	Lingering // is being deleted and should be gone for a while; its room is not counted on
	Succeeded
	Failed
	Unknown // its node has lost contact; holds its room

	NumStatuses // how many there are
)

var statusNames = [NumStatuses]string{"Pending", "Gated", "Pipelined", "Allocated", "Binding", "Bound", "Running", "Evicting",
	"Releasing", "Lingering", "Succeeded", "Failed", "Unknown"}

// String returns the status as Volcano spells it.
func (s Status) String() string { return statusNames[s] }

// Holds reports whether a task in this status takes room on its node now.
func (s Status) Holds() bool { return s >= Allocated && s <= Lingering || s == Unknown }

// Counts reports whether a task in this status counts as allocated for its job and its queue. What is on its way out
// holds its room, and no longer counts; what is promised room counts already, so that the totals are those of the time
// after all that was decided.
func (s Status) Counts() bool { return s >= Pipelined && s <= Running || s == Unknown }

// Evictable reports whether a task in this status may be evicted (law P4): it has its node, and is not on its way out.
func (s Status) Evictable() bool { return s == Bound || s == Running }

// Leaves reports whether a task in this status is on its way out and its room can be counted on.
func (s Status) Leaves() bool { return s == Evicting || s == Releasing }

// Asks reports whether a task in this status counts as requested by its job and its queue, placed or not. What gates hold asks
// for nothing until they are opened.
func (s Status) Asks() bool { return !s.Finished() && s != Gated && (s < Evicting || s > Lingering) }

// Finished reports whether a task in this status is over.
func (s Status) Finished() bool { return s == Succeeded || s == Failed }

// Weighs reports whether a task counts the same in every total in two statuses.
func (s Status) Weighs(r Status) bool {
	return s.Holds() == r.Holds() && s.Counts() == r.Counts() && s.Finished() == r.Finished() &&
		s.Leaves() == r.Leaves() && (s == Evicting) == (r == Evicting) && (s == Pipelined) == (r == Pipelined) &&
		(s == Gated) == (r == Gated)
}

// Assumed reports whether the status is ours alone: decided here, not seen in the API yet.
func (s Status) Assumed() bool { return s == Pipelined || s == Allocated || s == Binding }
