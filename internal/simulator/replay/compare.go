package replay

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"hekla.sh/hekla/internal/journal"
	"hekla.sh/hekla/internal/simulator"
	"hekla.sh/hekla/internal/snapshot"
	"hekla.sh/hekla/pkg/cluster/decision"
)

// Difference is in what two replays of one snapshot differ.
type Difference struct {
	// Same is how many decisions both have made, in whichever order.
	Same int `json:"same"`
	// Before are those that only the first has made, After those that only the second has.
	Before []journal.Entry `json:"before,omitempty"`
	After  []journal.Entry `json:"after,omitempty"`
	// Jobs and Workloads are those that stand otherwise at the end.
	Jobs      []JobDifference `json:"jobs,omitempty"`
	Workloads []JobDifference `json:"workloads,omitempty"`
}

// IsNone reports whether there is no difference.
func (d *Difference) IsNone() bool {
	return len(d.Before)+len(d.After)+len(d.Jobs)+len(d.Workloads) == 0
}

// JobDifference is where a job stands at the end of two replays: its phase, how many pods have a node, and why it
// waits. Of a Workload it is with which flavors it is admitted, or why it waits.
type JobDifference struct {
	Job    string `json:"job"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Compare says in what a second replay differs from the first.
func Compare(before, after *Result) Difference {
	var d Difference
	d.Before, d.After, d.Same = differ(before.Decisions, after.Decisions)
	second := map[string]simulator.Job{}
	for _, j := range after.Jobs {
		second[j.Job] = j
	}
	for _, j := range before.Jobs {
		if was, is := standing(j), standing(second[j.Job]); was != is {
			d.Jobs = append(d.Jobs, JobDifference{Job: j.Job, Before: was, After: is})
		}
	}
	stands := map[string]string{}
	for i := range after.Workloads {
		stands[after.Workloads[i].Workload] = standingOf(&after.Workloads[i])
	}
	for i := range before.Workloads {
		name := before.Workloads[i].Workload
		if was, is := standingOf(&before.Workloads[i]), cmp.Or(stands[name], "gone"); was != is {
			d.Workloads = append(d.Workloads, JobDifference{Job: name, Before: was, After: is})
		}
	}
	return d
}

// standingOf says where a Workload stands, without its nodes: these are among the decisions.
func standingOf(w *simulator.Workload) string {
	if !w.Admitted {
		return strings.TrimSpace("waits " + w.Reason)
	}
	var flavors []string
	for _, set := range slices.Sorted(maps.Keys(w.Flavors)) {
		of := w.Flavors[set]
		for _, resource := range slices.Sorted(maps.Keys(of)) {
			flavors = append(flavors, of[resource])
		}
	}
	slices.Sort(flavors)
	return strings.TrimSpace("admitted by ClusterQueue " + w.ClusterQueue + " with " + strings.Join(slices.Compact(flavors), ", "))
}

func standing(j simulator.Job) string {
	text := cmp.Or(j.Phase, "gone") + " " + strconv.Itoa(j.Ready) + "/" + strconv.Itoa(j.MinAvailable)
	if j.Reason != "" {
		text += " " + j.Reason
	}
	return text
}

// decided is a decision without its time, and without the plan it belongs to, whose name has the time. Pods that a
// controller makes for a Workload after the snapshot have names that are not known before, so their bindings are told
// apart by Workload and node.
func decided(e journal.Entry) string {
	if _, name, _ := strings.Cut(e.Job, "/"); e.Kind == journal.Bound && decision.ParseJobID("", name).Kind == decision.OfWorkload {
		e.Pod = ""
	}
	return strings.Join([]string{string(e.Kind), e.Job, e.Queue, e.Pod, e.Node, e.For, e.Action, e.Rule}, "|")
}

// differ returns what only one of two lists has, and how much both have.
func differ(a, b []journal.Entry) (onlyA, onlyB []journal.Entry, same int) {
	count := map[string]int{}
	for _, e := range b {
		count[decided(e)]++
	}
	for _, e := range a {
		if count[decided(e)] > 0 {
			count[decided(e)]--
			same++
			continue
		}
		onlyA = append(onlyA, e)
	}
	for _, e := range slices.Backward(b) {
		if count[decided(e)] > 0 { // of several that are equal the last ones are left over
			count[decided(e)]--
			onlyB = append(onlyB, e)
		}
	}
	slices.Reverse(onlyB)
	return onlyA, onlyB, same
}

// Agreement says how far a replay has decided what the cluster has.
type Agreement struct {
	// Same is how many decisions of the cluster the replay has made. Missing are those of the cluster that it has not,
	// Others those that it has made and the cluster has not, or not yet.
	Same    int             `json:"same"`
	Missing []journal.Entry `json:"missing,omitempty"`
	Others  []journal.Entry `json:"others,omitempty"`
}

// Check compares a replay of a snapshot with what was decided since, as the journal of a later snapshot tells.
func Check(of *snapshot.Snapshot, r *Result, later *snapshot.Snapshot) Agreement {
	var since []journal.Entry
	for _, e := range later.Journal {
		if isDecision(e) && e.Cycle > of.Cycle {
			since = append(since, e)
		}
	}
	var a Agreement
	a.Missing, a.Others, a.Same = differ(since, r.Decisions)
	return a
}
