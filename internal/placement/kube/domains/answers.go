package domains

import (
	"encoding/binary"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
)

// Refusal returns why the filters refuse the node in a slot, "" if they do not.
func (c *Counts) Refusal(slot int32) string {
	c.topology.does(len(c.keys) + len(c.spreads))
	if why := c.skewed(slot); why != "" {
		return why
	}
	return c.refusalByAffinity(slot, c.keys)
}

// refusalByAffinity looks at some keys. The others must not refuse.
func (c *Counts) refusalByAffinity(slot int32, keys []*keyCounts) string {
	isNear, isApart, isRepelled := true, true, false
	for _, k := range keys {
		domain := k.at(slot)
		if domain < 0 {
			if k.isAsked {
				return interpodaffinity.ErrReasonAffinityRulesNotMatch
			}
			continue
		}
		isNear = isNear && (!k.isAsked || k.near.at(domain) > 0)
		isApart = isApart && k.apart.at(domain) == 0
		isRepelled = isRepelled || k.repelled.at(domain) > 0
	}
	switch {
	// The first pod of a series that wants to be near each other may go anywhere.
	case !isNear && !(c.nearPods == 0 && matchesAll(c.affinity, c.pod)):
		return interpodaffinity.ErrReasonAffinityRulesNotMatch
	case !isApart:
		return interpodaffinity.ErrReasonAntiAffinityRulesNotMatch
	case isRepelled:
		return interpodaffinity.ErrReasonExistingAntiAffinityRulesNotMatch
	}
	return ""
}

// MayHoldOnNewNode reports whether the required affinity terms to other pods could hold on a node that is added: one
// with a host name of its own, in a domain that there is. No node helps a pod that waits for pods which are not there,
// or has to be next to one that is.
func (c *Counts) MayHoldOnNewNode() bool {
	if len(c.affinity) == 0 || c.nearPods == 0 && matchesAll(c.affinity, c.pod) {
		return true
	}
	return !slices.ContainsFunc(c.keys, func(k *keyCounts) bool {
		return k.isAsked && (k.name == corev1.LabelHostname || !slices.ContainsFunc(k.near, func(pods int32) bool { return pods > 0 }))
	})
}

// skewed returns which constraint does not hold with a pod of the class on a node.
func (c *Counts) skewed(slot int32) string {
	for _, s := range c.spreads {
		domain := s.at(slot)
		if domain < 0 {
			return podtopologyspread.ErrReasonNodeLabelNotMatch
		}
		least := s.least
		if s.domains < s.minDomains {
			least = 0
		} else if s.domains == 0 {
			continue // there is nothing to be as few as
		}
		if s.pods.at(domain)+s.selectsItself-least > s.maxSkew {
			return podtopologyspread.ErrReasonConstraintsNotMatch
		}
	}
	return ""
}

// Group appends to a key what tells the node in a slot from nodes of other groups. That is the domains that it shares
// with other nodes, and what is counted in those that it has for itself.
func (c *Counts) Group(slot int32, key []byte) []byte {
	c.topology.does(len(c.keys) + len(c.spreads) + len(c.softSpreads))
	for _, k := range c.keys {
		domain, isAlone := int32(0), false
		if key, domain, isAlone = k.group(slot, key); isAlone {
			key = binary.AppendVarint(key, int64(k.near.at(domain)))
			key = binary.AppendVarint(key, int64(k.apart.at(domain)))
			key = binary.AppendVarint(key, int64(k.repelled.at(domain)))
			key = binary.AppendVarint(key, int64(k.points.at(domain)))
		}
	}
	for _, spreads := range [][]*spreadCount{c.spreads, c.softSpreads} {
		for _, s := range spreads {
			domain, isAlone := int32(0), false
			if key, domain, isAlone = s.group(slot, key); isAlone {
				key = binary.AppendVarint(key, int64(s.pods.at(domain)))
			}
			if s.isSoft && s.isPerNode() {
				key = binary.AppendVarint(key, int64(s.ownAt(slot)))
			}
		}
	}
	return key
}

// group appends the domain of a node, if it shares that with others. isAlone is set if the node has the domain for
// itself.
func (k *Key) group(slot int32, key []byte) (_ []byte, domain int32, isAlone bool) {
	switch domain = k.at(slot); {
	case domain < 0:
		return append(key, 0), domain, false
	case k.sizes[domain] > 1:
		return binary.AppendUvarint(append(key, 1), uint64(domain)), domain, false
	}
	return append(key, 2), domain, true
}

// Front is a node that stands for all nodes of a group that pass everything else.
type Front struct {
	Slot  int32
	Nodes int // in the group
	// IsRefused is set if the filters refuse the nodes. Else Score is the sum of the scores, times their weights,
	// normalised over all nodes that are not refused.
	IsRefused bool
	Score     int64
}

// Rate judges groups of nodes. Together they have all nodes that pass everything else.
func (c *Counts) Rate(fronts []Front) {
	c.refusing, c.scoring = c.refusing[:0], c.scoring[:0]
	for _, k := range c.keys {
		if k.isAsked || len(k.apart) > 0 || len(k.repelled) > 0 {
			c.refusing = append(c.refusing, k)
		}
		if len(k.points) > 0 {
			c.scoring = append(c.scoring, k)
		}
	}
	for i := range fronts {
		f := &fronts[i]
		c.topology.does(2*len(c.keys) + len(c.spreads) + 3*len(c.softSpreads))
		f.Score, f.IsRefused = 0, c.skewed(f.Slot) != "" || c.refusalByAffinity(f.Slot, c.refusing) != ""
	}
	c.rateAffinity(fronts)
	c.rateSpread(fronts)
}

// rateAffinity adds the scores of InterPodAffinity.
func (c *Counts) rateAffinity(fronts []Front) {
	if c.policy.AffinityWeight == 0 || len(c.scoring) == 0 {
		return
	}
	least, most := int64(math.MaxInt64), int64(math.MinInt64)
	c.raw = slices.Grow(c.raw[:0], len(fronts))[:len(fronts)]
	for i := range fronts {
		if !fronts[i].IsRefused {
			c.raw[i] = c.pointsOf(fronts[i].Slot)
			least, most = min(least, c.raw[i]), max(most, c.raw[i])
		}
	}
	if most <= least {
		return
	}
	for i := range fronts {
		if f := &fronts[i]; !f.IsRefused {
			share := float64(c.raw[i]-least) / float64(most-least)
			f.Score += int64(float64(fwk.MaxScore)*share) * c.policy.AffinityWeight
		}
	}
}

// pointsOf is the score of a node by affinity, before it is normalised. Rate has looked which keys have a say.
func (c *Counts) pointsOf(slot int32) (points int64) {
	for _, k := range c.scoring {
		if domain := k.at(slot); domain >= 0 {
			points += int64(k.points.at(domain))
		}
	}
	return points
}

// rateSpread adds the scores of PodTopologySpread.
func (c *Counts) rateSpread(fronts []Front) {
	if len(c.softSpreads) == 0 {
		return
	}
	c.raw = slices.Grow(c.raw[:0], len(fronts))[:len(fronts)]
	for i := range fronts {
		if c.raw[i] = 0; !c.isSpread(&fronts[i]) {
			c.raw[i] = notSpread
		}
	}
	weights := c.spreadWeights(fronts)
	least, most := int64(math.MaxInt64), int64(0)
	for i := range fronts {
		if c.raw[i] != notSpread {
			c.raw[i] = c.crowdOf(fronts[i].Slot, weights)
			least, most = min(least, c.raw[i]), max(most, c.raw[i])
		}
	}
	for i := range fronts {
		switch f := &fronts[i]; {
		case c.raw[i] == notSpread: // a node that lacks a topology key gets nothing
		case most == 0:
			f.Score += fwk.MaxScore * c.policy.SpreadWeight
		default:
			f.Score += fwk.MaxScore * (most + least - c.raw[i]) / most * c.policy.SpreadWeight
		}
	}
}

// notSpread stands for the score of nodes that are not scored by the constraints.
const notSpread = math.MinInt64

// isSpread reports whether nodes are scored by the constraints of the class: they are not refused and have all topology
// keys.
func (c *Counts) isSpread(f *Front) bool {
	if f.IsRefused {
		return false
	}
	for _, s := range c.softSpreads {
		if s.at(f.Slot) < 0 {
			return false
		}
	}
	return true
}

// spreadWeights returns the weight of each constraint. It grows with the number of domains that are left. The raw
// scores say which nodes are scored.
func (c *Counts) spreadWeights(fronts []Front) []float64 {
	weights := make([]float64, len(c.softSpreads))
	for i, s := range c.softSpreads {
		size := 0
		if len(s.seen) < len(s.sizes) {
			s.seen = make([]uint64, len(s.sizes))
		}
		c.rated++
		for j := range fronts {
			f := &fronts[j]
			if c.raw[j] == notSpread {
				continue
			}
			if s.isPerNode() {
				size += f.Nodes
			} else if s.sizes[s.at(f.Slot)] == 1 {
				size += f.Nodes // each has a domain for itself
			} else if domain := s.at(f.Slot); s.seen[domain] != c.rated {
				s.seen[domain] = c.rated
				size++
			}
		}
		weights[i] = math.Log(float64(size + 2))
	}
	return weights
}

// crowdOf is the score of a node by the constraints, before it is normalised: it is larger the more pods are there.
func (c *Counts) crowdOf(slot int32, weights []float64) int64 {
	var score float64
	for i, s := range c.softSpreads {
		pods := s.pods.at(s.at(slot))
		if s.isPerNode() {
			pods = s.ownAt(slot)
		}
		score += float64(pods)*weights[i] + float64(s.maxSkew-1)
	}
	return int64(math.Round(score))
}
