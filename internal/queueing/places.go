package queueing

import (
	"slices"

	"hekla.sh/hekla/pkg/apis/kueue/conditions"
	"hekla.sh/hekla/pkg/apis/kueue/settings"
	"hekla.sh/hekla/pkg/apis/kueue/v1beta2"
)

// Reclaim writes how many places of each podset the job of a Workload does not need any more, by what it demands.
// keepsCounts is as in [Job]. While the Workload holds quota, a place that was given up is not taken back:
// others may have it. See [Outgrows].
func Reclaim(w *v1beta2.Workload, demands []Demand, keepsCounts bool) {
	isHeld := conditions.Is(w, v1beta2.QuotaReserved)
	var all []v1beta2.ReclaimablePod
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		name, before := settings.PodSetName(set), reclaimed(w, settings.PodSetName(set))
		d, is := demandOf(w, demands, name)
		if !is {
			if before > 0 {
				all = append(all, v1beta2.ReclaimablePod{Name: name, Count: before})
			}
			continue
		}
		most := admitted(w, name, set.Count)
		ended := int32(0)
		if places := max(d.needed(keepsCounts, set.Count, most), d.Has); places < most {
			ended = set.Count - places // of all that are queued, so that so many are queued if the job has to start again
		}
		if isHeld {
			ended = max(ended, before)
		}
		if ended = min(ended, set.Count); ended > 0 {
			all = append(all, v1beta2.ReclaimablePod{Name: name, Count: ended})
		}
	}
	if !slices.Equal(all, w.Status.ReclaimablePods) {
		w.Status.ReclaimablePods = all
	}
}

// Outgrows reports whether a job needs more places of a podset than its Workload has: it wants more pods than were
// admitted, or pods for which it has given the places up.
func Outgrows(w *v1beta2.Workload, demands []Demand, keepsCounts bool) bool {
	if w.Status.Admission == nil {
		return false
	}
	for i := range w.Spec.PodSets {
		set := &w.Spec.PodSets[i]
		name := settings.PodSetName(set)
		d, is := demandOf(w, demands, name)
		if !is {
			continue
		}
		_, left := settings.PodsLeft(w, &v1beta2.PodSetAssignment{Name: name, Count: new(admitted(w, name, set.Count))})
		if d.needed(keepsCounts, set.Count, admitted(w, name, set.Count)) > left {
			return true
		}
	}
	return false
}

// needed is how many places a job needs, if it was admitted with at most so many of those that it was queued with.
func (d *Demand) needed(keepsCounts bool, queued, most int32) int32 {
	count := d.Count
	if keepsCounts && count <= queued {
		count = min(count, most)
	}
	return max(count-d.Ended, 0)
}

// demandOf is what a job demands of a podset. A job that has only one podset demands it whatever its name is.
func demandOf(w *v1beta2.Workload, all []Demand, name string) (Demand, bool) {
	for i := range all {
		if all[i].Name == name || len(all) == 1 && len(w.Spec.PodSets) == 1 {
			return all[i], true
		}
	}
	return Demand{}, false
}

// admitted is with how many pods a podset was admitted, all if it was not, or the admission does not say.
func admitted(w *v1beta2.Workload, name string, all int32) int32 {
	if w.Status.Admission != nil {
		for _, p := range w.Status.Admission.PodSetAssignments {
			if p.Name == name && p.Count != nil {
				return *p.Count
			}
		}
	}
	return all
}

func reclaimed(w *v1beta2.Workload, name string) int32 {
	for _, r := range w.Status.ReclaimablePods {
		if r.Name == name {
			return r.Count
		}
	}
	return 0
}
