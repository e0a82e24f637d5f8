package verdict

import (
	"fmt"
	"slices"
	"strings"

	"hekla.sh/hekla/pkg/resources"
)

// The reasons that say more precisely what a code means for the job. See [Verdict.Reason].
const (
	// FailedCreate: the API server refuses the pods, such as for a quota of the namespace.
	FailedCreate Code = "FailedCreate"
	// TooLargeForAnyNode: one of the pods requests more than any node has, even if it were empty.
	TooLargeForAnyNode Code = "TooLargeForAnyNode"
	// NodeTaints: all nodes that have not refused for another reason have taints that the pods do not tolerate.
	NodeTaints Code = "NodeTaints"
	// NodeMismatch: no node has the labels that selectors or affinities of the pods ask for, nodes are cordoned, or a
	// plugin keeps the pods away from them.
	NodeMismatch Code = "NodeMismatch"
	// PodAffinity: pods on the nodes, or their absence, keep the pods away, also by host ports that they use.
	PodAffinity Code = "PodAffinity"
	// VolumeUnavailable: a volume is missing, or can be used on no node with room.
	VolumeUnavailable Code = "VolumeUnavailable"
	// DeviceUnavailable: a device of a ResourceClaim, or the claim, is missing.
	DeviceUnavailable Code = "DeviceUnavailable"
	// GangShort: some pods have a place, and fewer than must start together.
	GangShort Code = "GangShort"
	// PromisedToOthers: nodes would have room but for what is promised to jobs whose victims are leaving.
	PromisedToOthers Code = "PromisedToOthers"
	// VictimsOptedOut: the pods that hold the room could be evicted for the job if they were marked as preemptable.
	VictimsOptedOut Code = "VictimsOptedOut"
	// BudgetSpent: the same, and disruption budgets protect them.
	BudgetSpent Code = "BudgetSpent"
)

// Refinements are the reasons into which NotEnoughResources is divided, in the order in which they are put right.
var Refinements = []Code{TooLargeForAnyNode, NodeTaints, NodeMismatch, PodAffinity, VolumeUnavailable, DeviceUnavailable, GangShort, PromisedToOthers,
	VictimsOptedOut, BudgetSpent}

// Impossible says that no node could hold a pod of the job, even if the node were empty.
type Impossible struct {
	Pod   string       // its name with the namespace
	Short []Shortage   // what it requests beyond the most that any node has, by name
	Nodes []NodeReason // why they refuse
	// NoClaim is set if the pod names a claim that does not exist. Then more nodes would not help.
	NoClaim bool
}

// Code is what is to be put right.
func (i *Impossible) Code() Code {
	if code, _ := Dominant(i.Nodes); len(i.Short) == 0 && code != "" {
		return code
	}
	return TooLargeForAnyNode
}

// Sentence formats it for users.
func (i *Impossible) Sentence() string {
	switch code, _ := Dominant(i.Nodes); {
	case len(i.Short) > 0:
		var parts []string
		for _, s := range i.Short {
			parts = append(parts, fmt.Sprintf("%s: needs %s, the largest node has %s, short by %s", s.Resource, resources.Format(s.Resource, s.Need),
				resources.Format(s.Resource, s.Have), resources.Format(s.Resource, s.Need-s.Have)))
		}
		return fmt.Sprintf("pod %s requests more than any node has, even if it were empty: %s", i.Pod, strings.Join(parts, ", "))
	case code == "":
		return fmt.Sprintf("no node could hold pod %s even if it were empty: those that it may use are too small", i.Pod)
	}
	return fmt.Sprintf("no node could hold pod %s even if it were empty: %s", i.Pod, nodesSentence(i.Nodes))
}

func (i *Impossible) equal(o *Impossible) bool {
	if i == nil || o == nil {
		return i == o
	}
	return i.Pod == o.Pod && i.NoClaim == o.NoClaim && slices.Equal(i.Short, o.Short) && slices.Equal(i.Nodes, o.Nodes)
}

// IsFull reports whether a job with this code would be admitted, or get its share, if others left.
func (c Code) IsFull() bool { return c == OverCluster || c == OverCommitted || c == OverShare }

// Reason is the code that users see, on all surfaces: the code of the verdict, or what it means for the job. Permanent
// causes come first. It follows from the verdict alone, so it is the same wherever it is read.
func (v *Verdict) Reason() Code {
	switch {
	case v.Code.Precedes(TooLargeForQueue): // the queue or the pods come first
		return v.Code
	case v.Impossible != nil:
		return v.Impossible.Code()
	case v.Code.IsFull():
		return v.protectedVictims()
	case v.Code != NotEnoughResources:
		return v.Code
	}
	lacksRoom := slices.ContainsFunc(v.Nodes, func(r NodeReason) bool { return r.Kind.code() == "" })
	code, _ := Dominant(v.Nodes)
	switch {
	case !lacksRoom && code != "":
		return code
	case v.Placed > 0 && v.Wanted > 1:
		return GangShort
	case v.Promised:
		return PromisedToOthers
	}
	return v.protectedVictims()
}

// protectedVictims is the reason if the job looked for victims, and owners could change what protects most of them;
// otherwise the code.
func (v *Verdict) protectedVictims() Code {
	optedOut, budgeted := 0, 0
	for _, s := range v.Spared {
		switch s.Why.Kind {
		case ByMark, RuleNotMarked, RuleMarkedFalse:
			optedOut += s.Pods
		case ByBudget:
			budgeted += s.Pods
		}
	}
	switch {
	case !v.Looked:
	case optedOut > 0 && optedOut >= budgeted:
		return VictimsOptedOut
	case budgeted > 0:
		return BudgetSpent
	}
	return v.Code
}

// IsNever reports whether the job cannot start as the cluster and its objects are now, however long it waits.
func (v *Verdict) IsNever() bool {
	switch reason := v.Reason(); {
	case v.Impossible != nil && reason == v.Impossible.Code():
		return reason != VolumeUnavailable && reason != DeviceUnavailable
	default:
		return slices.Contains(never, reason)
	}
}

// never are the codes of what time does not mend.
var never = []Code{QueueNotFound, QueueInvalid, QueueNotLeaf, TooLargeForQueue, TooLargeForCluster, Quarantined}

// IsHelpedByNodes reports whether the job could start if the cluster had more nodes, as far as is known. Autoscalers
// are told so.
func (v *Verdict) IsHelpedByNodes() bool {
	switch {
	case v.BeyondNodes, v.Impossible != nil && v.Impossible.NoClaim:
		return false
	case v.Code == NotEnoughResources:
		return v.Kinds()&(HelpNode|HelpRoom) != 0
	case v.Code == TooLargeForQueue || v.Code == OverShare:
		return v.OfCluster
	}
	return v.Code == OverCluster || v.Code == OverCommitted || v.Code == TooLargeForCluster || v.Code == Delayed || v.Code == NotGuaranteed
}

// codes are the reasons that a node may be by what about it refuses. Room is none: that is divided further.
var codes = map[NodeKind]Code{
	NodeState: NodeMismatch, NodeTaint: NodeTaints, NodeLabels: NodeMismatch, NodePods: PodAffinity, NodePorts: PodAffinity,
	NodeVolume: VolumeUnavailable, NodeDevice: DeviceUnavailable, NodePlugin: NodeMismatch,
}

func (k NodeKind) code() Code { return codes[k] }

// Dominant returns the code for which most nodes refuse that do not just lack room, and its most frequent reason. Nodes
// that are out of use, such as cordoned ones, count only if no others refuse so: what the job lacks the others say.
func Dominant(reasons []NodeReason) (code Code, of NodeReason) {
	isOutOfUse := func(r NodeReason) bool { return r.Kind == NodeState }
	areAll := !slices.ContainsFunc(reasons, func(r NodeReason) bool { return !isOutOfUse(r) })
	counts := map[Code]int{}
	for _, r := range reasons {
		if code := r.Kind.code(); code != "" && (areAll || !isOutOfUse(r)) {
			counts[code] += r.Nodes
		}
	}
	for _, candidate := range Refinements {
		if counts[candidate] > counts[code] {
			code = candidate
		}
	}
	for _, r := range reasons {
		if r.Kind.code() == code && code != "" && (areAll || !isOutOfUse(r)) && r.Nodes > of.Nodes {
			of = r
		}
	}
	return code, of
}
