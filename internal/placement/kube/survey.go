package kube

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/interpodaffinity"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/podtopologyspread"

	"hekla.sh/hekla/internal/placement/kube/domains"
	"hekla.sh/hekla/internal/placement/kube/population"
	"hekla.sh/hekla/pkg/cluster"
)

// Front is described at [domains.Front].
type Front = domains.Front

// around is what a question knows of pods elsewhere.
type around struct {
	counts *domains.Counts // nil if nothing was counted yet, or a plugin cannot read the pod

	refusal string // of a plugin that cannot read the pod, for any node
	atLast  bool   // this plugin only scores, and so refuses what nothing else does

	isCounted  bool
	seen       uint64 // how far the changes of the population have been followed
	counted    int    // how many pods had to be looked at
	spaces     uint64 // the generation of the namespaces that the counts are for
	topology   uint64 // and of the topology
	generation uint64 // of the counts
}

// Survey says what PodTopologySpread and InterPodAffinity, which look at pods elsewhere, say of nodes that pass
// everything else. For each node, it returns why the class does not fit, in the words of kube-scheduler, "" if it does.
// It also returns the plugins' scores times their weights, normalised over the nodes that fit, 0 for a node that is
// refused. The answer is for the current model.
func (q *Question) Survey(candidates []*cluster.Node) (refusals []string, scores []int64) {
	q.lookAround()
	refusals, scores = make([]string, len(candidates)), make([]int64, len(candidates))
	fronts := make([]Front, 0, len(candidates))
	for i, n := range candidates {
		if refusals[i] = q.refuse(n); refusals[i] == "" {
			fronts = append(fronts, Front{Slot: int32(n.Slot), Nodes: 1})
		}
	}
	if len(fronts) == 0 || q.around.counts == nil {
		return refusals, scores
	}
	q.around.counts.Rate(fronts)
	for i := range candidates {
		if refusals[i] == "" {
			scores[i], fronts = fronts[0].Score, fronts[1:]
		}
	}
	return refusals, scores
}

// Around returns why the class does not fit on a node because of pods elsewhere, as [Question.Survey] does.
func (q *Question) Around(n *cluster.Node) (refusal string) {
	q.lookAround()
	return q.refuse(n)
}

// MayHoldOnNewNode reports whether the class could fit on a node that is added, as far as its affinity to other pods
// goes.
func (q *Question) MayHoldOnNewNode() bool {
	q.lookAround()
	if a := &q.around; a.counts == nil {
		return a.refusal == "" || a.atLast
	}
	return q.around.counts.MayHoldOnNewNode()
}

// refuse returns why the class does not fit on a node because of pods elsewhere.
func (q *Question) refuse(n *cluster.Node) string {
	a := &q.around
	switch {
	case !q.plugins.mirror.of(n).exists():
		return unknown.Text
	case a.refusal != "" && !a.atLast:
		return a.refusal
	}
	why := ""
	if a.counts != nil {
		why = a.counts.Refusal(int32(n.Slot))
	}
	return cmp.Or(why, a.refusal)
}

// Groups counts the pods elsewhere. Nodes fall into groups of which Survey says the same, see [Question.Group]. The
// result changes when all nodes may be in other groups. A node may also change its group when its pods or the object of
// any node have changed.
func (q *Question) Groups() (version uint64) {
	q.lookAround()
	if a := &q.around; a.counts != nil {
		return a.generation<<32 | a.counts.Version()
	}
	return q.around.generation << 32
}

// Group appends to a key what tells a node from nodes of other groups. Groups must have been called for the current
// model.
func (q *Question) Group(n *cluster.Node, key []byte) []byte {
	if q.around.counts == nil {
		return key
	}
	return q.around.counts.Group(int32(n.Slot), key)
}

// Rate does for groups of nodes what Survey does for nodes. Groups must have been called for the current model.
func (q *Question) Rate(fronts []Front) {
	a := &q.around
	if a.counts != nil {
		a.counts.Rate(fronts)
	}
	for i := range fronts {
		fronts[i].IsRefused = fronts[i].IsRefused || a.refusal != ""
	}
}

// lookAround brings the counts up to date.
func (q *Question) lookAround() {
	m, a := q.plugins.mirror, &q.around
	m.followPods()
	isCurrent := a.isCounted && a.spaces == m.spacesAre && a.topology == m.topology.Generation
	if isCurrent && a.seen == m.population.End() {
		return
	}
	changes, ok := m.population.Since(a.seen)
	// If more pods have come and gone than matter, it is quicker to count those.
	if !isCurrent || !ok || len(changes) > population.Worth(a.counted, len(m.bySlot)) {
		q.countAll()
		return
	}
	a.seen = m.population.End()
	if a.counts == nil {
		return
	}
	a.isCounted = false // should something panic, half of it is not taken for all
	for i := range changes {
		c := &changes[i]
		if c.Pod == nil {
			a.counts.CountNode(c.Node, c.By)
		} else {
			a.count(c.Node, c.Slot, c.Pod, c.By, c.IsNominee)
		}
	}
	a.isCounted = true
}

// countAll counts all pods that matter.
func (q *Question) countAll() {
	m, a := q.plugins.mirror, &q.around
	*a = around{seen: m.population.End(), spaces: m.spacesAre, generation: a.generation + 1}
	if a.refusal = domains.TooMuch(q.pod); a.refusal != "" {
		a.topology, a.isCounted = m.topology.Generation, true
		return
	}
	policy := q.plugins.aroundPolicy
	a.counts = domains.New(q.pod, policy, &m.topology, m.cluster.Namespaces())
	if a.counts == nil {
		a.refusal, a.atLast = q.readAround()
		if a.atLast { // the filters can read what they need
			policy.SpreadWeight, policy.AffinityWeight = 0, 0
			a.counts = domains.New(q.pod, policy, &m.topology, m.cluster.Namespaces())
		}
	}
	a.topology = m.topology.Generation
	if a.counts == nil {
		a.isCounted = len(m.own.all) > 0 // without nodes the plugins do not read the pod
		return
	}
	a.counts.CountNodes()
	m.population.Search(q.pod, a.counts.Wants(), func(p *population.Pod) {
		a.counted++
		if r := m.bySlot[p.Slot]; p.IsShown && r.exists() {
			a.count(r.info.Node(), p.Slot, p.PodInfo, +1, p.IsNominee)
		}
	})
	a.isCounted = true
}

// count counts a pod in or out. One that another scheduler has nominated to the node may never come: it keeps others
// away, and helps none.
func (a *around) count(node *corev1.Node, slot int32, pod fwk.PodInfo, by int32, isNominee bool) {
	if isNominee {
		a.counts.CountRepelling(node, pod, by)
	} else {
		a.counts.Count(node, slot, pod, by)
	}
}

// readAround returns what a plugin says that cannot read the pod, and whether it only scores.
func (q *Question) readAround() (refusal string, onlyScores bool) {
	p, state := q.plugins, framework.NewCycleState()
	for _, filter := range p.filters[looksAround] {
		var say []fwk.FilterPlugin
		if refusal = p.preFilter(filter, state, q.pod, p.mirror.own.all, &say).Text; refusal != "" {
			return refusal, false
		}
	}
	for _, s := range p.scorers[looksAround] {
		var say []scorer
		if refusal = p.preScore(s, state, q.pod, p.mirror.own.all, &say).Text; refusal != "" {
			return refusal, true
		}
	}
	return "pod cannot be read", false
}

// policyAround says what the plugins that look at pods elsewhere are used for.
func (p *Plugins) policyAround() domains.Policy {
	policy := domains.Policy{Features: p.features}
	for _, filter := range p.filters[looksAround] {
		switch filter.Name() {
		case podtopologyspread.Name:
			policy.FiltersSpread = true
		case interpodaffinity.Name:
			policy.FiltersAffinity = true
		}
	}
	for _, s := range p.scorers[looksAround] {
		switch s.Name() {
		case podtopologyspread.Name:
			policy.SpreadWeight = s.weight
		case interpodaffinity.Name:
			policy.AffinityWeight = s.weight
		}
	}
	return policy
}
