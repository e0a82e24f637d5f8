package queued

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
	"hekla.sh/hekla/pkg/cluster/workload"
	"hekla.sh/hekla/pkg/cluster/workloads"
	"hekla.sh/hekla/pkg/cluster/workloads/queues"
	"hekla.sh/hekla/pkg/resources"
)

// Help is a change with which there would be quota for a Workload that waits. Whether there are nodes, too, is not
// looked at.
type Help struct {
	Kind    string // fewerPods, smallerRequests, anotherQueue or moreQuota
	Message string
}

// maxQueues is in how many LocalQueues it is looked for quota.
const maxQueues = 8

// Helps looks for changes with which there would be quota for a Workload that waits in a ClusterQueue and lacks some.
func Helps(index *resources.Index, registry *queues.Registry, e *workloads.Entry, w *Workload) (all []Help) {
	if w.State != Waiting || len(w.Short) == 0 {
		return nil
	}
	add := func(kind, message string) {
		if message != "" {
			all = append(all, Help{kind, message})
		}
	}
	if len(e.PodSets) == 1 {
		add("fewerPods", fewerPods(index, e.Queue, &e.PodSets[0]))
		add("smallerRequests", smallerRequests(index, e.Queue, &e.PodSets[0]))
	}
	add("anotherQueue", anotherQueue(index, registry, e))
	for _, message := range moreQuota(index, e.Queue, &e.Workload) {
		add("moreQuota", message)
	}
	return all
}

// asks are what a number of pods of a pod set ask of one resource group of a ClusterQueue.
type asks struct {
	group int
	each  []resources.Amount // of one pod
	at    []int              // the position of each resource in the group
}

// asksOf groups what a pod of a pod set requests. ok is false if the ClusterQueue does not cover a resource.
func asksOf(index *resources.Index, q *workload.Queue, set *workload.PodSet) (all []asks, ok bool) {
	for _, r := range requests(index, set) {
		if r.Value == 0 {
			continue
		}
		group, position := q.Group(r.Dim)
		if group < 0 {
			if index.Name(r.Dim) == "pods" {
				continue // pods are counted only where a group covers them
			}
			return nil, false
		}
		at := slices.IndexFunc(all, func(a asks) bool { return a.group == group })
		if at < 0 {
			at = len(all)
			all = append(all, asks{group: group})
		}
		all[at].each, all[at].at = append(all[at].each, r), append(all[at].at, position)
	}
	return all, true
}

// fewerPods says with how many pods of a pod set there would be quota.
func fewerPods(index *resources.Index, q *workload.Queue, set *workload.PodSet) string {
	groups, ok := asksOf(index, q, set)
	if !ok {
		return ""
	}
	most := int64(set.Count)
	for _, g := range groups {
		best := int64(0)
		for _, f := range usable(q.Groups[g.group].Flavors, set) {
			can := most
			for i, r := range g.each {
				can = min(can, max(q.Available(f.FRs[g.at[i]]), 0)/r.Value)
			}
			best = max(best, can)
		}
		most = best
	}
	if most < 1 || most >= int64(set.Count) {
		return ""
	}
	return fmt.Sprintf("with %d instead of %d pods there would be quota now", most, set.Count)
}

// smallerRequests says with which requests of each pod there would be quota, of the resources that are short.
func smallerRequests(index *resources.Index, q *workload.Queue, set *workload.PodSet) string {
	groups, ok := asksOf(index, q, set)
	if !ok || set.Count < 1 {
		return ""
	}
	var parts []string
	for _, g := range groups {
		var best []string
		isFound := false
		for _, f := range usable(q.Groups[g.group].Flavors, set) {
			var smaller []string
			fits := true
			for i, r := range g.each {
				name, can := index.Name(r.Dim), max(q.Available(f.FRs[g.at[i]]), 0)/int64(set.Count)
				switch {
				case can >= r.Value:
				case can < 1 || name == "pods":
					fits = false
				default:
					smaller = append(smaller, fmt.Sprintf("%s %s instead of %s", name, resources.FormatAmount(name, can), resources.FormatAmount(name, r.Value)))
				}
			}
			if fits && (!isFound || len(smaller) < len(best)) {
				isFound, best = true, smaller
			}
		}
		if !isFound {
			return ""
		}
		parts = append(parts, best...)
	}
	if len(parts) == 0 {
		return ""
	}
	return "if each of its pods requested " + strings.Join(parts, ", ") + " there would be quota now"
}

// anotherQueue says in which other LocalQueue of the namespace there is quota for a Workload, the first by name.
func anotherQueue(index *resources.Index, registry *queues.Registry, e *workloads.Entry) string {
	others := slices.DeleteFunc(registry.LocalQueueNames(e.Namespace), func(name string) bool { return name == e.Object.Spec.QueueName })
	slices.Sort(others)
	for _, name := range others[:min(len(others), maxQueues)] {
		l := registry.FindLocalQueue(types.NamespacedName{Namespace: e.Namespace, Name: name})
		c := registry.FindClusterQueue(l.Settings.ClusterQueue)
		if c == nil || c.Queue == nil || c.Queue == e.Queue || c.Queue.Inactive != "" || l.Settings.Stop != v1beta2.StopNone || l.Settings.Problem != "" || !registry.Matches(c, e.Namespace) {
			continue
		}
		if c.Queue.Strict && len(c.Queue.Line()) > 0 {
			continue // others come first
		}
		if fits(index, c.Queue, &e.Workload) {
			return fmt.Sprintf("in LocalQueue %s, of ClusterQueue %s, there would be quota now", name, c.Name)
		}
	}
	return ""
}

// fits reports whether a ClusterQueue has quota for all pods of a Workload now.
func fits(index *resources.Index, q *workload.Queue, w *workload.Workload) bool {
	asked := map[resources.FR]int64{}
	for i := range w.PodSets {
		set := &w.PodSets[i]
		groups, ok := asksOf(index, q, set)
		if !ok {
			return false
		}
		for _, g := range groups {
			flavors := usable(q.Groups[g.group].Flavors, set)
			at := slices.IndexFunc(flavors, func(f workload.GroupFlavor) bool {
				for i, r := range g.each {
					if fr := f.FRs[g.at[i]]; product(r.Value, int64(set.Count)) > q.Available(fr)-asked[fr] {
						return false
					}
				}
				return true
			})
			if at < 0 {
				return false
			}
			for i, r := range g.each {
				asked[flavors[at].FRs[g.at[i]]] += product(r.Value, int64(set.Count))
			}
		}
	}
	return true
}

// moreQuota says of each resource of which a Workload lacks quota, how large that of the flavor would have to be which
// lacks least.
func moreQuota(index *resources.Index, q *workload.Queue, w *workload.Workload) (messages []string) {
	asked := map[resources.FR]int64{}
	for i := range w.PodSets {
		set := &w.PodSets[i]
		groups, _ := asksOf(index, q, set)
		for _, g := range groups {
			var best *workload.GroupFlavor
			var least int64
			flavors := usable(q.Groups[g.group].Flavors, set)
			for f := range flavors {
				var lacks int64
				for i, r := range g.each {
					fr := flavors[f].FRs[g.at[i]]
					lacks = max(lacks, product(r.Value, int64(set.Count))-(q.Available(fr)-asked[fr]))
				}
				if best == nil || lacks < least {
					best, least = &flavors[f], lacks
				}
			}
			if best == nil {
				continue
			}
			for i, r := range g.each {
				fr, name := best.FRs[g.at[i]], index.Name(r.Dim)
				wants := product(r.Value, int64(set.Count))
				if lacks := wants - (q.Available(fr) - asked[fr]); lacks > 0 {
					messages = append(messages, fmt.Sprintf("ClusterQueue %s needs a nominalQuota of %s %s of flavor %s instead of %s", q.Name, resources.FormatAmount(name, q.Nominal(fr)+lacks), name,
						best.Name, resources.FormatAmount(name, q.Nominal(fr))))
				}
				asked[fr] += wants
			}
		}
	}
	return messages
}
