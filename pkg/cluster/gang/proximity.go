package gang

import schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"

import "slices"

// Proximity is how close to each other tasks must or should be.
type Proximity struct {
	isHard   bool
	tier     *int
	tierName string
}

// proximityOf reads the network topology of a PodGroup, nil if it has none.
func proximityOf(spec *schedulingv1beta1.NetworkTopologySpec) *Proximity {
	if spec == nil {
		return nil
	}
	return &Proximity{isHard: spec.Mode != schedulingv1beta1.SoftNetworkTopologyMode, tier: spec.HighestTierAllowed,
		tierName: spec.HighestTierName}
}

// IsHard reports whether tasks wait if they cannot be placed close enough. A limit without a tier limits nothing, and
// only expresses a preference.
func (p *Proximity) IsHard() bool { return p != nil && p.isHard && (p.tier != nil || p.tierName != "") }

// TierName is the tier of the limit by name, "" if it is given by number.
func (p *Proximity) TierName() string { return p.tierName }

// Tier is the tier of a hard limit that is given by number.
func (p *Proximity) Tier() int { return *p.tier }

// IsPlaced reports whether it matters in which HyperNode the tasks are placed.
func (g *Gang) IsPlaced() bool {
	return g.Proximity != nil || slices.ContainsFunc(g.policies, func(p *policy) bool { return p.proximity != nil })
}
