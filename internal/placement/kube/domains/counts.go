package domains

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// Policy says which of the two plugins filter, and with which weights they score.
type Policy struct {
	FiltersSpread, FiltersAffinity bool
	SpreadWeight, AffinityWeight   int64
	Features                       feature.Features
}

// hardAffinityWeight is the weight in scores of a required affinity term of another pod, as package kube configures it.
const hardAffinityWeight = 1

// Counts are how many pods matter to a class in each topology domain. They say what InterPodAffinity and
// PodTopologySpread would say.
type Counts struct {
	pod      *corev1.Pod // of the class
	space    labels.Set  // the labels of its namespace
	policy   Policy
	topology *Topology
	require  nodeaffinity.RequiredNodeAffinity
	// isAnywhere is set if the class requires no labels of nodes.
	isAnywhere bool
	version    uint64
	rated      uint64 // how often nodes were rated

	raw               []int64      // space to work in: by front, the score before it is normalised
	refusing, scoring []*keyCounts // space to work in: the keys that may refuse nodes, and that have a say in the scores

	affinity, anti []fwk.AffinityTerm         // that are required, namespaces resolved
	near, apart    []fwk.WeightedAffinityTerm // that are preferred
	keys           []*keyCounts               // of affinity, each key once
	nearPods       int                        // pods that match all required affinity terms, times these terms

	spreads, softSpreads []*spreadCount // that must hold, and that have a say in the scores
	size                 int            // about how much is looked at for one node or pod: terms, constraints, and the node affinity

	last  *corev1.Node // the last node that was asked whether the class may be on it
	suits bool         // and what it said
}

// keyCounts are the pods that matter to affinity, by the domains of one topology key.
type keyCounts struct {
	*Key
	isAsked  bool  // a required affinity term has this key
	near     tally // pods that match all required affinity terms
	apart    tally // pods that match a required anti-affinity term
	repelled tally // terms of pods with required anti-affinity to the class
	points   tally // the sums of weights that have a say in the scores
}

// New returns empty counts for a class of which a pod is given. It is nil if a plugin that has a say could not read the
// pod: then the plugin refuses all nodes. The namespaces are all there are.
func New(pod *corev1.Pod, policy Policy, topology *Topology, namespaces []*corev1.Namespace) *Counts {
	info, err := framework.NewPodInfo(pod)
	isAsked := policy.FiltersAffinity || policy.AffinityWeight > 0
	if err != nil && isAsked {
		return nil
	}
	c := &Counts{pod: pod, policy: policy, topology: topology, require: nodeaffinity.GetRequiredNodeAffinity(pod)}
	affinity := pod.Spec.Affinity
	c.isAnywhere = len(pod.Spec.NodeSelector) == 0 && (affinity == nil || affinity.NodeAffinity == nil ||
		affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil)
	for _, namespace := range namespaces {
		if namespace.Name == pod.Namespace {
			c.space = namespace.Labels
		}
	}
	if policy.FiltersAffinity {
		c.affinity, c.anti = info.RequiredAffinityTerms, info.RequiredAntiAffinityTerms
	}
	if policy.AffinityWeight > 0 {
		c.near, c.apart = info.PreferredAffinityTerms, info.PreferredAntiAffinityTerms
	}
	c.eachTerm(func(t *fwk.AffinityTerm) { resolve(t, namespaces) })
	for i := range c.affinity {
		c.key(c.affinity[i].TopologyKey).isAsked = true
	}
	if !c.readSpreads() {
		return nil
	}
	c.size = len(c.affinity) + len(c.anti) + len(c.near) + len(c.apart) + len(c.spreads) + len(c.softSpreads)
	return c
}

// eachTerm calls a function with each term of affinity or anti-affinity, required ones first.
func (c *Counts) eachTerm(visit func(*fwk.AffinityTerm)) {
	for _, terms := range [][]fwk.AffinityTerm{c.affinity, c.anti} {
		for i := range terms {
			visit(&terms[i])
		}
	}
	for _, terms := range [][]fwk.WeightedAffinityTerm{c.near, c.apart} {
		for i := range terms {
			visit(&terms[i].AffinityTerm)
		}
	}
}

// resolve replaces the selector of namespaces of a term by the namespaces that it stands for at the moment. One that
// selects all stays as it is.
func resolve(t *fwk.AffinityTerm, namespaces []*corev1.Namespace) {
	if t.NamespaceSelector.Empty() {
		return
	}
	for _, namespace := range namespaces {
		if t.NamespaceSelector.Matches(labels.Set(namespace.Labels)) {
			t.Namespaces.Insert(namespace.Name)
		}
	}
	t.NamespaceSelector = labels.Nothing()
}

// Want is what a term or constraint of the class selects: pods with some labels in some namespaces.
type Want struct {
	Selector   labels.Selector
	Namespaces sets.Set[string] // nil means any
}

// Wants returns what the class selects. Every pod that counts because of a term of the class is among it.
func (c *Counts) Wants() []Want {
	var wants []Want
	c.eachTerm(func(t *fwk.AffinityTerm) {
		w := Want{Selector: t.Selector, Namespaces: t.Namespaces}
		if t.NamespaceSelector.Empty() {
			w.Namespaces = nil
		}
		wants = append(wants, w)
	})
	for _, spreads := range [][]*spreadCount{c.spreads, c.softSpreads} {
		for _, s := range spreads {
			if !s.selector.Empty() {
				wants = append(wants, Want{Selector: s.selector, Namespaces: sets.New(c.pod.Namespace)})
			}
		}
	}
	return wants
}

// Version grows when all nodes may be in other groups.
func (c *Counts) Version() uint64 { return c.version }

// key returns the counts by a topology key.
func (c *Counts) key(name string) *keyCounts {
	for _, k := range c.keys {
		if k.name == name {
			return k
		}
	}
	k := &keyCounts{Key: c.topology.Key(name)}
	c.keys = append(c.keys, k)
	c.version++
	return k
}

// Count counts a pod on a node in or out, by a change of +1 or -1. It reports whether the pod matters to the class.
func (c *Counts) Count(node *corev1.Node, slot int32, pod fwk.PodInfo, change int32) (matters bool) {
	c.topology.does(c.size)
	add := func(to func(*keyCounts) *tally, key string, change int32) {
		matters = true
		if _, ok := node.Labels[key]; ok {
			k := c.key(key)
			to(k).add(k.Key, k.domainOf(node), change)
		}
	}
	c.countOwners(pod, change, add)
	if len(c.affinity) > 0 && matchesAll(c.affinity, pod.GetPod()) {
		for i := range c.affinity {
			if _, ok := node.Labels[c.affinity[i].TopologyKey]; ok {
				c.nearPods += int(change)
			}
			add(near, c.affinity[i].TopologyKey, change)
		}
	}
	for i := range c.anti {
		if c.anti[i].Matches(pod.GetPod(), nil) {
			add(apart, c.anti[i].TopologyKey, change)
		}
	}
	for i := range c.near {
		if c.near[i].Matches(pod.GetPod(), nil) {
			add(points, c.near[i].TopologyKey, change*c.near[i].Weight)
		}
	}
	for i := range c.apart {
		if c.apart[i].Matches(pod.GetPod(), nil) {
			add(points, c.apart[i].TopologyKey, -change*c.apart[i].Weight)
		}
	}
	return c.countSpread(node, slot, pod.GetPod(), change) || matters
}

// CountRepelling is Count for a pod that may never come: it counts where required anti-affinity, its own or that of the
// class, keeps the class away from it, and nowhere else. Otherwise spread or affinity would hold only once it has come.
func (c *Counts) CountRepelling(node *corev1.Node, pod fwk.PodInfo, change int32) {
	add := func(to func(*keyCounts) *tally, key string) {
		if _, ok := node.Labels[key]; ok {
			k := c.key(key)
			to(k).add(k.Key, k.domainOf(node), change)
		}
	}
	if c.policy.FiltersAffinity {
		terms := pod.GetRequiredAntiAffinityTerms()
		for i := range terms {
			if terms[i].Matches(c.pod, c.space) {
				add(repelled, terms[i].TopologyKey)
			}
		}
	}
	for i := range c.anti {
		if c.anti[i].Matches(pod.GetPod(), nil) {
			add(apart, c.anti[i].TopologyKey)
		}
	}
}

// countOwners counts the terms of a pod that are about the class.
func (c *Counts) countOwners(pod fwk.PodInfo, change int32, add func(func(*keyCounts) *tally, string, int32)) {
	if c.policy.FiltersAffinity {
		terms := pod.GetRequiredAntiAffinityTerms()
		for i := range terms {
			if terms[i].Matches(c.pod, c.space) {
				add(repelled, terms[i].TopologyKey, change)
			}
		}
	}
	if c.policy.AffinityWeight == 0 {
		return
	}
	required := pod.GetRequiredAffinityTerms()
	for i := range required {
		if required[i].Matches(c.pod, c.space) {
			add(points, required[i].TopologyKey, change*hardAffinityWeight)
		}
	}
	preferred, avoided := pod.GetPreferredAffinityTerms(), pod.GetPreferredAntiAffinityTerms()
	for i := range preferred {
		if preferred[i].Matches(c.pod, c.space) {
			add(points, preferred[i].TopologyKey, change*preferred[i].Weight)
		}
	}
	for i := range avoided {
		if avoided[i].Matches(c.pod, c.space) {
			add(points, avoided[i].TopologyKey, -change*avoided[i].Weight)
		}
	}
}

func near(k *keyCounts) *tally     { return &k.near }
func apart(k *keyCounts) *tally    { return &k.apart }
func repelled(k *keyCounts) *tally { return &k.repelled }
func points(k *keyCounts) *tally   { return &k.points }

func matchesAll(terms []fwk.AffinityTerm, pod *corev1.Pod) bool {
	for i := range terms {
		if !terms[i].Matches(pod, nil) {
			return false
		}
	}
	return true
}
