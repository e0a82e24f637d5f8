package binpack

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// Name is the name of the plugin in the configuration.
const Name = "binpack"

const resourcePrefix = "binpack.resources."

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	return framework.PluginFactory{
		Name: Name,
		Spec: conf.Spec{Arguments: []conf.Argument{
			{Name: "binpack.weight", Kind: conf.Int, Default: 1, Check: notNegative, Doc: "How much the score counts compared with other plugins'."},
			{Name: "binpack.cpu", Kind: conf.Int, Default: 1, Check: notNegative, Doc: "The weight of CPU."},
			{Name: "binpack.memory", Kind: conf.Int, Default: 1, Check: notNegative, Doc: "The weight of memory."},
			{Name: "binpack.resources", Kind: conf.String, Default: "", Doc: "Further resources that count, separated by commas."},
			{Name: resourcePrefix + "<resource>", Kind: conf.Int, Default: 1, Check: notNegative, Doc: "The weight of one of them."},
		}},
		New: newPlugin,
	}
}

func notNegative(value any) error {
	if n, ok := value.(int); ok && n < 0 {
		return fmt.Errorf("zero or more")
	}
	return nil
}

type plugin struct {
	weight  int64
	weights map[corev1.ResourceName]int64
	byDim   []int64 // weights by dimension, worked out when a session opens
	sums    []int64 // space to work in
}

func newPlugin(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	p := &plugin{weight: int64(arguments.Int("binpack.weight")), weights: map[corev1.ResourceName]int64{
		corev1.ResourceCPU:    int64(arguments.Int("binpack.cpu")),
		corev1.ResourceMemory: int64(arguments.Int("binpack.memory")),
	}}
	for _, name := range strings.Split(arguments.String("binpack.resources"), ",") {
		if name = strings.TrimSpace(name); name != "" {
			p.weights[corev1.ResourceName(name)] = int64(arguments.Int(resourcePrefix + name))
		}
	}
	for name := range arguments.Each(resourcePrefix) {
		if _, listed := p.weights[corev1.ResourceName(name)]; !listed {
			return nil, fmt.Errorf("%s has a weight, but binpack.resources does not list %s", resourcePrefix+name, name)
		}
	}
	return p, nil
}

func (*plugin) Name() string { return Name }

func (p *plugin) OpenSession(s *framework.Session) {
	index := s.Cluster.Resources
	for d := len(p.byDim); d < index.Len(); d++ {
		p.byDim = append(p.byDim, p.weights[index.Name(resources.Dim(d))])
	}
}

// ScoreNode returns 0 to 100 points times the weight.
func (p *plugin) ScoreNode(k *cluster.Class, n *cluster.Node) int64 {
	var sum, weights int64
	for d, request := range k.Request {
		if request == 0 || d >= len(p.byDim) || p.byDim[d] == 0 {
			continue
		}
		dim := resources.Dim(d)
		weights += p.byDim[d]
		if have := n.Allocatable.At(dim); have > 0 {
			sum += resources.Millionths(n.Used.At(dim)+request, have) * p.byDim[d]
		}
	}
	if weights == 0 {
		return 0
	}
	return sum / weights * p.weight * 100 * framework.Point / resources.Million
}

// AddScores is [plugin.ScoreNode] for many nodes.
func (p *plugin) AddScores(k *cluster.Class, t *cluster.NodeTable, slots []int32, scores []int64) {
	var weights int64
	for d := range k.Request {
		if p.isWeighed(k, d) {
			weights += p.byDim[d]
		}
	}
	if weights == 0 {
		return
	}
	sums := p.sums[:0]
	for range slots {
		sums = append(sums, 0)
	}
	p.sums = sums
	for d := range k.Request {
		if !p.isWeighed(k, d) {
			continue
		}
		for i, part := range t.UsedWith(resources.Dim(d), k.Request[d]) {
			sums[i] += part * p.byDim[d]
		}
	}
	for i, sum := range sums {
		scores[i] += sum / weights * p.weight * 100 * framework.Point / resources.Million
	}
}

// isWeighed reports whether a resource counts for a class.
func (p *plugin) isWeighed(k *cluster.Class, d int) bool {
	return k.Request[d] != 0 && d < len(p.byDim) && p.byDim[d] != 0
}
