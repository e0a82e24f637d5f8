package wake

import (
	"math/bits"

	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/verdict"
)

// Cause is what an event or a decision has changed that could help a waiting job. The verdict of a job says which kinds
// of change could help it ([verdict.Help]), and [Helps] connects the two. Apart from that, only time and changes of the
// job itself wake a job.
type Cause uint8

// The causes.
const (
	NodeShown      Cause = iota // a node is added, has more than before, or is changed in another way than the next two
	NodeLost                    // a node is removed, or has come to offer less, or something else
	NodeClosed                  // a node is removed, or is cordoned, not ready or has another taint than before, and nothing else
	NodeRelabelled              // a label of a node has changed, if only one that no pod selects and no plugin reads
	ClusterResized              // the nodes that count have other amounts
	NodeTouched                 // the answer of a plugin about a node has changed with time, or is new
	RoomFreed                   // a pod requests less, leaves its node, or begins to
	RoomCounted                 // nodes have room for more pods of a class than when a job was refused
	HyperNodeShown              // a HyperNode or its nodes have changed
	QueueShown                  // a queue is added, changed or removed
	QuotaShown                  // a ResourceQuota is added, changed or removed
	ClassShown                  // a PriorityClass is added, changed or removed, which changes the order of jobs
	StockCounted                // more is left of a stock than when a job was refused
	UsageFreed                  // a queue holds or requests less, or admitted jobs lack less in it
	ShareChanged                // what queues share has changed, or the weight of one; which shares have is noted by the next two
	ShareGrown                  // a queue may hold more than before, or deserves more of what it requests
	ShareFallen                 // a queue deserves less than before, and less than it holds
	PodCommitted                // a pod gets a node, which matters for affinity
	VictimPlaced                // a pod with a node may be a victim of a job of another queue that waits
	PodPlaced                   // a pod gets a node, which matters for affinity, and may be evicted
	PodEnding                   // a pod that was to be evicted is being deleted, and spread counts it no more
	PodRelabelled               // the labels, or annotations about eviction, of a pod with a node or nominated node have changed
	PodGrown                    // a pod with a node requests more, so that its queue and its eviction have more to offer
	VictimsChanged              // a PodGroup has changed which of its pods may be evicted
	BudgetFreed                 // a disruption budget allows more, or is removed
	RefusalOver                 // a pod whose eviction the API server has refused may be chosen again
	NamespaceShown              // a namespace has other labels, which selectors of namespaces read
	SupplyShown                 // a volume, a device or a claim is added, changed or removed
	SupplyFreed                 // a reservation of a volume or device is released
	PlanAdopted                 // a plan comes into force: its victims may free more than it needs, and its pods matter for affinity
	PlanEnded                   // a plan is cancelled, or fulfilled on other nodes, which may fit better without its pods
	NumCauses                   // the number of causes
)

// Helps says which kinds of help in a verdict each cause provides.
var Helps = [NumCauses]verdict.Help{
	NodeShown:      verdict.HelpNode | verdict.HelpEmptyNodes, // and HelpRoom and HelpStock, if it is enough
	NodeLost:       verdict.HelpPlaces,
	NodeClosed:     verdict.HelpPod,                      // spread may count without its topology domain; it has room for no more pods than before
	NodeRelabelled: verdict.HelpPod | verdict.HelpSupply, // affinity counts pods by topology domain, and volumes and devices name nodes by labels
	ClusterResized: verdict.HelpQueue,                    // and the shares that follow from it
	NodeTouched:    verdict.HelpNode | verdict.HelpRoom | verdict.HelpEmptyNodes | anyVictims,
	RoomFreed:      verdict.HelpNode, // and HelpRoom, if it is enough
	RoomCounted:    verdict.HelpRoom, // it is not noted: see cluster.RoomCounter
	HyperNodeShown: verdict.HelpNode | verdict.HelpRoom | anyVictims,
	QueueShown:     verdict.HelpStock | anyQueue | anyVictims,
	QuotaShown:     verdict.HelpStock | anyQueue,
	ClassShown:     verdict.HelpStock | anyQueue | anyVictims,
	StockCounted:   verdict.HelpStock, // it is not noted: see verdict.Lacks
	UsageFreed:     verdict.HelpQueue, // and HelpOwnQueue in the queue and those below it
	ShareChanged:   verdict.HelpQueue,
	ShareGrown:     verdict.HelpQueue, // and HelpOwnQueue in the queue and those below it
	ShareFallen:    verdict.HelpQueue | verdict.HelpShares,
	PodCommitted:   verdict.HelpPod, // and HelpOwnVictims in its queue, if it may be a victim there
	VictimPlaced:   verdict.HelpVictims,
	PodPlaced:      verdict.HelpPod | anyVictims,
	PodEnding:      verdict.HelpPod,
	PodRelabelled:  verdict.HelpPod | anyVictims,
	PodGrown:       verdict.HelpPod | verdict.HelpStock | anyQueue | anyVictims,
	VictimsChanged: verdict.HelpPod | anyVictims,
	BudgetFreed:    verdict.HelpPod | anyVictims,
	RefusalOver:    verdict.HelpPod | anyVictims,
	NamespaceShown: verdict.HelpPod | anyVictims,
	SupplyShown:    verdict.HelpSupply,
	SupplyFreed:    verdict.HelpSupply,
	PlanAdopted:    verdict.HelpNode | verdict.HelpPod,                                        // and HelpRoom, if it is enough; what its pods are to queues and victims is noted by itself
	PlanEnded:      verdict.HelpNode | verdict.HelpRoom | verdict.HelpQueue | verdict.HelpPod, // its victims may leave room for others; what its pods were to queues and victims is noted by itself
}

// Changes that are not of one queue only.
const (
	anyQueue   = verdict.HelpQueue | verdict.HelpOwnQueue
	anyVictims = verdict.HelpVictims | verdict.HelpOwnVictims
)

// everything is all kinds of help.
const everything = verdict.HelpPlaces<<1 - 1

// Own are the kinds of help that are also counted for each queue by itself.
const Own = verdict.HelpOwnQueue | verdict.HelpOwnVictims

// Counts is how often each kind of help was provided, by the bit of a [verdict.Help]. After them come the counts of
// [Own] in one queue. They are apart, because those of a queue may fall when the tree changes.
type Counts [ownFrom + 2]uint64

const ownFrom = 14 // the number of kinds

// indices returns the indices in Counts of some kinds of help as bits.
func indices(kinds verdict.Help) uint16 {
	return uint16(kinds | kinds&Own<<6)
}

// Differ reports whether any of some kinds of help has another count.
func (c *Counts) Differ(then *Counts, kinds verdict.Help) bool {
	for left := indices(kinds); left != 0; left &= left - 1 {
		if i := bits.TrailingZeros16(left); c[i] != then[i] {
			return true
		}
	}
	return false
}

// Hopes returns the kinds of change that could help a job with a verdict. If the verdict does not say, any may, because
// the job must not wait for ever.
func Hopes(v *verdict.Verdict) verdict.Help {
	if v == nil || v.Help == 0 {
		return everything
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
	// IsTrial says that what is counted for a queue by itself does not count. The caller restores Counts.
	IsTrial bool
}

// Note counts a cause. It reports whether it is counted.
func (w *World) Note(cause Cause) bool {
	if w.Overlook != nil && w.Overlook(cause) {
		return false
	}
	for left := uint16(Helps[cause]); left != 0; left &= left - 1 {
		w.Counts[bits.TrailingZeros16(left)]++
	}
	return true
}

// NoteFreed notes [UsageFreed] for a queue. It may be nil.
func (w *World) NoteFreed(q *quota.Node) {
	if w.Note(UsageFreed) && q != nil && !w.IsTrial {
		q.Free()
	}
}

// NoteGrown notes [ShareGrown] for a queue.
func (w *World) NoteGrown(q *quota.Node) {
	if w.Note(ShareGrown) && !w.IsTrial {
		q.Raise()
	}
}

// NoteExposed counts that a pod of a queue may be a victim of a job of the queue.
func (w *World) NoteExposed(q *quota.Node) {
	if !w.IsTrial && (w.Overlook == nil || !w.Overlook(VictimPlaced)) {
		q.Exposed++
	}
}

// In returns the counts for the jobs of a queue, of which some kinds of help are counted by itself.
func (c *Counts) In(q *quota.Node) Counts {
	counts := *c
	if q != nil {
		counts[ownFrom], counts[ownFrom+1] = q.FreedOnPath(), q.Exposed
	}
	return counts
}

// IsHelped reports whether something has happened between two stamps that a verdict of the first lists as help, or
// whether the job has another version now. Without a verdict it is always true.
func IsHelped(then, now *Stamp, v *verdict.Verdict) bool {
	switch {
	case v == nil, then.Version != now.Version, v.Help&verdict.HelpTime != 0:
		return true
	}
	return then.Counts.Differ(&now.Counts, Hopes(v))
}

// Since sets a stamp back to an earlier one in all that a verdict of that time lists as help.
func (s *Stamp) Since(first *Stamp, hoped verdict.Help) {
	for left := indices(hoped); left != 0; left &= left - 1 {
		i := bits.TrailingZeros16(left)
		s.Counts[i] = first.Counts[i]
	}
	s.Version = first.Version
}
