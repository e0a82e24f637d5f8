package journal

import (
	"cmp"
	"hash/maphash"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"hekla.sh/hekla/pkg/cluster"
)

// All returns the newest entries, at most as many as most, the oldest of them first.
func (l *Journal) All(most int) []Entry {
	return l.find(l.newest, most, (*record).before, func(*record) bool { return true })
}

// Size is how many entries there are, and how many bytes they hold, as far as [Limits] count them.
func (l *Journal) Size() (entries, bytes int) { return l.entries, l.bytes }

// OfJob returns the newest entries about a job, at most as many as most, the oldest first. Evictions for the job are
// included.
func (l *Journal) OfJob(id cluster.JobID, most int) []Entry {
	found := slices.Clone(l.elsewhere[id])
	if j := l.jobs[id]; j != nil {
		for at := j.oldest; at != none; at = l.record(at).nextOfJob {
			if r := l.record(at); r.job == id || r.preemptor == id {
				found = append(found, at)
			}
		}
	}
	return l.newestOf(found, most)
}

// OfPod returns the same about a pod.
func (l *Journal) OfPod(pod types.NamespacedName, most int) []Entry {
	var found []int32
	hash := maphash.Comparable(l.seed, pod)
	for at, other := range l.pods {
		if other == hash && l.record(int32(at)).pod == pod { // not if it was dropped
			found = append(found, int32(at))
		}
	}
	return l.newestOf(found, most)
}

// newestOf returns the newest of some records, in any order, the oldest of them first.
func (l *Journal) newestOf(found []int32, most int) []Entry {
	slices.SortFunc(found, func(a, b int32) int { return cmp.Compare(l.record(a).number, l.record(b).number) })
	found = found[max(len(found)-most, 0):]
	entries := make([]Entry, len(found))
	for i, at := range found {
		entries[i] = l.record(at).entry()
	}
	return entries
}

// OfQueue returns the same about the jobs of a queue itself.
func (l *Journal) OfQueue(queue string, most int) []Entry {
	newest, isKnown := l.queues[queue]
	if !isKnown {
		newest = none
	}
	return l.find(newest, most, (*record).beforeOfQueue, func(*record) bool { return true })
}

// Evictions returns the newest evictions, at most as many as most, the oldest first.
func (l *Journal) Evictions(most int) []Entry {
	return l.find(l.newest, most, (*record).before, func(r *record) bool { return r.kind == Evicted })
}

func (r *record) before() int32 { return r.previous }

func (r *record) beforeOfQueue() int32 { return r.previousOfQueue }

// find goes back from a record.
func (l *Journal) find(from int32, most int, before func(*record) int32, matches func(*record) bool) []Entry {
	var found []int32
	for at := from; at != none && len(found) < most; at = before(l.record(at)) {
		if matches(l.record(at)) {
			found = append(found, at)
		}
	}
	entries := make([]Entry, len(found))
	for i, at := range found {
		entries[len(found)-1-i] = l.record(at).entry()
	}
	return entries
}

func (r *record) entry() Entry {
	e := Entry{Cycle: r.cycle, Time: r.time, Kind: r.kind, Job: nameOf(r.job), Queue: r.queue, Pod: nameOf(r.pod), Node: r.node,
		For: nameOf(r.preemptor), Action: r.action, Rule: r.rule, Plan: r.plan, Reason: r.reason, Message: r.message}
	if r.verdict != nil {
		e.Reason, e.Message, e.Subject = string(r.verdict.Reason()), r.verdict.Sentence(), r.verdict.Subject
	}
	return e
}

// nameOf is the text of a name, "" of none.
func nameOf[T interface {
	comparable
	String() string
}](name T) string {
	var none T
	if name == none {
		return ""
	}
	return name.String()
}
