package kube

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodeaffinity"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/verdict"
)

// Question asks the plugins about a class. It is valid as long as the class, and always answers for the current model.
type Question struct {
	plugins *Plugins
	pod     *corev1.Pod // the specimen of the class

	state   fwk.CycleState         // the state of the plugins that only look at one node
	refusal verdict.NodeRefusal    // of a plugin that cannot read the pod, for any node
	filters []fwk.FilterPlugin     // filters by the node object that apply to the pod, without NodeAffinity
	labels  []fwk.FilterPlugin     // NodeAffinity, if it applies to the pod
	tainted []*verdict.NodeRefusal // by taint set: what the filters say of such nodes, nil before the first is asked about
	ports   []fwk.FilterPlugin     // filters by the host ports on the node that apply to the pod
	scorers []scorer               // scorers by the node object that apply to the pod

	cost     int      // the steps that it takes to read the node affinity of the pod
	byLabels byLabels // the nodes that may match, if few do
	around   around   // what pods elsewhere say
}

// byLabels are the nodes that have the labels that a class demands.
type byLabels struct {
	epoch  uint64 // of the node objects, 0 before the first
	areFew bool
	slots  []int32 // sorted, if they are few
}

// unknown is the refusal of a node without an object. kube-scheduler has no message for it, because it never asks about
// such nodes.
var unknown = verdict.NodeState.Refuses("node(s) were not known")

// Ask returns a question about a class. There may be several questions about a class.
func (p *Plugins) Ask(k *cluster.Class) *Question { return p.ask(k.Pod, looksAtObject, looksAtImages) }

// AskObjects is Ask for what the objects of nodes say to pods of equal constraints ([Plugins.ConstraintsThatMatter]),
// whatever their images are: Refusal and Preferences.
func (p *Plugins) AskObjects(k *cluster.Class) *Question { return p.ask(k.Pod, looksAtObject) }

// ask returns a question with scorers of some kinds.
func (p *Plugins) ask(pod *corev1.Pod, scores ...reach) *Question {
	q := &Question{plugins: p, pod: pod, state: framework.NewCycleState(), cost: 1 + termsOf(pod)/termsInStep}
	for _, filter := range p.filters[looksAtObject] {
		say := &q.filters
		if filter.Name() == nodeaffinity.Name {
			say = &q.labels
		}
		if q.refusal = p.preFilter(filter, q.state, q.pod, nil, say); !q.refusal.IsNone() {
			return q
		}
	}
	for _, filter := range p.filters[looksAtNode] {
		if q.refusal = p.preFilter(filter, q.state, q.pod, nil, &q.ports); !q.refusal.IsNone() {
			return q
		}
	}
	for _, reach := range scores {
		for _, s := range p.scorers[reach] {
			if q.refusal = p.preScore(s, q.state, q.pod, nil, &q.scorers); !q.refusal.IsNone() {
				return q
			}
		}
	}
	return q
}

// Refusal returns why the node object refuses the class, in the words of kube-scheduler: the first refusal of
// NodeUnschedulable, NodeName, TaintToleration and NodeAffinity, none if all let it pass. The answer is valid until the
// node's SpecGeneration changes.
func (q *Question) Refusal(n *cluster.Node) verdict.NodeRefusal {
	if !q.refusal.IsNone() {
		return q.refusal
	}
	r := q.plugins.mirror.of(n)
	if !r.exists() {
		return unknown
	}
	if why := q.refusalByTaints(r); !why.IsNone() {
		return why
	}
	return q.refusalByLabels(r)
}

// fewByLabels is a part of the nodes. If no more can have the labels that a class demands, they are found by these.
const fewByLabels = 8

// NodesByLabels returns the slots of the only nodes that can pass Refusal, sorted, if the class demands labels that few
// nodes have, or names nodes. The caller must not change them. The answer is for the current model.
func (q *Question) NodesByLabels() (slots []int32, areFew bool) {
	m := q.plugins.mirror
	m.followObjects()
	if q.byLabels.epoch != m.epoch {
		q.byLabels = byLabels{epoch: m.epoch, areFew: !q.refusal.IsNone()}
		if q.refusal.IsNone() && len(q.labels) > 0 {
			q.byLabels.slots, q.byLabels.areFew = m.labels.Few(&q.pod.Spec, len(m.own.all)/fewByLabels)
		}
	}
	return q.byLabels.slots, q.byLabels.areFew
}

// refusalByLabels is Refusal by the labels of a node that is there.
func (q *Question) refusalByLabels(r *reflection) verdict.NodeRefusal {
	if slots, areFew := q.NodesByLabels(); areFew {
		if _, isAmong := slices.BinarySearch(slots, int32(r.node.Slot)); !isAmong {
			return verdict.NodeLabels.Refuses(nodeaffinity.ErrReasonPod)
		}
	}
	if len(q.labels) > 0 {
		q.plugins.does(q.cost)
	}
	return q.plugins.filter(q.labels, q.state, q.pod, r.info)
}

// termsInStep is how many terms of node affinity, with their values, and labels of node selectors are read in a step.
const termsInStep = 16

// termsOf is how many these are.
func termsOf(pod *corev1.Pod) (n int) {
	n = len(pod.Spec.NodeSelector)
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil {
		return n
	}
	add := func(t *corev1.NodeSelectorTerm) {
		for _, of := range [][]corev1.NodeSelectorRequirement{t.MatchExpressions, t.MatchFields} {
			for i := range of {
				n += 1 + len(of[i].Values)
			}
		}
	}
	if required := a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		for i := range required.NodeSelectorTerms {
			add(&required.NodeSelectorTerms[i])
		}
	}
	for i := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		add(&a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i].Preference)
	}
	return n
}

// refusalByTaints is Refusal by the plugins that look at nothing of a node but its taints and whether it is cordoned,
// and at its name if the pod names a node. One node of each taint set is asked about.
func (q *Question) refusalByTaints(r *reflection) verdict.NodeRefusal {
	if r.taintSet < 0 || q.pod.Spec.NodeName != "" {
		return q.plugins.filter(q.filters, q.state, q.pod, r.info)
	}
	for len(q.tainted) <= r.taintSet {
		q.tainted = append(q.tainted, nil)
	}
	if q.tainted[r.taintSet] == nil {
		why := q.plugins.filter(q.filters, q.state, q.pod, r.info)
		q.tainted[r.taintSet] = &why
	}
	return *q.tainted[r.taintSet]
}

// Preferences returns the scores of TaintToleration, NodeAffinity and ImageLocality, normalised over these nodes, times
// their weights. It is nil if the nodes cannot differ, which is a cheap check. All nodes must have an object. The
// answer is valid until the object of any node changes, because an image counts more the more nodes have it.
func (q *Question) Preferences(nodes []*cluster.Node) []int64 {
	p := q.plugins
	if !q.refusal.IsNone() || len(nodes) == 0 || !q.prefers() {
		return nil
	}
	p.infos = p.infos[:0]
	for _, n := range nodes {
		p.infos = append(p.infos, p.mirror.of(n).info)
	}
	totals := make([]int64, len(nodes))
	for _, s := range q.scorers {
		p.score(s, q.state, q.pod, p.infos, totals, q.cost)
	}
	return totals
}

// prefers reports whether the scores of two nodes can differ.
func (q *Question) prefers() bool {
	m := q.plugins.mirror
	m.followObjects()
	for _, s := range q.scorers {
		if s.mayDiffer == nil || s.mayDiffer(m, q.pod) {
			return true
		}
	}
	return false
}

// Ports returns why the class does not fit on a node by the host ports of its pods, in the words of kube-scheduler, ""
// if it does.
func (q *Question) Ports(n *cluster.Node) string {
	if !q.refusal.IsNone() || len(q.ports) == 0 {
		return q.refusal.Text
	}
	r := q.plugins.mirror.of(n)
	if !r.exists() {
		return unknown.Text
	}
	q.plugins.mirror.fill(r)
	return q.plugins.filter(q.ports, q.state, q.pod, r.info).Text
}

// preFilter runs PreFilter of a filter, and adds the filter to the list unless it skips the pod. It returns why it
// refuses.
func (p *Plugins) preFilter(filter fwk.FilterPlugin, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo,
	say *[]fwk.FilterPlugin) verdict.NodeRefusal {
	if reader, ok := filter.(fwk.PreFilterPlugin); ok {
		// PreFilter may also return a list of nodes. It is not needed, because Filter refuses all others.
		_, status := reader.PreFilter(p.quiet, state, pod, nodes)
		if status.IsSkip() {
			return verdict.NodeRefusal{}
		}
		if !status.IsSuccess() {
			return p.refusalOf(filter, status)
		}
	}
	*say = append(*say, filter)
	return verdict.NodeRefusal{}
}

// preScore is preFilter for scores.
func (p *Plugins) preScore(s scorer, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo, say *[]scorer) verdict.NodeRefusal {
	if reader, ok := s.ScorePlugin.(fwk.PreScorePlugin); ok {
		status := reader.PreScore(p.quiet, state, pod, nodes)
		if status.IsSkip() {
			return verdict.NodeRefusal{}
		}
		if !status.IsSuccess() {
			return p.refusalOf(s, status)
		}
	}
	*say = append(*say, s)
	return verdict.NodeRefusal{}
}

// filter returns the refusal of the first filter that refuses a node.
func (p *Plugins) filter(filters []fwk.FilterPlugin, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) verdict.NodeRefusal {
	return p.filterIn(p.quiet, filters, state, pod, node)
}

func (p *Plugins) filterIn(ctx context.Context, filters []fwk.FilterPlugin, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) verdict.NodeRefusal {
	for _, filter := range filters {
		if status := filter.Filter(ctx, state, pod, node); !status.IsSuccess() {
			return p.refusalOf(filter, status)
		}
	}
	return verdict.NodeRefusal{}
}

// score adds the normalised scores of a plugin, times its weight, to the totals of the nodes.
func (p *Plugins) score(s scorer, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo, totals []int64, cost int) {
	p.scores = p.scores[:0]
	for _, node := range nodes {
		p.does(cost)
		score, status := s.Score(p.quiet, state, pod, node)
		if !status.IsSuccess() {
			panic("invariant: a pod that was read cannot be scored: " + words(s, status))
		}
		p.scores = append(p.scores, fwk.NodeScore{Name: node.Node().Name, Score: score})
	}
	if extension := s.ScoreExtensions(); extension != nil {
		if status := extension.NormalizeScore(p.quiet, state, pod, p.scores); !status.IsSuccess() {
			panic("invariant: scores cannot be normalised: " + words(s, status))
		}
	}
	for i := range p.scores {
		totals[i] += p.scores[i].Score * s.weight
	}
}

// refusalOf returns what a plugin says of a pod and a node. What it is about is known from the plugin, whatever its
// words are.
func (p *Plugins) refusalOf(plugin fwk.Plugin, status *fwk.Status) verdict.NodeRefusal {
	return p.kinds[plugin.Name()].Refuses(words(plugin, status))
}

// words returns the message of a plugin. It is never empty.
func words(plugin fwk.Plugin, status *fwk.Status) string {
	return cmp.Or(status.Message(), plugin.Name()+" refused without a reason")
}
