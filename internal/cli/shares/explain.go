package shares

import (
	"fmt"
	"slices"
	"strings"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/quota"
	"hekla.sh/hekla/pkg/quota/guarantee"
	"hekla.sh/hekla/pkg/resources"
)

// Amount is what a queue has of one resource. Guaranteed, By and Remaining are empty if no queue on the way names it.
type Amount struct{ Resource, Guaranteed, By, Held, Remaining, Preemptable string }

// Setting is a policy that holds for a queue, and where it is set.
type Setting struct{ Name, Value, From string }

// Explained is what the rules of guaranteed shares go by for one queue.
type Explained struct {
	Top      string // of the subtree
	Amounts  []Amount
	Settings []Setting
}

// Explain returns what the rules go by for a queue, false if it is in no subtree.
func (s *Shares) Explain(name string) (e Explained, isInside bool) {
	q, balance, isInside := s.of(name)
	if !isInside {
		return e, false
	}
	top := s.subtrees().Top(&q.Node)
	e.Top, e.Amounts = top.Name, s.amounts(q, &balance)
	way := wayOf(&q.Node, top)
	e.Settings = append(e.Settings, fence(way), gives(way, s.subtrees()), s.delay(&q.Node, top), priority(way))
	return e, true
}

func (s *Shares) amounts(q *cluster.Queue, balance *guarantee.Balance) (amounts []Amount) {
	index := s.read.Cluster().Resources
	for d, name := range index.Resources() {
		held := q.Subtree.Allocated.At(d)
		guaranteed, isNamed := balance.Guaranteed.At(d)
		if !isNamed && held == 0 {
			continue
		}
		a := Amount{Resource: string(name), Held: resources.Format(name, held), Preemptable: resources.Format(name, balance.Preemptable.At(d))}
		if isNamed {
			a.Guaranteed, a.By, a.Remaining = resources.Format(name, guaranteed), balance.By[d], resources.Format(name, balance.Remaining.Amount(d))
		}
		amounts = append(amounts, a)
	}
	slices.SortFunc(amounts, func(a, b Amount) int { return strings.Compare(a.Resource, b.Resource) })
	return amounts
}

// wayOf returns a queue and those above it, without the top of the subtree.
func wayOf(n, top *quota.Node) (way []*quota.Node) {
	for ; n != top; n = n.Above() {
		way = append(way, n)
	}
	return way
}

// defaults is where a setting comes from that no queue sets.
const defaults = "default"

func fence(way []*quota.Node) Setting {
	for _, n := range slices.Backward(way) {
		if n.Policies.Fence {
			return Setting{"takes room", "below queue " + n.Name + " only", "queue " + n.Name + " (fence)"}
		}
	}
	return Setting{"takes room", "in the whole subtree", defaults}
}

func gives(way []*quota.Node, subtrees *guarantee.Subtrees) Setting {
	for _, n := range way {
		switch {
		case n.Policies.Disabled:
			return Setting{"gives room", "never", "queue " + n.Name + " (disabled)"}
		case !n.Reclaimable:
			return Setting{"gives room", "never", "queue " + n.Name + " (reclaimable: false)"}
		}
	}
	return Setting{"gives room", "above its guarantee", defaults}
}

func (s *Shares) delay(n, top *quota.Node) Setting {
	setting := Setting{"preemption delay", s.subtrees().Delay(n).String(), "configuration of the scheduler"}
	for ; n != nil; n = n.Above() {
		if n.Policies.Delay != nil {
			setting.From = "queue " + n.Name
			break
		}
		if n == top {
			break
		}
	}
	return setting
}

// priority is what the priority of a job of the queue becomes below the top (rule G6).
func priority(way []*quota.Node) Setting {
	setting, offset := Setting{Name: "priority of jobs", From: defaults}, int64(0)
	var from []string
	isFenced := false
	for _, n := range way {
		if n.Policies.PriorityFence {
			isFenced, offset, from = true, 0, nil
		}
		if offset += int64(n.Policies.Offset); n.Policies.Offset != 0 || n.Policies.PriorityFence {
			from = append(from, "queue "+n.Name)
		}
	}
	switch {
	case isFenced:
		setting.Value = fmt.Sprintf("%d, whatever they have", offset)
	case offset == 0:
		setting.Value = "as they have"
	default:
		setting.Value = fmt.Sprintf("%+d", offset)
	}
	if len(from) > 0 {
		setting.From = strings.Join(from, ", ")
	}
	return setting
}
