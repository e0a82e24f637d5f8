package domains

import (
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"
)

// Role is what a pod is to a class.
type Role uint8

// The roles of a pod; it may have several.
const (
	Asked    Role = 1 << iota // the class may ask for it
	Repels                    // its required anti-affinity speaks of the class
	Attracts                  // a term of it that has a say in scores does
)

// Counts are how many pods matter to a class in each topology domain. They say what the filters of InterPodAffinity and PodTopologySpread
// would say.
type Counts struct {
	pod      *corev1.Pod // of the class
	space    labels.Set  // the labels of its namespace
	features feature.Features

	affinity, anti []fwk.AffinityTerm // that are required, namespaces resolved
	near, apart    domains            // pods that match all of the former, and each of the latter
	repelled       domains            // pods with required anti-affinity to the class
	spreads        []*spreadCount     // constraints that must hold
	attracted      map[string]int     // terms of pods that have a say in the scores, by topology key
}

// domain is a topology domain: the nodes with this value of this label.
type domain struct{ key, value string }

// domains are numbers of pods by domain. Those with none are left out.
type domains map[domain]int

func (d domains) add(node *corev1.Node, key string, change int) {
	value, ok := node.Labels[key]
	if !ok {
		return
	}
	at := domain{key, value}
	if d[at] += change; d[at] == 0 {
		delete(d, at)
	}
}

func (d domains) has(node *corev1.Node, key string) bool {
	if len(d) == 0 {
		return false
	}
	value, ok := node.Labels[key]
	return ok && d[domain{key, value}] > 0
}

// spreadCount is a topology spread constraint, and the pods that it selects by the value of its topology key. Values without pods count: one
// of them is the least.
type spreadCount struct {
	key           string
	maxSkew       int
	minDomains    int
	selector      labels.Selector
	selectsItself int // 1 if the constraint selects the class, else 0
	honorAffinity bool
	honorTaints   bool

	pods  map[string]int
	times map[int]int // how often each number of pods occurs
	least int         // the least of them, if there is any
}

// New returns empty counts for a class of which a pod is given, for the filters of some names. It is nil if a plugin could not read the
// pod: then the plugin says so. The namespaces are all there are.
func New(pod *corev1.Pod, filters []string, namespaces []*corev1.Namespace, features feature.Features) *Counts {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil
	}
	c := &Counts{pod: pod, features: features, near: domains{}, apart: domains{}, repelled: domains{}, attracted: map[string]int{}}
	for _, namespace := range namespaces {
		if namespace.Name == pod.Namespace {
			c.space = namespace.Labels
		}
	}
	if slices.Contains(filters, interpodaffinity.Name) {
		c.affinity, c.anti = resolved(info.RequiredAffinityTerms, namespaces), resolved(info.RequiredAntiAffinityTerms, namespaces)
	}
	if !slices.Contains(filters, podtopologyspread.Name) {
		return c
	}
	for i := range pod.Spec.TopologySpreadConstraints {
		if constraint := &pod.Spec.TopologySpreadConstraints[i]; constraint.WhenUnsatisfiable == corev1.DoNotSchedule {
			s := c.read(constraint)
			if s == nil {
				return nil
			}
			c.spreads = append(c.spreads, s)
		}
	}
	return c
}

// resolved returns terms with the namespaces that their selectors stand for at the moment. One that selects all stays as it is.
func resolved(terms []fwk.AffinityTerm, namespaces []*corev1.Namespace) []fwk.AffinityTerm {
	for i := range terms {
		if t := &terms[i]; !t.NamespaceSelector.Empty() {
			for _, namespace := range namespaces {
				if t.NamespaceSelector.Matches(labels.Set(namespace.Labels)) {
					t.Namespaces.Insert(namespace.Name)
				}
			}
			t.NamespaceSelector = labels.Nothing()
		}
	}
	return terms
}

// read reads a constraint, nil if it cannot be read.
func (c *Counts) read(constraint *corev1.TopologySpreadConstraint) *spreadCount {
	selector, err := metav1.LabelSelectorAsSelector(constraint.LabelSelector)
	if err != nil {
		return nil
	}
	features := c.features
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
	s := &spreadCount{key: constraint.TopologyKey, maxSkew: int(constraint.MaxSkew), minDomains: 1, selector: selector, honorAffinity: true,
		pods: map[string]int{}, times: map[int]int{}}
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

// Include returns for each constraint whether the pods on a node count, and notes the node's domain if they do.
func (c *Counts) Include(node *corev1.Node) []bool {
	if len(c.spreads) == 0 {
		return nil
	}
	counted := make([]bool, len(c.spreads))
	for _, s := range c.spreads {
		if _, ok := node.Labels[s.key]; !ok {
			return counted
		}
	}
	require := nodeaffinity.GetRequiredNodeAffinity(c.pod)
	for i, s := range c.spreads {
		if s.honorAffinity {
			if matches, _ := require.Match(node); !matches { // what cannot be read matches nothing, as in the plugin
				continue
			}
		}
		if s.honorTaints {
			_, isKeptOff := schedulinghelpers.FindMatchingUntoleratedTaint(logr.Discard(), node.Spec.Taints, c.pod.Spec.Tolerations,
				helper.DoNotScheduleTaintsFilterFunc(), c.features.EnableTaintTolerationComparisonOperators)
			if isKeptOff {
				continue
			}
		}
		counted[i] = true
		s.set(node.Labels[s.key], 0)
	}
	return counted
}

// set changes the number of pods in the domain of a value.
func (s *spreadCount) set(value string, change int) {
	before, isKnown := s.pods[value]
	now := before + change
	s.pods[value] = now
	if isKnown {
		if s.times[before]--; s.times[before] == 0 {
			delete(s.times, before)
		}
	}
	s.times[now]++
	if len(s.pods) == 1 || now < s.least {
		s.least = now
	}
	for s.times[s.least] == 0 {
		s.least++
	}
}

// Count counts a pod on a node in or out. counted is what [Counts.Include] has returned for the node.
func (c *Counts) Count(node *corev1.Node, counted []bool, info fwk.PodInfo, role Role, change int) {
	pod := info.GetPod()
	if role&Repels != 0 {
		for _, term := range info.GetRequiredAntiAffinityTerms() {
			if term.Matches(c.pod, c.space) {
				c.repelled.add(node, term.TopologyKey, change)
			}
		}
	}
	if role&Attracts != 0 {
		c.countAttraction(info, change)
	}
	if role&Asked == 0 {
		return
	}
	if len(c.affinity) > 0 && matchesAll(c.affinity, pod) {
		for i := range c.affinity {
			c.near.add(node, c.affinity[i].TopologyKey, change)
		}
	}
	for i := range c.anti {
		if c.anti[i].Matches(pod, nil) {
			c.apart.add(node, c.anti[i].TopologyKey, change)
		}
	}
	for i, s := range c.spreads {
		if counted[i] && pod.DeletionTimestamp == nil && pod.Namespace == c.pod.Namespace && !s.selector.Empty() &&
			s.selector.Matches(labels.Set(pod.Labels)) {
			s.set(node.Labels[s.key], change)
		}
	}
}

// countAttraction counts the terms of a pod that have a say in the scores.
func (c *Counts) countAttraction(info fwk.PodInfo, change int) {
	add := func(term *fwk.AffinityTerm) {
		if term.Matches(c.pod, c.space) {
			if c.attracted[term.TopologyKey] += change; c.attracted[term.TopologyKey] == 0 {
				delete(c.attracted, term.TopologyKey)
			}
		}
	}
	for _, term := range info.GetRequiredAffinityTerms() {
		add(&term)
	}
	for _, terms := range [][]fwk.WeightedAffinityTerm{info.GetPreferredAffinityTerms(), info.GetPreferredAntiAffinityTerms()} {
		for i := range terms {
			add(&terms[i].AffinityTerm)
		}
	}
}

// MayScore reports whether terms of other pods may score two nodes differently on which the class can be. They cannot where the class must
// be near pods that are all in one domain of the same topology key.
func (c *Counts) MayScore() bool {
	for key := range c.attracted {
		if !slices.ContainsFunc(c.affinity, func(term fwk.AffinityTerm) bool { return term.TopologyKey == key }) {
			return true
		}
		domains := 0
		for at := range c.near {
			if at.key == key {
				domains++
			}
			if domains > 1 {
				return true
			}
		}
		if domains == 0 {
			return true
		}
	}
	return false
}

func matchesAll(terms []fwk.AffinityTerm, pod *corev1.Pod) bool {
	for i := range terms {
		if !terms[i].Matches(pod, nil) {
			return false
		}
	}
	return true
}

// Refusal returns why a filter refuses a node, "" if it does not.
func (c *Counts) Refusal(filter string, node *corev1.Node) string {
	if filter == podtopologyspread.Name {
		return c.skewed(node)
	}
	isNear := true
	for i := range c.affinity {
		if _, ok := node.Labels[c.affinity[i].TopologyKey]; !ok {
			return interpodaffinity.ErrReasonAffinityRulesNotMatch
		}
		isNear = isNear && c.near.has(node, c.affinity[i].TopologyKey)
	}
	// The first pod of a series that wants to be near each other may go anywhere.
	if !isNear && !(len(c.near) == 0 && matchesAll(c.affinity, c.pod)) {
		return interpodaffinity.ErrReasonAffinityRulesNotMatch
	}
	for i := range c.anti {
		if c.apart.has(node, c.anti[i].TopologyKey) {
			return interpodaffinity.ErrReasonAntiAffinityRulesNotMatch
		}
	}
	if len(c.repelled) > 0 {
		for key, value := range node.Labels {
			if c.repelled[domain{key, value}] > 0 {
				return interpodaffinity.ErrReasonExistingAntiAffinityRulesNotMatch
			}
		}
	}
	return ""
}

// skewed returns which constraint does not hold with a pod of the class on a node.
func (c *Counts) skewed(node *corev1.Node) string {
	for _, s := range c.spreads {
		value, ok := node.Labels[s.key]
		if !ok {
			return podtopologyspread.ErrReasonNodeLabelNotMatch
		}
		least := s.least
		if len(s.pods) < s.minDomains {
			least = 0
		} else if len(s.pods) == 0 {
			continue // there is nothing to be as few as
		}
		if s.pods[value]+s.selectsItself-least > s.maxSkew {
			return podtopologyspread.ErrReasonConstraintsNotMatch
		}
	}
	return ""
}
