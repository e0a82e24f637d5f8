package verdict

import (
	"cmp"
	"fmt"
	"slices"
)

// Protection is why a pod may not be evicted for a job: a rule of the scheduler, or the objection of a plugin. The zero
// value is none. It is data, to compare and to count. [Protection.String] is the only place that words it, and it is
// called only where users read it.
type Protection struct {
	Kind ProtectionKind
	// Plugin is the name of the plugin that objects. The framework fills it in. It is empty for a rule, whichever
	// plugin says it.
	Plugin string
	// Detail is why a plugin objects, in a few words that are the same for all pods with this reason. Pods are counted
	// by it. If it is empty, the kind says it. With RuleOutsideFence it is the queue that has the fence.
	Detail string
}

// ProtectionKind is what protects a pod, in one word.
type ProtectionKind string

// The kinds of objections, for plugins of any module. By the second and the third, owners or operators could change it,
// and then the job that waits has the reason VictimsOptedOut or BudgetSpent.
const (
	ByPlugin ProtectionKind = "Plugin" // a plugin objects for a reason of its own
	ByMark   ProtectionKind = "Mark"   // owners have not allowed to evict the pods
	ByBudget ProtectionKind = "Budget" // a disruption budget is spent
)

// The rules. docs/preemption.md and docs/guaranteed-shares.md have their text.
const (
	RuleNotLowerJob     ProtectionKind = "NotLowerJob"         // J1
	RuleAtItsMinimum    ProtectionKind = "AtItsMinimum"        // J2
	RuleNotLowerTask    ProtectionKind = "NotLowerTask"        // P1
	RuleRestartsWhole   ProtectionKind = "RestartsWhole"       // P1
	RuleNotMarked       ProtectionKind = "NotMarked"           // P2
	RuleOtherScheduler  ProtectionKind = "OtherScheduler"      // P2
	RuleRequestsNothing ProtectionKind = "RequestsNothing"     // P3
	RuleCritical        ProtectionKind = "Critical"            // P5
	RuleNeverPreempts   ProtectionKind = "NeverPreempts"       // P6
	RuleHigherQueue     ProtectionKind = "HigherQueue"         // Q1
	RuleWithinShare     ProtectionKind = "WithinShare"         // Q1
	RuleWithinShareOver ProtectionKind = "WithinShareOfParent" // Q1
	RuleGuaranteed      ProtectionKind = "Guaranteed"          // Q2
	RuleNotReclaimable  ProtectionKind = "NotReclaimable"      // Q3
	RuleHasItsShare     ProtectionKind = "HasItsShare"         // Q4
	RuleWasRefused      ProtectionKind = "WasRefused"          // S1
	RuleOnlyReclaim     ProtectionKind = "OnlyReclaim"         // G0
	RuleMarkedFalse     ProtectionKind = "MarkedFalse"         // G1
	RuleWithinGuarantee ProtectionKind = "WithinGuarantee"     // G2
	RuleSameApplication ProtectionKind = "SameApplication"     // G3
	RuleHasItsGuarantee ProtectionKind = "HasItsGuarantee"     // G4
	RuleNothingAsked    ProtectionKind = "NothingAsked"        // G5
	RuleOfDaemonSet     ProtectionKind = "OfDaemonSet"         // G5
	RuleHigherPriority  ProtectionKind = "HigherPriority"      // G6
	RuleDisabled        ProtectionKind = "PreemptionDisabled"  // G7
	RuleOutsideFence    ProtectionKind = "OutsideFence"        // G7
	RuleTooEarly        ProtectionKind = "TooEarly"            // G9
	HoldsNothing        ProtectionKind = "HoldsNothing"        // no rule: a queue has nothing that could be reclaimed
)

// rules has the number and the words of each rule.
var rules = map[ProtectionKind]struct{ number, words string }{
	RuleNotLowerJob:     {"J1", "the priority of their job is not lower"},
	RuleAtItsMinimum:    {"J2", "their gang is at its minimum"},
	RuleNotLowerTask:    {"P1", "their task priority is not lower"},
	RuleRestartsWhole:   {"P1", "other pods of the job are deleted when one is evicted"},
	RuleNotMarked:       {"P2", "not marked volcano.sh/preemptable"},
	RuleOtherScheduler:  {"P2", "their PodGroup belongs to another scheduler"},
	RuleRequestsNothing: {"P3", "the pod that waits requests nothing"},
	RuleCritical:        {"P5", "system-critical pods"},
	RuleNeverPreempts:   {"P6", "the PriorityClass of the job never preempts"},
	RuleHigherQueue:     {"Q1", "their queue has the higher priority"},
	RuleWithinShare:     {"Q1", "within what their queue deserves"},
	RuleWithinShareOver: {"Q1", "within what a queue above theirs deserves"},
	RuleGuaranteed:      {"Q2", "guaranteed to their queue"},
	RuleNotReclaimable:  {"Q3", "their queue is not reclaimable"},
	RuleHasItsShare:     {"Q4", "the job's own queue has what it deserves"},
	RuleWasRefused:      {"S1", "the API server refused to evict them a while ago"},
	RuleOnlyReclaim:     {"G0", "only the action reclaim evicts pods of other queues"},
	RuleMarkedFalse:     {"G1", "marked volcano.sh/preemptable: false"},
	RuleWithinGuarantee: {"G2", "guaranteed to their queue"},
	RuleSameApplication: {"G3", "of the same application"},
	RuleHasItsGuarantee: {"G4", "the job's own queue has what it is guaranteed"},
	RuleNothingAsked:    {"G5", "nothing they hold is asked for"},
	RuleOfDaemonSet:     {"G5", "pods of a DaemonSet"},
	RuleHigherPriority:  {"G6", "of higher priority"},
	RuleDisabled:        {"G7", "their queue is disabled"},
	RuleOutsideFence:    {"G7", "outside the fence of queue %s"},
	RuleTooEarly:        {"G9", "the job has not waited long enough"},
}

// objections are the words of an objection for which a plugin gives none.
var objections = map[ProtectionKind]string{
	ByPlugin: "it objects",
	ByMark:   "not marked as preemptable",
	ByBudget: "their disruption budget is spent",
}

// Protection returns a protection of a kind, without more.
func (k ProtectionKind) Protection() Protection { return Protection{Kind: k} }

// IsObjection reports whether the kind is one of a plugin, not a rule.
func (k ProtectionKind) IsObjection() bool { return k == ByPlugin || k == ByMark || k == ByBudget }

// Rule returns the number of the rule, such as "J1", "" if it is none.
func (k ProtectionKind) Rule() string { return rules[k].number }

// IsNone reports whether nothing protects the pod.
func (p Protection) IsNone() bool { return p.Kind == "" }

// Exists reports whether something protects the pod.
func (p Protection) Exists() bool { return p.Kind != "" }

// Or returns another protection if p is none.
func (p Protection) Or(other Protection) Protection {
	if p.IsNone() {
		return other
	}
	return p
}

// String words it for users: "rule J1 (the priority of their job is not lower)", "pdb (their disruption budget is
// spent)", "" if it is none.
func (p Protection) String() string {
	switch rule, isRule := rules[p.Kind]; {
	case p.IsNone():
		return ""
	case p.Kind == HoldsNothing:
		return "the queue holds nothing"
	case p.Kind == RuleOutsideFence:
		return "rule " + rule.number + " (" + fmt.Sprintf(rule.words, p.Detail) + ")"
	case isRule:
		return "rule " + rule.number + " (" + rule.words + ")"
	}
	words := cmp.Or(p.Detail, objections[p.Kind])
	if p.Plugin == "" {
		return words
	}
	return p.Plugin + " (" + words + ")"
}

// Spared counts the pods that may not be evicted for the job, for one reason.
type Spared struct {
	Why  Protection
	Pods int
}

// MostFirst returns counts as users read them: the most frequent first, those of equal numbers by their words.
func MostFirst(spared []Spared) []Spared {
	all := slices.Clone(spared)
	slices.SortFunc(all, func(a, b Spared) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Why.String(), b.Why.String()))
	})
	return all
}

// addSpared adds up the counts of two actions, each of which looks at other pods. Neither is changed.
func addSpared(a, b []Spared) []Spared {
	if len(a) == 0 || len(b) == 0 {
		return append(a[:len(a):len(a)], b...)
	}
	sum := slices.Clone(a)
	for _, s := range b {
		i := slices.IndexFunc(sum, func(t Spared) bool { return t.Why == s.Why })
		if i < 0 {
			sum = append(sum, s)
		} else {
			sum[i].Pods += s.Pods
		}
	}
	return sum
}
