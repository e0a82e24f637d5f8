package rules

import (
	"fmt"
	"iter"
	"slices"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/decision"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/quota"
)

// EvictableQueues returns, for each queue with evictable pods, the lowest priority of a job that has any.
func EvictableQueues(s *framework.Session) map[*quota.Node]int32 {
	queues := map[*quota.Node]int32{}
	s.Cluster.EachJob(func(j *cluster.Job) {
		if j.Queue == nil || j.IsForeign || j.Evictable() == 0 {
			return
		}
		if lowest, ok := queues[j.QuotaNode()]; !ok || j.Priority < lowest {
			queues[j.QuotaNode()] = j.Priority
		}
	})
	return queues
}

// QueuesOnNodes yields the queues of evictable pods on nodes, each once. EvictableQueues may have more, of pods on
// nodes that are gone.
func QueuesOnNodes(s *framework.Session) iter.Seq[*quota.Node] {
	return func(yield func(*quota.Node) bool) {
		seen := map[*quota.Node]bool{}
		for _, n := range s.Cluster.Nodes() {
			for _, t := range n.Tasks() {
				j := t.Job
				if !t.Status.Evictable() || j == nil || j.Group == nil || j.Queue == nil || j.IsForeign || seen[j.QuotaNode()] {
					continue
				}
				if seen[j.QuotaNode()] = true; !yield(j.QuotaNode()) {
					return
				}
			}
		}
	}
}

// SparedQueues names sets of queues, so that preemptors which may not evict pods of the same queues are known to be
// alike.
type SparedQueues struct {
	known  map[sparedKey]string
	number map[*quota.Node]int // a number for each queue
}

// sparedKey holds the properties that decide from which queues a preemptor may not evict pods.
type sparedKey struct {
	scope   decision.Scope
	queue   *quota.Node
	variant uint8
}

// Of returns the numbers of the queues from which a preemptor may not evict pods. The keys of evictable are the queues
// with evictable pods.
func (f *SparedQueues) Of(r *Rules, evictable func() map[*quota.Node]int32) string {
	if f.known == nil {
		f.known, f.number = map[sparedKey]string{}, map[*quota.Node]int{}
	}
	of := sparedKey{scope: r.Scope, queue: r.Preemptor.QuotaNode(), variant: r.Variant()}
	if known, ok := f.known[of]; ok {
		return known
	}
	var numbers []int
	for q := range evictable() {
		if _, isNumbered := f.number[q]; !isNumbered {
			f.number[q] = len(f.number)
		}
		if !r.MayEvictFrom(q) {
			numbers = append(numbers, f.number[q])
		}
	}
	slices.Sort(numbers)
	f.known[of] = fmt.Sprint(numbers)
	return f.known[of]
}
