package rules

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// share is what queues may hold by right and at most, as the plugins divide the cluster (rule Q6).
type share struct {
	deserved map[*queue]map[corev1.ResourceName]float64 // of what a share speaks of
	ceiling  map[*queue]map[corev1.ResourceName]float64
	divides  bool // a plugin gives shares
}

// rounding is how far an amount may be from the exact share, in thousandths: shares are whole numbers of the unit in
// which a resource is counted, which is a thousandth for the CPU alone.
func rounding(name corev1.ResourceName) float64 {
	if name == corev1.ResourceCPU {
		return 1
	}
	return 999
}

func (p *picture) shares() *share {
	s := &share{deserved: map[*queue]map[corev1.ResourceName]float64{}, ceiling: map[*queue]map[corev1.ResourceName]float64{}}
	total := amounts{}
	for _, n := range p.nodes {
		ours, others := p.held(n)
		total.add(ours, 1) // who is there holds what queues have, also where nobody may come any more
		if p.isUsable(n) {
			for name, value := range amountsOf(n.Status.Allocatable) {
				total[name] += max(value-ours[name]-others[name], 0)
			}
		}
	}
	switch p.setting.sharer {
	case "proportion":
		s.divides = true
		s.limit(p.roots(), total)
		s.pour(p, total)
	case "capacity":
		s.divides = true
		s.limit(p.roots(), total)
		for q := range s.ceiling {
			s.deserve(q)
		}
	}
	return s
}

// held is what pods in queues hold of a node, and what all others do: that is not shared (rule Q6). A pod that is
// promised room holds none yet: it gets what is idle, or what others leave.
func (p *picture) held(n *corev1.Node) (ours, others amounts) {
	ours, others = amounts{}, amounts{}
	for _, t := range p.pods {
		switch {
		case t.node != n.Name || t.state != binding && t.state != placed:
		case t.job != nil:
			ours.add(t.wants, 1)
		default:
			others.add(t.wants, 1)
		}
	}
	return ours, others
}

// isUsable reports whether what a node has counts (rule Q6): one that is cordoned or not ready does not, nor one with a
// taint that no pod of ours tolerates, waiting or running.
func (p *picture) isUsable(n *corev1.Node) bool {
	if n.Spec.Unschedulable {
		return false
	}
	for _, taint := range n.Spec.Taints {
		isTolerated := slices.ContainsFunc(slices.Collect(maps.Values(p.pods)), func(t *pod) bool {
			return t.object.Spec.SchedulerName == "volcano" && t.state != over && tolerates(t.object, taint.Key)
		})
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !isTolerated {
			return false
		}
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return false
		}
	}
	return true
}

// roots are the queues without a parent, the root of the tree left out: it is all there is.
func (p *picture) roots() []*queue {
	var roots []*queue
	for _, q := range p.queues {
		if q.parent == nil {
			roots = append(roots, q)
		}
	}
	return roots
}

// guaranteed is what a queue is guaranteed, at least what those below it are together.
func (q *queue) guaranteed() amounts {
	sum := amounts{}
	for _, child := range q.children {
		sum.add(child.guaranteed(), 1)
	}
	for name, value := range q.guarantee {
		sum[name] = max(sum[name], value)
	}
	return sum
}

// limit works out the ceilings of siblings and of all below them: the room above them, less what the others are
// guaranteed.
func (s *share) limit(siblings []*queue, room amounts) {
	guarantees := amounts{}
	for _, q := range siblings {
		guarantees.add(q.guaranteed(), 1)
	}
	for _, q := range siblings {
		own, ceiling := q.guaranteed(), amounts{}
		s.ceiling[q] = map[corev1.ResourceName]float64{}
		for name, value := range room {
			ceiling[name] = max(value-guarantees[name], 0) + own[name]
			if capability, ok := q.capability[name]; ok {
				ceiling[name] = min(ceiling[name], capability)
			}
			s.ceiling[q][name] = float64(ceiling[name])
		}
		s.limit(q.children, ceiling)
	}
}

// deserve takes what a queue says it deserves, between its guarantee and its ceiling.
func (s *share) deserve(q *queue) {
	s.deserved[q] = map[corev1.ResourceName]float64{}
	for name, value := range q.deserved {
		if value > 0 {
			s.deserved[q][name] = min(float64(value), s.ceiling[q][name])
		}
	}
	for name, value := range q.guaranteed() {
		if value > 0 {
			s.deserved[q][name] = max(s.deserved[q][name], float64(value))
		}
	}
}

// pour divides the cluster by weight: the level rises in all queues alike, as long as they want and may have more.
func (s *share) pour(p *picture, total amounts) {
	var queues []*queue
	for _, q := range p.queues {
		if len(q.jobs) > 0 || len(q.guarantee) > 0 {
			queues = append(queues, q)
			s.deserved[q] = map[corev1.ResourceName]float64{}
		}
	}
	for name, amount := range total {
		if amount <= 0 {
			continue
		}
		floors, tops := map[*queue]float64{}, map[*queue]float64{}
		for _, q := range queues {
			asked := q.allocated()[name]
			if q.open() {
				asked = q.sum(state.asks)[name]
			}
			floors[q] = float64(q.guarantee[name])
			tops[q] = max(min(float64(asked), s.ceiling[q][name]), floors[q])
		}
		portion := func(q *queue, level float64) float64 {
			return max(min(level*float64(max(q.object.Spec.Weight, 1)), tops[q]), floors[q])
		}
		poured := func(level float64) float64 {
			sum := 0.0
			for _, q := range queues {
				sum += portion(q, level)
			}
			return sum
		}
		low, high := 0.0, float64(amount)
		for range 64 {
			if middle := (low + high) / 2; poured(middle) > float64(amount) {
				high = middle
			} else {
				low = middle
			}
		}
		for _, q := range queues {
			s.deserved[q][name] = portion(q, low)
		}
	}
}

// stays reports whether a queue keeps within what it deserves, in the resources of some pods of which the share speaks,
// and deserves any of them (rule Q4).
func (s *share) stays(q *queue, asked amounts) bool {
	has, speaks := q.allocated(), false
	for name, value := range asked {
		deserved, ok := s.deserved[q][name]
		if value <= 0 || name == corev1.ResourcePods || !ok {
			continue
		}
		speaks = speaks || deserved > 0
		if float64(has[name]) > deserved+rounding(name) {
			return false
		}
	}
	return speaks
}

// surplus reports whether what leaves a queue is above what it deserves (rule Q1). In at least one resource that is
// wanted, the queue must keep what it deserves. Resources that the share does not name are always above it.
func (s *share) surplus(q *queue, leaving, wanted amounts) bool {
	has, speaks := q.allocated(), false
	for name, value := range leaving {
		deserved, ok := s.deserved[q][name]
		if value <= 0 || name == corev1.ResourcePods || !ok {
			continue
		}
		speaks = true
		if wanted[name] > 0 && float64(has[name]-value) >= deserved-rounding(name) {
			return true
		}
	}
	return !speaks
}

// exceeds says which queue, of one and all above it, would hold more than its capability of what some pods ask for, ""
// if none would (rule Q4).
func exceeds(q *queue, asked amounts) string {
	for _, above := range q.upwards() {
		has := above.allocated()
		for name, value := range asked {
			if capability, ok := above.capability[name]; ok && value > 0 && has[name] > capability {
				return "queue " + above.name + " would hold " + has.String() + ", its capability is " + above.capability.String()
			}
		}
	}
	return ""
}

// within reports whether a queue and all above it stay within their ceilings in what some pods ask for: the plugins
// that divide the cluster keep free what other queues are guaranteed.
func (s *share) within(q *queue, asked amounts) bool {
	for _, above := range q.upwards() {
		has := above.allocated()
		for name, value := range asked {
			if ceiling, ok := s.ceiling[above][name]; ok && value > 0 && float64(has[name]) > ceiling+0.5 {
				return false
			}
		}
	}
	return true
}
