package wake

import (
	"math/bits"

	"hekla.sh/hekla/pkg/verdict"
)

// Cause is what an event or a decision has changed that could help a waiting job. The verdict of a job says which kinds
// of change could help it ([verdict.Help]), and [Helps] connects the two. Apart from that, only time and changes of the
// job itself wake a job.
type Cause uint8

// The causes.
const (
	NodeShown      Cause = iota // a node is added, changed or removed, and with it the size of the cluster
	NodeTouched                 // the answer of a plugin about a node has changed with time, or is new
	RoomFreed                   // a pod requests less, leaves its node, or begins to
	RoomCounted                 // nodes have room for more pods of a class than when a job was refused
	HyperNodeShown              // a HyperNode or its nodes have changed
	QueueShown                  // a queue is added, changed or removed
	QuotaShown                  // a ResourceQuota is added, changed or removed
	ClassShown                  // a PriorityClass is added, changed or removed, which changes the order of jobs
	UsageFreed                  // a queue holds or requests less, or admitted jobs lack less in it
	ShareChanged                // a queue has another share, because requests of other queues or the cluster have changed
	PodCommitted                // a pod gets a node, and cannot be a victim of a job that waits
	PodPlaced                   // a pod gets a node, which matters for affinity, and may be evicted
	PodRelabelled               // the labels, or annotations about eviction, of a pod with a node or nominated node have changed
	PodGrown                    // a pod with a node requests more, so that its queue and its eviction have more to offer
	VictimsChanged              // a PodGroup has changed which of its pods may be evicted
	BudgetFreed                 // a disruption budget allows more, or is removed
	RefusalOver                 // a pod whose eviction the API server has refused may be chosen again
	NamespaceShown              // a namespace has other labels, which selectors of namespaces read
	SupplyShown                 // a volume, a device or a claim is added, changed or removed
	SupplyFreed                 // a reservation of a volume or device is released
	PlanAdopted                 // a plan comes into force: its victims no longer count for their queues, and may free more than it needs
	PlanEnded                   // a plan is cancelled
	NumCauses                   // the number of causes
)

// Helps says which kinds of help in a verdict each cause provides.
var Helps = [NumCauses]verdict.Help{
	NodeShown:      verdict.HelpNode | verdict.HelpRoom | verdict.HelpQueue | verdict.HelpVictims,
	NodeTouched:    verdict.HelpNode | verdict.HelpRoom | verdict.HelpVictims,
	RoomFreed:      verdict.HelpNode, // and HelpRoom, if it is enough
	RoomCounted:    verdict.HelpRoom, // it is not noted: see cluster.RoomCounter
	HyperNodeShown: verdict.HelpNode | verdict.HelpRoom | verdict.HelpVictims,
	QueueShown:     verdict.HelpQueue | verdict.HelpVictims,
	QuotaShown:     verdict.HelpQueue,
	ClassShown:     verdict.HelpQueue | verdict.HelpVictims,
	UsageFreed:     verdict.HelpQueue,
	ShareChanged:   verdict.HelpQueue,
	PodCommitted:   verdict.HelpPod,
	PodPlaced:      verdict.HelpPod | verdict.HelpVictims,
	PodRelabelled:  verdict.HelpPod | verdict.HelpVictims,
	PodGrown:       verdict.HelpPod | verdict.HelpQueue | verdict.HelpVictims,
	VictimsChanged: verdict.HelpPod | verdict.HelpVictims,
	BudgetFreed:    verdict.HelpPod | verdict.HelpVictims,
	RefusalOver:    verdict.HelpPod | verdict.HelpVictims,
	NamespaceShown: verdict.HelpPod | verdict.HelpVictims,
	SupplyShown:    verdict.HelpSupply,
	SupplyFreed:    verdict.HelpSupply,
	PlanAdopted:    verdict.HelpNode | verdict.HelpRoom | verdict.HelpPod | verdict.HelpQueue | verdict.HelpVictims,
	PlanEnded:      verdict.HelpNode | verdict.HelpRoom | verdict.HelpPod | verdict.HelpQueue | verdict.HelpVictims,
}

// Counts is how often each kind of help was provided, by the bit of a [verdict.Help].
type Counts [8]uint64

// Differ reports whether any of some kinds of help has another count.
func (c *Counts) Differ(then *Counts, kinds verdict.Help) bool {
	for left := uint8(kinds); left != 0; left &= left - 1 {
		if i := bits.TrailingZeros8(left); c[i] != then[i] {
			return true
		}
	}
	return false
}

// Hopes returns the kinds of change that could help a job with a verdict. If the verdict does not say, any may, because the
// job must not wait for ever.
func Hopes(v *verdict.Verdict) verdict.Help {
	if v == nil || v.Help == 0 {
		return ^verdict.Help(0)
	}
	return v.Help
}

// Stamp is the state that a job has seen: the counts at that time, and the version of the job. Two stamps can be
// compared to look for any change.
type Stamp struct {
	Counts  Counts
	Version uint64
}

// World counts what happens. The zero value has counted nothing.
type World struct {
	Counts Counts
	// Overlook, unless nil, says that a cause wakes no job. Tests use it to show that they find a missing cause.
	Overlook func(Cause) bool
}

// Note counts a cause.
func (w *World) Note(cause Cause) {
	if w.Overlook != nil && w.Overlook(cause) {
		return
	}
	for kinds := uint8(Helps[cause]); kinds != 0; kinds &= kinds - 1 {
		w.Counts[bits.TrailingZeros8(kinds)]++
	}
}

// Stamp returns the state of now, for a job of this version.
func (w *World) Stamp(version uint64) Stamp { return Stamp{Counts: w.Counts, Version: version} }

// IsHelped reports whether something has happened since a stamp that a verdict of that time lists as help, or whether
// the job has another version now. Without a verdict it is always true.
func (w *World) IsHelped(then *Stamp, version uint64, v *verdict.Verdict) bool {
	switch {
	case v == nil, then.Version != version, v.Help&verdict.HelpTime != 0:
		return true
	}
	return then.Counts.Differ(&w.Counts, Hopes(v))
}

// Since sets a stamp back to an earlier one in all that a verdict of that time lists as help.
func (s *Stamp) Since(first *Stamp, hoped verdict.Help) {
	for kinds := uint8(hoped); kinds != 0; kinds &= kinds - 1 {
		i := bits.TrailingZeros8(kinds)
		s.Counts[i] = first.Counts[i]
	}
	s.Version = first.Version
}
