package wake

import (
	"math/bits"

	"hekla.sh/hekla/pkg/verdict"
)

// Cause is what an event, or a decision, has changed in the world that could help a job that waits. A verdict says which kinds
// of change could help its job ([verdict.Help]); [Helps] connects the two, and nothing else wakes a job but what happens to the
// job itself and time.
type Cause uint8

// The causes.
const (
	NodeShown      Cause = iota // a node joins, changes or goes, and with it what the cluster has in all
	NodeTouched                 // what a plugin says of a node has changed with time, or is known only now
	RoomFreed                   // a pod takes less of its node, leaves it, or begins to
	HyperNodeShown              // there are other HyperNodes, or other nodes are in them
	QueueShown                  // a queue joins, changes or goes
	QuotaShown                  // a ResourceQuota does
	ClassShown                  // a PriorityClass does: other jobs come first
	UsageFreed                  // a queue holds less, asks for less, or less of it is spoken for
	ShareChanged                // a queue deserves another share, since others ask for more or less, or more is shared
	PodPlaced                   // a pod gets a node: it may attract or repel others, and be evicted
	PodRelabelled               // a pod that has a node, or is promised one, has other labels, or other annotations that say when it may be evicted
	PodGrown                    // a pod that has a node takes more of it: there is more to be had from its queue, and from it
	VictimsChanged              // a PodGroup says otherwise which of its pods may be evicted
	BudgetFreed                 // a disruption budget allows more, or goes
	RefusalOver                 // a pod that the API server refused to evict may be chosen again
	NamespaceShown              // a namespace has other labels: selectors of namespaces select others
	SupplyShown                 // a volume, a device or a claim comes, changes or goes
	SupplyFreed                 // what was reserved of one is given back
	PlanAdopted                 // a plan comes into force: who leaves counts with no queue any more, and may leave more than it needs
	PlanEnded                   // a plan is cancelled: promises and evictions are taken back
	NumCauses                   // how many there are
)

// Helps says which verdicts each cause gives hope to.
var Helps = [NumCauses]verdict.Help{
	NodeShown:      verdict.HelpNode | verdict.HelpQueue,
	NodeTouched:    verdict.HelpNode,
	RoomFreed:      verdict.HelpNode,
	HyperNodeShown: verdict.HelpNode,
	QueueShown:     verdict.HelpQueue,
	QuotaShown:     verdict.HelpQueue,
	ClassShown:     verdict.HelpQueue,
	UsageFreed:     verdict.HelpQueue,
	ShareChanged:   verdict.HelpQueue,
	PodPlaced:      verdict.HelpPod,
	PodRelabelled:  verdict.HelpPod,
	PodGrown:       verdict.HelpPod | verdict.HelpQueue,
	VictimsChanged: verdict.HelpPod,
	BudgetFreed:    verdict.HelpPod,
	RefusalOver:    verdict.HelpPod,
	NamespaceShown: verdict.HelpPod,
	SupplyShown:    verdict.HelpSupply,
	SupplyFreed:    verdict.HelpSupply,
	PlanAdopted:    verdict.HelpNode | verdict.HelpPod | verdict.HelpQueue,
	PlanEnded:      verdict.HelpNode | verdict.HelpPod | verdict.HelpQueue,
}

// Counts is how often each kind of change that could help a waiting job has happened, by the bit of a [verdict.Help].
type Counts [8]uint64

// Stamp is what a job has seen of the world: the counts at a time, and the version of the job itself. It is compared as a whole by
// whoever looks for any change.
type Stamp struct {
	Counts  Counts
	Version uint64
}

// World counts what happens. The zero value has seen nothing.
type World struct {
	Counts Counts
	// Overlook says of a cause that it wakes no job, as if it had been forgotten; nil: none is. It is for tests, which show with it
	// that they find such a mistake.
	Overlook func(Cause) bool
}

// Note counts something that has happened and that could help.
func (w *World) Note(cause Cause) {
	if w.Overlook != nil && w.Overlook(cause) {
		return
	}
	for kinds := uint8(Helps[cause]); kinds != 0; kinds &= kinds - 1 {
		w.Counts[bits.TrailingZeros8(kinds)]++
	}
}

// Stamp is the present, for a job of this version.
func (w *World) Stamp(version uint64) Stamp { return Stamp{Counts: w.Counts, Version: version} }

// IsHelped reports whether anything has happened since a stamp that the verdict given then hopes for, to a job of this version now.
// Without a verdict there is always hope.
func (w *World) IsHelped(then *Stamp, version uint64, v *verdict.Verdict) bool {
	switch {
	case v == nil, then.Version != version, v.Help&verdict.HelpTime != 0:
		return true
	case v.Help == 0:
		// The verdict does not say what would help. It must not keep the job waiting for ever.
		return then.Counts != w.Counts
	}
	for kinds := uint8(v.Help); kinds != 0; kinds &= kinds - 1 {
		if i := bits.TrailingZeros8(kinds); then.Counts[i] != w.Counts[i] {
			return true
		}
	}
	return false
}

// Since makes a stamp count from an earlier one in all that a verdict given then hopes for.
func (s *Stamp) Since(first *Stamp, hoped verdict.Help) {
	for kinds := uint8(hoped); kinds != 0; kinds &= kinds - 1 {
		i := bits.TrailingZeros8(kinds)
		s.Counts[i] = first.Counts[i]
	}
	s.Version = first.Version
}
