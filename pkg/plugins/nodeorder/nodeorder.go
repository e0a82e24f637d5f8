package nodeorder

import (
	"errors"

	"hekla.sh/hekla/pkg/cluster"
	"hekla.sh/hekla/pkg/conf"
	"hekla.sh/hekla/pkg/framework"
	"hekla.sh/hekla/pkg/resources"
)

// Name is the name of the plugin in the configuration.
const Name = "nodeorder"

// kubeScores are the scores of kube-scheduler's plugins, by the argument with their weight.
var kubeScores = []struct {
	argument, plugin string
	weight           int
}{
	{"nodeaffinity.weight", "NodeAffinity", 2},
	{"podaffinity.weight", "InterPodAffinity", 2},
	{"tainttoleration.weight", "TaintToleration", 3},
	{"imagelocality.weight", "ImageLocality", 1},
	{"podtopologyspread.weight", "PodTopologySpread", 2},
}

// Factory makes the plugin.
func Factory() framework.PluginFactory {
	weight := func(name string, value int, doc string) conf.Argument {
		return conf.Argument{Name: name, Kind: conf.Int, Default: value, Check: notNegative, Doc: doc}
	}
	arguments := []conf.Argument{
		weight("leastrequested.weight", 1, "Prefers nodes with more free CPU and memory."),
		weight("mostrequested.weight", 0, "Prefers nodes with less free CPU and memory."),
		weight("balancedresource.weight", 1, "Prefers nodes whose use of CPU and memory the pod makes more alike."),
	}
	for _, s := range kubeScores {
		arguments = append(arguments, weight(s.argument, s.weight, "Weight of the kube-scheduler's "+s.plugin+" score."))
	}
	return framework.PluginFactory{Name: Name, Spec: conf.Spec{Arguments: arguments}, New: newPlugin}
}

func notNegative(value any) error {
	if n, ok := value.(int); ok && n < 0 {
		return errors.New("zero or more")
	}
	return nil
}

type plugin struct {
	least, most, balanced int64
	kube                  []framework.KubeScore
}

func newPlugin(_ conf.Switches, arguments conf.Arguments) (framework.Plugin, error) {
	p := &plugin{
		least:    int64(arguments.Int("leastrequested.weight")),
		most:     int64(arguments.Int("mostrequested.weight")),
		balanced: int64(arguments.Int("balancedresource.weight")),
	}
	for _, s := range kubeScores {
		if weight := int64(arguments.Int(s.argument)); weight > 0 {
			p.kube = append(p.kube, framework.KubeScore{Name: s.plugin, Weight: weight})
		}
	}
	return p, nil
}

func (*plugin) Name() string { return Name }

func (p *plugin) KubeScores() []framework.KubeScore { return p.kube }

// points converts millionths of the best score to the unit of scores.
const points = 100 * framework.Point

func (p *plugin) ScoreNode(k *cluster.Class, n *cluster.Node) int64 {
	cpu, memory := n.Allocatable.At(resources.CPU), n.Allocatable.At(resources.Memory)
	var score int64
	if p.least+p.most > 0 {
		score += p.fullness(mean(
			millionths(n.NonZero[0]+k.NonZero[0], cpu), cpu > 0,
			millionths(n.NonZero[1]+k.NonZero[1], memory), memory > 0))
	}
	if p.balances(k) && cpu > 0 && memory > 0 {
		usedCPU, usedMemory := n.Used.At(resources.CPU), n.Used.At(resources.Memory)
		score += p.evenness(
			balance(millionths(usedCPU+k.Request.At(resources.CPU), cpu), millionths(usedMemory+k.Request.At(resources.Memory), memory)),
			balance(millionths(usedCPU, cpu), millionths(usedMemory, memory)))
	}
	return score
}

// AddScores is [plugin.ScoreNode] for many nodes.
func (p *plugin) AddScores(k *cluster.Class, t *cluster.NodeTable, slots []int32, scores []int64) {
	cpus, memories := t.Column(resources.CPU), t.Column(resources.Memory)
	requested := [2]int64{k.Request.At(resources.CPU), k.Request.At(resources.Memory)}
	cpusWith, memoriesWith := t.UsedWith(resources.CPU, requested[0]), t.UsedWith(resources.Memory, requested[1])
	cpusWith, memoriesWith, scores = cpusWith[:len(slots)], memoriesWith[:len(slots)], scores[:len(slots)]
	requestsAll := k.NonZero == requested
	for i, slot := range slots {
		if p.least+p.most == 0 {
			break
		}
		cpu, memory := &cpus[slot], &memories[slot]
		countedCPU, countedMemory := cpusWith[i], memoriesWith[i]
		if counted := t.NonZero[slot]; !requestsAll || counted[0] != cpu.Used || counted[1] != memory.Used {
			countedCPU, countedMemory = cpu.Part(counted[0]+k.NonZero[0]), memory.Part(counted[1]+k.NonZero[1])
		}
		scores[i] += p.fullness(mean(countedCPU, cpu.Allocatable > 0, countedMemory, memory.Allocatable > 0))
	}
	if !p.balances(k) {
		return
	}
	for i, slot := range slots {
		if cpu, memory := &cpus[slot], &memories[slot]; cpu.Allocatable > 0 && memory.Allocatable > 0 {
			scores[i] += p.evenness(balance(cpusWith[i], memoriesWith[i]), balance(cpu.UsedPart, memory.UsedPart))
		}
	}
}

// fullness is the score of a node of which so many millionths are used with the pod.
func (p *plugin) fullness(used int64) int64 {
	return (p.least*(resources.Million-used) + p.most*used) * points / resources.Million
}

// balances reports whether pods of a class are scored by how they balance a node.
func (p *plugin) balances(k *cluster.Class) bool {
	return p.balanced > 0 && (k.Request.At(resources.CPU) > 0 || k.Request.At(resources.Memory) > 0)
}

// evenness is the score of a node that is so balanced with the pod, and without it. Half the score is for keeping the
// balance as it is, all for perfecting it: as kube-scheduler since 1.35.
func (p *plugin) evenness(with, without int64) int64 {
	return p.balanced * (resources.Million/2 + (resources.Million/2+with-without)/2) * points / resources.Million
}

// balance is how alike the used parts of CPU and memory are, in millionths.
func balance(cpu, memory int64) int64 {
	difference := cpu - memory
	return resources.Million - max(difference, -difference)/2
}

func millionths(a, b int64) int64 {
	if b <= 0 {
		return 0
	}
	return resources.Millionths(a, b)
}

// mean is the mean of those of two values that count.
func mean(a int64, countA bool, b int64, countB bool) int64 {
	switch {
	case countA && countB:
		return (a + b) / 2
	case countA:
		return a
	}
	return b
}
