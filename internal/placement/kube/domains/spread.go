package domains

import (
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper"
)

// spreadCount is a topology spread constraint, and the pods that it selects by the domains of its topology key.
type spreadCount struct {
	*Key
	maxSkew       int32
	minDomains    int
	selector      labels.Selector
	selectsItself int32 // 1 if the constraint selects the class, else 0
	honorAffinity bool
	honorTaints   bool

	pods tally // on nodes that count
	// own is the number of pods on each node, by slot, of a soft constraint over hostnames: each node is a domain of
	// its own then, whatever its label says.
	own    []int32
	isSoft bool
	seen   []uint64 // by domain: the last rating in which it had nodes

	// Of a constraint that must hold. Domains without pods count: one of them is the least.
	nodes   tally   // that count
	domains int     // with nodes that count
	times   []int32 // how many of them have each number of pods
	least   int32   // the least of these numbers, if there is a domain
}

// readSpreads reads the constraints that a plugin is asked for. It reports whether all of them can be read.
func (c *Counts) readSpreads() bool {
	for i := range c.pod.Spec.TopologySpreadConstraints {
		constraint := &c.pod.Spec.TopologySpreadConstraints[i]
		isHard := constraint.WhenUnsatisfiable == corev1.DoNotSchedule
		if isHard && !c.policy.FiltersSpread || !isHard && c.policy.SpreadWeight == 0 {
			continue
		}
		s := c.read(constraint)
		switch {
		case s == nil:
			return false
		case isHard:
			c.spreads = append(c.spreads, s)
		default:
			c.softSpreads = append(c.softSpreads, s)
		}
	}
	return true
}

// read reads a constraint, nil if it cannot be read.
func (c *Counts) read(constraint *corev1.TopologySpreadConstraint) *spreadCount {
	selector, err := metav1.LabelSelectorAsSelector(constraint.LabelSelector)
	if err != nil {
		return nil
	}
	features := c.policy.Features
	if requirements, selects := selector.Requirements(); selects && features.EnableMatchLabelKeysInPodTopologySpread {
		matching := labels.Set{}
		for _, key := range constraint.MatchLabelKeys {
			if value, ok := c.pod.Labels[key]; ok {
				matching[key] = value
			}
		}
		if len(matching) > 0 {
			selector = labels.SelectorFromSet(matching).Add(requirements...)
		}
	}
	s := &spreadCount{isSoft: constraint.WhenUnsatisfiable != corev1.DoNotSchedule, Key: c.topology.Key(constraint.TopologyKey), maxSkew: constraint.MaxSkew, minDomains: 1, selector: selector,
		honorAffinity: true}
	if constraint.MinDomains != nil {
		s.minDomains = int(*constraint.MinDomains)
	}
	if features.EnableNodeInclusionPolicyInPodTopologySpread {
		if policy := constraint.NodeAffinityPolicy; policy != nil {
			s.honorAffinity = *policy == corev1.NodeInclusionPolicyHonor
		}
		if policy := constraint.NodeTaintsPolicy; policy != nil {
			s.honorTaints = *policy == corev1.NodeInclusionPolicyHonor
		}
	}
	if selector.Matches(labels.Set(c.pod.Labels)) {
		s.selectsItself = 1
	}
	return s
}

// isPerNode reports whether a soft constraint counts the pods of each node by itself.
func (s *spreadCount) isPerNode() bool { return s.name == corev1.LabelHostname }

// CountNode counts a node in or out, by a change of +1 or -1, before or after all of its pods: its domain is one of
// those over which pods are spread.
func (c *Counts) CountNode(node *corev1.Node, change int32) {
	if !hasAll(c.spreads, node) {
		return
	}
	for _, s := range c.spreads {
		if c.includes(s, node) {
			s.countNode(s.domainOf(node), change)
		}
	}
}

// CountNodes counts all nodes in that are in the topology, before any pod is counted.
func (c *Counts) CountNodes() {
	if len(c.spreads) == 0 {
		return
	}
	for slot, node := range c.topology.nodes {
		c.topology.does(2 * len(c.spreads))
		isIn := node != nil
		for _, s := range c.spreads {
			isIn = isIn && s.at(int32(slot)) >= 0
		}
		for _, s := range c.spreads {
			if isIn && c.includes(s, node) {
				s.countNode(s.at(int32(slot)), +1)
			}
		}
	}
}

func hasAll(spreads []*spreadCount, node *corev1.Node) bool {
	for _, s := range spreads {
		if _, ok := node.Labels[s.name]; !ok {
			return false
		}
	}
	return true
}

// maySuit reports whether the class may be on a node by its labels. All constraints ask it of one node after the other.
func (c *Counts) maySuit(node *corev1.Node) bool {
	if c.last != node {
		c.last = node
		c.suits, _ = c.require.Match(node) // what cannot be read matches nothing, as in the plugin
	}
	return c.suits
}

// includes reports whether the pods on a node count, which has all topology keys.
func (c *Counts) includes(s *spreadCount, node *corev1.Node) bool {
	if s.honorAffinity && !c.isAnywhere && !c.maySuit(node) {
		return false
	}
	if !s.honorTaints || len(node.Spec.Taints) == 0 {
		return true
	}
	_, isKeptOff := schedulinghelpers.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, c.pod.Spec.Tolerations,
		helper.DoNotScheduleTaintsFilterFunc(), c.policy.Features.EnableTaintTolerationComparisonOperators)
	return !isKeptOff
}

// countNode counts a node of a domain.
func (s *spreadCount) countNode(domain, change int32) {
	before := s.nodes.at(domain)
	s.nodes.add(s.Key, domain, change)
	switch {
	case before == 0:
		s.domains++
		s.note(s.pods.at(domain), +1)
	case before+change == 0:
		s.domains--
		s.note(s.pods.at(domain), -1)
	}
}

// note notes that one domain more or less has a number of pods.
func (s *spreadCount) note(pods, change int32) {
	for int(pods) >= len(s.times) {
		s.times = append(s.times, 0)
	}
	s.times[pods] += change
	if change > 0 && (pods < s.least || s.domains == 1) {
		s.least = pods
	}
	s.settle()
}

// settle finds the least again.
func (s *spreadCount) settle() {
	if s.domains == 0 {
		s.least = 0
		return
	}
	for s.times[s.least] == 0 {
		s.least++
	}
}

// countSpread counts a pod for the constraints of the class, and reports whether one selects it.
func (c *Counts) countSpread(node *corev1.Node, slot int32, pod *corev1.Pod, change int32) (matters bool) {
	if pod.DeletionTimestamp != nil || pod.Namespace != c.pod.Namespace {
		return false
	}
	isIn, isKnown := false, false // once for all constraints
	has := func(spreads []*spreadCount) bool {
		if !isKnown {
			isIn, isKnown = hasAll(spreads, node), true
		}
		return isIn
	}
	for _, s := range c.spreads {
		if s.selects(pod) && has(c.spreads) && c.includes(s, node) {
			matters = true
			domain := s.domainOf(node)
			before := s.pods.at(domain)
			s.pods.add(s.Key, domain, change)
			s.move(before, before+change)
		}
	}
	isKnown = false
	for _, s := range c.softSpreads {
		switch {
		case !s.selects(pod):
		case s.isPerNode():
			matters = true
			for int(slot) >= len(s.own) {
				s.own = append(s.own, make([]int32, int(slot)+1-len(s.own))...)
			}
			s.own[slot] += change
		case has(c.softSpreads) && c.includes(s, node):
			matters = true
			s.pods.add(s.Key, s.domainOf(node), change)
		}
	}
	return matters
}

func (s *spreadCount) selects(pod *corev1.Pod) bool {
	return !s.selector.Empty() && s.selector.Matches(labels.Set(pod.Labels))
}

// move notes that the number of pods of a domain has changed.
func (s *spreadCount) move(before, now int32) {
	for int(now) >= len(s.times) {
		s.times = append(s.times, 0)
	}
	s.times[before]--
	s.times[now]++
	s.least = min(s.least, now)
	s.settle()
}

// ownAt returns the number of pods on the node in a slot.
func (s *spreadCount) ownAt(slot int32) int32 {
	if int(slot) >= len(s.own) {
		return 0
	}
	return s.own[slot]
}
