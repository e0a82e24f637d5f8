package queued

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hekla.sh/hekla/internal/cohorts/flavors"
	"hekla.sh/hekla/internal/cohorts/victims"
	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// MaxListed is how many Workloads a list names.
const MaxListed = 100

// States of a Workload.
const (
	Waiting   = "Waiting"   // in its ClusterQueue
	NotQueued = "NotQueued" // in none: the reason says why
	Promised  = "Promised"  // quota and nodes are promised, and others must leave first
	Reserved  = "Reserved"  // it holds quota and nodes, and its checks are not all ready
	Admitted  = "Admitted"
	Leaving   = "Leaving" // it was evicted, and some of its pods are not gone yet
	Finished  = "Finished"
)

// Workload is how a Workload stands.
type Workload struct {
	Workload   string `json:"workload"` // namespace and name
	LocalQueue string `json:"localQueue"`
	// ClusterQueue is where it waits or holds quota, absent if nowhere. Path is that of the ClusterQueue in the tree of
	// Cohorts.
	ClusterQueue string `json:"clusterQueue,omitempty"`
	Path         string `json:"path,omitempty"`
	// Wants is the ClusterQueue that its LocalQueue names. Inactive says why that or the LocalQueue admits nothing.
	Wants    string   `json:"wants,omitempty"`
	Inactive []string `json:"inactive,omitempty"`
	// Stopped is the one of them that a user has stopped, by kind and name.
	Stopped  string `json:"stopped,omitempty"`
	State    string `json:"state"`
	Priority int32  `json:"priority"`
	// Reason and Message are those of the condition that says why it waits or leaves.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Place is its position among the Workloads that wait in its ClusterQueue, the first is 1; Of is how many wait
	// there. Ahead are those before it, the first in front.
	Place int        `json:"place,omitempty"`
	Of    int        `json:"of,omitempty"`
	Ahead []Neighbor `json:"ahead,omitempty"`
	// Strict says that its ClusterQueue tries none before those ahead of it were admitted.
	Strict bool `json:"strict,omitempty"`
	// HeadReason is why the first of those ahead of it waits, if its ClusterQueue is strict.
	HeadReason string `json:"headReason,omitempty"`
	// Exceeds is a resource of which it requests more than any flavor of its ClusterQueue can ever give it, nil if
	// there is none.
	Exceeds *Shortage `json:"exceeds,omitempty"`
	// Checks are those that are not ready while it holds quota, with their states.
	Checks []string `json:"checks,omitempty"`
	// Short are the quotas that are less than it requests, by pod set and flavor, of the flavors that its pods can use.
	Short []Shortage `json:"short,omitempty"`
	// Candidates are Workloads that hold such quota, and that the policies of its ClusterQueue allow it to evict.
	// Whether they leave depends on the nodes, and on what the queues borrow then. Spared are those that rule C20
	// excepts: this one was evicted for them.
	Candidates     []Neighbor `json:"candidates,omitempty"`
	CandidateCount int        `json:"candidateCount"`
	Spared         []Neighbor `json:"spared,omitempty"`
	// WaitsFor are those that must leave before it starts, if it is Promised.
	WaitsFor []Neighbor `json:"waitsFor,omitempty"`
	// PodSets are what it holds or is promised.
	PodSets []PodSet `json:"podSets,omitempty"`
}

// Neighbor is another Workload.
type Neighbor struct {
	Workload     string `json:"workload"`
	ClusterQueue string `json:"clusterQueue,omitempty"`
	Priority     int32  `json:"priority"`
}

// Shortage is a quota that is less than what is requested of it.
type Shortage struct {
	PodSet   string `json:"podSet"`
	Flavor   string `json:"flavor"`
	Resource string `json:"resource"`
	// Requested is for all pods of the pod set. Available is what the ClusterQueue could take now, what it may borrow
	// included, and Most what it could take if nothing were used.
	Requested string `json:"requested"`
	Available string `json:"available"`
	Missing   string `json:"missing"`
	Most      string `json:"most"`
	// Nominal is the own quota of the ClusterQueue, Used what its Workloads hold.
	Nominal string `json:"nominal"`
	Used    string `json:"used"`
}

// PodSet is what a pod set holds.
type PodSet struct {
	Name    string   `json:"name"`
	Count   int32    `json:"count"`
	Flavors []string `json:"flavors,omitempty"`
	Nodes   []Node   `json:"nodes,omitempty"`
}

// Node is a number of pods on a node.
type Node struct {
	Node  string `json:"node"`
	Count int32  `json:"count"`
}

// Of explains a Workload among those of a reader. rules say whom it may evict.
func Of(index *resources.Index, reader *workloads.Reader, rules *victims.Rules, e *workloads.Entry) Workload {
	answer := standing(e)
	if e.Queue != nil {
		answer.Path = e.Queue.Path()
	}
	switch answer.State {
	case Promised:
		for _, other := range e.WaitsFor() {
			answer.WaitsFor = append(answer.WaitsFor, neighbor(&other.Workload))
		}
	case Reserved:
		answer.Checks = unready(e)
	case Waiting:
		line := e.Queue.Line()
		slices.SortFunc(line, workload.Compare)
		at := slices.Index(line, &e.Workload)
		answer.Place, answer.Of, answer.Ahead, answer.Strict = at+1, len(line), neighbors(line[:max(at, 0)]), e.Queue.Strict
		if at > 0 && e.Queue.Strict {
			answer.HeadReason = reasonOf(reader, line[0])
		}
		waiting(index, rules, e, &answer)
	case NotQueued:
		answer.Inactive, answer.Stopped = reader.Inactive(e), reader.Stopped(e)
	}
	if e.Held != nil {
		answer.PodSets = podSets(e.Held)
	}
	return answer
}

// standing says in which state a Workload is, and what its conditions say.
func standing(e *workloads.Entry) Workload {
	answer := Workload{Workload: e.ID().String(), LocalQueue: e.Object.Spec.QueueName, Wants: e.Wants(), State: state(e), Priority: e.Priority}
	if e.Queue != nil {
		answer.ClusterQueue = e.Queue.Name
	}
	answer.Reason, answer.Message = e.Why()
	if kind := map[string]string{Finished: v1beta2.Finished, Leaving: v1beta2.Evicted}[answer.State]; kind != "" {
		if c := conditions.Of(e.Object, kind); c != nil {
			answer.Reason, answer.Message = c.Reason, c.Message
		}
	}
	return answer
}

func state(e *workloads.Entry) string {
	switch {
	case conditions.Is(e.Object, v1beta2.Finished):
		return Finished
	case e.Phase == workload.PhaseEvicting:
		return Leaving
	case e.Phase == workload.PhasePlanned:
		return Promised
	case e.Held != nil && conditions.Is(e.Object, v1beta2.Admitted):
		return Admitted
	case e.Held != nil:
		return Reserved
	case e.Queue != nil:
		return Waiting
	}
	return NotQueued
}

// unready lists the checks of a Workload that are not ready.
func unready(e *workloads.Entry) (checks []string) {
	for i := range e.Object.Status.AdmissionChecks {
		c := &e.Object.Status.AdmissionChecks[i]
		if c.State == v1beta2.CheckReady {
			continue
		}
		text := fmt.Sprintf("%s is %s", c.Name, c.State)
		if c.Message != "" {
			text += " (" + c.Message + ")"
		}
		checks = append(checks, text)
	}
	return checks
}

func neighbor(w *workload.Workload) Neighbor {
	n := Neighbor{Workload: w.Key(), Priority: w.Priority}
	if w.Queue != nil {
		n.ClusterQueue = w.Queue.Name
	}
	return n
}

func neighbors(all []*workload.Workload) (list []Neighbor) {
	for _, w := range all[:min(len(all), MaxListed)] {
		list = append(list, neighbor(w))
	}
	return list
}

func podSets(held *workloads.Held) (sets []PodSet) {
	for i := range held.PodSets {
		h := &held.PodSets[i]
		set := PodSet{Name: h.Name, Count: h.Count}
		for _, f := range h.Flavors {
			set.Flavors = append(set.Flavors, f.Name)
		}
		for _, n := range h.Nodes {
			set.Nodes = append(set.Nodes, Node{n.Node, n.Count})
		}
		sets = append(sets, set)
	}
	return sets
}

// waiting says what a Workload lacks, and who has that.
func waiting(index *resources.Index, rules *victims.Rules, e *workloads.Entry, answer *Workload) {
	claim := claimOf(index, e, answer)
	if len(claim.Needs) == 0 {
		return
	}
	candidates, spared := rules.Candidates(claim)
	answer.Candidates, answer.CandidateCount, answer.Spared = neighbors(candidates), len(candidates), neighbors(spared)
}

// claimOf says what a Workload lacks, and returns it as a claim.
func claimOf(index *resources.Index, e *workloads.Entry, answer *Workload) *workload.Claim {
	claim := &workload.Claim{Workload: &e.Workload}
	asked := map[resources.FR]int64{} // of each flavor's resource, by the pod sets so far
	for i := range e.PodSets {
		set := &e.PodSets[i]
		for _, r := range requests(index, set) {
			group, position := e.Queue.Group(r.Dim)
			if group < 0 {
				continue // the message says so
			}
			can := usable(e.Queue.Groups[group].Flavors, set)
			least, impossible := product(r.Value, int64(set.MinCount)), 0
			for f := range can {
				fr, value := can[f].FRs[position], product(r.Value, int64(set.Count))
				available := e.Queue.Available(fr) - asked[fr] // below 0 if quotas were made smaller
				if value <= available {
					if len(can) == 1 {
						asked[fr] += value // the others may get another flavor
					}
					continue
				}
				name := index.Name(r.Dim)
				text := func(value int64) string { q := resources.Quantity(name, max(value, 0)); return q.String() }
				answer.Short = append(answer.Short, Shortage{PodSet: set.Name, Flavor: can[f].Name, Resource: string(name), Requested: text(value),
					Available: text(available), Missing: text(value - available), Most: text(e.Queue.Potential(fr)),
					Nominal: text(e.Queue.Nominal(fr)), Used: text(e.Queue.Usage(fr))})
				if least > e.Queue.Potential(fr) {
					impossible++
				}
				if !slices.Contains(claim.Needs, fr) {
					claim.Needs = append(claim.Needs, fr)
					claim.Usage = append(claim.Usage, cohort.Amount{FR: fr, Value: value})
				}
			}
			if impossible == len(can) && impossible > 0 {
				answer.Exceeds = &answer.Short[len(answer.Short)-1]
			}
		}
	}
	return claim
}

// reasonOf is why a Workload waits.
func reasonOf(reader *workloads.Reader, w *workload.Workload) string {
	e := reader.Of(w)
	if e == nil {
		return ""
	}
	reason, _ := e.Why()
	return cmp.Or(reason, v1beta2.ReasonPendingEvaluation)
}

// usable are the flavors that the pods of a pod set can use. If they can use none, the message of the condition says
// why.
func usable(all []workload.GroupFlavor, set *workload.PodSet) (can []workload.GroupFlavor) {
	for _, f := range all {
		if flavors.Unusable(f.Flavor, set.Template) == "" {
			can = append(can, f)
		}
	}
	return can
}

// requests are those of one pod of a pod set, with one pod if these are counted.
func requests(index *resources.Index, set *workload.PodSet) []resources.Amount {
	all := slices.Clone(set.Requests)
	if pods, is := index.Find("pods"); is {
		all = append(all, resources.Amount{Dim: pods, Value: 1})
	}
	return all
}

func product(value, count int64) int64 {
	if count > 0 && value > cohort.Unlimited/count {
		return cohort.Unlimited
	}
	return value * count
}

// Sentence says in a line what a shortage is.
func (s *Shortage) Sentence() string {
	return fmt.Sprintf("pod set %s needs %s %s of flavor %s: %s of at most %s could be taken now, short by %s", s.PodSet, s.Requested, s.Resource, s.Flavor,
		s.Available, s.Most, s.Missing)
}

// Names are those of a list, at most some of them.
func Names(list []Neighbor, most int) string {
	names := make([]string, 0, most)
	for _, n := range list[:min(len(list), most)] {
		names = append(names, n.Workload)
	}
	if more := len(list) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
