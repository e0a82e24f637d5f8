package gang

import schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"

import "slices"

// Proximity is how close to each other pods must, or should, be.
type Proximity struct {
	isHard   bool
	tier     *int
	tierName string
}

// proximityOf reads what a PodGroup says; nil if it says nothing.
func proximityOf(spec *schedulingv1beta1.NetworkTopologySpec) *Proximity {
	if spec == nil {
		return nil
	}
	return &Proximity{isHard: spec.Mode != schedulingv1beta1.SoftNetworkTopologyMode, tier: spec.HighestTierAllowed,
		tierName: spec.HighestTierName}
}

// IsHard reports whether pods wait rather than be further apart. A bound that names no tier bounds nothing, so it only says
// what is better.
func (p *Proximity) IsHard() bool { return p != nil && p.isHard && (p.tier != nil || p.tierName != "") }

// TierName is the name by which a bound names its tier, "" if it does so by number.
func (p *Proximity) TierName() string { return p.tierName }

// Tier is the tier of a hard bound that names it by number.
func (p *Proximity) Tier() int { return *p.tier }

// IsPlaced reports whether it matters in which HyperNode the tasks of the job are.
func (g *Gang) IsPlaced() bool {
	return g.Proximity != nil || slices.ContainsFunc(g.policies, func(p *SubgroupPolicy) bool { return p.Proximity != nil })
}
