package networktopology

import (
	"errors"
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/cluster/model"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// Name is the name of the plugin in the configuration.
const Name = "network-topology-aware"

const (
	weightKey      = "weight"
	cpuKey         = "hypernode.binpack.cpu"
	memoryKey      = "hypernode.binpack.memory"
	resourcesKey   = "hypernode.binpack.resources"
	resourcePrefix = resourcesKey + "."
	normalKey      = "hypernode.binpack.normal-pod.enable"
	fadingKey      = "hypernode.binpack.normal-pod.fading"
	evictKey       = "hypernode.gradient.evict.max-hypernodes"
)

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{Arguments: []conf.Argument{
			{Name: weightKey, Kind: conf.Int, Default: 1, Check: notNegative, Doc: "How much the scores count compared with other plugins'."},
			{Name: cpuKey, Kind: conf.Int, Default: 1, Check: notNegative, Doc: "The weight of CPU."},
			{Name: memoryKey, Kind: conf.Int, Default: 1, Check: notNegative, Doc: "The weight of memory."},
			{Name: resourcesKey, Kind: conf.String, Default: "", Doc: "Further resources that count, separated by commas."},
			{Name: resourcePrefix + "<resource>", Kind: conf.Int, Default: 1, Check: notNegative, Doc: "The weight of one of them."},
			{Name: normalKey, Kind: conf.Bool, Default: true,
				Doc: "Whether pods of jobs that say nothing of the network are kept together too, for the sake of the others."},
			{Name: fadingKey, Kind: conf.Float, Default: 0.8, Check: isPart,
				Doc: "How much less a HyperNode counts in that than the one below it, from 0 to 1."},
			{Name: evictKey, Kind: conf.Int, Default: 8, Check: isPositive,
				Doc: "In how many HyperNodes at the most room is sought by evictions for one job."},
		}},
		New: newPlugin,
	}
}

func notNegative(value any) error {
	if n, ok := value.(int); ok && n < 0 {
		return errors.New("zero or more")
	}
	return nil
}

func isPositive(value any) error {
	if n, ok := value.(int); ok && n < 1 {
		return errors.New("one or more")
	}
	return nil
}

func isPart(value any) error {
	if f, ok := value.(float64); ok && (f < 0 || f > 1) {
		return errors.New("from 0 to 1")
	}
	return nil
}

type plugin struct {
	weight  int64
	weights map[corev1.ResourceName]int64
	byDim   []int64 // weights by dimension, worked out when a session opens
	packs   bool    // pods without a topology too
	fading  int64   // in millionths
	making  int

	model    *model.Cluster
	fullness map[*cluster.HyperNode][]int64 // in percent by dimension, when the session opened
	isSplit  map[int]bool                   // tiers that have more than one HyperNode
}

func newPlugin(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	p := &plugin{weight: int64(arguments.Int(weightKey)), weights: map[corev1.ResourceName]int64{
		corev1.ResourceCPU:    int64(arguments.Int(cpuKey)),
		corev1.ResourceMemory: int64(arguments.Int(memoryKey)),
	}, packs: arguments.Bool(normalKey), making: arguments.Int(evictKey),
		fading: int64(math.Round(arguments.Float(fadingKey) * resources.Million))}
	for _, name := range strings.Split(arguments.String(resourcesKey), ",") {
		if name = strings.TrimSpace(name); name != "" {
			p.weights[corev1.ResourceName(name)] = int64(arguments.Int(resourcePrefix + name))
		}
	}
	for name := range arguments.Each(resourcePrefix) {
		if _, listed := p.weights[corev1.ResourceName(name)]; !listed {
			return nil, fmt.Errorf("%s has a weight, but %s does not list %s", resourcePrefix+name, resourcesKey, name)
		}
	}
	return p, nil
}

func (*plugin) Name() string { return Name }

// OpenSession stores how full the HyperNodes are, and invalidates the nodes of those that have changed.
func (p *plugin) OpenSession(s *framework.Session) {
	index := s.Cluster.Resources
	for d := len(p.byDim); d < index.Len(); d++ {
		p.byDim = append(p.byDim, p.weights[index.Name(resources.Dim(d))])
	}
	hyperNodes := s.Cluster.HyperNodes()
	if len(hyperNodes) == 0 && len(p.fullness) == 0 || !p.packs {
		return
	}
	before := p.fullness
	p.fullness, p.isSplit = make(map[*cluster.HyperNode][]int64, len(hyperNodes)), map[int]bool{}
	if p.model != s.Cluster {
		p.model, before = s.Cluster, nil
	}
	for i, h := range hyperNodes {
		if i > 0 && hyperNodes[i-1].Tier == h.Tier {
			p.isSplit[h.Tier] = true
		}
		now, has := before[h]
		isNew := !has
		if isNew {
			now = make([]int64, 0, len(p.byDim))
		}
		changed := isNew
		for d := range p.byDim {
			if d == len(now) {
				now = append(now, 0)
			}
			if percent := percentOf(h, resources.Dim(d)); p.byDim[d] > 0 && percent != now[d] {
				now[d], changed = percent, true
			}
		}
		p.fullness[h] = now
		for _, n := range s.Cluster.NodesIn(h.Domain) {
			if changed {
				s.Cluster.Outdate(n)
			}
		}
	}
}

func percentOf(h *cluster.HyperNode, d resources.Dim) int64 {
	have := h.Allocatable(d)
	if have <= 0 {
		return 0
	}
	return h.Used(d) * 100 / have
}

// GradeHyperNodes groups HyperNodes by tier, the lowest first.
func (*plugin) GradeHyperNodes(among []*cluster.HyperNode) [][]*cluster.HyperNode {
	var groups [][]*cluster.HyperNode
	for i, h := range among {
		if i == 0 || among[i-1].Tier != h.Tier {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], h)
	}
	return groups
}

// MaxEvicting implements [framework.HyperNodeGrader].
func (p *plugin) MaxEvicting() int { return p.making }

// ScoreHyperNode returns 0 to 100 points times the weight: how full the HyperNode would be.
func (p *plugin) ScoreHyperNode(request resources.Vector, h *cluster.HyperNode) int64 {
	var sum, weights int64
	for d, amount := range request {
		dim := resources.Dim(d)
		if amount == 0 || d >= len(p.byDim) || p.byDim[d] == 0 {
			continue
		}
		weights += p.byDim[d]
		if have := h.Allocatable(dim); have > 0 {
			sum += resources.Millionths(h.Used(dim)+amount, have) * p.byDim[d]
		}
	}
	if weights == 0 {
		return 0
	}
	return sum / weights * p.weight * 100 * framework.Point / resources.Million
}

// ScoreNode returns 0 to 100 points times the weight: how full the HyperNodes of the node are in what the pods request.
func (p *plugin) ScoreNode(k *cluster.Class, n *cluster.Node) int64 {
	if len(p.fullness) == 0 {
		return 0
	}
	var score, most int64
	part := int64(resources.Million)
	for _, h := range n.HyperNodes() {
		if !p.isSplit[h.Tier] {
			continue // the score is the same for all nodes
		}
		score += part * p.fullnessFor(k, p.fullness[h])
		most += part
		part = part * p.fading / resources.Million
	}
	if most == 0 {
		return 0
	}
	return score * p.weight * framework.Point / most
}

// fullnessFor is how full a HyperNode is in what a class requests, in percent.
func (p *plugin) fullnessFor(k *cluster.Class, percents []int64) int64 {
	var sum, weights int64
	for d, amount := range k.Request {
		if amount > 0 && d < len(percents) && p.byDim[d] > 0 {
			sum += percents[d] * p.byDim[d]
			weights += p.byDim[d]
		}
	}
	if weights == 0 {
		return 0
	}
	return sum / weights
}
