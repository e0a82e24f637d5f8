package workload

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// Mode says how well a flavor or an assignment fits (rule C6). A higher mode is better.
type Mode uint8

// The modes.
const (
	NoFit        Mode = iota
	NoCandidates      // evictions might help, and none is allowed
	Preempt           // after evictions in the own queue
	Reclaim           // after evictions in other queues
	Fit
)

// Assignment says which flavors a Workload gets, and with how many pods.
type Assignment struct {
	PodSets []PodSetAssignment
	Mode    Mode
	// Level is how far up in the tree the quota is borrowed: 0 if it is not (rule C5).
	Level int
	// Usage is what is charged, one amount for each flavor's resource, in the order of the dimensions.
	Usage []cohort.Amount
	// Needs are the flavors' resources that do not fit without evictions.
	Needs []resources.FR
	// NodesShort says that the nodes do not hold all pods without evictions.
	NodesShort bool
	// Cursor is where the next search begins, for each pod set and group: one behind the flavor at which this one has
	// stopped, -1 if that was the last. It is nil if all flavors of all groups have been tried.
	Cursor [][]int
	// Lacks are all flavors' resources that were short in the search, and NodesLacked says that nodes were. A change of
	// them may help.
	Lacks       []resources.FR
	NodesLacked bool
	// Contested says that fewer pods would have fitted if there were a Workload to evict.
	Contested bool
}

// Join takes in what was short in another search for the same Workload, with fewer pods.
func (a *Assignment) Join(other *Assignment) {
	for _, fr := range other.Lacks {
		if !slices.Contains(a.Lacks, fr) {
			a.Lacks = append(a.Lacks, fr)
		}
	}
	a.NodesLacked = a.NodesLacked || other.NodesLacked
	a.Contested = a.Contested || other.Mode != NoFit || other.Contested
}

// ExplainAs makes the assignment say what stands in the way of another for the same Workload, with fewer pods, if that
// is milder. What never has room for all pods may have some for a few.
func (a *Assignment) ExplainAs(fewer *Assignment) {
	code, _ := a.Refusal()
	if other, _ := fewer.Refusal(); other != 0 && other < code {
		a.PodSets = fewer.PodSets
	}
}

// PodSetAssignment is the part of an assignment for one pod set.
type PodSetAssignment struct {
	Name    string
	Count   int32
	Flavors []FlavorAssignment // one for each resource, in the order of groups and of resources in a group
	Mode    Mode
	// Reasons say why flavors do not fit, in the order in which they were tried.
	Reasons []Reason
}

// FlavorAssignment is the flavor of one resource.
type FlavorAssignment struct {
	Resource resources.Dim
	Flavor   *Flavor
	FR       resources.FR
	Value    int64 // of all pods together
	Mode     Mode
	Level    int
}

// Parts returns what is to be placed on nodes.
func (a *Assignment) Parts() []Part {
	parts := make([]Part, len(a.PodSets))
	for i := range a.PodSets {
		p := &a.PodSets[i]
		parts[i] = Part{PodSet: i, Count: p.Count}
		for j := range p.Flavors {
			parts[i].Flavors = appendNew(parts[i].Flavors, p.Flavors[j].Flavor)
		}
	}
	return parts
}

func appendNew(list []*Flavor, f *Flavor) []*Flavor {
	for _, other := range list {
		if other == f {
			return list
		}
	}
	return append(list, f)
}

// Why is the reason of an eviction, as in the condition Preempted.
type Why string

// The reasons.
const (
	InClusterQueue                Why = "InClusterQueue"
	InCohortReclamation           Why = "InCohortReclamation"
	InCohortFairSharing           Why = "InCohortFairSharing"
	InCohortReclaimWhileBorrowing Why = "InCohortReclaimWhileBorrowing"
)

// Victim is a Workload that is evicted for another.
type Victim struct {
	*Workload
	Why Why
}

// Claim is what a Workload asks for, when quota or nodes are short.
type Claim struct {
	Workload *Workload
	Usage    []cohort.Amount
	// Needs are the flavors' resources that do not fit. It is empty if only nodes are short.
	Needs []resources.FR
	// Parts are to be placed on nodes. It is nil if only quota is asked.
	Parts []Part
}

// Part is a number of pods of one pod set, and the flavors whose nodes they may use.
type Part struct {
	PodSet  int
	Count   int32
	Flavors []*Flavor
	// Added is what admission checks add to the pods, nil if nothing.
	Added *Addition
}

// Addition is what admission checks add to the pods of a pod set. It is not changed.
type Addition struct {
	Labels, Annotations, NodeSelector map[string]string
	Tolerations                       []corev1.Toleration
}

// Nodes is what decisions about Workloads ask of the nodes.
type Nodes interface {
	// CanPlace reports whether all pods of the parts find nodes now, together, next to all that hold or are promised
	// nodes.
	CanPlace(w *Workload, parts []Part) bool
	// CouldPlace reports whether they would find nodes if no pod stood there but their own.
	CouldPlace(w *Workload, parts []Part) bool
	// Opens reports whether a Workload stands on a node that could hold a pod of the parts, if no pod stood there.
	Opens(victim, w *Workload, parts []Part) bool
	// Stays reports whether a Workload cannot leave its nodes now. It can a little later.
	Stays(victim *Workload) bool
	// Leave takes the pods of a Workload from their nodes, as far as answers go, and Return puts them back.
	Leave(victim *Workload)
	Return(victim *Workload)
	// Promise places the parts as CanPlace would, and keeps the nodes for them. It reports false if they do not fit.
	Promise(w *Workload, parts []Part) bool
}

// Outcome is what became of a head in a round.
type Outcome string

// The outcomes.
const (
	Admitted     Outcome = "Admitted"
	Preempting   Outcome = "Preempting" // victims leave, and quota and nodes are promised
	Deferred     Outcome = "Deferred"   // fits when the victims of others have left; promised too
	RefusedNoFit Outcome = "NoFit"
	RefusedNone  Outcome = "NoCandidates" // evictions might help, and none is allowed
	Skipped      Outcome = "SkippedNoLongerFits"
)

// Nomination is a head with what it would get.
type Nomination struct {
	*Workload
	Assignment *Assignment
	Victims    []Victim
	Outcome    Outcome
	// Held says that there may be more victims once pods that are being bound have their nodes.
	Held bool
	// WaitsFor are those who must have left before the Workload starts: its victims, and those of others that it counts
	// on.
	WaitsFor []*Workload
}

// Rounds is what became of the rounds of a cycle.
type Rounds struct {
	// Count is how many of them there were: the heads of the queue that had most.
	Count int
	// AreCut says that there was no time for more: there are heads that no round has decided about.
	AreCut bool
}
