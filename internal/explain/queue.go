package explain

import (
	"math"
	"slices"
	"time"

	"hekla.sh/hekla/internal/eviction/rules"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/framework"
)

// Queue explains what a queue holds and may hold, and between which queues pods may be reclaimed.
func (m *Model) Queue(now time.Time, name string) (Queue, error) {
	q := m.cluster.Queue(name)
	if q == nil {
		if root := m.cluster.Root(); root.Name != name {
			return Queue{}, NotFound{Kind: "Queue", Name: name}
		} else {
			q = root
		}
	}
	answer := Queue{Queue: name, State: "Open", Problem: q.Problem, Priority: q.Priority, Weight: q.Weight, Reclaimable: q.Reclaimable,
		Holds: m.amounts(q.Subtree.Allocated), Requests: m.amounts(q.Subtree.Request), KeptForAdmitted: m.amounts(q.Subtree.Inqueue),
		Guarantee: m.limits(q.Guarantee), Capability: m.limits(q.Capability), Deserved: Amounts{}}
	if !q.Open() {
		answer.State = string(q.Object.Status.State)
	}
	if q.Parent != nil {
		answer.Parent = q.Parent.Name
	}
	for _, child := range q.Children {
		answer.Children = append(answer.Children, child.Name)
	}
	answer.Children = answer.Children[:min(len(answer.Children), MaxListed)]
	answer.Jobs = m.jobsOf(q)
	m.try(now, func(s *framework.Session) {
		if share, ok := m.policy.Share(q); ok {
			answer.Deserved = m.limits(share.Deserved)
			if value := share.Share.Float(); !math.IsInf(value, 0) {
				answer.Share = &value
			}
		}
		if q.Object == nil || len(q.Children) > 0 {
			return
		}
		for _, other := range m.cluster.Queues() {
			if other == q || other.Object == nil || len(other.Children) > 0 || len(answer.TakesFrom) == MaxListed {
				continue
			}
			why := rules.QueueProtection(s, q, &other.Node)
			answer.TakesFrom = append(answer.TakesFrom, Relation{Queue: other.Name, May: why.IsNone(), Protection: protection(why)})
			why = rules.QueueProtection(s, other, &q.Node)
			answer.GivesTo = append(answer.GivesTo, Relation{Queue: other.Name, May: why.IsNone(), Protection: protection(why)})
		}
	})
	return answer, nil
}

// jobsOf counts the jobs of a queue.
func (m *Model) jobsOf(q *cluster.Queue) JobList {
	var list JobList
	var first []*cluster.Job // that wait, by name
	for _, j := range q.Members() {
		switch {
		case j.Group == nil || j.IsForeign || j.Over():
			continue
		case j.IsPendingAdmission():
			list.Pending++
		case j.Lacks() > 0:
			list.Admitted++
		default:
			list.Running++
			continue
		}
		if len(first) == MaxListed {
			if j.ID.Compare(first[MaxListed-1].ID) > 0 {
				continue
			}
			first = first[:MaxListed-1]
		}
		at, _ := slices.BinarySearchFunc(first, j, func(a, b *cluster.Job) int { return a.ID.Compare(b.ID) })
		first = slices.Insert(first, at, j)
	}
	for _, j := range first {
		list.Waiting = append(list.Waiting, j.Name())
	}
	return list
}
