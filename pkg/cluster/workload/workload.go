package workload

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/quota/cohort"
	"hekla.sh/hekla/pkg/resources"
)

// Workload is queued, admitted and evicted as one.
type Workload struct {
	UID       string
	Namespace string
	Name      string
	Queue     *Queue
	Priority  int32
	// Timestamp is the time that counts in the order of the queue, see rule C10.
	Timestamp time.Time
	PodSets   []PodSet
	// Shape is equal for Workloads whose pod sets and priority are equal. They share a refusal. It is "" for one that
	// shares none.
	Shape string

	// Phase is where the Workload is on its way.
	Phase Phase
	// Charge is what the Workload takes of the quota, nil if nothing is reserved for it.
	Charge []cohort.Amount
	// Reserved is when the quota was reserved.
	Reserved time.Time
	// Cursor is where the search for flavors goes on, see [Assignment.Cursor].
	Cursor [][]int

	evictedFor []*Workload // for whom this one was evicted
	evicts     []*Workload // who was evicted for this one

	holder  int // position among the holders of the queue plus one
	waiting int // position in the heap of the queue plus one
	refusal *refusal
}

// PodSet is a number of pods of one template.
type PodSet struct {
	Name  string
	Count int32
	// MinCount is the least number of pods with which the pod set can run; Count if it cannot shrink.
	MinCount int32
	// Requests are those of one pod, in the order of the dimensions.
	Requests []resources.Amount
	// Template is what the pods are made of, nil if only quota counts.
	Template *corev1.PodTemplateSpec
}

// Key is the name of the Workload with its namespace.
func (w *Workload) Key() string {
	if w.Namespace == "" {
		return w.Name
	}
	return w.Namespace + "/" + w.Name
}

// Below is the name of the queue of Volcano in which what the Workload holds counts as well, "" if there is none (rule
// C22).
func (w *Workload) Below() string {
	if w.Queue == nil || w.Queue.Tree() == nil {
		return ""
	}
	return w.Queue.Tree().Root.Below
}

// Compare sorts the Workloads of one queue (rule C10).
func Compare(a, b *Workload) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Timestamp.Compare(b.Timestamp), cmp.Compare(a.UID, b.UID))
}

// Uses reports whether the Workload is charged for any of the flavors' resources.
func (w *Workload) Uses(frs []resources.FR) bool {
	for _, a := range w.Charge {
		for _, fr := range frs {
			if a.FR == fr && a.Value > 0 {
				return true
			}
		}
	}
	return false
}

// CanShrink reports whether a pod set can run with fewer pods.
func (w *Workload) CanShrink() bool {
	for i := range w.PodSets {
		if w.PodSets[i].MinCount < w.PodSets[i].Count {
			return true
		}
	}
	return false
}

// EvictedFor notes that the Workload is evicted to make room for another.
func (w *Workload) EvictedFor(preemptor *Workload) {
	for _, t := range w.evictedFor {
		if t == preemptor {
			return
		}
	}
	w.evictedFor = append(w.evictedFor, preemptor)
	preemptor.evicts = append(preemptor.evicts, w)
}

// Forget ends all that is known of evictions by and of the Workload. It is called when the Workload finishes, is
// deleted, is deactivated or gets another priority, and when settings of its tree change (rule C20).
func (w *Workload) Forget() {
	for _, t := range w.evictedFor {
		t.evicts = without(t.evicts, w)
	}
	for _, v := range w.evicts {
		v.evictedFor = without(v.evictedFor, w)
	}
	w.evictedFor, w.evicts = nil, nil
}

func without(list []*Workload, w *Workload) []*Workload {
	return slices.DeleteFunc(list, func(other *Workload) bool { return other == w })
}

// Spares returns the Workloads that must not be evicted for this one: those for whom it was evicted, directly or in
// turn (rule C20). It is nil if there are none.
func (w *Workload) Spares() map[*Workload]bool {
	if len(w.evictedFor) == 0 {
		return nil
	}
	spared := map[*Workload]bool{}
	w.follow(spared, func(v *Workload) []*Workload { return v.evictedFor }, func(*Workload) {})
	return spared
}

// follow visits the Workloads that links lead to from this one, directly or in turn, and adds them to those seen. It
// visits none that has been seen.
func (w *Workload) follow(seen map[*Workload]bool, links func(*Workload) []*Workload, visit func(*Workload)) {
	next := []*Workload{w}
	for len(next) > 0 {
		last := next[len(next)-1]
		next = next[:len(next)-1]
		for _, t := range links(last) {
			if !seen[t] {
				seen[t] = true
				next = append(next, t)
				visit(t)
			}
		}
	}
}
