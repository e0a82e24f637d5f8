package resourcestrategyfit

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/apis/bounds"
	schedulingv1beta1 "hekla.sh/hekla/pkg/apis/scheduling/v1beta1"
	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

type plugin struct {
	weight     int64
	strategies map[string]strategy
	scarce     scarce
	reserves   []reserve

	index   *resources.Index
	byDim   []strategy                    // by dimension; weight 0 does not count
	byClass map[*cluster.Class][]strategy // of classes with annotations
}

func newPlugin(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	p := &plugin{weight: int64(arguments.Int(weightKey)), byClass: map[*cluster.Class][]strategy{}}
	var err error
	if p.strategies, err = readStrategies(arguments.Any(resourcesKey)); err != nil {
		return nil, err
	}
	if p.scarce, err = readScarce(arguments.Any(scarceKey)); err != nil {
		return nil, err
	}
	p.reserves, err = readReserves(arguments.Any(proportionalKey))
	return p, err
}

func (*plugin) Name() string { return Name }

// DeclareKeys declares the annotations of a pod that change its scores.
func (*plugin) DeclareKeys() cluster.Keys {
	return cluster.Keys{PodAnnotations: []string{schedulingv1beta1.ResourceStrategyTypeKey, schedulingv1beta1.ResourceStrategyWeightKey}}
}

func (p *plugin) OpenSession(s *framework.Session) {
	p.index = s.Cluster.Resources
	for d := len(p.byDim); d < p.index.Len(); d++ {
		p.byDim = append(p.byDim, p.strategyOf(string(p.index.Name(resources.Dim(d)))))
		clear(p.byClass) // they have a length by the number of resources
	}
	maps.DeleteFunc(p.byClass, func(k *cluster.Class, _ []strategy) bool { return !k.InUse() })
}

// strategyOf returns the strategy of a resource, with weight 0 if it has none.
func (p *plugin) strategyOf(resource string) strategy {
	if s, isNamed := p.strategies[resource]; isNamed {
		return s
	}
	var best strategy
	longest := 0
	// Two matching prefixes of one length are equal, so the order of the map does not matter.
	for pattern, s := range p.strategies {
		prefix, isPattern := strings.CutSuffix(pattern, "*")
		if isPattern && len(prefix) > longest && strings.HasPrefix(resource, prefix) {
			best, longest = s, len(prefix)
		}
	}
	return best
}

// strategiesFor returns the strategies for a class.
func (p *plugin) strategiesFor(k *cluster.Class) []strategy {
	kind := k.Pod.Annotations[schedulingv1beta1.ResourceStrategyTypeKey]
	text := k.Pod.Annotations[schedulingv1beta1.ResourceStrategyWeightKey]
	if kind == "" && text == "" {
		return p.byDim
	}
	if own, isKnown := p.byClass[k]; isKnown {
		return own
	}
	own := append([]strategy(nil), p.byDim...)
	for name, weight := range readWeights(text) {
		if d, isKnown := p.index.Find(name); isKnown && int(d) < len(own) {
			own[d].weight = weight
		}
	}
	if kind == leastAllocated || kind == mostAllocated {
		for d := range own {
			own[d].mostAllocated = kind == mostAllocated
		}
	}
	p.byClass[k] = own
	return own
}

// readWeights reads the weights in a pod's annotation, nil if they cannot be read.
func readWeights(text string) map[corev1.ResourceName]int64 {
	weights := map[corev1.ResourceName]int64{}
	if text == "" || bounds.UnmarshalJSON([]byte(text), &weights) != nil {
		return nil
	}
	for _, weight := range weights {
		if weight < 0 || weight > maxWeight {
			return nil
		}
	}
	return weights
}

// DeclareNodeKeys declares that no annotation or label of a node matters.
func (*plugin) DeclareNodeKeys() (annotations, labels []string) { return nil, nil }

// RefuseNode refuses nodes on which the pod would use CPU or memory that is kept for scarce resources.
func (p *plugin) RefuseNode(k *cluster.Class, n *cluster.Node) string {
	for i := range p.reserves {
		if d, isKnown := p.index.Find(p.reserves[i].name); isKnown && k.Request.At(d) > 0 {
			return ""
		}
	}
	for i := range p.reserves {
		r := &p.reserves[i]
		d, isKnown := p.index.Find(r.name)
		if !isKnown {
			continue
		}
		idle := float64(max(n.Free(d), 0))
		if takes(k, n, resources.CPU, idle*r.cores*1e3) || takes(k, n, resources.Memory, idle*r.memory*1e9) {
			return "node(s) keep CPU and memory for their idle " + string(r.name)
		}
	}
	return ""
}

// takes reports whether a pod would leave less of a resource than is kept.
func takes(k *cluster.Class, n *cluster.Node, d resources.Dim, kept float64) bool {
	request := k.Request.At(d)
	return request > 0 && float64(n.Free(d)-request) < kept
}

// ScoreNode returns 0 to 100 points times the weight, plus 0 to 100 times that of sra.
func (p *plugin) ScoreNode(k *cluster.Class, n *cluster.Node) int64 {
	return p.fit(k, n) + p.spare(k, n)
}

// fit scores how full the pod makes the node.
func (p *plugin) fit(k *cluster.Class, n *cluster.Node) int64 {
	if p.weight == 0 {
		return 0
	}
	var sum, weights int64
	strategies := p.strategiesFor(k)
	for d, request := range k.Request {
		if request == 0 || d >= len(strategies) || strategies[d].weight == 0 {
			continue
		}
		dim, s := resources.Dim(d), strategies[d]
		weights += s.weight
		have := n.Allocatable.At(dim)
		if have <= 0 {
			continue
		}
		part := min(resources.Millionths(n.Used.At(dim)+request, have), resources.Million)
		if !s.mostAllocated {
			part = resources.Million - part
		}
		sum += part * s.weight
	}
	if weights == 0 {
		return 0
	}
	return sum / weights * p.weight * 100 * framework.Point / resources.Million
}

// spare scores how little of the scarce resources the node has.
func (p *plugin) spare(k *cluster.Class, n *cluster.Node) int64 {
	if p.scarce.weight == 0 {
		return 0
	}
	for d, request := range k.Request {
		if request > 0 && n.Allocatable.At(resources.Dim(d)) == 0 {
			return 0
		}
	}
	var has, weights int64
	for i, name := range p.scarce.names {
		weights += p.scarce.weights[i]
		if d, isKnown := p.index.Find(name); isKnown && n.Has(d) {
			has += p.scarce.weights[i]
		}
	}
	if weights == 0 {
		return 0
	}
	return resources.Millionths(weights-has, weights) * p.scarce.weight * 100 * framework.Point / resources.Million
}
